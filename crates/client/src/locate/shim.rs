//! From npm's shim to the native program, in every layout that npm, pnpm, Yarn and Bun leave.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::{Os, Platform};

/// A native program and what belongs to it.
pub(super) struct Native {
    pub(super) path: PathBuf,
    pub(super) tools: Option<PathBuf>,
}

/// The script that every shim leads to, within its package.
const SCRIPT: [&str; 2] = ["bin", "codex.js"];

/// The native program that a shim would start, if the file is a shim and its package is whole.
pub(super) fn native(platform: Platform, program: &Path) -> Option<Native> {
    let package = package(platform, program)?;
    vendors(platform, &package).into_iter().find_map(|vendor| in_vendor(platform, &vendor))
}

/// The folder of `@openai/codex`.
fn package(platform: Platform, program: &Path) -> Option<PathBuf> {
    let real = program.canonicalize().ok()?;
    if let Some(package) = of_script(&real) {
        return Some(package);
    }
    let folders = [program.parent()?, real.parent()?];
    match text(program) {
        Some(text) => folders
            .iter()
            .flat_map(|folder| targets(&text).map(|target| folder.join(target)))
            .find_map(|script| of_script(&script.canonicalize().ok()?))
            .or_else(|| folders.iter().find_map(|folder| beside(folder))),
        // Package managers that make a program of their shim put it beside the packages.
        None if platform.os == Os::Windows => beside(folders[0]),
        None => None,
    }
}

/// The package a `bin/codex.js` belongs to.
fn of_script(script: &Path) -> Option<PathBuf> {
    let package = script.parent()?.parent()?;
    let is_script = script.ends_with(SCRIPT.iter().collect::<PathBuf>())
        && script.is_file()
        && package.ends_with("codex");
    is_script.then(|| package.to_owned())
}

/// Where a shim's package is, if the shim does not say: as in `npm -g`, `.bin` and Bun.
fn beside(folder: &Path) -> Option<PathBuf> {
    const PLACES: [&str; 4] =
        ["node_modules", "..", "../lib/node_modules", "../install/global/node_modules"];
    PLACES
        .iter()
        .map(|place| folder.join(place).join("@openai").join("codex"))
        .find_map(|package| of_script(&package.join(SCRIPT[0]).join(SCRIPT[1])))
}

/// The text of a script; nothing of a native program.
fn text(program: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(program).ok()?.take(64 * 1024).read_to_end(&mut bytes).ok()?;
    let ending = program.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let is_script = bytes.starts_with(b"#!") || ["cmd", "bat", "ps1"].contains(&ending);
    is_script.then(|| String::from_utf8_lossy(&bytes).into_owned())
}

/// The paths to `codex.js` a shim's text names, relative to the shim unless absolute.
fn targets(text: &str) -> impl Iterator<Item = PathBuf> + '_ {
    const SELF: [&str; 4] = ["$basedir", "%dp0%", "%~dp0", "$PSScriptRoot"];
    text.split(['"', '\'']).filter(|word| word.ends_with("codex.js")).map(|word| {
        let path = SELF.iter().find_map(|own| word.strip_prefix(own)).map_or(word, |rest| {
            // What follows is relative to the shim's folder, however many slashes there are.
            rest.trim_start_matches(['/', '\\'])
        });
        PathBuf::from(path.replace('\\', "/"))
    })
}

/// Folders that may hold the native program: Node's own search, then the older single package.
fn vendors(platform: Platform, package: &Path) -> Vec<PathBuf> {
    let native = Path::new("@openai").join(platform.package());
    package
        .ancestors()
        .map(|folder| folder.join("node_modules").join(&native))
        // Linked installs keep their packages beside each other without a `node_modules` above.
        .chain(package.parent().map(|scope| scope.join(platform.package())))
        .chain([package.to_owned()])
        .map(|folder| folder.join("vendor").join(platform.triple()))
        .collect()
}

/// `bin/codex` since the platform packages, `codex/codex` before.
fn in_vendor(platform: Platform, vendor: &Path) -> Option<Native> {
    let path = ["bin", "codex"]
        .iter()
        .map(|folder| vendor.join(folder).join(platform.program()))
        .find(|path| path.is_file())?;
    let tools = vendor.join("path");
    Some(Native { path, tools: tools.is_dir().then_some(tools) })
}
