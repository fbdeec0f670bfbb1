//! A checked patch onto the disk: each file at once or not at all.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use bindery_sessions::plain::SEARCH;
use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, openat, renameat, unlinkat};
use rustix::io::Errno;

use super::plan::{Action, Plan, Step, Target, before};
use crate::plain_file::PlainFileError;

/// Says whether a place, links followed, may be written.
pub type Confine<'a> = dyn Fn(&Path) -> Result<(), Denied> + 'a;

/// A place that may not be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Denied {
    /// Why, and what to do about it.
    pub why: String,
}

/// What was written, by the patch's own names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Files that were added.
    pub added: Vec<String>,
    /// Files that were changed; those that moved by their new names.
    pub changed: Vec<String>,
    /// Files that were removed.
    pub removed: Vec<String>,
    /// How many steps of the plan that is.
    pub steps: usize,
}

/// A write that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot write `{}`: {cause}", path.display())]
pub struct Halted {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub cause: String,
    /// What was written before it.
    pub done: Box<Done>,
}

impl Plan {
    /// Says whether every place may be written; the first that may not is told.
    pub fn permitted(&self, confine: &Confine<'_>) -> Result<(), Denied> {
        self.targets().try_for_each(|target| confine(&target.place))
    }

    /// Writes all of it. Before the first byte everything is looked at once more, because the
    /// files may have changed while somebody thought about the patch.
    pub fn write(&self, confine: &Confine<'_>) -> Result<Done, Halted> {
        let halted = |target: &Target, cause: String, done: &Done| Halted {
            path: target.path.clone(),
            cause,
            done: Box::new(done.clone()),
        };
        let mut done = Done::default();
        for step in &self.steps {
            self.fresh(step, confine).map_err(|(target, cause)| halted(target, cause, &done))?;
        }
        for step in &self.steps {
            carry_out(step, &mut done)
                .map_err(|(target, err)| halted(target, err.to_string(), &done))?;
            done.steps += 1;
        }
        Ok(done)
    }

    fn fresh<'a>(&self, step: &'a Step, confine: &Confine<'_>) -> Result<(), (&'a Target, String)> {
        let target = &step.target;
        let reader = &self.reader;
        let (place, to) = match &step.action {
            Action::Add { .. } | Action::Update { to: None, .. } => {
                (reader.resolve(&target.path), None)
            }
            Action::Delete => (reader.resolve_entry(&target.path), None),
            Action::Update { to: Some(to), .. } => (reader.resolve_entry(&target.path), Some(to)),
        };
        self.unmoved(target, place, confine).map_err(|cause| (target, cause))?;
        match to {
            None => Ok(()),
            Some(to) => {
                let place = reader.resolve(&to.path);
                self.unmoved(to, place, confine).map_err(|cause| (to, cause))
            }
        }
    }

    fn unmoved(
        &self,
        target: &Target,
        place: Result<PathBuf, PlainFileError>,
        confine: &Confine<'_>,
    ) -> Result<(), String> {
        let place = place.map_err(|err| err.to_string())?;
        confine(&place).map_err(|denied| denied.why)?;
        if place != target.place || before(&self.reader, &target.path)? != target.before {
            let why = "it changed after the patch was checked; read it and patch again";
            return Err(why.to_owned());
        }
        Ok(())
    }
}

fn carry_out<'a>(step: &'a Step, done: &mut Done) -> Result<(), (&'a Target, io::Error)> {
    let target = &step.target;
    let at = |target: &'a Target| move |err| (target, err);
    match &step.action {
        Action::Add { content } => {
            replace(target, content, &target.place).map_err(at(target))?;
            done.added.push(target.named.clone());
        }
        Action::Delete => {
            remove(target).map_err(at(target))?;
            done.removed.push(target.named.clone());
        }
        Action::Update { content, to: None } => {
            replace(target, content, &target.place).map_err(at(target))?;
            done.changed.push(target.named.clone());
        }
        Action::Update { content, to: Some(to) } => {
            replace(to, content, &target.path).map_err(at(to))?;
            done.changed.push(to.named.clone());
            remove(target).map_err(at(target))?;
        }
    }
    Ok(())
}

/// Writes beside the file and puts it in the file's place, with the mode of `like`.
fn replace(target: &Target, content: &str, like: &Path) -> io::Result<()> {
    let (folder, name) = open_folder(&target.place, true)?;
    let draft = draft_name()?;
    let written = write_draft(&folder, &draft, content, like)
        .and_then(|()| Ok(renameat(&folder, draft.as_str(), &folder, name)?));
    if written.is_err() {
        let _ = unlinkat(&folder, draft.as_str(), AtFlags::empty());
    }
    written
}

fn remove(target: &Target) -> io::Result<()> {
    let (folder, name) = open_folder(&target.place, false)?;
    Ok(unlinkat(&folder, name, AtFlags::empty())?)
}

fn write_draft(folder: &OwnedFd, draft: &str, content: &str, like: &Path) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = fs::File::from(openat(folder, draft, flags, Mode::from_raw_mode(0o666))?);
    file.write_all(content.as_bytes())?;
    if let Ok(metadata) = fs::metadata(like) {
        file.set_permissions(metadata.permissions())?;
    }
    Ok(())
}

/// The folder of a file, opened one name after the other, and the file's own name.
///
/// A place is checked with its links resolved. A command that runs meanwhile may put a link in the
/// way, so none is followed now.
fn open_folder(place: &Path, make: bool) -> io::Result<(OwnedFd, &OsStr)> {
    let (Some(folder), Some(name)) = (place.parent(), place.file_name()) else {
        return Err(io::Error::other("it names no file"));
    };
    let mut at = rustix::fs::open("/", SEARCH | OFlags::CLOEXEC, Mode::empty())?;
    for component in folder.components() {
        let Component::Normal(name) = component else { continue };
        let flags = SEARCH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        at = match openat(&at, name, flags, Mode::empty()) {
            Err(Errno::NOENT) if make => {
                mkdirat(&at, name, Mode::from_raw_mode(0o777))?;
                openat(&at, name, flags, Mode::empty())?
            }
            opened => opened?,
        };
    }
    Ok((at, name))
}

/// Short, so that it fits wherever the file's own name does.
fn draft_name() -> io::Result<String> {
    let random = getrandom::u64().map_err(|err| io::Error::other(err.to_string()))?;
    Ok(format!(".patch-{random:016x}"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::patch::Before;

    #[test]
    fn a_link_that_was_put_in_the_way_after_the_check_is_not_followed() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        for folder in ["project", "victim"] {
            fs::create_dir(root.join(folder)).unwrap();
        }
        fs::write(root.join("victim/keys"), "mine").unwrap();
        let target = Target {
            named: "d/keys".to_owned(),
            path: root.join("project/d/keys"),
            place: root.join("project/d/keys"),
            before: Before::Nothing,
        };
        symlink(root.join("victim"), root.join("project/d")).unwrap();
        assert!(replace(&target, "evil", &target.place).is_err());
        assert!(remove(&target).is_err());
        assert_eq!(fs::read_to_string(root.join("victim/keys")).unwrap(), "mine");
        assert_eq!(fs::read_dir(root.join("victim")).unwrap().count(), 1);
        fs::remove_file(root.join("project/d")).unwrap();
        replace(&target, "good", &target.place).unwrap();
        assert_eq!(fs::read_to_string(root.join("project/d/keys")).unwrap(), "good");
        remove(&target).unwrap();
        assert!(!root.join("project/d/keys").exists());
    }
}
