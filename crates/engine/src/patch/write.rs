//! A checked patch onto the disk: each file at once or not at all.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::place::{entry, landing};
use super::plan::{Action, Plan, Step, Target, before};

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
            fresh(step, confine).map_err(|(target, cause)| halted(target, cause, &done))?;
        }
        for step in &self.steps {
            carry_out(step, &mut done)
                .map_err(|(target, err)| halted(target, err.to_string(), &done))?;
            done.steps += 1;
        }
        Ok(done)
    }
}

fn fresh<'a>(step: &'a Step, confine: &Confine<'_>) -> Result<(), (&'a Target, String)> {
    let target = &step.target;
    let (place, to) = match &step.action {
        Action::Add { .. } | Action::Update { to: None, .. } => (landing(&target.path), None),
        Action::Delete => (entry(&target.path), None),
        Action::Update { to: Some(to), .. } => (entry(&target.path), Some(to)),
    };
    unmoved(target, place, confine).map_err(|cause| (target, cause))?;
    match to {
        None => Ok(()),
        Some(to) => unmoved(to, landing(&to.path), confine).map_err(|cause| (to, cause)),
    }
}

fn unmoved(
    target: &Target,
    place: io::Result<PathBuf>,
    confine: &Confine<'_>,
) -> Result<(), String> {
    let place = place.map_err(|err| err.to_string())?;
    confine(&place).map_err(|denied| denied.why)?;
    if place != target.place || before(&target.path)? != target.before {
        return Err("it changed after the patch was checked; read it and patch again".to_owned());
    }
    Ok(())
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
            fs::remove_file(&target.place).map_err(at(target))?;
            done.removed.push(target.named.clone());
        }
        Action::Update { content, to: None } => {
            replace(target, content, &target.place).map_err(at(target))?;
            done.changed.push(target.named.clone());
        }
        Action::Update { content, to: Some(to) } => {
            replace(to, content, &target.path).map_err(at(to))?;
            done.changed.push(to.named.clone());
            fs::remove_file(&target.place).map_err(at(target))?;
        }
    }
    Ok(())
}

/// Writes beside the file and puts it in the file's place, with the mode of `like`.
fn replace(target: &Target, content: &str, like: &Path) -> io::Result<()> {
    let folder = target.place.parent().ok_or_else(|| io::Error::other("it has no folder"))?;
    fs::create_dir_all(folder)?;
    let draft = folder.join(draft_name()?);
    let written = draft_of(&draft, content, like).and_then(|()| fs::rename(&draft, &target.place));
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    written
}

fn draft_of(draft: &Path, content: &str, like: &Path) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create_new(true).open(draft)?;
    file.write_all(content.as_bytes())?;
    if let Ok(metadata) = fs::metadata(like) {
        file.set_permissions(metadata.permissions())?;
    }
    Ok(())
}

/// Short, so that it fits wherever the file's own name does.
fn draft_name() -> io::Result<String> {
    let random = getrandom::u64().map_err(|err| io::Error::other(err.to_string()))?;
    Ok(format!(".patch-{random:016x}"))
}
