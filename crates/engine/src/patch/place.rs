//! The paths of a patch, by their letters.

use std::path::{Component, Path, PathBuf};

/// The path from the root, `.` and `..` taken out by their letters.
pub(super) fn absolute(cwd: &Path, named: &str) -> PathBuf {
    let mut path = PathBuf::new();
    for component in cwd.join(named).components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                path.pop();
            }
            other => path.push(other),
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_are_taken_out() {
        let cwd = Path::new("/a/b");
        let cases = [("c", "/a/b/c"), ("./q/../c", "/a/b/c"), ("../../../c", "/c"), ("/x/", "/x")];
        for (named, path) in cases {
            assert_eq!(absolute(cwd, named), Path::new(path), "{named}");
        }
    }
}
