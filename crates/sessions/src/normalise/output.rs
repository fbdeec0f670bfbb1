//! Tool outputs as the model sees them: text in which exit codes and durations hide.

use bindery_core::item::Status;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// What an output text says.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Outcome {
    pub(super) text: String,
    pub(super) exit_code: Option<i64>,
    pub(super) duration_ms: Option<u64>,
    pub(super) status: Option<Status>,
    /// The command goes on in the background under this name.
    pub(super) session: Option<String>,
    /// Pieces that are no text.
    pub(super) pieces: Vec<Value>,
}

/// Reads an output: a string in one of its forms, or an array of pieces.
pub(super) fn read(output: &RawValue) -> Outcome {
    match serde_json::from_str::<Value>(output.get()) {
        Ok(Value::String(text)) => sniff(&text),
        Ok(Value::Array(pieces)) => of_pieces(pieces),
        Ok(other) => Outcome { text: other.to_string(), ..Outcome::default() },
        Err(_) => Outcome { text: output.get().to_owned(), ..Outcome::default() },
    }
}

fn of_pieces(pieces: Vec<Value>) -> Outcome {
    let (texts, others): (Vec<_>, Vec<_>) =
        pieces.into_iter().partition(|piece| piece.get("text").is_some_and(Value::is_string));
    let texts: Vec<_> = texts.iter().filter_map(|piece| piece.get("text")?.as_str()).collect();
    let mut outcome = sniff(&texts.join(""));
    outcome.pieces = others;
    outcome
}

/// `{"output", "metadata": {"exit_code", "duration_seconds"}}` (0.80 and older).
#[derive(Deserialize)]
struct Wrapped {
    output: String,
    metadata: WrappedMetadata,
}

#[derive(Deserialize)]
struct WrappedMetadata {
    exit_code: i64,
    #[serde(default)]
    duration_seconds: f64,
}

fn sniff(text: &str) -> Outcome {
    if text.trim_start().starts_with('{')
        && let Ok(wrapped) = serde_json::from_str::<Wrapped>(text)
    {
        return Outcome {
            text: wrapped.output,
            exit_code: Some(wrapped.metadata.exit_code),
            duration_ms: Some(millis(wrapped.metadata.duration_seconds)),
            status: Some(of_code(wrapped.metadata.exit_code)),
            ..Outcome::default()
        };
    }
    let mut outcome = headed(text);
    if outcome.exit_code.is_none() && outcome.text.len() < text.len() {
        let inner = sniff(&outcome.text);
        let is_nested = inner.exit_code.is_some() || inner.status.is_some();
        if is_nested {
            outcome = Outcome { duration_ms: outcome.duration_ms.or(inner.duration_ms), ..inner };
        }
    }
    outcome.status = outcome.status.or_else(|| by_words(&outcome.text));
    outcome
}

/// Lines such as `Wall time: 0.1 seconds` before a line `Output:`.
fn headed(text: &str) -> Outcome {
    let mut outcome = Outcome::default();
    let mut rest = text;
    loop {
        let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
        if line.trim_end() == "Output:" {
            outcome.text = after.to_owned();
            return outcome;
        }
        if !header(line, &mut outcome) {
            // Headers without an `Output:` occur before `aborted by user` only.
            outcome.text = rest.to_owned();
            return outcome;
        }
        if after.is_empty() {
            return outcome;
        }
        rest = after;
    }
}

fn header(line: &str, outcome: &mut Outcome) -> bool {
    let number = |text: &str| text.split_whitespace().next()?.parse::<i64>().ok();
    if let Some(code) = line.strip_prefix("Exit code: ").and_then(number) {
        outcome.exit_code = Some(code);
        outcome.status = Some(of_code(code));
    } else if let Some(code) = line.strip_prefix("Process exited with code ").and_then(number) {
        outcome.exit_code = Some(code);
        outcome.status = Some(of_code(code));
    } else if let Some(id) = line.strip_prefix("Process running with session ID ") {
        outcome.session = Some(id.trim().to_owned());
    } else if let Some(time) = line.strip_prefix("Wall time") {
        let seconds = time.trim_start_matches([':', ' ']).split_whitespace().next();
        let Some(seconds) = seconds.and_then(|text| text.parse().ok()) else { return false };
        outcome.duration_ms = Some(millis(seconds));
    } else if line == "Script failed" {
        outcome.status = Some(Status::Failed);
    } else {
        let known = ["Chunk ID: ", "Original token count: ", "Command: ", "Total output lines: "];
        return line == "Script completed" || known.iter().any(|word| line.starts_with(word));
    }
    true
}

