//! Paths stay below their root, whatever links say, at the moment they are used.
//!
//! A path that was right once may lead elsewhere later: a command of the tenant's can put a link in
//! the place of a folder. So nothing is opened by its whole path: each folder on the way is opened
//! in the one before it, and none of them may be a link.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use bindery_sessions::plain;

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
/// or begin with it; links inside the root may be on the way, as long as they do not lead out.
pub fn open_file(root: &Path, path: &Path) -> io::Result<File> {
    let root = root.canonicalize()?;
    let real = root.join(path).canonicalize()?;
    plain::open_file(&root, &real)
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
        plain::open_file(&root, Path::new("a/plain")).unwrap();
        for path in ["near", "link", "folder/plain", "a/../a/plain"] {
            plain::open_file(&root, Path::new(path)).unwrap_err();
        }
    }
}
