//! Any command, from a small description in TOML.
//!
//! ```toml
//! name = "echo"
//! program = "cat"
//! args = ["--number"]          # {message}, {session}, {model} and {cwd} are filled in
//! resume_args = []             # added when there is a session to go on with
//! stdin = true                 # the message goes to stdin (the default)
//! stdout = "text"              # "pass" (the default), "text" or "codex"
//! env = { LANG = "C.UTF-8" }
//! env_remove = ["EDITOR"]
//! noise = ["Loading"]          # stderr lines that begin so say nothing
//! ```

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use bindery_core::map::exec_to_ndjson::Baseline;
use serde::Deserialize;

use super::RunOptions;
use super::agent::{ChatAgent, ChatCommand, ChatRequest, check_text, refused};
use super::codex::exec_mapper;
use super::mapper::{StdoutMapper, TextMapper};
use crate::error::Error;

/// An agent that is described, not written.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DescribedAgent {
    /// Its name.
    pub name: String,
    /// The executable.
    pub program: PathBuf,
    /// Its arguments, with `{message}`, `{session}`, `{model}`, `{cwd}` to be filled in.
    #[serde(default)]
    pub args: Vec<String>,
    /// Arguments added when there is a session to go on with.
    #[serde(default)]
    pub resume_args: Vec<String>,
    /// The message goes to stdin.
    #[serde(default = "yes")]
    pub stdin: bool,
    /// How its stdout is read.
    #[serde(default)]
    pub stdout: Reading,
    /// Added to the environment.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Taken out of the environment.
    #[serde(default)]
    pub env_remove: Vec<String>,
    /// Beginnings of stderr lines that say nothing.
    #[serde(default)]
    pub noise: Vec<String>,
}

/// How stdout is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reading {
    /// Not at all: it passes unchanged.
    #[default]
    Pass,
    /// As the words of the answer.
    Text,
    /// As `codex exec --json` writes.
    Codex,
}

fn yes() -> bool {
    true
}

impl DescribedAgent {
    /// Reads a description.
    pub fn parse(toml: &str) -> Result<Self, Error> {
        let wrong = |why: String| Error::AgentDescription { why };
        let agent: Self = toml::from_str(toml).map_err(|err| wrong(err.to_string()))?;
        if !agent.stdin && !agent.args.iter().any(|arg| arg.contains("{message}")) {
            return Err(wrong("the message goes neither to stdin nor into `args`".to_owned()));
        }
        Ok(agent)
    }

    fn fill(&self, arg: &str, request: &ChatRequest) -> Result<OsString, Error> {
        let cwd = request.cwd.as_ref().map(|cwd| cwd.to_string_lossy().into_owned());
        let values = [
            ("{message}", Some(request.message.clone())),
            ("{session}", request.session_id.clone()),
            ("{model}", request.model.clone()),
            ("{cwd}", cwd),
        ];
        // One pass over the template, so that nothing is filled into what was filled in.
        let mut filled = String::new();
        let mut rest = arg;
        while let Some((at, name, value)) = next_of(rest, &values) {
            let Some(value) = value else {
                let why = format!("`{name}` is in its arguments and not in the request");
                return Err(refused(&self.name, &why));
            };
            if at == 0 && filled.is_empty() && value.starts_with('-') {
                let why = format!("`{name}` begins with `-` and would be taken for an option");
                return Err(refused(&self.name, &why));
            }
            filled.push_str(&rest[..at]);
            filled.push_str(value);
            rest = &rest[at + name.len()..];
        }
        Ok((filled + rest).into())
    }
}

type Value<'a> = (&'a str, Option<String>);

fn next_of<'a>(
    text: &str,
    values: &'a [Value<'a>],
) -> Option<(usize, &'a str, Option<&'a String>)> {
    let found = values.iter().filter_map(|(name, value)| Some((text.find(name)?, *name, value)));
    found.min_by_key(|(at, ..)| *at).map(|(at, name, value)| (at, name, value.as_ref()))
}

impl ChatAgent for DescribedAgent {
    fn name(&self) -> &str {
        &self.name
    }

    fn check(&self, request: &ChatRequest) -> Result<(), Error> {
        check_text(&self.name, request)?;
        if request.session_id.is_some() && self.resume_args.is_empty() {
            return Err(refused(&self.name, "it cannot go on with a session"));
        }
        Ok(())
    }

    fn command(&self, request: &ChatRequest) -> Result<ChatCommand, Error> {
        let resume = request.session_id.iter().flat_map(|_| &self.resume_args);
        let args = self.args.iter().chain(resume).map(|arg| self.fill(arg, request));
        let own = self.env.iter().map(|(name, value)| (name.into(), value.into()));
        Ok(ChatCommand {
            program: self.program.clone(),
            args: args.collect::<Result<_, _>>()?,
            env: own.chain(request.env.iter().cloned()).collect(),
            env_remove: self.env_remove.iter().map(OsString::from).collect(),
            cwd: request.cwd.clone(),
            stdin: if self.stdin { request.message.clone().into_bytes() } else { Vec::new() },
        })
    }

    fn mapper(&self, request: &ChatRequest, options: &RunOptions) -> Option<Box<dyn StdoutMapper>> {
        match self.stdout {
            Reading::Pass => None,
            Reading::Text => Some(Box::new(TextMapper::new(&self.name, request, options.form))),
            Reading::Codex => Some(exec_mapper(request, options, Baseline::Unknown)),
        }
    }

    fn is_noise(&self, line: &str) -> bool {
        self.noise.iter().any(|beginning| line.starts_with(beginning))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(lines: &str) -> DescribedAgent {
        let head = "name = \"x\"\nprogram = \"prog\"\n";
        DescribedAgent::parse(&format!("{head}{lines}")).unwrap()
    }

    fn args(agent: &DescribedAgent, request: &ChatRequest) -> Result<Vec<String>, String> {
        let command = agent.command(request).map_err(|err| err.to_string())?;
        Ok(command.args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect())
    }

    #[test]
    fn arguments_are_filled_in_once() {
        let agent = agent(
            "args = [\"--say={message}\", \"{model}\"]\nresume_args = [\"-r\", \"{session}\"]\n",
        );
        let request = ChatRequest {
            session_id: Some("{message}".into()),
            model: Some("m".into()),
            ..ChatRequest::new("-hi {model}")
        };
        assert_eq!(args(&agent, &request).unwrap(), ["--say=-hi {model}", "m", "-r", "{message}"]);
    }

    #[test]
    fn what_would_be_taken_for_an_option_is_refused() {
        let described = agent("args = [\"{message}\"]\n");
        let refused = args(&described, &ChatRequest::new("--rm")).unwrap_err();
        let why = "`{message}` begins with `-` and would be taken for an option";
        assert_eq!(refused, format!("`x` cannot take the request: {why}"));
        let missing = args(&agent("args = [\"{model}\"]\n"), &ChatRequest::new("hi")).unwrap_err();
        let why = "`{model}` is in its arguments and not in the request";
        assert_eq!(missing, format!("`x` cannot take the request: {why}"));
    }

    #[test]
    fn a_wrong_description_says_so() {
        for (toml, why) in [
            ("name = \"x\"", "missing field `program`"),
            ("name = \"x\"\nprogram = \"p\"\ncolour = 1", "unknown field `colour`"),
            ("name = \"x\"\nprogram = \"p\"\nstdin = false", "the message goes neither"),
        ] {
            let text = DescribedAgent::parse(toml).unwrap_err().to_string();
            assert!(text.contains(why), "{text}");
        }
    }
}
