//! The full test run: what must hold before a change is merged, in one command.
//!
//! The test runner goes last and nothing is printed after it, so its summary is the end of the
//! output.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use crate::arguments::TestOptions;
use crate::need::{self, NEEDS};
use crate::{npm, step, workspace};

/// Names the sandboxes that have to work; their tests fail where one does not.
const REQUIRE: &str = "BINDERY_REQUIRE";

/// Runs everything; the first step that fails ends the run.
pub fn run(root: &Path, options: &TestOptions) -> anyhow::Result<ExitCode> {
    need::check_tools()?;
    let programs = programs(root)?;
    for check in CHECKS.iter().filter(|check| !options.fast || check.fast) {
        if check.optional && !available(root, check.arguments[0]) {
            step::say(&format!(
                "==> {}: skipped, cargo-{} is not installed",
                check.name, check.arguments[0]
            ));
            continue;
        }
        let mut command = cargo(root, &programs);
        command.args(check.arguments);
        command.envs(check.environment.iter().copied());
        step::command(check.name, &mut command, check.hint)?;
    }
    if !options.fast {
        npm::test(root)?;
    }
    tests(root, &programs, &options.runner)
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

fn programs(root: &Path) -> anyhow::Result<Vec<(&'static str, PathBuf)>> {
    let program = |need: &need::Need| {
        if let Some(missing) = need.source.lacks() {
            step::say(&format!("==> {}: skipped, `{missing}` is not on PATH", need.name));
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

fn tests(
    root: &Path,
    programs: &[(&'static str, PathBuf)],
    arguments: &[String],
) -> anyhow::Result<ExitCode> {
    let mut command = cargo(root, programs);
    if available(root, "nextest") {
        command.args(["nextest", "run", "--workspace", "--no-fail-fast"]);
    } else {
        command.args(["test", "--workspace", "--tests", "--no-fail-fast"]);
    }
    command.args(arguments);
    step::say("==> tests");
    step::say(&format!("    $ {}", step::shown(&command)));
    let status = step::status(&mut command)?;
    let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
    Ok(ExitCode::from(code))
}

fn available(root: &Path, subcommand: &str) -> bool {
    let mut command = workspace::cargo(root);
    command.args([subcommand, "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
