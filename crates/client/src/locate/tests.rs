//! File layouts of every platform, built in a temporary folder.

use std::fs;

use tempfile::TempDir;

use super::*;

const LINUX: Platform = Platform { os: Os::Linux, arch: Arch::X64 };
const MAC: Platform = Platform { os: Os::Mac, arch: Arch::Arm64 };
const WINDOWS: Platform = Platform { os: Os::Windows, arch: Arch::X64 };

/// A file tree; paths are relative to its root.
struct Tree(TempDir);

impl Tree {
    fn new(files: &[&str]) -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        for file in files {
            tree.write(file, "\x7fELF");
        }
        tree
    }

    fn root(&self) -> PathBuf {
        self.0.path().canonicalize().unwrap()
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.root().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        executable(&path);
    }

    /// What starting `program` leads to, relative to the root.
    fn resolve(&self, platform: Platform, program: &str) -> String {
        let found = platform.resolve(&self.root().join(program), Via::Given);
        self.relative(&found.path)
    }

    fn relative(&self, path: &Path) -> String {
        let path = path.canonicalize().unwrap();
        path.strip_prefix(self.root()).unwrap().to_str().unwrap().replace('\\', "/")
    }
}

#[cfg(unix)]
fn executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[cfg(not(unix))]
fn executable(_: &Path) {}

const SCRIPT: &str = "node_modules/@openai/codex/bin/codex.js";

#[test]
fn every_layout_leads_to_the_native_program() {
    #[rustfmt::skip]
    let table = [
        (LINUX, "node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex"),
        (LINUX, "node_modules/@openai/codex/node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex"),
        (LINUX, "node_modules/@openai/codex/vendor/x86_64-unknown-linux-musl/codex/codex"),
        (LINUX, "node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/codex/codex"),
        (MAC, "node_modules/@openai/codex-darwin-arm64/vendor/aarch64-apple-darwin/bin/codex"),
        (MAC, "node_modules/@openai/codex/vendor/aarch64-apple-darwin/codex/codex"),
        (WINDOWS, "node_modules/@openai/codex-win32-x64/vendor/x86_64-pc-windows-msvc/bin/codex.exe"),
        (WINDOWS, "node_modules/@openai/codex/vendor/x86_64-pc-windows-msvc/codex/codex.exe"),
    ];
    for (platform, native) in table {
        let tree = Tree::new(&[SCRIPT, native]);
        assert_eq!(tree.resolve(platform, SCRIPT), native);
        // The program behind the shim is its own answer.
        assert_eq!(tree.resolve(platform, native), native);
    }
}

const LINUX_NATIVE: &str =
    "node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex";

#[cfg(unix)]
#[test]
fn symbolic_links_are_followed() {
    let tree = Tree::new(&[SCRIPT, LINUX_NATIVE]);
    fs::create_dir_all(tree.root().join("node_modules/.bin")).unwrap();
    fs::create_dir_all(tree.root().join("bin")).unwrap();
    let link = |to: &str, at: &str| std::os::unix::fs::symlink(to, tree.root().join(at)).unwrap();
    link("../@openai/codex/bin/codex.js", "node_modules/.bin/codex");
    link("../node_modules/.bin/codex", "bin/codex");
    assert_eq!(tree.resolve(LINUX, "node_modules/.bin/codex"), LINUX_NATIVE);
    assert_eq!(tree.resolve(LINUX, "bin/codex"), LINUX_NATIVE);
}

#[cfg(unix)]
#[test]
fn a_linked_store_is_searched_where_the_package_really_is() {
    let store = "node_modules/.pnpm/@openai+codex@0.166.0/node_modules/@openai";
    let native = format!("{store}/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex");
    let tree = Tree::new(&[&format!("{store}/codex/bin/codex.js"), &native]);
    fs::create_dir_all(tree.root().join("node_modules/@openai")).unwrap();
    std::os::unix::fs::symlink(
        tree.root().join(format!("{store}/codex")),
        tree.root().join("node_modules/@openai/codex"),
    )
    .unwrap();
    assert_eq!(tree.resolve(LINUX, SCRIPT), native);
    tree.write(
        "node_modules/.bin/codex",
        "#!/bin/sh\nbasedir=$(dirname \"$0\")\nexec node  \"$basedir/../@openai/codex/bin/codex.js\" \"$@\"\n",
    );
    assert_eq!(tree.resolve(LINUX, "node_modules/.bin/codex"), native);
}

