//! The full test run: what must hold before a change is merged, in one command.
//!
//! The Rust tests and then those of the npm package run whatever the others' result; the end of the
//! output is a summary of both.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::ensure;
use bindery_testkit::skipped;

use crate::arguments::TestOptions;
use crate::need::{self, NEEDS};
use crate::test_counts::{TestCounts, TestOutput, TestRunner};
use crate::{npm, step, workspace};

/// Names the sandboxes that have to work; their tests fail where one does not.
const REQUIRE: &str = "BINDERY_REQUIRE";

/// Runs everything. A check that fails ends the run; a test that fails does not.
pub fn run(root: &Path, options: &TestOptions) -> anyhow::Result<ExitCode> {
    let start = Instant::now();
    need::check_tools()?;
    let mut left_out = Vec::new();
    let programs = programs(root, &mut left_out)?;
    for check in CHECKS {
        if options.fast && !check.fast {
            left_out.push(format!("{}: --fast leaves it out", check.name));
            continue;
        }
        if check.optional && !available(root, check.arguments[0]) {
            left_out.push(format!("{}: cargo-{} is not installed", check.name, check.arguments[0]));
            continue;
        }
        let mut command = cargo(root, &programs);
        command.args(check.arguments);
        command.envs(check.environment.iter().copied());
        step::command(check.name, &mut command, check.hint)?;
    }
    let mut suites = vec![rust_tests(root, &programs, &options.runner)];
    if options.fast {
        left_out.push("npm package: --fast leaves it out".to_owned());
    } else {
        suites.push(npm_tests(root));
    }
    Ok(summarise(&suites, &left_out, start))
}

/// Runs the tests of the npm package alone.
pub fn npm_alone(root: &Path) -> anyhow::Result<ExitCode> {
    let start = Instant::now();
    Ok(summarise(&[npm_tests(root)], &[], start))
}

/// What one of the two groups of tests came to.
struct SuiteResult {
    name: &'static str,
    counts: TestCounts,
    outcome: anyhow::Result<()>,
}

fn npm_tests(root: &Path) -> SuiteResult {
    let mut counts = TestCounts::default();
    let outcome = npm::test(root, &mut counts);
    SuiteResult { name: "npm package", counts, outcome }
}

/// Says what was left out and what came of each suite; the last line counts all tests.
fn summarise(suites: &[SuiteResult], left_out: &[String], start: Instant) -> ExitCode {
    let mut total = TestCounts::default();
    step::say("==> results");
    for line in left_out {
        step::say(&format!("    left out: {line}"));
    }
    for SuiteResult { name, counts, .. } in suites {
        for reason in &counts.skip_reasons {
            step::say(&format!("    skipped in {name}: {reason}"));
        }
    }
    for SuiteResult { name, counts, outcome } in suites {
        total.merge(counts);
        let verdict = if outcome.is_ok() { "ok" } else { "FAILED" };
        step::say(&format!("    {name}: {verdict}, {counts}"));
        if let Err(error) = outcome {
            step::say(&format!("    {name}: {error:#}"));
        }
    }
    let failed = suites.iter().filter(|suite| suite.outcome.is_err()).count();
    // A suite that broke down before it could report a failed test must still show in the counts.
    total.failed = total.failed.max(u64::try_from(failed).unwrap_or(u64::MAX));
    step::say(&total.summary(start.elapsed().as_secs_f64()));
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A step before the tests.
struct Check {
    name: &'static str,
    arguments: &'static [&'static str],
    environment: &'static [(&'static str, &'static str)],
    hint: &'static str,
    /// Part of a `--fast` run.
    fast: bool,
    /// Left out where the subcommand is not installed.
    optional: bool,
}

