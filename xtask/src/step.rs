//! One step of a long run: says what it does and how long it took, on stderr.

use std::io::Write;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

mod supervise;

pub use supervise::supervise;

/// Writes one line to stderr.
pub fn say(line: &str) {
    // A closed stderr is no reason to stop the work.
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Does `work`, saying before what it is and after how long it took.
pub fn timed<T>(name: &str, work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    say(&format!("==> {name}"));
    let start = Instant::now();
    let value = work()?;
    say(&format!("    {name}: done in {:.1} s", start.elapsed().as_secs_f64()));
    Ok(value)
}

/// Runs a command as a step; a failure names the command and the `hint`.
pub fn command(name: &str, command: &mut Command, hint: &str) -> anyhow::Result<()> {
    timed(name, || {
        say(&format!("    $ {}", shown(command)));
        let status = status(command)?;
        if !status.success() {
            bail!("{name} failed ({status})\nhint: {hint}");
        }
        Ok(())
    })
}

/// Runs a command as a step that fails when it takes longer than `limit`; `each_line` sees what it
/// prints.
pub fn command_within(
    name: &str,
    command: Command,
    limit: Duration,
    hint: &str,
    each_line: &mut dyn FnMut(&str),
) -> anyhow::Result<()> {
    timed(name, || {
        say(&format!("    $ {}", shown(&command)));
        let status = supervise(command, Some(limit), each_line);
        let status = status.with_context(|| format!("the step `{name}` failed"))?;
        if !status.success() {
            bail!("{name} failed ({status})\nhint: {hint}");
        }
        Ok(())
    })
}

/// Runs a command to its end with our own stdin, stdout and stderr.
pub fn status(command: &mut Command) -> anyhow::Result<ExitStatus> {
    command.status().with_context(|| format!("cannot start `{}`", shown(command)))
}

/// The command as one would type it; the program without its folder.
pub fn shown(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program());
    let name = program.file_stem().unwrap_or_else(|| command.get_program());
    std::iter::once(name)
        .chain(command.get_args())
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_command_is_named_with_its_hint() {
        let mut failing = Command::new("git");
        failing.arg("no-such-command").stderr(std::process::Stdio::null());
        let error = command("a step", &mut failing, "do this").unwrap_err().to_string();
        assert!(error.starts_with("a step failed (exit"), "{error}");
        assert!(error.ends_with("hint: do this"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn a_step_over_its_limit_is_named() {
        let mut command = Command::new("sh");
        command.args(["-c", "while :; do sleep 1; done"]);
        let limit = Duration::from_millis(10);
        let over = command_within("a step", command, limit, "do this", &mut |_| ());
        let error = format!("{:#}", over.unwrap_err());
        assert!(error.starts_with("the step `a step` failed: did not end within 0 s"), "{error}");
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = status(Command::new("no-such-program-at-all").arg("x")).unwrap_err();
        assert_eq!(error.to_string(), "cannot start `no-such-program-at-all x`");
    }
}
