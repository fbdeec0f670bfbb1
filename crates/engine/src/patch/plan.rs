//! All of a patch checked against the files: what will be written where, or why nothing will.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::lines::{Misfit, changed};
use super::parse::{Hunk, Misread, parse};
use super::place::absolute;
use crate::plain_file::{PlainFileError, PlainFileReader};

/// The biggest file a patch may change or remove.
pub const MAX_BYTES: u64 = 32 << 20;

/// A patch that fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What is done, in the patch's order.
    pub steps: Vec<Step>,
    /// What reads the files, also when they are looked at once more.
    pub(super) reader: PlainFileReader,
}

/// What is done to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The file.
    pub target: Target,
    /// What happens to it.
    pub action: Action,
}

/// What happens to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// It is written anew, whether it was there or not.
    Add {
        /// All of it.
        content: String,
    },
    /// It is removed.
    Delete,
    /// It is changed.
    Update {
        /// All of it, changed.
        content: String,
        /// Where it goes; the old name is removed.
        to: Option<Target>,
    },
}

/// A file of a patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// As the patch names it.
    pub named: String,
    /// From the root, links not followed.
    pub path: PathBuf,
    /// What is written or removed, links followed.
    pub place: PathBuf,
    /// What was there.
    pub before: Before,
}

/// What a file held before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Before {
    /// There was none.
    Nothing,
    /// Text.
    Text(String),
    /// No text, or too much of it.
    Opaque,
}

/// Why a patch is refused, in the words the model gets. Nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// It is no patch.
    #[error("apply_patch verification failed: {0}")]
    Misread(#[from] Misread),
    /// It does nothing.
    #[error("patch rejected: empty patch")]
    Empty,
    /// It asks for an environment, and there is only one.
    #[error("apply_patch environment selection is unavailable for this turn")]
    Environment,
    /// It has two minds about one file.
    #[error("apply_patch verification failed: invalid patch: multiple operations target {0}")]
    Twice(PathBuf),
    /// A file to remove cannot be read.
    #[error("apply_patch verification failed: Failed to read {path}: {cause}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: String,
    },
    /// A file to change cannot be read.
    #[error("apply_patch verification failed: Failed to read file to update {path}: {cause}")]
    ReadToUpdate {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: String,
    },
    /// The line above a change is not there.
    #[error("apply_patch verification failed: Failed to find context '{context}' in {path}")]
    Context {
        /// The file.
        path: PathBuf,
        /// The line.
        context: String,
    },
    /// The old lines are not there.
    #[error("apply_patch verification failed: Failed to find expected lines in {path}:\n{lines}")]
    Lines {
        /// The file.
        path: PathBuf,
        /// The lines.
        lines: String,
    },
    /// A file could not be written.
    #[error("apply_patch verification failed: Failed to write file {path}: {cause}")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: String,
    },
}

impl Plan {
    /// Reads a patch and checks all of it. Paths are taken from `cwd`, which is absolute.
    pub fn make(text: &str, cwd: &Path) -> Result<Self, Refused> {
        Self::make_with(text, cwd, PlainFileReader::default())
    }

    /// The same for files that this reader reads. What is hidden from it is neither read nor
    /// written, and a refusal does not tell whether it is there.
    pub fn make_with(text: &str, cwd: &Path, reader: PlainFileReader) -> Result<Self, Refused> {
        let patch = parse(text)?;
        if patch.environment.is_some() {
            return Err(Refused::Environment);
        }
        if patch.hunks.is_empty() {
            return Err(Refused::Empty);
        }
        once(patch.hunks.iter().flat_map(|hunk| names(hunk, cwd)))?;
        let files = Files { cwd, reader: &reader };
        let steps = patch.hunks.into_iter().map(|hunk| files.step(hunk));
        let steps = steps.collect::<Result<_, _>>()?;
        let plan = Self { steps, reader };
        once(plan.targets().map(|target| target.place.clone()))?;
        plan.nests()?;
        Ok(plan)
    }

    /// Every file that is written or removed.
    pub fn targets(&self) -> impl Iterator<Item = &Target> {
        self.steps.iter().flat_map(|step| {
            let to = match &step.action {
                Action::Update { to, .. } => to.as_ref(),
                _ => None,
            };
            [Some(&step.target), to].into_iter().flatten()
        })
    }

    /// One file cannot be the folder of another.
    fn nests(&self) -> Result<(), Refused> {
        let places: BTreeSet<&Path> = self.targets().map(|target| &*target.place).collect();
        for target in self.targets() {
            let mut above = target.place.ancestors().skip(1);
            if let Some(above) = above.find(|above| places.contains(above)) {
                let cause = format!("the patch has `{}` as a file too", above.display());
                return Err(Refused::Write { path: target.path.clone(), cause });
            }
        }
        Ok(())
    }
}

fn once(paths: impl Iterator<Item = PathBuf>) -> Result<(), Refused> {
    let mut seen = BTreeSet::new();
    for path in paths {
        if !seen.insert(path.clone()) {
            return Err(Refused::Twice(path));
        }
    }
    Ok(())
}