const CHECKS: &[Check] = &[
    Check {
        name: "format",
        arguments: &["fmt", "--all", "--check"],
        environment: &[],
        hint: "run `cargo fmt --all`",
        fast: true,
        optional: false,
    },
    Check {
        name: "clippy",
        arguments: &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"],
        environment: &[],
        hint: "read the messages above; `just fix` mends the simple ones",
        fast: false,
        optional: false,
    },
    Check {
        name: "sandboxes of this machine",
        // Fails before the long run where a sandbox is missing.
        arguments: &["run", "--quiet", "-p", "bindery-engine", "--bin", "bindery-sandbox"],
        environment: &[],
        hint: "allow user namespaces, or name what works here in BINDERY_REQUIRE",
        fast: true,
        optional: false,
    },
    Check {
        name: "deny",
        // Advisories need the network and change without us; `cargo deny check` has them.
        arguments: &["deny", "check", "bans", "licenses", "sources"],
        environment: &[],
        hint: "mend the dependency, or give a reason in deny.toml",
        fast: false,
        optional: true,
    },
    Check {
        name: "docs",
        // Libraries only: the program and the facade are both called `bindery`, and their pages
        // would overwrite each other.
        arguments: &["doc", "--workspace", "--lib", "--no-deps"],
        environment: &[("RUSTDOCFLAGS", "-D warnings")],
        hint: "mend the links and documents named above",
        fast: false,
        optional: false,
    },
    Check {
        name: "doc tests",
        arguments: &["test", "--workspace", "--doc"],
        environment: &[],
        hint: "mend the examples in the documents named above",
        fast: false,
        optional: false,
    },
];

fn programs(
    root: &Path,
    left_out: &mut Vec<String>,
) -> anyhow::Result<Vec<(&'static str, PathBuf)>> {
    let program = |need: &need::Need| {
        if let Some(missing) = need.source.lacks() {
            left_out.push(format!("{}: `{missing}` is not on PATH", need.name));
            return Ok((need.variable, PathBuf::from(need::NONE)));
        }
        Ok((need.variable, need::path(root, need)?))
    };
    NEEDS.iter().map(program).collect()
}

fn cargo(root: &Path, programs: &[(&'static str, PathBuf)]) -> Command {
    let mut command = workspace::cargo(root);
    command.envs(programs.iter().map(|(variable, path)| (variable, path)));
    // A full run compares snapshots; only a developer who asks for it writes them.
    command.env("INSTA_UPDATE", "no").env_remove("INSTA_FORCE_PASS");
    // A sandbox that does not work must not look tested. Who cannot have them all says which.
    if cfg!(target_os = "linux") && std::env::var_os(REQUIRE).is_none() {
        command.env(REQUIRE, "bubblewrap,namespaces,landlock");
    }
    command
}

fn rust_tests(
    root: &Path,
    programs: &[(&'static str, PathBuf)],
    arguments: &[String],
) -> SuiteResult {
    let mut counts = TestCounts::default();
    let outcome = run_rust_tests(root, programs, arguments, &mut counts);
    SuiteResult { name: "Rust tests", counts, outcome }
}

fn run_rust_tests(
    root: &Path,
    programs: &[(&'static str, PathBuf)],
    arguments: &[String],
    counts: &mut TestCounts,
) -> anyhow::Result<()> {
    let mut command = cargo(root, programs);
    let runner = if available(root, "nextest") {
        command.args(["nextest", "run", "--workspace", "--no-fail-fast"]);
        TestRunner::Nextest
    } else {
        command.args(["test", "--workspace", "--tests", "--no-fail-fast"]);
        TestRunner::CargoTest
    };
    command.args(arguments);
    if std::io::IsTerminal::is_terminal(&std::io::stderr()) {
        // The runner writes into a pipe of ours, and would think that nobody sees colours.
        command.env("CARGO_TERM_COLOR", "always");
    }
    let skipped = tempfile::NamedTempFile::new()?;
    command.env(skipped::VARIABLE, skipped.path());
    step::say("==> tests");
    step::say(&format!("    $ {}", step::shown(&command)));
    let mut output = TestOutput::new(runner);
    let status = step::supervise(command, None, &mut |line| output.read_line(line));
    counts.merge(&output.into_counts());
    counts.skip_reasons.extend(unique_lines(&fs::read_to_string(skipped.path())?));
    if counts.skipped > 0 {
        let why = "left out by the runner: filtered by name, or marked as ignored";
        counts.skip_reasons.push(format!("{} tests {why}", counts.skipped));
    }
    let status = status?;
    ensure!(status.success(), "the test runner ended with {status}");
    // A runner that says nothing we can read must not count as success.
    ensure!(counts.passed > 0, "the test runner reported no test that passed");
    Ok(())
}

fn unique_lines(text: &str) -> Vec<String> {
    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines.dedup();
    lines
}

fn available(root: &Path, subcommand: &str) -> bool {
    let mut command = workspace::cargo(root);
    command.args([subcommand, "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
