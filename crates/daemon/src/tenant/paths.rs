//! Paths stay below their root, whatever links say.

use std::path::{Path, PathBuf};

use crate::error::Error;

/// The folder `wanted` (the root itself when there is none), all links resolved, if it is there and
/// lies in `root`.
pub fn confined(root: &Path, wanted: Option<&str>) -> Result<PathBuf, Error> {
    let real_root = root.canonicalize().map_err(|source| Error::io(root, source))?;
    let Some(wanted) = wanted else { return Ok(real_root) };
    let outside = || Error::invalid("cwd", format!("`{wanted}` is no folder of this tenant's"));
    // One and the same answer for what is outside and what is not there: it tells nothing.
    let real = real_root.join(wanted).canonicalize().map_err(|_| outside())?;
    if real.starts_with(&real_root) && real.is_dir() { Ok(real) } else { Err(outside()) }
}

/// Whether a file lies in `root`, all links resolved.
pub fn within(root: &Path, file: &str) -> Result<(), Error> {
    let outside = || Error::invalid("prompt", format!("`{file}` is no file of this tenant's"));
    let root = root.canonicalize().map_err(|source| Error::io(root, source))?;
    let real = root.join(file).canonicalize().map_err(|_| outside())?;
    if real.starts_with(&root) { Ok(()) } else { Err(outside()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn nothing_leads_out_of_the_root() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("root");
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::create_dir(outer.path().join("root-other")).unwrap();
        std::fs::write(root.join("file"), "").unwrap();
        std::os::unix::fs::symlink(outer.path(), root.join("out")).unwrap();
        std::os::unix::fs::symlink(root.join("a"), root.join("in")).unwrap();
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
}
