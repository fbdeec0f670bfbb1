//! How many tests passed, failed and were skipped, read from what the test runners print.

use std::fmt;

/// What one or several test runners reported.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct TestCounts {
    /// Tests that passed.
    pub passed: u64,
    /// Tests that failed, were cancelled or took too long.
    pub failed: u64,
    /// Tests that the runner left out.
    pub skipped: u64,
    /// What was not tested, and why, as far as the runner says it.
    pub skip_reasons: Vec<String>,
}

/// A program that runs tests; each prints its counts in its own form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestRunner {
    /// cargo-nextest: one summary at the end.
    Nextest,
    /// `cargo test`: a result for each test binary.
    CargoTest,
    /// `node --test` with the reporter `spec` or `tap`.
    Node,
}

/// Reads the counts of one test runner from its output.
///
/// A runner also prints what failed tests wrote, and that may be the output of another runner, so
/// a line counts only in the form and at the place of the runner's own summary.
#[derive(Debug)]
pub struct TestOutput {
    runner: TestRunner,
    counts: TestCounts,
    /// Inside of what `cargo test` repeats of a failed test's output.
    in_captured_output: bool,
}

impl TestOutput {
    /// No output of `runner` has been read.
    pub fn new(runner: TestRunner) -> Self {
        Self { runner, counts: TestCounts::default(), in_captured_output: false }
    }

    /// Reads one line.
    pub fn read_line(&mut self, line: &str) {
        let line = without_colours(line);
        match self.runner {
            TestRunner::Nextest => self.read_nextest(&line),
            TestRunner::CargoTest => self.read_cargo_test(&line),
            TestRunner::Node => self.read_node(&line),
        }
    }

    /// What the runner reported.
    pub fn into_counts(self) -> TestCounts {
        self.counts
    }

    /// Outputs of tests are indented by four columns; the summary is right-aligned, and the last.
    fn read_nextest(&mut self, line: &str) {
        if let Some(summary) = line.strip_prefix("     Summary [")
            && let Some((_, counts)) =
                summary.split_once("tests run: ").or(summary.split_once("test run: "))
        {
            self.counts = TestCounts::default();
            self.counts.add_all(&without_parentheses(counts), ',');
        }
    }

    fn read_cargo_test(&mut self, line: &str) {
        if line.starts_with("---- ") && line.ends_with(" ----") {
            self.in_captured_output = true;
        } else if line == "failures:" {
            self.in_captured_output = false;
        } else if let Some(counts) = line.strip_prefix("test result: ")
            && !self.in_captured_output
        {
            let counts = counts.split_once(". ").map_or(counts, |(_, counts)| counts);
            self.counts.add_all(counts, ';');
        }
    }

    /// The counts come at the end, a word a line; an earlier one was printed by a test.
    fn read_node(&mut self, line: &str) {
        if let Some(skipped) = line.trim_start().strip_prefix('\u{fe63}') {
            self.counts.skip_reasons.push(skipped.trim().to_owned());
        } else if let Some(count) = line.strip_prefix("\u{2139} ").or(line.strip_prefix("# "))
            && let Some((word, number)) = count.split_once(' ')
            && let Ok(number) = number.trim().parse()
        {
            if word == "tests" {
                let reasons = std::mem::take(&mut self.counts.skip_reasons);
                self.counts = TestCounts { skip_reasons: reasons, ..TestCounts::default() };
            }
            self.counts.add(number, word);
        }
    }
}

impl TestCounts {
    /// Adds the counts of another runner.
    pub fn merge(&mut self, other: &Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.skip_reasons.extend(other.skip_reasons.iter().cloned());
    }

    /// The line that ends a run, in the words of cargo-nextest, which tools know how to read.
    pub fn summary(&self, seconds: f64) -> String {
        let run = self.passed + self.failed;
        format!("     Summary [{seconds:>8.3}s] {run} tests run: {self}")
    }

    fn add_all(&mut self, counts: &str, separator: char) {
        for count in counts.split(separator) {
            if let Some((number, words)) = count.trim().split_once(' ')
                && let Ok(number) = number.parse()
            {
                self.add(number, words);
            }
        }
    }

    fn add(&mut self, number: u64, words: &str) {
        match words {
            "passed" | "pass" => self.passed += number,
            "skipped" | "ignored" | "filtered out" | "todo" => self.skipped += number,
            "failed" | "fail" | "cancelled" | "timed out" | "exec failed" => self.failed += number,
            _ => {}
        }
    }
}

