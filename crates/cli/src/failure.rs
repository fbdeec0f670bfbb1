//! Failures as the user reads them: what happened, why, and what to type next.

use std::fmt;
use std::io::Write;
use std::process::ExitCode;

use bindery::{EngineError, Error};

/// A failure with a hint of its own.
#[derive(Debug)]
pub struct Hinted {
    /// What happened.
    pub message: String,
    /// What to type next.
    pub hint: String,
    /// The user asked for something that cannot be.
    pub misuse: bool,
}

impl Hinted {
    /// Something the user should have asked differently.
    pub fn misuse(message: impl Into<String>, hint: impl Into<String>) -> anyhow::Error {
        Self { message: message.into(), hint: hint.into(), misuse: true }.into()
    }
}

impl fmt::Display for Hinted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Hinted {}

/// Prints a failure to stderr and gives the exit code: 1 failed, 2 misuse.
pub fn report(err: &anyhow::Error) -> ExitCode {
    if is_broken_pipe(err) {
        return ExitCode::SUCCESS;
    }
    // Nothing can be done about a stderr that is gone.
    let _ = std::io::stderr().write_all(text(err).as_bytes());
    let misuse = err.downcast_ref::<Hinted>().is_some_and(|hinted| hinted.misuse);
    ExitCode::from(if misuse { 2 } else { 1 })
}

/// The failure in words: `error`, `cause` where it adds something, `hint`.
pub fn text(err: &anyhow::Error) -> String {
    let mut text = format!("error: {err}\n");
    let mut told = err.to_string();
    for cause in err.chain().skip(1).map(ToString::to_string) {
        if !told.contains(&cause) {
            text.push_str(&format!("  cause: {cause}\n"));
            told.push_str(&cause);
        }
    }
    if let Some(hint) = hint(err) {
        text.push_str(&format!("  hint: {hint}\n"));
    }
    text
}

fn hint(err: &anyhow::Error) -> Option<String> {
    let ours = err.chain().find_map(|cause| {
        let sessions = cause.downcast_ref::<bindery::sessions::Error>().and_then(|e| e.hint());
        let config = cause.downcast_ref::<bindery::engine::config::ConfigError>();
        let expand = cause.downcast_ref::<bindery::engine::prompt::custom::ExpandError>();
        let engine = cause.downcast_ref::<EngineError>().and_then(EngineError::hint);
        let engine = engine
            .or_else(|| config.and_then(|e| e.hint()))
            .or_else(|| expand.and_then(|e| e.hint()));
        cause.downcast_ref::<Error>().and_then(Error::hint).or(sessions).or(engine)
    });
    ours.or_else(|| err.chain().find_map(|c| Some(c.downcast_ref::<Hinted>()?.hint.clone())))
}

/// Whoever read our output has seen enough.
fn is_broken_pipe(err: &anyhow::Error) -> bool {
    let kinds = err.chain().filter_map(|cause| cause.downcast_ref::<std::io::Error>());
    kinds.into_iter().any(|io| io.kind() == std::io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_what_why_and_what_next() {
        let missing = Error::Spawn {
            program: "codex".into(),
            source: std::io::Error::new(std::io::ErrorKind::NotFound, "no such file"),
        };
        insta::assert_snapshot!(text(&missing.into()), @r"
        error: cannot start `codex`
          cause: no such file
          hint: run `bindery doctor` to see which Codex is used
        ");
    }
}
