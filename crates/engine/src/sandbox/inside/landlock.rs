//! Landlock: where may be written.

use std::fs;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};

use super::Limits;

/// Older ones do not know about cutting a file short.
const LEAST: ABI = ABI::V3;

/// The newest we know.
const NEWEST: ABI = ABI::V6;

/// Devices that everybody writes to.
const DEVICES: [&str; 8] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/random",
    "/dev/urandom",
];

/// Entries of one folder beyond which we do not go through it.
const MOST: usize = 100_000;

/// Whether Landlock was stacked on what limits writing already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stacked {
    InForce,
    /// The kernel has none.
    Unknown,
}

/// Where nothing else limits writing and seeing.
pub(super) fn restrict(limits: &Limits) -> Result<(), String> {
    let Limits { roots, protect, hidden, shown, .. } = limits;
    let restricted = || -> Result<RulesetStatus, Box<dyn std::error::Error>> {
        let mut ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_write(LEAST))?;
        let mut rights = writing();
        if !hidden.is_empty() {
            ruleset = ruleset.handle_access(reading())?;
            rights |= reading();
        }
        let mut created = newest(ruleset)?;
        let closed: Vec<PathBuf> = protect.iter().chain(hidden).cloned().collect();
        for root in roots {
            created = within(created, root, rights, &closed)?;
        }
        if !hidden.is_empty() {
            // What is protected may be read.
            created = within(created, Path::new("/"), reading(), hidden)?;
            for path in shown {
                created = within(created, path, reading(), hidden)?;
            }
        }
        Ok(created.restrict_self()?.ruleset)
    };
    match restricted().map_err(|error| format!("Landlock: {error}"))? {
        RulesetStatus::NotEnforced => Err("Landlock: it is not in force here".to_owned()),
        _ => Ok(()),
    }
}

/// Where the file system was made for the command already: it protects and hides by itself, but
/// kernel settings in `/proc` would be left to whoever runs as the system's owner.
pub(super) fn stack(roots: &[PathBuf]) -> Result<Stacked, String> {
    let restricted = || -> Result<RulesetStatus, RulesetError> {
        let ruleset = Ruleset::default().handle_access(AccessFs::from_write(LEAST))?;
        let mut created = newest(ruleset)?;
        for root in roots.iter().map(PathBuf::as_path).chain([Path::new("/dev/shm")]) {
            created = granted(created, root, writing())?;
        }
        Ok(created.restrict_self()?.ruleset)
    };
    match restricted().map_err(|error| format!("Landlock: {error}"))? {
        RulesetStatus::NotEnforced => Ok(Stacked::Unknown),
        _ => Ok(Stacked::InForce),
    }
}

/// With what newer kernels know besides, and the devices.
fn newest(ruleset: Ruleset) -> Result<RulesetCreated, RulesetError> {
    let ruleset = ruleset
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_write(NEWEST))?
        .scope(Scope::from_all(NEWEST))?;
    let mut created = ruleset.create()?.no_new_privs(true);
    for device in DEVICES.iter().map(Path::new).filter(|device| device.exists()) {
        let rights = AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev;
        created = granted(created, device, rights)?;
    }
    Ok(created)
}

/// Everything but making devices.
fn writing() -> BitFlags<AccessFs> {
    AccessFs::from_write(NEWEST) & !(AccessFs::MakeChar | AccessFs::MakeBlock)
}

/// Names in folders stay visible: a right on a folder goes all the way down, so that to list `/`
/// is to list all.
fn reading() -> BitFlags<AccessFs> {
    AccessFs::ReadFile | AccessFs::Execute
}

/// Gives rights on a folder; if something in it is closed, on each of its other entries.
fn within(
    mut created: RulesetCreated,
    folder: &Path,
    rights: BitFlags<AccessFs>,
    closed: &[PathBuf],
) -> Result<RulesetCreated, Box<dyn std::error::Error>> {
    if closed.iter().any(|path| path == folder) {
        return Ok(created);
    }
    if !closed.iter().any(|path| path.starts_with(folder)) {
        return Ok(granted(created, folder, rights)?);
    }
    // A right on a folder goes all the way down, so the folder itself can get none: a file that
    // may be made in it may be made in `.git`.
    for (count, entry) in fs::read_dir(folder)?.enumerate() {
        if count >= MOST {
            return Err(format!("`{}` has too many entries", folder.display()).into());
        }
        let entry = entry?;
        // A link is not followed: what it leads to may be outside.
        if !entry.file_type()?.is_symlink() {
            created = within(created, &entry.path(), rights, closed)?;
        }
    }
    Ok(created)
}

fn granted(
    created: RulesetCreated,
    path: &Path,
    rights: impl Into<BitFlags<AccessFs>>,
) -> Result<RulesetCreated, RulesetError> {
    // Gone meanwhile: then nothing can be written there.
    let Ok(opened) = PathFd::new(path) else { return Ok(created) };
    let rights = rights.into();
    let rights = if path.is_dir() { rights } else { rights & AccessFs::from_file(NEWEST) };
    created.add_rule(PathBeneath::new(opened, rights))
}
