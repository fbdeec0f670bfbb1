//! Where may be written: folders, and what within them may not.
//!
//! The sandbox is built from this, and patches, which the engine applies itself, are checked
//! against it and written through it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, openat, unlinkat};

use super::{Policy, SandboxError};

/// Entries of a root that stay read-only: from them programs are run later, or rules are read.
pub const PROTECTED: [&str; 4] = [".git", ".codex", ".agents", ".bindery"];

/// More links than this are a circle.
const LINKS: usize = 40;

/// Folders that may be written in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WritableRoots {
    roots: Vec<Root>,
    /// Everywhere, with full access.
    everywhere: bool,
    protect: Vec<PathBuf>,
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
    /// The roots of a policy for a command that runs in `cwd`. Those that are not there are left
    /// out: nothing can be written in them.
    pub fn of(
        policy: &Policy,
        cwd: &Path,
        tmpdir: Option<&Path>,
        protect: Vec<PathBuf>,
    ) -> Result<Self, SandboxError> {
        let protect = protect.iter().map(|path| canonical(path)).collect();
        let mut all = Self { roots: Vec::new(), everywhere: false, protect };
        match policy {
            Policy::ReadOnly => {}
            Policy::FullAccess => all.everywhere = true,
            Policy::WorkspaceWrite { roots, exclude_slash_tmp, exclude_tmpdir, .. } => {
                all.add(cwd, false)?;
                roots.iter().try_for_each(|root| all.add(&cwd.join(root), false))?;
                if !exclude_slash_tmp {
                    all.add(Path::new("/tmp"), true)?;
                }
                if let (Some(tmpdir), false) = (tmpdir, exclude_tmpdir) {
                    all.add(&cwd.join(tmpdir), true)?;
                }
            }
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
        let entries = self.roots.iter().flat_map(|root| {
            let names = PROTECTED.iter().map(|name| root.path.join(name));
            names.filter(|path| !root.temporary || path.symlink_metadata().is_ok())
        });
        let linked = self.roots.iter().filter_map(|root| git_folder(&root.path.join(".git")));
        let homes = self.protect.iter().cloned().chain(linked);
        let homes = homes.filter(|path| self.roots.iter().any(|root| path.starts_with(&root.path)));
        let mut all: Vec<_> = entries.chain(homes).collect();
        all.sort();
        all.dedup();
        all
    }

    /// Says where a file really is, if it may be written. The path may be relative to `cwd`; links
    /// are resolved, of which what it leads to counts.
    pub fn check(&self, cwd: &Path, path: &Path) -> Result<Place, PathError> {
        let resolved = resolve(&cwd.join(path))?;
        if self.everywhere {
            return Ok(Place { base: PathBuf::from("/"), path: resolved });
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

    /// Names are compared without case, as some file systems do.
    fn is_protected(&self, root: &Root, path: &Path) -> bool {
        let below = path.strip_prefix(&root.path).ok().and_then(|rest| rest.components().next());
        let name = below.map(|name| name.as_os_str().to_string_lossy().to_lowercase());
        let linked = git_folder(&root.path.join(".git"));
        name.is_some_and(|name| PROTECTED.contains(&name.as_str()))
            || self.protect.iter().chain(&linked).any(|home| path.starts_with(home))
    }
}

/// The folder that a `.git` file names, as worktrees and submodules have it.
fn git_folder(file: &Path) -> Option<PathBuf> {
    if !file.is_file() {
        return None;
    }
    let mut text = String::new();
    File::open(file).ok()?.take(4096).read_to_string(&mut text).ok()?;
    let named = text.lines().next()?.strip_prefix("gitdir:")?.trim();
    file.parent()?.join(named).canonicalize().ok()
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
