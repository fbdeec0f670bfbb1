//! Paths stay below their root, whatever links say, at the moment they are used.
//!
//! A path that was right once may lead elsewhere later: a command of the tenant's can put a link in
//! the place of a folder. So nothing is opened by its whole path: each folder on the way is opened
//! in the one before it, and none of them may be a link.

use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::error::Error;

/// The real path of `wanted` (the root itself when there is none) if it is a folder below `root`
/// now. Who uses it later must open it again, with [`super::ThreadFolder`].
pub(super) fn confined(root: &Path, wanted: Option<&str>) -> Result<PathBuf, Error> {
    let real_root = real_root(root)?;
    let Some(wanted) = wanted else { return Ok(real_root) };
    let outside = || Error::invalid("cwd", format!("`{wanted}` is no folder of this tenant's"));
    // One and the same answer for what is outside and what is not there: it tells nothing.
    let real = real_root.join(wanted).canonicalize().map_err(|_| outside())?;
    if real.starts_with(&real_root) && real.is_dir() { Ok(real) } else { Err(outside()) }
}

/// The root with the links resolved that whoever set it has put on its way.
pub(super) fn real_root(root: &Path) -> Result<PathBuf, Error> {
    root.canonicalize().map_err(|source| Error::io(root, source))
}

/// Opens a regular file below `root` that has one name only. Its path may be relative to the root
/// or begin with it; links inside the root may be on the way, as long as they do not lead out of it.
pub fn open_file(root: &Path, path: &Path) -> io::Result<File> {
    let root = root.canonicalize()?;
    let real = root.join(path).canonicalize()?;
    open_plain_file(&root, &real)
}

/// The same without any link on the way.
#[cfg(unix)]
pub fn open_plain_file(root: &Path, path: &Path) -> io::Result<File> {
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

#[cfg(not(unix))]
pub fn open_plain_file(root: &Path, path: &Path) -> io::Result<File> {
    let real = root.join(path).canonicalize()?;
    let is_plain = real.starts_with(root.canonicalize()?) && real.is_file();
    if is_plain { File::open(real) } else { Err(refused("it lies outside of its folder")) }
}

/// Opens what lies below `root`, one folder after the other, none of them a link.
#[cfg(unix)]
pub(super) fn open_below(
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

/// A folder on the way, in which nothing but a name is looked up.
#[cfg(target_os = "linux")]
pub(super) const SEARCH: rustix::fs::OFlags =
    rustix::fs::OFlags::PATH.union(rustix::fs::OFlags::DIRECTORY);

#[cfg(all(unix, not(target_os = "linux")))]
pub(super) const SEARCH: rustix::fs::OFlags =
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

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn nothing_leads_out_of_the_root() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("root");
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::create_dir(outer.path().join("root-other")).unwrap();
        std::fs::write(root.join("file"), "").unwrap();
        symlink(outer.path(), root.join("out")).unwrap();
        symlink(root.join("a"), root.join("in")).unwrap();
        let real = root.canonicalize().unwrap();
        let inside = |wanted: &str| confined(&root, Some(wanted)).ok();
        assert_eq!(inside("a/b"), Some(real.join("a/b")));
        assert_eq!(inside("in/b"), Some(real.join("a/b")));
        assert_eq!(inside("a/../a"), Some(real.join("a")));
        assert_eq!(inside(real.join("a").to_str().unwrap()), Some(real.join("a")));
        assert_eq!(confined(&root, None).unwrap(), real);
        for bad in [
            "..",
            "out",
            "out/root-other",
            "a/../../root-other",
            "/",
            "/etc",
            "none",
            "file",
            "a\0b",
        ] {
            assert_eq!(inside(bad), None, "{bad}");
        }
    }

    #[test]
    fn only_plain_files_with_one_name_are_opened() {
        let outer = tempfile::tempdir().unwrap();
        let (root, other) = (outer.path().join("root"), outer.path().join("other"));
        for folder in [&root.join("a"), &other] {
            std::fs::create_dir_all(folder).unwrap();
            std::fs::write(folder.join("plain"), "x").unwrap();
        }
        let secret = other.join("plain");
        symlink(&secret, root.join("link")).unwrap();
        symlink(&other, root.join("folder")).unwrap();
        symlink("a/plain", root.join("near")).unwrap();
        symlink("/proc/self/root", root.join("magic")).unwrap();
        std::fs::hard_link(&secret, root.join("hard")).unwrap();
        let pipe = root.join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let open = |path: &str| open_file(&root, Path::new(path)).map(drop);
        std::fs::write(root.join("own"), "x").unwrap();
        for path in ["own", "a/plain", "near", "./a/./plain"] {
            open(path).unwrap();
            open(root.join(path).to_str().unwrap()).unwrap();
        }
        let magic = format!("magic{}", secret.display());
        let bad = [
            "link",
            "folder/plain",
            "hard",
            "pipe",
            "a",
            "",
            ".",
            "..",
            "../other/plain",
            "a/../../other/plain",
            &magic,
            "none",
            "/etc/hostname",
            "/dev/zero",
        ];
        for path in bad {
            open(path).unwrap_err();
        }
        // Without any link at all, not even one that stays inside.
        open_plain_file(&root, Path::new("a/plain")).unwrap();
        for path in ["near", "link", "folder/plain", "a/../a/plain"] {
            open_plain_file(&root, Path::new(path)).unwrap_err();
        }
    }
}
