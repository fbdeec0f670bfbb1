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

impl TestCounts {
    /// Adds what a line of a runner's output reports: the summaries of cargo-nextest, `cargo test`
    /// and `node --test`, and the tests that Node names as skipped. Other lines change nothing.
    pub fn read_line(&mut self, line: &str) {
        let line = without_colours(line);
        let line = line.trim();
        if let Some((_, counts)) = line.split_once("tests run: ").or(line.split_once("test run: "))
            && line.starts_with("Summary [")
        {
            self.add_all(&without_parentheses(counts), ',');
        } else if let Some(counts) = line.strip_prefix("test result: ") {
            let counts = counts.split_once(". ").map_or(counts, |(_, counts)| counts);
            self.add_all(counts, ';');
        } else if let Some(skipped) = line.strip_prefix('\u{fe63}') {
            self.skip_reasons.push(skipped.trim().to_owned());
        } else if let Some(count) = line.strip_prefix("\u{2139} ").or(line.strip_prefix("# "))
            && let Some((word, number)) = count.split_once(' ')
            && let Ok(number) = number.parse()
        {
            self.add(number, word);
        }
    }

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

    fn read(text: &str) -> TestCounts {
        let mut counts = TestCounts::default();
        text.lines().for_each(|line| counts.read_line(line));
        counts
    }

    #[test]
    fn the_summary_of_nextest_is_read_with_its_colours() {
        let line = "\u{1b}[32;1m     Summary\u{1b}[0m [   1.913s] 12/15 tests run: 8 passed \
                    (1 slow, 2 flaky), 2 failed, 1 timed out, 1 exec failed, 3 skipped";
        let expected = TestCounts { passed: 8, failed: 4, skipped: 3, ..TestCounts::default() };
        assert_eq!(read(line), expected);
        assert_eq!(read("     Summary [   0.1s] 1 test run: 1 passed, 0 skipped").passed, 1);
    }

    #[test]
    fn the_results_of_cargo_test_are_added_up() {
        let text = "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; \
                    finished in 0.10s\n\
                    test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out";
        let expected = TestCounts { passed: 4, failed: 2, skipped: 3, ..TestCounts::default() };
        assert_eq!(read(text), expected);
    }

    #[test]
    fn the_summary_of_node_is_read_with_the_names_of_skipped_tests() {
        let text = "\u{fe63} only on Linux (0.2ms) # SKIP\n\u{2139} tests 9\n\u{2139} pass 5\n\
                    \u{2139} fail 1\n\u{2139} cancelled 2\n\u{2139} skipped 1\n\u{2139} todo 0\n\
                    \u{2139} duration_ms 12.5";
        let reasons = vec!["only on Linux (0.2ms) # SKIP".to_owned()];
        let expected = TestCounts { passed: 5, failed: 3, skipped: 1, skip_reasons: reasons };
        assert_eq!(read(text), expected);
        assert_eq!(read("# pass 2\n# fail 0").passed, 2);
    }

    #[test]
    fn what_a_test_prints_is_not_counted() {
        assert_eq!(
            read("10 passed, 2 failed\n3 tests run: 3 passed\npass 3"),
            TestCounts::default()
        );
    }

    #[test]
    fn our_own_summary_is_read_as_one_of_nextest() {
        let counts = TestCounts { passed: 8, failed: 4, skipped: 3, ..TestCounts::default() };
        assert_eq!(read(&counts.summary(12.3456)), counts);
    }
}
