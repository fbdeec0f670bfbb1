//! What a model reads of a command, in the words it knows from Codex.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::Value;

use super::{Chunk, Ending, State};
use crate::truncate::{Budget, cut_output};

/// The result of `exec_command` and `write_stdin`, with as much of the output as there is room for.
pub fn chunk(chunk: &Chunk, budget: Budget) -> String {
    let tokens = chunk.original_tokens();
    let mut text = format!("Chunk ID: {}\n", chunk.id);
    let _ = writeln!(text, "Wall time: {:.4} seconds", chunk.wall.as_secs_f64());
    let _ = match chunk.state {
        State::Exited(code) => writeln!(text, "Process exited with code {code}"),
        State::Running(session) => writeln!(text, "Process running with session ID {session}"),
    };
    let _ = writeln!(text, "Original token count: {tokens}");
    text.push_str("Output:\n");
    text.push_str(&cut_output(&chunk.output, chunk.total_bytes, chunk.omitted, budget));
    text
}

/// The result of `shell_command`. `cut` is the output made shorter, where it did not fit.
pub fn command(ending: &Ending, cut: Option<&str>) -> String {
    let mut text = format!("Exit code: {}\n", ending.exit_code);
    let _ = writeln!(text, "Wall time: {} seconds", tenths(ending.duration));
    if cut.is_some() {
        let _ = writeln!(text, "Total output lines: {}", ending.total_lines);
    }
    text.push_str("Output:\n");
    text.push_str(cut.unwrap_or(&ending.output));
    text
}

/// The result of `shell`, which is JSON.
pub fn shell(ending: &Ending, cut: Option<&str>) -> String {
    // By hand, because the order is part of what models have seen.
    let output = Value::from(cut.unwrap_or(&ending.output));
    let (code, seconds) = (ending.exit_code, tenths(ending.duration));
    let seconds = if seconds.contains('.') { seconds } else { seconds + ".0" };
    let metadata = format!(r#"{{"exit_code":{code},"duration_seconds":{seconds}}}"#);
    format!(r#"{{"output":{output},"metadata":{metadata}}}"#)
}

/// What stands before the output of a command that took too long.
pub fn timed_out(limit: Duration) -> String {
    format!("command timed out after {} milliseconds\n", limit.as_millis())
}

/// The result of a command that was not allowed.
pub fn rejected(shown: &str, reason: &str) -> String {
    let inner = format!("`{shown}` rejected: {reason}");
    format!(
        "exec_command failed: CreateProcess {{ message: {:?} }}",
        format!("Rejected({inner:?})")
    )
}

/// A number with one digit behind the point, and none where it is whole.
fn tenths(duration: Duration) -> String {
    format!("{}", (duration.as_secs_f64() * 10.0).round() / 10.0)
}

/// A name for a chunk.
pub(super) fn id() -> String {
    let [one, two, three, _] = random();
    format!("{one:02x}{two:02x}{three:02x}")
}

/// Names only have to differ, so a system without randomness gets them from the clock.
pub(super) fn random() -> [u8; 4] {
    let mut bytes = [0; 4];
    if getrandom::fill(&mut bytes).is_err() {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        bytes = now.unwrap_or_default().subsec_nanos().to_be_bytes();
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example(state: State) -> Chunk {
        Chunk {
            id: "64b85b".to_owned(),
            wall: Duration::from_micros(356_800),
            state,
            output: "one\ntwo\n".to_owned(),
            total_bytes: 9,
            omitted: 0,
        }
    }

    fn ending(millis: u64) -> Ending {
        Ending {
            exit_code: 0,
            output: "ok\n".to_owned(),
            duration: Duration::from_millis(millis),
            total_bytes: 3,
            total_lines: 1,
        }
    }

    #[test]
    fn a_chunk_reads_as_codex_has_it() {
        insta::assert_snapshot!(chunk(&example(State::Exited(3)), Budget::Bytes(8)), @r"
        Chunk ID: 64b85b
        Wall time: 0.3568 seconds
        Process exited with code 3
        Original token count: 3
        Output:
        one
        two
        ");
        insta::assert_snapshot!(chunk(&example(State::Running(33383)), Budget::Bytes(4)), @r"
        Chunk ID: 64b85b
        Wall time: 0.3568 seconds
        Process running with session ID 33383
        Original token count: 3
        Output:
        Warning: truncated output (original token count: 2)
        Total output lines: 2

        on…4 chars truncated…o
        ");
    }

    #[test]
    fn the_older_forms_read_as_codex_has_them() {
        assert_eq!(
            command(&ending(312), None),
            "Exit code: 0\nWall time: 0.3 seconds\nOutput:\nok\n"
        );
        assert_eq!(
            command(&ending(2000), Some("o…")),
            "Exit code: 0\nWall time: 2 seconds\nTotal output lines: 1\nOutput:\no…"
        );
        assert_eq!(
            shell(&ending(312), None),
            r#"{"output":"ok\n","metadata":{"exit_code":0,"duration_seconds":0.3}}"#
        );
    }

    #[test]
    fn a_refusal_reads_as_codex_has_it() {
        assert_eq!(
            rejected("rm -rf x", "no"),
            r#"exec_command failed: CreateProcess { message: "Rejected(\"`rm -rf x` rejected: no\")" }"#
        );
    }
}
