//! Tests that cannot try anything on this machine: the full run lists them with the reason.

use std::fs::File;
use std::io::Write;

/// Names the file that collects the reports; the full run sets it.
pub const VARIABLE: &str = "BINDERY_SKIPPED_TESTS";

/// Says that the calling test leaves something out, and why.
///
/// The test runner hides what a passing test prints, so the report also goes to a file that the
/// full run reads.
#[expect(clippy::print_stderr, reason = "whoever reads the log must know what was not tested")]
pub fn report_skipped(reason: &str) {
    let thread = std::thread::current();
    let line = report_line(thread.name(), reason);
    eprintln!("SKIPPED: {line}");
    if let Some(path) = std::env::var_os(VARIABLE) {
        let appended = File::options().create(true).append(true).open(&path);
        // One write for the whole line: tests of several processes append to the same file.
        let written = appended.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
        written
            .unwrap_or_else(|error| panic!("cannot write {VARIABLE}={}: {error}", path.display()));
    }
}

fn report_line(test: Option<&str>, reason: &str) -> String {
    format!("{}: {}", test.unwrap_or("a test"), reason.replace('\n', " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_one_line_that_names_the_test() {
        assert_eq!(report_line(Some("it::one"), "no\nperl"), "it::one: no perl");
    }
}
