//! Opening files that somebody else may have put links in the way of.
//!
//! Nothing is opened by its whole path: each folder on the way is opened in the one before it, and
//! none of them may be a link.

use std::fs::File;
use std::io;
use std::path::{Component, Path};

/// Opens a regular file below `root` that has one name only, with no link on the way. Its path is
/// relative to the root or begins with it.
#[cfg(unix)]
pub fn open_file(root: &Path, path: &Path) -> io::Result<File> {
    use std::os::unix::fs::MetadataExt as _;

    use rustix::fs::OFlags;
    // Opening a pipe must not wait for somebody to write to it.
    let file = File::from(open_below(root, path, OFlags::RDONLY | OFlags::NONBLOCK)?);
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(refused("it is no regular file"));
    }
    // A second name may lie in another tenant's folder, and nobody can tell which one is its own.
    if meta.nlink() > 1 {
        return Err(refused("it has another name elsewhere (a hard link)"));
    }
    Ok(file)
}

/// Without descriptors of folders: what the path is now.
#[cfg(not(unix))]
pub fn open_file(root: &Path, path: &Path) -> io::Result<File> {
    let real = root.join(path).canonicalize()?;
    let is_plain = real.starts_with(root.canonicalize()?) && real.is_file();
    if is_plain { File::open(real) } else { Err(refused("it lies outside of its folder")) }
}

/// Opens what lies below `root`, one folder after the other, none of them a link.
#[cfg(unix)]
pub fn open_below(
    root: &Path,
    path: &Path,
    how: rustix::fs::OFlags,
) -> io::Result<std::os::fd::OwnedFd> {
    use rustix::fs::{Mode, OFlags, open, openat};
    let always = OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NOCTTY;
    let mut names = names_below(root, path)?.into_iter().peekable();
    let at_root = if names.peek().is_none() { how } else { SEARCH };
    let mut at = open(root, at_root | OFlags::CLOEXEC, Mode::empty())?;
    while let Some(name) = names.next() {
        let how = if names.peek().is_none() { how } else { SEARCH };
        at = openat(&at, name, how | always, Mode::empty())?;
    }
    Ok(at)
}

/// How to open a folder on the way, in which nothing but a name is looked up.
#[cfg(target_os = "linux")]
pub const SEARCH: rustix::fs::OFlags =
    rustix::fs::OFlags::PATH.union(rustix::fs::OFlags::DIRECTORY);

/// How to open a folder on the way.
#[cfg(all(unix, not(target_os = "linux")))]
pub const SEARCH: rustix::fs::OFlags =
    rustix::fs::OFlags::RDONLY.union(rustix::fs::OFlags::DIRECTORY);

/// The names that lead from `root` to `path`; `..` is none.
fn names_below<'a>(root: &Path, path: &'a Path) -> io::Result<Vec<&'a std::ffi::OsStr>> {
    let relative = match path.is_absolute() {
        true => path.strip_prefix(root).map_err(|_| refused("it lies outside of its folder"))?,
        false => path,
    };
    let name = |component| match component {
        Component::Normal(name) => Some(Ok(name)),
        Component::CurDir => None,
        _ => Some(Err(refused("it lies outside of its folder"))),
    };
    relative.components().filter_map(name).collect()
}

fn refused(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}