impl fmt::Display for TestCounts {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

fn without_colours(line: &str) -> String {
    let mut parts = line.split('\u{1b}');
    let plain = parts.next().unwrap_or_default().to_owned();
    parts.fold(plain, |plain, part| plain + part.split_once('m').map_or("", |(_, rest)| rest))
}

/// nextest says in parentheses how many of those were slow or flaky.
fn without_parentheses(text: &str) -> String {
    let mut depth = 0_u32;
    let outside = text.chars().filter(|letter| match letter {
        '(' => {
            depth += 1;
            false
        }
        ')' => {
            depth = depth.saturating_sub(1);
            false
        }
        _ => depth == 0,
    });
    outside.collect::<String>().replace(" ,", ",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(runner: TestRunner, text: &str) -> TestCounts {
        let mut output = TestOutput::new(runner);
        text.lines().for_each(|line| output.read_line(line));
        output.into_counts()
    }

    #[test]
    fn the_summary_of_nextest_is_read_with_its_colours() {
        let line = "\u{1b}[32;1m     Summary\u{1b}[0m [   1.913s] 12/15 tests run: 8 passed \
                    (1 slow, 2 flaky), 2 failed, 1 timed out, 1 exec failed, 3 skipped";
        let expected = TestCounts { passed: 8, failed: 4, skipped: 3, ..TestCounts::default() };
        assert_eq!(read(TestRunner::Nextest, line), expected);
        let one = "     Summary [   0.1s] 1 test run: 1 passed, 0 skipped";
        assert_eq!(read(TestRunner::Nextest, one).passed, 1);
    }

    #[test]
    fn the_results_of_cargo_test_are_added_up() {
        let text = "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; \
                    finished in 0.10s\n\
                    test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out";
        let expected = TestCounts { passed: 4, failed: 2, skipped: 3, ..TestCounts::default() };
        assert_eq!(read(TestRunner::CargoTest, text), expected);
    }

    #[test]
    fn the_summary_of_node_is_read_with_the_names_of_skipped_tests() {
        let text = "\u{fe63} only on Linux (0.2ms) # SKIP\n\u{2139} tests 9\n\u{2139} pass 5\n\
                    \u{2139} fail 1\n\u{2139} cancelled 2\n\u{2139} skipped 1\n\u{2139} todo 0\n\
                    \u{2139} duration_ms 12.5";
        let reasons = vec!["only on Linux (0.2ms) # SKIP".to_owned()];
        let expected = TestCounts { passed: 5, failed: 3, skipped: 1, skip_reasons: reasons };
        assert_eq!(read(TestRunner::Node, text), expected);
        assert_eq!(read(TestRunner::Node, "# pass 2\n# fail 0").passed, 2);
    }

    /// Summaries of every runner, as a test of ours may print them: at the left, indented as
    /// nextest indents outputs, and by one more.
    fn foreign_summaries() -> String {
        let lines = [
            "test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 51 filtered out",
            "Summary [   0.1s] 7 tests run: 3 passed, 4 failed, 0 skipped",
            "     Summary [   0.1s] 7 tests run: 3 passed, 4 failed, 0 skipped",
            "\u{2139} tests 7",
            "\u{2139} pass 3",
            "\u{2139} fail 4",
            "# fail 4",
            "10 passed, 2 failed",
            "3 tests run: 3 passed",
            "pass 3",
        ];
        let indented = |by: usize| lines.map(|line| format!("{}{line}\n", " ".repeat(by))).concat();
        [0, 1, 4, 5].map(indented).concat()
    }

    #[test]
    fn what_a_failed_test_prints_is_not_counted_beside_nextest_s_own_summary() {
        let text = format!(
            "        FAIL [   0.005s] (1/2) xtask counts::reads\n  stdout ---\n\n    running 1 test\n\
             {}\n     Summary [   1.913s] 2 tests run: 1 passed, 1 failed, 3 skipped\n\
             \u{20}       FAIL [   0.005s] (1/2) xtask counts::reads\n\
             error: test run failed\n",
            foreign_summaries()
        );
        let expected = TestCounts { passed: 1, failed: 1, skipped: 3, ..TestCounts::default() };
        assert_eq!(read(TestRunner::Nextest, &text), expected);
    }

    #[test]
    fn what_a_failed_test_prints_is_not_counted_beside_the_result_of_cargo_test() {
        let text = format!(
            "test counts::reads ... FAILED\n\nfailures:\n\n---- counts::reads stdout ----\n{}\n\n\
             failures:\n    counts::reads\n\n\
             test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 3 filtered out\n",
            foreign_summaries()
        );
        let expected = TestCounts { passed: 1, failed: 1, skipped: 3, ..TestCounts::default() };
        assert_eq!(read(TestRunner::CargoTest, &text), expected);
    }

    #[test]
    fn what_a_test_prints_is_not_counted_beside_the_counts_of_node() {
        let text = format!(
            "{}\u{2139} tests 3\n\u{2139} suites 0\n\u{2139} pass 1\n\u{2139} fail 1\n\
             \u{2139} cancelled 0\n\u{2139} skipped 1\n\u{2139} todo 0\n\n\
             \u{2716} failing tests:\n  \u{2139} fail 9\n",
            foreign_summaries()
        );
        let expected = TestCounts { passed: 1, failed: 1, skipped: 1, ..TestCounts::default() };
        assert_eq!(read(TestRunner::Node, &text), expected);
    }

    #[test]
    fn our_own_summary_is_read_as_one_of_nextest() {
        let counts = TestCounts { passed: 8, failed: 4, skipped: 3, ..TestCounts::default() };
        assert_eq!(read(TestRunner::Nextest, &counts.summary(12.3456)), counts);
    }
}