/// The paths a hunk touches; a move onto itself is one.
fn names(hunk: &Hunk, cwd: &Path) -> Vec<PathBuf> {
    let (path, to) = match hunk {
        Hunk::Add { path, .. } | Hunk::Delete { path } => (path, None),
        Hunk::Update { path, to, .. } => (path, to.as_ref()),
    };
    let mut paths = vec![absolute(cwd, path)];
    paths.extend(to.map(|to| absolute(cwd, to)));
    paths.dedup();
    paths
}

/// The files of a patch, as they are.
struct Files<'a> {
    cwd: &'a Path,
    reader: &'a PlainFileReader,
}

impl Files<'_> {
    fn step(&self, hunk: Hunk) -> Result<Step, Refused> {
        match hunk {
            Hunk::Add { path, content } => {
                Ok(Step { target: self.written(path)?, action: Action::Add { content } })
            }
            Hunk::Delete { path } => self.delete(path),
            Hunk::Update { path, to, chunks } => {
                let at = absolute(self.cwd, &path);
                let wrong = |cause: String| Refused::ReadToUpdate { path: at.clone(), cause };
                let before = text(self.reader, &at).map_err(wrong)?;
                let content = changed(&before, &chunks).map_err(|misfit| fits_not(misfit, &at))?;
                let stays = to.as_ref().is_none_or(|to| absolute(self.cwd, to) == at);
                let place = if stays { self.writable(&at)? } else { self.removable(&at)? };
                let named = to.clone().filter(|_| stays).unwrap_or(path);
                let target = Target { named, path: at, place, before: Before::Text(before) };
                let to = to.filter(|_| !stays).map(|to| self.written(to)).transpose()?;
                Ok(Step { target, action: Action::Update { content, to } })
            }
        }
    }

    fn delete(&self, named: String) -> Result<Step, Refused> {
        let path = absolute(self.cwd, &named);
        let wrong = |cause: String| Refused::Read { path: path.clone(), cause };
        let before = Before::Text(text(self.reader, &path).map_err(wrong)?);
        let place = self.removable(&path)?;
        Ok(Step { target: Target { named, path, place, before }, action: Action::Delete })
    }

    /// A file that will be written, new or old.
    fn written(&self, named: String) -> Result<Target, Refused> {
        let path = absolute(self.cwd, &named);
        let place = self.writable(&path)?;
        let before = before(self.reader, &place)
            .map_err(|cause| Refused::Write { path: path.clone(), cause })?;
        Ok(Target { named, path, place, before })
    }

    fn writable(&self, path: &Path) -> Result<PathBuf, Refused> {
        let wrong = |cause: String| Refused::Write { path: path.to_owned(), cause };
        let place = self.reader.resolve(path).map_err(|err| wrong(err.to_string()))?;
        match fs::symlink_metadata(&place) {
            // Opened, not asked: this also heeds what mode bits do not tell.
            Ok(_) => match self.reader.probe_writing(&place) {
                Ok(()) => Ok(place),
                Err(err) => Err(wrong(err.to_string())),
            },
            Err(err) if err.kind() == io::ErrorKind::NotFound => foldable(place).map_err(wrong),
            Err(err) => Err(wrong(err.to_string())),
        }
    }

    fn removable(&self, path: &Path) -> Result<PathBuf, Refused> {
        let wrong =
            |err: PlainFileError| Refused::Read { path: path.to_owned(), cause: err.to_string() };
        self.reader.resolve_entry(path).map_err(wrong)
    }
}

fn fits_not(misfit: Misfit, path: &Path) -> Refused {
    let path = path.to_owned();
    match misfit {
        Misfit::Context(context) => Refused::Context { path, context },
        Misfit::Lines(lines) => Refused::Lines { path, lines },
    }
}

/// A new file needs its folders to be folders, as far as they exist.
fn foldable(place: PathBuf) -> Result<PathBuf, String> {
    match place.ancestors().skip(1).find(|above| above.exists()) {
        Some(above) if !above.is_dir() => Err(format!("`{}` is not a folder", above.display())),
        _ => Ok(place),
    }
}

/// What a file holds that may be overwritten.
pub(super) fn before(reader: &PlainFileReader, place: &Path) -> Result<Before, String> {
    match reader.open(place) {
        Ok(_) => Ok(text(reader, place).map_or(Before::Opaque, Before::Text)),
        Err(PlainFileError::Io(err)) if err.kind() == io::ErrorKind::NotFound => {
            Ok(Before::Nothing)
        }
        // It may be written without being read.
        Err(PlainFileError::Io(err)) if err.kind() == io::ErrorKind::PermissionDenied => {
            Ok(Before::Opaque)
        }
        Err(err) => Err(err.to_string()),
    }
}

/// The text of a plain file that is not too big.
fn text(reader: &PlainFileReader, path: &Path) -> Result<String, String> {
    match reader.read(path, MAX_BYTES) {
        Ok(bytes) => String::from_utf8(bytes).map_err(|err| err.utf8_error().to_string()),
        Err(PlainFileError::TooLong(most)) => {
            Err(format!("it is longer than the {most} bytes that a patch may change"))
        }
        Err(err) => Err(err.to_string()),
    }
}
