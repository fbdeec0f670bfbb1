//! The command line of `cargo xtask`, read by hand: a few words do not earn a parser crate.

use anyhow::{Context, bail};

/// What `cargo xtask` can do, as shown to a reader.
pub const USAGE: &str = "\
usage: cargo xtask <task>

  test [--fast] [-- ARGS]    the full run: format, clippy, docs, doc tests, all tests, npm
                             --fast  only format and tests
                             ARGS    go to the test runner, for example a name to filter by
  bench [NAME] [--rounds N]  run one bench, or all; fails when a target is not met
  bench --list               name the benches
  npm                        build, check and test the npm package, as the full run does
  npm pack                   build and pack it with the program for this platform, to publish
  codex                      print the path of the pinned Codex, installing it if it is missing
";

/// The word that makes this program the scripted model of a bench; not for people.
pub const SERVE_MODEL: &str = "serve-model";

/// The word that makes this program an agent of the Agent Client Protocol; not for people.
pub const SERVE_ACP: &str = "serve-acp";

/// One thing to do.
#[derive(Debug, PartialEq, Eq)]
pub enum Task {
    /// Show the usage.
    Help,
    /// Print where the pinned Codex is.
    Codex,
    /// Build, check and test the npm package.
    Npm,
    /// Pack the npm packages.
    NpmPack,
    /// The full test run.
    Test(TestOptions),
    /// Be the scripted model of a bench.
    ServeModel,
    /// Be the agent that a peer of the daemon serves in a bench.
    ServeAcp,
    /// Name the benches.
    BenchList,
    /// Run benches.
    Bench(BenchOptions),
}

/// How to run the tests.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TestOptions {
    /// Leave out clippy, docs and doc tests.
    pub fast: bool,
    /// Handed to the test runner as they are.
    pub runner: Vec<String>,
}

/// Which benches to run, and how often.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct BenchOptions {
    /// One bench; all of them without it.
    pub name: Option<String>,
    /// Rounds to measure; each bench has its own default.
    pub rounds: Option<usize>,
}

/// Reads the words after `cargo xtask`.
pub fn parse(words: impl IntoIterator<Item = String>) -> anyhow::Result<Task> {
    let mut words = words.into_iter();
    match words.next().as_deref() {
        None | Some("help" | "--help" | "-h") => Ok(Task::Help),
        Some("codex") => match words.next() {
            None => Ok(Task::Codex),
            Some(word) => unknown(&word),
        },
        Some("npm") => match words.next() {
            None => Ok(Task::Npm),
            Some(word) if word == "pack" => Ok(Task::NpmPack),
            Some(word) => unknown(&word),
        },
        Some(SERVE_MODEL) => Ok(Task::ServeModel),
        Some(SERVE_ACP) => Ok(Task::ServeAcp),
        Some("test") => test(words),
        Some("bench") => bench(words),
        Some(word) => unknown(word),
    }
}

fn test(mut words: impl Iterator<Item = String>) -> anyhow::Result<Task> {
    let mut options = TestOptions::default();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--fast" => options.fast = true,
            "--" => options.runner = words.by_ref().collect(),
            _ => return unknown(&word),
        }
    }
    Ok(Task::Test(options))
}

fn bench(mut words: impl Iterator<Item = String>) -> anyhow::Result<Task> {
    let mut options = BenchOptions::default();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--list" => return Ok(Task::BenchList),
            "--rounds" => options.rounds = Some(rounds(words.next())?),
            _ if word.starts_with('-') || options.name.is_some() => return unknown(&word),
            _ => options.name = Some(word),
        }
    }
    Ok(Task::Bench(options))
}

fn rounds(word: Option<String>) -> anyhow::Result<usize> {
    let word = word.context("`--rounds` needs a number")?;
    match word.parse() {
        Ok(0) | Err(_) => bail!("`--rounds` needs a number above 0, not `{word}`"),
        Ok(rounds) => Ok(rounds),
    }
}

fn unknown(word: &str) -> anyhow::Result<Task> {
    bail!("unexpected `{word}`\n\n{USAGE}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(line: &str) -> anyhow::Result<Task> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn every_task_is_read() {
        assert_eq!(task("").unwrap(), Task::Help);
        assert_eq!(task("codex").unwrap(), Task::Codex);
        assert_eq!(task("npm").unwrap(), Task::Npm);
        assert_eq!(task("npm pack").unwrap(), Task::NpmPack);
        assert_eq!(task("serve-model").unwrap(), Task::ServeModel);
        assert_eq!(task("test").unwrap(), Task::Test(TestOptions::default()));
        let runner = vec!["--no-capture".to_owned(), "peer".to_owned()];
        let options = TestOptions { fast: true, runner };
        assert_eq!(task("test --fast -- --no-capture peer").unwrap(), Task::Test(options));
        assert_eq!(task("bench --list").unwrap(), Task::BenchList);
        let options = BenchOptions { name: Some("turn".to_owned()), rounds: Some(9) };
        assert_eq!(task("bench turn --rounds 9").unwrap(), Task::Bench(options));
    }

    #[test]
    fn strange_words_are_refused_with_the_usage() {
        for line in ["tset", "test peer", "codex now", "bench a b", "bench --fast"] {
            let error = task(line).unwrap_err().to_string();
            assert!(error.ends_with(USAGE), "{line}: {error}");
        }
        assert!(task("bench --rounds 0").is_err());
        assert!(task("bench --rounds").is_err());
    }
}
