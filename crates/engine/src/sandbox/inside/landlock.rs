//! Landlock: where may be written.

use std::fs;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};

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

pub(super) fn restrict(roots: &[PathBuf], protect: &[PathBuf]) -> Result<(), String> {
    restricted(roots, protect).map_err(|error| format!("Landlock: {error}"))
}

fn restricted(roots: &[PathBuf], protect: &[PathBuf]) -> Result<(), Box<dyn std::error::Error>> {
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_write(LEAST))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_write(NEWEST))?
        .scope(Scope::from_all(NEWEST))?;
    let mut created = ruleset.create()?.no_new_privs(true);
    for device in DEVICES.iter().map(Path::new).filter(|device| device.exists()) {
        let rights = AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev;
        created = granted(created, device, rights)?;
    }
    for root in roots {
        created = within(created, root, protect)?;
    }
    let status = created.restrict_self()?;
    match status.ruleset {
        RulesetStatus::NotEnforced => Err("it is not in force here".into()),
        _ => Ok(()),
    }
}

/// Everything but making devices.
fn all() -> BitFlags<AccessFs> {
    AccessFs::from_write(NEWEST) & !(AccessFs::MakeChar | AccessFs::MakeBlock)
}

/// Gives all rights on a folder; if something in it is protected, on each of its other entries.
fn within(
    mut created: RulesetCreated,
    folder: &Path,
    protect: &[PathBuf],
) -> Result<RulesetCreated, Box<dyn std::error::Error>> {
    if protect.iter().any(|path| path == folder) {
        return Ok(created);
    }
    if !protect.iter().any(|path| path.starts_with(folder)) {
        return Ok(granted(created, folder, all())?);
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
            created = within(created, &entry.path(), protect)?;
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
