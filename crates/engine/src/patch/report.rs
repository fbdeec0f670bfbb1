//! What the model is told of a patch.

use std::fmt::Write as _;
use std::time::Duration;

use super::write::{Done, Halted};

/// What stands before the list of files that were written.
pub(crate) const UPDATED: &str = "Success. Updated the following files:\n";

/// A patch that was written, or the write that failed and what was written before it.
pub fn told(outcome: &Result<Done, Halted>) -> String {
    match outcome {
        Ok(done) => format!("{UPDATED}{}", listing(done)),
        Err(halted) => {
            let Halted { path, cause, done } = halted;
            let files = match listing(done) {
                files if files.is_empty() => "Nothing was written.\n".to_owned(),
                files => format!("These files had been written before it:\n{files}"),
            };
            format!("Failed to write file {}: {cause}\n{files}", path.display())
        }
    }
}

/// The tool's whole output around a text.
pub fn output(exit_code: i32, took: Duration, text: &str) -> String {
    let tenths = (took.as_secs_f32() * 10.0).round() / 10.0;
    format!("Exit code: {exit_code}\nWall time: {tenths} seconds\nOutput:\n{text}")
}

/// The output of a patch that came as a shell command, around the tool's own.
pub fn shell_output(took: Duration, output: &str) -> String {
    format!("Wall time: {:.4} seconds\nOutput:\n{output}", took.as_secs_f64())
}

fn listing(done: &Done) -> String {
    let mut text = String::new();
    for (mark, names) in [('A', &done.added), ('M', &done.changed), ('D', &done.removed)] {
        for name in names {
            let _ = writeln!(text, "{mark} {name}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_success_lists_added_then_changed_then_removed() {
        let done = Done {
            added: vec!["b".to_owned(), "a".to_owned()],
            changed: vec!["c".to_owned()],
            removed: vec!["d".to_owned()],
            steps: 4,
        };
        let text = output(0, Duration::from_millis(312), &told(&Ok(done)));
        let files = "A b\nA a\nM c\nD d\n";
        assert_eq!(
            text,
            format!(
                "Exit code: 0\nWall time: 0.3 seconds\nOutput:\n\
                 Success. Updated the following files:\n{files}"
            )
        );
    }

    #[test]
    fn a_failed_write_tells_what_was_written() {
        let halted = |done| {
            let (path, cause) = ("/p/x".into(), "disk full".to_owned());
            Halted { path, cause, done: Box::new(done) }
        };
        let nothing = told(&Err(halted(Done::default())));
        assert_eq!(nothing, "Failed to write file /p/x: disk full\nNothing was written.\n");
        let done = Done { added: vec!["a".to_owned()], ..Done::default() };
        let some = told(&Err(halted(done)));
        assert_eq!(
            some,
            "Failed to write file /p/x: disk full\nThese files had been written before it:\nA a\n"
        );
    }

    #[test]
    fn times_are_told_as_short_as_they_are() {
        assert_eq!(
            output(1, Duration::ZERO, "x"),
            "Exit code: 1\nWall time: 0 seconds\nOutput:\nx"
        );
        let inner = shell_output(Duration::from_micros(1234), "x");
        assert_eq!(inner, "Wall time: 0.0012 seconds\nOutput:\nx");
    }
}
