//! Where may be written: folders, and what within them may not.
//!
//! The sandbox is built from this, and patches, which the engine applies itself, are checked
//! against it and written through it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{AtFlags, Mode, OFlags, openat, unlinkat};

use super::{Policy, SandboxError, protected};

/// More links than this are a circle.
const LINKS: usize = 40;

/// Folders that may be written in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WritableRoots {
    roots: Vec<Root>,
    /// Everywhere, with full access.
    everywhere: bool,
    /// Nowhere, because the policy only lets read.
    read_only: bool,
    protect: Vec<PathBuf>,
    /// What is protected in the roots, looked for when it is first needed.
    found: OnceLock<Vec<PathBuf>>,
}

/// One of them, with links resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Root {
    pub(super) path: PathBuf,
    /// A folder for temporary files, in which nothing protected is expected.
    pub(super) temporary: bool,
}

/// Why a file may not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// Nothing may be written, wherever it is.
    #[error("the sandbox is read-only, so nothing may be written: `{}`", .0.display())]
    ReadOnly(PathBuf),
    /// It is outside.
    #[error("writing outside of the project; rejected by the sandbox: `{}`", .0.display())]
    Outside(PathBuf),
    /// It is protected.
    #[error("`{}` is protected; ask for approval to change it", .0.display())]
    Protected(PathBuf),
    /// The path leads round in a circle, or through something that is no folder.
    #[error("cannot follow `{}`: {why}", path.display())]
    Follow {
        /// The path.
        path: PathBuf,
        /// The reason.
        why: String,
    },
}

impl WritableRoots {
    /// The roots of a policy for a thread whose folder is `workspace`. Those that are not there
    /// are left out: nothing can be written in them.
    pub fn of(
        policy: &Policy,
        workspace: &Path,
        tmpdir: Option<&Path>,
        protect: Vec<PathBuf>,
    ) -> Result<Self, SandboxError> {
        let protect = protect.iter().map(|path| canonical(path)).collect();
        let everywhere = *policy == Policy::FullAccess;
        let read_only = *policy == Policy::ReadOnly;
        let (roots, found) = (Vec::new(), OnceLock::new());
        let mut all = Self { roots, everywhere, read_only, protect, found };
        for (path, temporary) in paths(policy, workspace, tmpdir) {
            all.add(&path, temporary)?;
        }
        // An outer one comes before those in it.
        all.roots.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(all)
    }

    fn add(&mut self, path: &Path, temporary: bool) -> Result<(), SandboxError> {
        let Ok(path) = path.canonicalize() else { return Ok(()) };
        if path.parent().is_none() {
            return Err(SandboxError::WholeSystem);
        }
        match self.roots.iter_mut().find(|root| root.path == path) {
            Some(root) => root.temporary &= temporary,
            None => self.roots.push(Root { path, temporary }),
        }
        Ok(())
    }

    pub(super) fn roots(&self) -> &[Root] {
        &self.roots
    }

    /// What is protected and lies in a root, whether it is there or could be made.
    pub(super) fn protected(&self) -> Vec<PathBuf> {
        let places = self.protect.iter().chain(self.found());
        let inner = places.filter_map(|path| {
            let root = self.roots.iter().find(|root| path.starts_with(&root.path))?;
            // A folder that is missing could be made, and so could the one above it.
            let missing = path.ancestors().take_while(|one| *one != root.path && !is_there(one));
            Some(missing.last().unwrap_or(path).to_owned())
        });
        let mut all: Vec<_> = inner.collect();
        all.sort();
        all.dedup();
        all
    }

    fn found(&self) -> &[PathBuf] {
        self.found.get_or_init(|| {
            let found = self.roots.iter().flat_map(|root| match root.temporary {
                true => protected::in_temporary_root(&root.path),
                false => protected::in_root(&root.path),
            });
            found.collect()
        })
    }

    /// Says where a file really is, if it may be written. The path may be relative to `cwd`; links
    /// are resolved, of which what it leads to counts.
    pub fn check(&self, cwd: &Path, path: &Path) -> Result<Place, PathError> {
        let resolved = resolve(&cwd.join(path))?;
        if self.everywhere {
            return Ok(Place { base: PathBuf::from("/"), path: resolved });
        }
        if self.read_only {
            return Err(PathError::ReadOnly(resolved));
        }
        // The innermost one: what is protected in an outer one may be a root by itself.
        let within = self.roots.iter().filter(|root| resolved.starts_with(&root.path));
        let Some(root) = within.max_by_key(|root| root.path.components().count()) else {
            return Err(PathError::Outside(resolved));
        };
        if self.is_protected(root, &resolved) {
            return Err(PathError::Protected(resolved));
        }
        Ok(Place { base: root.path.clone(), path: resolved })
    }

