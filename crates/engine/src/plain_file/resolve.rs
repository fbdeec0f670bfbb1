//! Where a path really leads: links followed by us, so that what is checked is what is opened.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

/// As many links as Linux follows.
const MAX_LINKS: usize = 40;

/// Where a path leads, be it there already or not. Parts that do not exist are taken as they are,
/// links that lead nowhere are followed to where they would. Every link on the way is told, and
/// the place itself.
pub(crate) fn resolve_links(path: &Path, tell: &mut dyn FnMut(&Path)) -> io::Result<PathBuf> {
    let place = follow(path, tell)?;
    tell(&place);
    Ok(place)
}

fn follow(path: &Path, tell: &mut dyn FnMut(&Path)) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    let mut real = PathBuf::new();
    let mut ahead: VecDeque<OsString> = owned(&path).collect();
    let mut links = 0;
    while let Some(part) = ahead.pop_front() {
        match Path::new(&part).components().next() {
            None | Some(Component::CurDir) => continue,
            Some(Component::ParentDir) => {
                real.pop();
                continue;
            }
            Some(Component::Normal(_)) => {}
            Some(Component::Prefix(_) | Component::RootDir) => {
                real.push(&part);
                continue;
            }
        }
        let next = real.join(&part);
        let Some(target) = link(&next)? else {
            real = next;
            continue;
        };
        tell(&next);
        links += 1;
        if links > MAX_LINKS {
            return Err(io::Error::other("too many symbolic links"));
        }
        for part in owned(&target).rev() {
            ahead.push_front(part);
        }
        if target.is_absolute() {
            real = PathBuf::new();
        }
    }
    Ok(real)
}

/// The name itself, in the folder where it really is: what is removed when it is removed.
pub(crate) fn resolve_entry(path: &Path, tell: &mut dyn FnMut(&Path)) -> io::Result<PathBuf> {
    match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) => {
            // The folder may be hidden, and what is in it not.
            let place = follow(folder, tell)?.join(name);
            tell(&place);
            Ok(place)
        }
        _ => Ok(path.to_owned()),
    }
}

fn link(path: &Path) -> io::Result<Option<PathBuf>> {
    match path.symlink_metadata() {
        Ok(metadata) if metadata.is_symlink() => path.read_link().map(Some),
        Ok(_) => Ok(None),
        // What is below a file or is not there at all shows when it is written.
        Err(err)
            if matches!(err.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            Ok(None)
        }
        Err(err) => Err(err),
    }
}

fn owned(path: &Path) -> impl DoubleEndedIterator<Item = OsString> {
    path.components().map(|component| component.as_os_str().to_owned())
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn landed(path: &Path) -> io::Result<PathBuf> {
        resolve_links(path, &mut |_| {})
    }

    fn entered(path: &Path) -> io::Result<PathBuf> {
        resolve_entry(path, &mut |_| {})
    }

    #[test]
    fn links_are_followed_also_where_they_lead_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("real")).unwrap();
        symlink("real", root.join("dir")).unwrap();
        symlink("../outside/x", root.join("real/away")).unwrap();
        symlink(root.join("dir/away"), root.join("twice")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        assert_eq!(landed(&root.join("dir/new/file")).unwrap(), root.join("real/new/file"));
        assert_eq!(landed(&root.join("dir/away")).unwrap(), root.join("outside/x"));
        assert_eq!(landed(&root.join("twice")).unwrap(), root.join("outside/x"));
        assert_eq!(entered(&root.join("dir/away")).unwrap(), root.join("real/away"));
        assert!(landed(&root.join("loop")).is_err());
    }
}