/// What tools say in plain words when they fail.
fn by_words(text: &str) -> Option<Status> {
    let text = text.trim_start();
    if text.starts_with("aborted by user") || text == "aborted" {
        return Some(Status::Aborted);
    }
    if is_declined(text) {
        return Some(Status::Declined);
    }
    let failed = [
        "unsupported call: ",
        "unsupported custom tool call: ",
        "apply_patch verification failed",
        "exec_command failed",
        "execution error",
        "failed to parse function arguments",
        "failed in sandbox",
        "tool call error",
        "unable to locate image",
        "Invalid patch",
        "err: ",
    ];
    failed.iter().any(|word| text.starts_with(word)).then_some(Status::Failed)
}

/// A person said no: in words, or (0.169) inside of the error of the tool that had asked.
fn is_declined(text: &str) -> bool {
    let words = ["exec command rejected by user", "patch rejected by user", "rejected by user"];
    if words.iter().any(|word| text.starts_with(word)) {
        return true;
    }
    let error = text.strip_prefix("exec_command failed: CreateProcess { message: \"Rejected(");
    let error = error.map(|error| error.trim_start_matches(['\\', '"']));
    error.is_some_and(|error| words.iter().any(|word| error.starts_with(word)))
}

fn of_code(code: i64) -> Status {
    if code == 0 { Status::Ok } else { Status::Failed }
}

fn millis(seconds: f64) -> u64 {
    // A saturating cast: what is no number is zero.
    (seconds * 1_000.0).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_output_is_understood() {
        #[rustfmt::skip]
        let table = [
            ("{\"output\":\"hi\\n\",\"metadata\":{\"exit_code\":3,\"duration_seconds\":0.1}}", "hi\n", Some(3), Some(100), Some(Status::Failed)),
            ("Exit code: 0\nWall time: 1.5 seconds\nOutput:\nhi", "hi", Some(0), Some(1500), Some(Status::Ok)),
            ("Chunk ID: a\nWall time: 0.0 seconds\nProcess exited with code 1\nOriginal token count: 2\nOutput:\nno", "no", Some(1), Some(0), Some(Status::Failed)),
            ("Command: ls\nChunk ID: a\nWall time: 0.2 seconds\nProcess exited with code 0\nOutput:\n", "", Some(0), Some(200), Some(Status::Ok)),
            ("Wall time: 2 seconds\nOutput:\nExit code: 1\nWall time: 1 seconds\nOutput:\nx", "x", Some(1), Some(2000), Some(Status::Failed)),
            ("Wall time: 3.1 seconds\naborted by user", "aborted by user", None, Some(3100), Some(Status::Aborted)),
            ("aborted by user after 2.1s", "aborted by user after 2.1s", None, None, Some(Status::Aborted)),
            ("unsupported call: x", "unsupported call: x", None, None, Some(Status::Failed)),
            ("Plan updated", "Plan updated", None, None, None),
            ("Output:\nlate", "late", None, None, None),
            ("", "", None, None, None),
        ];
        for (text, want, code, duration, status) in table {
            let outcome = sniff(text);
            assert_eq!((outcome.text.as_str(), outcome.exit_code), (want, code), "{text}");
            assert_eq!((outcome.duration_ms, outcome.status), (duration, status), "{text}");
        }
    }

    #[test]
    fn a_refusal_inside_of_an_error_is_one() {
        let table = [
            (r#"\"rejected by user\")" }"#, Status::Declined),
            (r#"\"by policy\")" }"#, Status::Failed),
            ("", Status::Failed),
        ];
        for (reason, want) in table {
            let head = r#"exec_command failed: CreateProcess { message: "Rejected("#;
            assert_eq!(sniff(&format!("{head}{reason}")).status, Some(want), "{reason}");
        }
    }
}