    fn is_protected(&self, root: &Root, path: &Path) -> bool {
        let mut places = self.protect.iter().chain(self.found());
        protected::is_protected(&root.path, path) || places.any(|place| path.starts_with(place))
    }
}

/// The folders of a policy as they are named, each with whether it is for temporary files.
pub(crate) fn paths(
    policy: &Policy,
    workspace: &Path,
    tmpdir: Option<&Path>,
) -> Vec<(PathBuf, bool)> {
    let Policy::WorkspaceWrite { roots, exclude_slash_tmp, exclude_tmpdir, .. } = policy else {
        return Vec::new();
    };
    let mut paths = vec![(workspace.to_owned(), false)];
    paths.extend(roots.iter().map(|root| (workspace.join(root), false)));
    paths.extend((!exclude_slash_tmp).then(|| (PathBuf::from("/tmp"), true)));
    let tmpdir = tmpdir.filter(|tmpdir| !exclude_tmpdir && tmpdir.is_absolute());
    paths.extend(tmpdir.map(|tmpdir| (tmpdir.to_owned(), true)));
    paths
}

/// Our own folder for temporary files. That of a command is no root: whoever starts a command can
/// set its variables.
pub(crate) fn temporary_folder() -> Option<PathBuf> {
    std::env::var_os("TMPDIR").map(PathBuf::from).filter(|folder| folder.is_absolute())
}

fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// The path with all links resolved; what is not there yet stays as it is named.
fn resolve(path: &Path) -> Result<PathBuf, PathError> {
    let follow = |why: &str| PathError::Follow { path: path.to_owned(), why: why.to_owned() };
    let mut open: Vec<PathBuf> = vec![path.to_owned()];
    let mut done = PathBuf::new();
    let mut links = 0;
    while let Some(next) = open.pop() {
        let mut components = next.components();
        let Some(first) = components.next() else { continue };
        open.push(components.as_path().to_owned());
        match first {
            Component::Prefix(_) | Component::RootDir => done = PathBuf::from("/"),
            Component::CurDir => {}
            Component::ParentDir => {
                done.pop();
            }
            Component::Normal(name) => match fs::read_link(done.join(name)) {
                Ok(target) => {
                    links += 1;
                    if links > LINKS {
                        return Err(follow("too many links"));
                    }
                    open.push(target);
                }
                Err(_) => done.push(name),
            },
        }
    }
    if done.parent().is_none() { Err(follow("it names no file")) } else { Ok(done) }
}

/// A file that may be written, and how to reach it so that no link put in the way meanwhile leads
/// elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    base: PathBuf,
    path: PathBuf,
}

impl Place {
    /// Where it really is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the whole file, and makes the folders on the way to it.
    pub fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let (folder, name) = self.parent(true)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW;
        let mode = Mode::from_raw_mode(0o666);
        let file = openat(folder, name, flags | OFlags::CLOEXEC, mode)?;
        File::from(file).write_all(bytes)
    }

    /// Reads the whole file; its size is the caller's affair.
    pub fn read(&self) -> io::Result<Vec<u8>> {
        let (folder, name) = self.parent(false)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut bytes = Vec::new();
        File::from(openat(folder, name, flags, Mode::empty())?).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Removes the file.
    pub fn remove(&self) -> io::Result<()> {
        let (folder, name) = self.parent(false)?;
        Ok(unlinkat(folder, name, AtFlags::empty())?)
    }

    /// Opens its folder step by step, following no link below the root.
    fn parent(&self, make: bool) -> io::Result<(OwnedFd, &OsStr)> {
        let wrong = || io::Error::new(io::ErrorKind::InvalidInput, "it names no file");
        let name = self.path.file_name().ok_or_else(wrong)?;
        let below = self.path.strip_prefix(&self.base).map_err(|_| wrong())?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut folder = rustix::fs::open(&self.base, flags, Mode::empty())?;
        let steps = below.parent().into_iter().flat_map(Path::components);
        for step in steps {
            let flags = flags | OFlags::NOFOLLOW;
            let mut next = openat(&folder, step.as_os_str(), flags, Mode::empty());
            if make && next.as_ref().is_err_and(|error| *error == rustix::io::Errno::NOENT) {
                rustix::fs::mkdirat(&folder, step.as_os_str(), Mode::from_raw_mode(0o777))?;
                next = openat(&folder, step.as_os_str(), flags, Mode::empty());
            }
            folder = next?;
        }
        Ok((folder, name))
    }
}