#[test]
fn windows_wrappers_lead_to_the_program() {
    let native = "node_modules/@openai/codex-win32-x64/vendor/x86_64-pc-windows-msvc/bin/codex.exe";
    let tree = Tree::new(&[SCRIPT, native, "codex.exe", "node_modules/.bin/codex.exe"]);
    let global =
        "@ECHO off\r\n\"%_prog%\"  \"%dp0%\\node_modules\\@openai\\codex\\bin\\codex.js\" %*";
    let local = "& \"$basedir/node$exe\"  \"$basedir/../@openai/codex/bin/codex.js\" $args";
    tree.write("codex.cmd", global);
    tree.write("node_modules/.bin/codex.ps1", local);
    tree.write("node_modules/.bin/codex.cmd", "@node \"%~dp0\\..\\@openai\\codex\\bin\\codex.js\"");
    tree.write("node_modules/.bin/codex.bat", "rem says nothing of where it leads");
    tree.write(
        "codex",
        "#!/bin/sh\nexec node \"$basedir/node_modules/@openai/codex/bin/codex.js\"",
    );
    for shim in ["codex", "codex.cmd", "codex.exe"] {
        assert_eq!(tree.resolve(WINDOWS, shim), native, "{shim}");
    }
    for ending in ["ps1", "cmd", "bat", "exe"] {
        let shim = format!("node_modules/.bin/codex.{ending}");
        assert_eq!(tree.resolve(WINDOWS, &shim), native, "{shim}");
    }
}

#[test]
fn a_shim_without_its_program_is_started_itself() {
    let tree = Tree::new(&[SCRIPT]);
    let found = LINUX.resolve(&tree.root().join(SCRIPT), Via::Given);
    assert_eq!((tree.relative(&found.path), found.shim), (SCRIPT.to_owned(), None));
}

#[test]
fn a_native_program_near_an_npm_install_stays_itself() {
    let tree = Tree::new(&["bin/codex", &format!("lib/{SCRIPT}"), &format!("lib/{LINUX_NATIVE}")]);
    assert_eq!(tree.resolve(LINUX, "bin/codex"), "bin/codex");
}

#[test]
fn an_old_shim_also_brings_its_tools() {
    let vendor = "node_modules/@openai/codex/vendor/x86_64-unknown-linux-musl";
    let tree = Tree::new(&[SCRIPT, &format!("{vendor}/codex/codex"), &format!("{vendor}/path/rg")]);
    let found = LINUX.resolve(&tree.root().join(SCRIPT), Via::Given);
    assert_eq!(found.tools.map(|tools| tree.relative(&tools)), Some(format!("{vendor}/path")));
    assert_eq!(found.shim, Some(tree.root().join(SCRIPT)));
}

#[test]
fn the_first_that_is_named_is_taken() {
    let tree = Tree::new(&["a/codex", "b/codex", "c/codex", "d/codex.cmd", "e/codex-0.99"]);
    let folder = |name: &str| tree.root().join(name);
    let path = std::env::join_paths([folder("none"), folder("c"), folder("a")]).unwrap();
    let mut search = Search {
        given: Some(folder("a/codex")),
        variable: Some(folder("b/codex").into()),
        path: Some(path),
        platform: LINUX,
    };
    let run = |search: &Search| {
        search
            .run()
            .map(|found| (tree.relative(&found.path), found.via))
            .map_err(|err| err.to_string())
    };
    assert_eq!(run(&search), Ok(("a/codex".to_owned(), Via::Given)));
    search.given = None;
    assert_eq!(run(&search), Ok(("b/codex".to_owned(), Via::Variable)));
    search.variable = None;
    assert_eq!(run(&search), Ok(("c/codex".to_owned(), Via::SearchPath)));
    search.path = Some(folder("d").into());
    assert_eq!(
        run(&search),
        Err("Codex not found: looked at `BINDERY_CODEX`, which is not set, and `PATH`".to_owned())
    );
    search.platform = WINDOWS;
    assert_eq!(run(&search), Ok(("d/codex.cmd".to_owned(), Via::SearchPath)));
    search.given = Some(folder("e/codex-0.99"));
    assert_eq!(run(&search), Ok(("e/codex-0.99".to_owned(), Via::Given)));
    search.given = Some("/nowhere/codex".into());
    assert_eq!(run(&search), Err("Codex not found: looked at `/nowhere/codex`".to_owned()));
}

#[test]
fn packages_are_named_as_npm_names_them() {
    let arm = Platform { os: Os::Windows, arch: Arch::Arm64 };
    assert_eq!(
        (arm.package(), arm.triple()),
        ("codex-win32-arm64".into(), "aarch64-pc-windows-msvc".into())
    );
    assert_eq!(
        (MAC.package(), MAC.triple()),
        ("codex-darwin-arm64".into(), "aarch64-apple-darwin".into())
    );
    assert_eq!(
        (LINUX.package(), LINUX.triple()),
        ("codex-linux-x64".into(), "x86_64-unknown-linux-musl".into())
    );
}
