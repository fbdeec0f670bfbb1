//! What was decided about commands before, for good, in a file of ours or of Codex's.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml_edit::{Array, ArrayOfTables, Item, Table, value};

use super::script;
use crate::config::edit_settings_file;
use crate::plain_file::{PlainFileError, PlainFileReader};

/// Programs that can do anything, so that allowing them allows everything.
const BROAD: [&str; 41] = [
    "bash",
    "sh",
    "zsh",
    "dash",
    "ksh",
    "fish",
    "env",
    "sudo",
    "doas",
    "su",
    "xargs",
    "nohup",
    "time",
    "timeout",
    "exec",
    "eval",
    "command",
    "python",
    "python2",
    "python3",
    "node",
    "deno",
    "bun",
    "ruby",
    "perl",
    "php",
    "lua",
    "git",
    "npx",
    "npm",
    "pnpm",
    "yarn",
    "uv",
    "pip",
    "ssh",
    "docker",
    "rm",
    "find",
    "awk",
    "make",
    "osascript",
];

/// A larger file is not read.
const MOST: u64 = 1024 * 1024;

/// What a rule says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Word {
    /// It may run.
    Allow,
    /// Somebody is asked.
    Prompt,
    /// It may not run.
    Forbidden,
}

/// What all rules together say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every command is allowed.
    Allow,
    /// Somebody is asked, for this reason.
    Ask(String),
    /// Refused, for this reason.
    Forbid(String),
}

/// A word, or one of several.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Token {
    /// This one.
    One(String),
    /// Any of these.
    Any(Vec<String>),
}

/// Commands that begin so.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// How they begin.
    pub prefix: Vec<Token>,
    /// What is said about them.
    pub decision: Word,
    /// Why.
    #[serde(default)]
    pub justification: Option<String>,
}

/// Something that could not be read. It allows nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file.
    pub file: PathBuf,
    /// What is wrong, with the line where that is known.
    pub why: String,
}

/// All rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// In the order they were read; it does not matter.
    pub rules: Vec<Rule>,
    /// Where programs are, by name: only there an absolute path means the name.
    pub programs: BTreeMap<String, Vec<String>>,
    /// What could not be read.
    pub problems: Vec<Problem>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFile {
    #[serde(default)]
    rule: Vec<Rule>,
}

impl Rules {
    /// These and no others.
    pub fn of(rules: Vec<Rule>) -> Self {
        Self { rules, ..Self::default() }
    }

    /// Reads our own file and Codex's folder of `*.rules`. Neither has to be there.
    pub fn load(own: &Path, codex: &Path) -> Self {
        let mut rules = Self::default();
        match read(own).and_then(|text| match text {
            Some(text) => toml::from_str::<RuleFile>(&text).map_err(|error| error.to_string()),
            None => Ok(RuleFile { rule: Vec::new() }),
        }) {
            Ok(file) => {
                rules.rules.extend(file.rule.into_iter().filter(|one| !one.prefix.is_empty()))
            }
            Err(why) => rules.problems.push(Problem { file: own.to_owned(), why }),
        }
        let entries = fs::read_dir(codex).into_iter().flatten().flatten().map(|one| one.path());
        let mut files: Vec<_> =
            entries.filter(|path| path.extension().is_some_and(|end| end == "rules")).collect();
        files.sort();
        files.iter().for_each(|file| rules.add_codex(file));
        rules
    }

    fn add_codex(&mut self, file: &Path) {
        let read = read(file).map(|text| super::starlark::read(&text.unwrap_or_default()));
        let problem = match read {
            Ok(found) => {
                self.rules.extend(found.rules);
                self.programs.extend(found.programs);
                found.problem
            }
            Err(why) => Some(why),
        };
        self.problems.extend(problem.map(|why| Problem { file: file.to_owned(), why }));
    }

