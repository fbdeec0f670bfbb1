//! `bindery exec`: one turn without questions, with the flags and the output of `codex exec`.

mod flags;

mod human;

mod opening;

mod running;

mod words;

use std::process::ExitCode;

use anyhow::Context as _;
use bindery::engine::config::{Config, Home, Trust, parse_override, save_project_trust};
use bindery::{EngineOptions, RawEngine};
use clap::Subcommand;

use self::flags::Flags;
use self::opening::{Opening, Target};
use self::running::Ending;
use crate::global_flags::CommandSettings;
use crate::server::folder;

/// Run one turn without questions, as `codex exec` does
///
/// Takes the flags of `codex exec` and prints what it prints, so that a program that is given this
/// one in Codex's place works as before; the turn runs on the built-in engine. The answer goes to
/// stdout, everything else to stderr. Nobody is asked: what needs an approval is refused.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Exec {
    #[command(subcommand)]
    verb: Option<Verb>,

    /// What to do; `-`, or nothing, reads it from stdin. What is piped in beside it is added
    prompt: Option<String>,

    #[command(flatten)]
    flags: Flags,
}

const EXAMPLES: &str = "\
Examples:
  bindery exec \"why does the build fail?\"
  git diff | bindery exec \"review this\" -o review.md
  bindery exec --json \"list the modules\" | jq -r 'select(.item.type==\"agent_message\").item.text'
  bindery exec resume --last \"now fix it\"
  bindery exec --prompt ticket ID=42";

#[derive(Debug, Subcommand)]
enum Verb {
    /// Go on with a thread
    Resume(Resume),
    /// Go on in a copy of a thread
    Fork(Fork),
    /// Review the changes of this repository
    Review(Review),
}

#[derive(Debug, clap::Args)]
struct Resume {
    /// The thread: its id or its name. With `--last` this is the prompt
    #[arg(value_name = "ID")]
    thread: Option<String>,

    /// What to do; `-`, or nothing, reads it from stdin
    prompt: Option<String>,

    /// Take the newest thread of this folder
    #[arg(long)]
    last: bool,

    /// Take the newest of every folder
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    flags: Flags,
}

#[derive(Debug, clap::Args)]
struct Fork {
    /// The thread: its id or its name
    #[arg(value_name = "ID")]
    thread: String,

    /// What to do; `-`, or nothing, reads it from stdin
    prompt: Option<String>,

    #[command(flatten)]
    flags: Flags,
}

#[derive(Debug, clap::Args)]
struct Review {
    /// What to look at, in your words; `-` reads it from stdin
    #[arg(conflicts_with_all = ["uncommitted", "base", "commit"])]
    prompt: Option<String>,

    /// Staged, unstaged and untracked changes
    #[arg(long, conflicts_with_all = ["base", "commit"])]
    uncommitted: bool,

    /// Changes against this branch
    #[arg(long, value_name = "BRANCH", conflicts_with = "commit")]
    base: Option<String>,

    /// Changes of this commit
    #[arg(long, value_name = "SHA")]
    commit: Option<String>,

    /// The commit's title, shown in the review
    #[arg(long, value_name = "TITLE", requires = "commit")]
    title: Option<String>,

    #[command(flatten)]
    flags: Flags,
}

impl Exec {
    /// Runs the command.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let (target, prompt, flags) = self.sorted();
        let cwd = folder(flags.cd.as_deref())?;
        let home = Home::here()?;
        let opening = Opening::read(target, prompt.as_deref(), &flags, &home)?;
        let mut config = flags.overrides();
        let mut settings = load(&home, &cwd, &config, &flags)?;
        if flags.trust && save_trust(&home, &cwd, &settings)? {
            settings = load(&home, &cwd, &config, &flags)?;
        }
        if !flags.may_run_in(&cwd) {
            let message = "Not inside a trusted directory and --skip-git-repo-check was not \
                           specified.";
            anyhow::bail!(message);
        }
        config.extend(flags.settings.writable(&settings.sandbox.writable_roots));
        let options = EngineOptions {
            config,
            sandbox_helper: crate::helper::program(),
            ignore_user_config: flags.ignore_user_config,
            ignore_rules: flags.ignore_rules,
            source: Some("exec"),
            openai_key: home.variable("CODEX_API_KEY").map(str::to_owned),
            ..EngineOptions::default()
        };
        let mut engine = RawEngine::start(&options)?;
        let ending = running::run(&mut engine, &opening, &flags, &cwd).await;
        // Commands under way are ended before this process is.
        engine.close().await;
        ending.map(Ending::code)
    }

    /// The settings that were given before a verb.
    pub(super) fn settings(&mut self) -> CommandSettings<'_> {
        self.flags.settings.settings()
    }

    /// What is meant, with the flags of both places where they may stand.
    fn sorted(self) -> (Target, Option<String>, Flags) {
        let Self { verb, prompt, flags } = self;
        match verb {
            None => (Target::New, prompt, flags),
            Some(Verb::Resume(mut resume)) => {
                if resume.last && resume.prompt.is_none() {
                    resume.prompt = resume.thread.take();
                }
                let target = match resume.thread {
                    Some(name) if !resume.last => Target::Resume(name),
                    _ => Target::Last { everywhere: resume.all },
                };
                (target, resume.prompt.or(prompt), flags.and(resume.flags))
            }
            Some(Verb::Fork(fork)) => {
                (Target::Fork(fork.thread), fork.prompt.or(prompt), flags.and(fork.flags))
            }
            Some(Verb::Review(review)) => {
                let flags = flags.and(review.flags.clone());
                (Target::Review(review.what()), review.prompt.or(prompt), flags)
            }
        }
    }
}

impl Review {
    /// What is reviewed; none is said by a prompt.
    fn what(&self) -> Option<serde_json::Value> {
        use serde_json::json;
        if let Some(branch) = &self.base {
            return Some(json!({ "type": "baseBranch", "branch": branch }));
        }
        if let Some(sha) = &self.commit {
            return Some(json!({ "type": "commit", "sha": sha, "title": self.title }));
        }
        let alone = self.uncommitted || self.prompt.is_none();
        alone.then(|| json!({ "type": "uncommittedChanges" }))
    }
}

/// Records the project as trusted, as `--trust` asks; false where nothing changes.
fn save_trust(home: &Home, cwd: &std::path::Path, settings: &Config) -> anyhow::Result<bool> {
    match settings.trust {
        Trust::Trusted => Ok(false),
        Trust::Untrusted => {
            words::say(
                "warning: the settings call this project untrusted, so `--trust` changes nothing",
            );
            Ok(false)
        }
        Trust::Undecided => {
            let cwd = cwd.canonicalize().context("cannot trust this folder")?;
            let project = settings.project.root(&cwd).unwrap_or(cwd);
            let file = save_project_trust(home, &project);
            let file = file.context("cannot record that the project is trusted")?;
            words::say(&format!("trusted `{}` in `{}`", project.display(), file.display()));
            Ok(true)
        }
    }
}

/// Reads the settings once before anything starts: what is wrong with them is said at once.
fn load(
    home: &Home,
    cwd: &std::path::Path,
    said: &[String],
    flags: &Flags,
) -> anyhow::Result<Config> {
    let mut home = home.clone();
    home.without_settings = flags.ignore_user_config;
    let said = said.iter().map(|text| parse_override(text)).collect::<Result<Vec<_>, _>>()?;
    let config = Config::load(&home, cwd, &said)?;
    if let Some(aside) = config.aside().filter(|_| flags.strict_config) {
        anyhow::bail!(aside);
    }
    Ok(config)
}
