//! Files that tenants have sent: where they lie, who uses them, and when they go.
//!
//! A file goes when nobody has used it for as long as events are kept, or with the last thread that
//! used it. A worker reads a file when its turn begins and keeps a copy in the session, so only
//! turns that have not ended need the file itself.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::private::{make_file, make_folder};

/// Between a file's name and that of a thread that uses it.
const USED_BY: char = '@';

/// The files of one tenant.
#[derive(Clone, Debug)]
pub struct Shelf {
    folder: PathBuf,
}

impl Shelf {
    /// The folder below which all tenants' files lie.
    pub fn all(data: &Path) -> PathBuf {
        data.join("uploads")
    }

    /// The files of this tenant.
    pub fn new(data: &Path, tenant: &str) -> Self {
        Self { folder: Self::all(data).join(tenant) }
    }

    /// Where they lie.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Keeps a file under this name and ending.
    pub fn put(&self, id: &str, ending: &str, bytes: &[u8]) -> io::Result<()> {
        make_folder(&self.folder).map_err(io::Error::other)?;
        let mut file = make_file(&self.folder.join(format!("{id}.{ending}")))?;
        io::Write::write_all(&mut file, bytes)
    }

    /// The file of this name. Only names that we gave: they are letters and digits, and lead
    /// nowhere else.
    pub fn find(&self, id: &str) -> Option<PathBuf> {
        let digits = id.strip_prefix("upl_")?;
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        self.files().find(|(name, _)| name == id).map(|(_, path)| path)
    }

    /// A thread uses a file, from now on.
    pub fn used(&self, id: &str, thread: &str) -> io::Result<()> {
        let Some(file) = self.find(id) else { return Ok(()) };
        fs::File::options().append(true).open(file)?.set_modified(SystemTime::now())?;
        make_file(&self.mark(id, thread)).map(drop)
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        let files = self.files().filter_map(|(_, path)| fs::metadata(path).ok());
        files.map(|meta| meta.len()).sum()
    }

    /// A thread is put away: what it alone used goes, but for what is `needed`.
    pub fn leave(&self, thread: &str, needed: &HashSet<String>) -> io::Result<usize> {
        let marks: Vec<(String, String)> = self.marks().collect();
        let mut gone = 0;
        for (id, _) in marks.iter().filter(|(id, by)| by == thread && !needed.contains(id)) {
            remove(&self.mark(id, thread))?;
            if !marks.iter().any(|(other, by)| other == id && by != thread) {
                gone += usize::from(self.remove(id)?);
            }
        }
        Ok(gone)
    }

    /// Files that nobody has used since then go, but for what is `needed`.
    pub fn sweep(&self, before: SystemTime, needed: &HashSet<String>) -> io::Result<usize> {
        let mut gone = 0;
        for (id, path) in self.files().filter(|(id, _)| !needed.contains(id)) {
            let used = fs::metadata(path).and_then(|meta| meta.modified());
            if used.is_ok_and(|used| used < before) {
                gone += usize::from(self.remove(&id)?);
            }
        }
        Ok(gone)
    }

    /// A file goes, and with it who uses it; false if there is none.
    pub fn remove(&self, id: &str) -> io::Result<bool> {
        for (_, thread) in self.marks().filter(|(used, _)| used == id) {
            remove(&self.mark(id, &thread))?;
        }
        let Some(file) = self.find(id) else { return Ok(false) };
        remove(&file).map(|()| true)
    }

    fn mark(&self, id: &str, thread: &str) -> PathBuf {
        self.folder.join(format!("{id}{USED_BY}{thread}"))
    }

    fn files(&self) -> impl Iterator<Item = (String, PathBuf)> + use<> {
        entries(&self.folder).filter_map(|(name, path)| {
            let (id, _) = name.split_once('.')?;
            Some((id.to_owned(), path))
        })
    }

    fn marks(&self) -> impl Iterator<Item = (String, String)> + use<> {
        entries(&self.folder).filter_map(|(name, _)| {
            let (id, thread) = name.split_once(USED_BY)?;
            Some((id.to_owned(), thread.to_owned()))
        })
    }
}

/// How the name of a file begins in a path.
pub const NAME_IN_PATH: &str = "/upl_";

/// The names of the files that a request speaks of by their paths; it comes as JSON.
pub fn names_in(request: &str) -> impl Iterator<Item = String> + use<'_> {
    let after = request.split(NAME_IN_PATH).skip(1);
    let digits = after.map(|rest| rest.split(|letter: char| !letter.is_ascii_hexdigit()).next());
    digits.flatten().map(|digits| format!("upl_{digits}"))
}

fn entries(folder: &Path) -> impl Iterator<Item = (String, PathBuf)> + use<> {
    let all = fs::read_dir(folder).into_iter().flatten().flatten();
    all.filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())))
}

/// What somebody else has removed need not be.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(err) if err.kind() != io::ErrorKind::NotFound => Err(err),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn shelf() -> (tempfile::TempDir, Shelf) {
        let folder = tempfile::tempdir().unwrap();
        let shelf = Shelf::new(folder.path(), "ten_1");
        for id in ["upl_a1", "upl_a2", "upl_a3"] {
            shelf.put(id, "png", b"1234").unwrap();
        }
        (folder, shelf)
    }

    fn needed(ids: &[&str]) -> HashSet<String> {
        ids.iter().map(|id| (*id).to_owned()).collect()
    }

    #[test]
    fn what_is_old_goes_unless_it_is_needed() {
        let (_folder, shelf) = shelf();
        assert_eq!(shelf.bytes(), 12);
        let (past, future) = (
            SystemTime::now() - Duration::from_secs(60),
            SystemTime::now() + Duration::from_secs(60),
        );
        assert_eq!(shelf.sweep(past, &needed(&[])).unwrap(), 0);
        shelf.used("upl_a1", "thr_1").unwrap();
        assert_eq!(shelf.sweep(future, &needed(&["upl_a2"])).unwrap(), 2);
        assert!(shelf.find("upl_a1").is_none() && shelf.find("upl_a2").is_some());
        assert_eq!((shelf.bytes(), shelf.marks().count()), (4, 0));
    }

    #[test]
    fn what_a_thread_alone_used_goes_with_it() {
        let (_folder, shelf) = shelf();
        shelf.used("upl_a1", "thr_1").unwrap();
        shelf.used("upl_a2", "thr_1").unwrap();
        shelf.used("upl_a2", "thr_2").unwrap();
        assert_eq!(shelf.leave("thr_1", &needed(&["upl_a1"])).unwrap(), 0);
        assert_eq!(shelf.leave("thr_1", &needed(&[])).unwrap(), 1);
        assert!(shelf.find("upl_a1").is_none() && shelf.find("upl_a2").is_some());
        assert_eq!(shelf.leave("thr_2", &needed(&[])).unwrap(), 1);
        // What nobody has used yet may still be.
        assert!(shelf.find("upl_a3").is_some());
    }

    #[test]
    fn only_our_names_are_found_and_told() {
        let (_folder, shelf) = shelf();
        for id in ["upl_", "a1", "upl_../x", "upl_a1.png", "upl_a1@thr_1", "upl_9"] {
            assert!(shelf.find(id).is_none(), "{id}");
        }
        let request = serde_json::json!({ "data": "file:///d/uploads/ten_1/upl_a1.png",
            "text": "upl_a2 and /upl_ and upload:upl_a3" });
        assert_eq!(
            names_in(&request.to_string()).collect::<HashSet<_>>(),
            needed(&["upl_a1", "upl_"])
        );
    }
}