    /// The strictest word about a call's commands. Allowed only if each of them is.
    pub fn strictest(&self, commands: &[Vec<String>]) -> Option<Verdict> {
        let about: Vec<Option<&Rule>> = commands.iter().map(|one| self.about(one)).collect();
        let strictest = about.iter().flatten().max_by_key(|rule| rule.decision);
        let reason =
            |rule: &Rule| rule.justification.clone().unwrap_or_else(|| "a rule says so".to_owned());
        match strictest {
            Some(rule) if rule.decision == Word::Forbidden => Some(Verdict::Forbid(reason(rule))),
            Some(rule) if rule.decision == Word::Prompt => Some(Verdict::Ask(reason(rule))),
            _ => (!about.is_empty() && about.iter().all(Option::is_some)).then_some(Verdict::Allow),
        }
    }

    fn about(&self, command: &[String]) -> Option<&Rule> {
        let fitting = self.rules.iter().filter(|rule| self.fits(rule, command));
        fitting.max_by_key(|rule| rule.decision)
    }

    fn fits(&self, rule: &Rule, command: &[String]) -> bool {
        if rule.prefix.is_empty() || command.len() < rule.prefix.len() {
            return false;
        }
        let mut pairs = rule.prefix.iter().zip(command);
        let program = pairs.next().is_some_and(|(token, program)| {
            token.is(program) || self.is_path_of(token, program, rule.decision)
        });
        program && pairs.all(|(token, word)| token.is(word))
    }

    /// A path means the name: to be strict always, to allow only where we were told so.
    fn is_path_of(&self, token: &Token, program: &str, decision: Word) -> bool {
        let name = script::name(program);
        let known =
            || self.programs.get(name).is_some_and(|paths| paths.iter().any(|one| one == program));
        program.contains('/') && token.is(name) && (decision != Word::Allow || known())
    }
}

impl Token {
    fn is(&self, word: &str) -> bool {
        match self {
            Self::One(one) => one == word,
            Self::Any(several) => several.iter().any(|one| one == word),
        }
    }
}

/// A file's text; none if it is not there.
fn read(file: &Path) -> Result<Option<String>, String> {
    match PlainFileReader::default().read_text(file, MOST) {
        Ok(text) => Ok(Some(text)),
        Err(PlainFileError::Io(error)) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(PlainFileError::TooLong(_)) => Err("it is too large".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// What could be allowed for good: the model's wish if it fits, else the one command as it is.
pub(super) fn proposal(wish: Option<&[String]>, commands: &[Vec<String>]) -> Option<Vec<String>> {
    let [command] = commands else { return None };
    let fitting =
        |wish: &&[String]| !wish.is_empty() && command.starts_with(wish) && !is_broad(wish);
    let prefix = wish.filter(fitting).unwrap_or(command);
    (!is_broad(prefix)).then(|| prefix.to_vec())
}

/// Whether allowing a prefix would allow nearly anything.
pub fn is_broad(prefix: &[String]) -> bool {
    let [program, rest @ ..] = prefix else { return true };
    let wide = BROAD.contains(&script::name(program));
    wide && rest.iter().all(|word| word.starts_with('-'))
        || script::script_argument(prefix).is_some()
}

/// Adds a rule that allows a prefix to our own file, and leaves the rest of the file as it was.
pub fn allow_for_good(file: &Path, prefix: &[String]) -> io::Result<()> {
    if is_broad(prefix) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the prefix would allow too much"));
    }
    edit_settings_file(file, |document| {
        let rules = document.entry("rule").or_insert(Item::ArrayOfTables(ArrayOfTables::new()));
        let rules = rules.as_array_of_tables_mut();
        let rules = rules.ok_or_else(|| io::Error::other("`rule` is no array of tables"))?;
        let mut rule = Table::new();
        rule["prefix"] = value(Array::from_iter(prefix));
        rule["decision"] = value("allow");
        rules.push(rule);
        Ok(())
    })
}
