//! Finding session files: Codex homes, folders of any kind, single files, ids and their beginnings.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use bindery_core::ids::ThreadId;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::error::read_error;
use crate::plain;
use crate::record::{self, is_packed};

/// A session file as its name and folder tell of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionFile {
    /// Where it is.
    pub path: PathBuf,
    /// The thread, if the file's name tells.
    pub thread_id: Option<ThreadId>,
    /// The part of the thread, for one that was reverted or handed off (0.153 and newer).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part_id: Option<String>,
    /// It is in `archived_sessions`.
    pub archived: bool,
    /// Bytes on disk.
    pub size: u64,
    /// When it was last written, in milliseconds since 1970.
    pub modified_ms: i64,
    /// The home that it must lie in whenever it is opened, with no link on the way; any file will
    /// do when there is none.
    #[serde(skip)]
    pub within: Option<PathBuf>,
}

impl SessionFile {
    /// Opens it as it is on disk.
    pub fn open(&self) -> Result<fs::File, Error> {
        record::open_file(&self.path, self.within.as_deref())
    }
}

/// The Codex homes to look in when none is named: `CODEX_HOME`, else `~/.codex`.
pub fn default_roots(
    codex_home: Option<&std::ffi::OsStr>,
    home: Option<&std::ffi::OsStr>,
) -> Vec<PathBuf> {
    let named = codex_home.filter(|path| !path.is_empty()).map(PathBuf::from);
    let usual = home.filter(|path| !path.is_empty()).map(|home| Path::new(home).join(".codex"));
    named.or(usual).into_iter().collect()
}

/// The Codex home that a path is in, or would be if it existed: one of `homes`, or a folder that
/// has what only a Codex home has. Links and `..` are followed before anything is compared.
pub fn codex_home_of(path: &Path, homes: &[PathBuf]) -> Option<PathBuf> {
    let mut place = std::path::absolute(path).ok()?;
    // What does not exist yet is where its nearest existing folder is.
    let place = loop {
        match place.canonicalize() {
            Ok(place) => break place,
            Err(_) => place = place.parent()?.to_owned(),
        }
    };
    let homes: Vec<_> = homes.iter().filter_map(|home| home.canonicalize().ok()).collect();
    let is_home = |folder: &&Path| {
        (homes.iter().any(|home| home == folder) && has_sessions(folder)) || is_codex_home(folder)
    };
    place.ancestors().find(is_home).map(Path::to_owned)
}

fn has_sessions(folder: &Path) -> bool {
    ["sessions", "archived_sessions"].iter().any(|name| folder.join(name).is_dir())
}

/// A folder of sessions by the year, or one that has sessions beside another file of Codex's.
fn is_codex_home(folder: &Path) -> bool {
    const BESIDE: [&str; 5] = [
        "archived_sessions",
        "installation_id",
        "session_index.jsonl",
        "state_5.sqlite",
        "thread-writer-locks",
    ];
    let is_year = |name: &str| name.len() == 4 && name.bytes().all(|byte| byte.is_ascii_digit());
    let years = fs::read_dir(folder.join("sessions")).into_iter().flatten().flatten();
    let by_year = years.take(64).any(|entry| entry.file_name().to_str().is_some_and(is_year));
    by_year
        || (folder.join("sessions").is_dir()
            && BESIDE.iter().any(|name| folder.join(name).exists()))
}

/// All session files under the roots, newest name last. A root is a Codex home, any folder, or a
/// file; one that does not exist is an error, an empty one is not.
pub fn files(roots: &[PathBuf]) -> Result<Vec<SessionFile>, Error> {
    Ok(survey(roots)?.files)
}

/// What is under some roots.
#[derive(Debug, Default)]
pub struct Survey {
    /// The session files, as [`files`] has them.
    pub files: Vec<SessionFile>,
    /// Folders and files that cannot be looked at, and so may hide sessions.
    pub unreadable: Vec<Unreadable>,
}

/// A folder or a file that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// Where it is.
    pub path: PathBuf,
    /// What the system said.
    pub why: String,
}

/// As [`files`], and what could not be looked at.
pub fn survey(roots: &[PathBuf]) -> Result<Survey, Error> {
    let mut found = Survey::default();
    for root in roots {
        let data = fs::metadata(root).map_err(read_error(root))?;
        if data.is_file() {
            found.files.push(describe(root, &data, false));
            continue;
        }
        let parts = [("sessions", false), ("archived_sessions", true)];
        let parts: Vec<_> =
            parts.map(|(name, archived)| (root.join(name), archived)).into_iter().collect();
        if parts.iter().any(|(path, _)| path.is_dir()) {
            for (path, archived) in parts.iter().filter(|(path, _)| path.is_dir()) {
                walk(path, *archived, 0, &mut found);
            }
        } else {
            walk(root, root.ends_with("archived_sessions"), 0, &mut found);
        }
    }
    found.files = without_copies(found.files);
    Ok(found)
}

/// The session files of a home that somebody else may write to: none that is a link, has a second
/// name or is reached through a link, neither now nor when it is opened.
pub fn files_within(home: &Path) -> Result<Vec<SessionFile>, Error> {
    let home = home.canonicalize().map_err(read_error(home))?;
    let mut survey = Survey::default();
    for (name, archived) in [("sessions", false), ("archived_sessions", true)] {
        let folder = home.join(name);
        if fs::symlink_metadata(&folder).is_ok_and(|data| data.is_dir()) {
            walk(&folder, archived, 0, &mut survey);
        }
    }
    let mut found = survey.files;
    found.iter_mut().for_each(|file| file.within = Some(home.clone()));
    found.retain(|file| file.open().is_ok());
    Ok(without_copies(found))
}

/// Names that people gave their threads (`session_index.jsonl`; the last line wins).
pub fn names(roots: &[PathBuf]) -> HashMap<ThreadId, String> {
    let texts = roots.iter().map(|root| fs::read(root.join(INDEX)).unwrap_or_default());
    texts.flat_map(|text| named(&text)).collect()
}

/// The same of a home that somebody else may write to.
pub fn names_within(home: &Path) -> HashMap<ThreadId, String> {
    let mut text = Vec::new();
    // Without an index, or with one that leads elsewhere, there are no names.
    let read = plain::open_file(home, Path::new(INDEX))
        .and_then(|mut index| std::io::Read::read_to_end(&mut index, &mut text));
    read.map(|_| named(&text)).unwrap_or_default().into_iter().collect()
}

/// The file that names are kept in.
const INDEX: &str = "session_index.jsonl";

fn named(text: &[u8]) -> Vec<(ThreadId, String)> {
    #[derive(Deserialize)]
    struct Line {
        id: String,
        thread_name: Option<String>,
    }
    let lines = text.split(|byte| *byte == b'\n');
    let lines = lines.filter_map(|line| serde_json::from_slice::<Line>(line).ok());
    lines.filter_map(|line| Some((ThreadId::new(line.id), line.thread_name?))).collect()
}

/// The file of a session: by path, by id, or by the beginning (or the end) of an id.
pub fn resolve(name: &str, roots: &[PathBuf]) -> Result<SessionFile, Error> {
    let path = Path::new(name);
    if let Ok(data) = fs::metadata(path) {
        if data.is_file() {
            return Ok(describe(path, &data, false));
        }
        if let Some(newest) = current(files(&[path.to_owned()])?).pop() {
            return Ok(newest);
        }
    }
    let present: Vec<_> = roots.iter().filter(|root| root.exists()).cloned().collect();
    pick(name, current(files(&present)?))
}

/// One file for each thread: where there are several, the one that is in force.
///
/// Only Codex's database says which that is; the newest part is the best guess without it.
pub fn current(files: Vec<SessionFile>) -> Vec<SessionFile> {
    let mut threads: BTreeMap<String, SessionFile> = BTreeMap::new();
    let mut order = Vec::new();
    for file in files {
        let key = match &file.thread_id {
            Some(id) => id.to_string(),
            None => file.path.to_string_lossy().into_owned(),
        };
        match threads.get(&key) {
            Some(known) if rank(known) >= rank(&file) => {}
            Some(_) => {
                threads.insert(key, file);
            }
            None => {
                order.push(key.clone());
                threads.insert(key, file);
            }
        }
    }
    order.iter().filter_map(|key| threads.remove(key)).collect()
}

/// The file that a fork or a revert points to.
pub fn base<'a>(files: &'a [SessionFile], id: &str) -> Option<&'a SessionFile> {
    let by_part = files.iter().find(|file| file.part_id.as_deref() == Some(id));
    let is_thread = |file: &&SessionFile| file.thread_id.as_ref().is_some_and(|t| t.as_str() == id);
    by_part
        .or_else(|| files.iter().find(|file| is_thread(file) && file.part_id.is_none()))
        .or_else(|| files.iter().find(is_thread))
}

fn rank(file: &SessionFile) -> (Option<&str>, i64, bool) {
    (file.part_id.as_deref(), file.modified_ms, !file.archived)
}

fn pick(name: &str, files: Vec<SessionFile>) -> Result<SessionFile, Error> {
    let id_of = |file: &SessionFile| file.thread_id.as_ref().map(ToString::to_string);
    let fits = |file: &&SessionFile| {
        let id = id_of(file).unwrap_or_default();
        // Ids of one day begin alike, so their end is as good a name.
        id.starts_with(name) || (name.len() >= 4 && id.ends_with(name))
    };
    let found: Vec<_> = files.iter().filter(fits).collect();
    match found.as_slice() {
        [file] => Ok((*file).clone()),
        [] => {
            let near = files.iter().filter_map(id_of).max_by_key(|id| common(id, name));
            let nearest = near.filter(|id| common(id, name) >= 4).map(|id| format!("`{id}`"));
            Err(Error::NotFound { name: name.to_owned(), nearest })
        }
        several => Err(Error::Ambiguous {
            name: name.to_owned(),
            count: several.len(),
            examples: several.iter().take(3).filter_map(|file| id_of(file)).collect(),
        }),
    }
}

fn common(a: &str, b: &str) -> usize {
    a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count()
}

/// Years, months, days, and some room; links are not followed, so there is no way around.
const DEPTH: usize = 8;

fn walk(folder: &Path, archived: bool, depth: usize, found: &mut Survey) {
    let mut unreadable = |path: &Path, error: &std::io::Error| {
        found.unreadable.push(Unreadable { path: path.to_owned(), why: error.to_string() });
    };
    let mut entries = Vec::new();
    match fs::read_dir(folder) {
        Err(error) => unreadable(folder, &error),
        Ok(all) => {
            for entry in all {
                match entry {
                    Ok(entry) => entries.push(entry),
                    Err(error) => unreadable(folder, &error),
                }
            }
        }
    }
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let Ok(kind) = entry.file_type() else { continue };
        let path = entry.path();
        if kind.is_dir() && depth < DEPTH {
            walk(&path, archived, depth + 1, found);
        } else if is_session(&path) {
            match fs::metadata(&path) {
                Ok(data) if data.is_file() => found.files.push(describe(&path, &data, archived)),
                Ok(_) => {}
                Err(error) => {
                    found.unreadable.push(Unreadable { path, why: error.to_string() });
                }
            }
        }
    }
}

fn is_session(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let is_other = matches!(name.as_ref(), "session_index.jsonl" | "history.jsonl");
    !is_other && (name.ends_with(".jsonl") || name.ends_with(".jsonl.zst"))
}

fn describe(path: &Path, data: &fs::Metadata, archived: bool) -> SessionFile {
    let (thread_id, part_id) = ids(path);
    let since = data.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let archived = archived || path.parent().is_some_and(|p| p.ends_with("archived_sessions"));
    SessionFile {
        path: path.to_owned(),
        thread_id: thread_id.map(ThreadId::new),
        part_id,
        archived,
        size: data.len(),
        modified_ms: since.map_or(0, |since| since.as_millis() as i64),
        within: None,
    }
}

/// `rollout-<19 characters of time>-<thread>[_<part>].jsonl[.zst]`.
fn ids(path: &Path) -> (Option<String>, Option<String>) {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let stem = name.strip_suffix(".zst").unwrap_or(&name);
    let rest = stem.strip_prefix("rollout-").and_then(|rest| rest.strip_suffix(".jsonl"));
    let Some(ids) = rest.and_then(|rest| rest.get(20..)) else { return (None, None) };
    match ids.split_once('_') {
        Some((thread, part)) => (Some(thread.to_owned()), Some(part.to_owned())),
        None => (Some(ids.to_owned()), None),
    }
}

/// The same file packed and not, or active and archived, is one: the first of these counts.
fn without_copies(files: Vec<SessionFile>) -> Vec<SessionFile> {
    let mut kept: Vec<SessionFile> = Vec::with_capacity(files.len());
    let mut places: HashMap<(ThreadId, Option<String>), usize> = HashMap::new();
    for file in files {
        let Some(id) = file.thread_id.clone() else {
            kept.push(file);
            continue;
        };
        let better = |a: &SessionFile, b: &SessionFile| {
            (a.archived, is_packed(&a.path)) < (b.archived, is_packed(&b.path))
        };
        match places.get(&(id.clone(), file.part_id.clone())) {
            Some(place) if better(&file, &kept[*place]) => kept[*place] = file,
            Some(_) => {}
            None => {
                places.insert((id, file.part_id.clone()), kept.len());
                kept.push(file);
            }
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "01a1e0d8-fa58-7c30-8b28-2a498ba7d4be";
    const B: &str = "01a1e0d9-66ec-7f42-8535-d9c43664c8cd";
    const C: &str = "01a1e0de-091e-7b70-a0eb-4db66fd8a949";

    fn home(names: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in names {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "{}\n").unwrap();
        }
        folder
    }

    fn rollout(id: &str) -> String {
        format!("rollout-2026-11-15T20-14-38-{id}.jsonl")
    }

    #[test]
    fn homes_folders_and_files_are_searched() {
        let folder = home(&[
            &format!("sessions/2026/11/15/{}", rollout(A)),
            &format!("sessions/2026/11/15/{}.zst", rollout(A)),
            &format!("sessions/2026/11/15/{}", rollout(&format!("{A}_{C}"))),
            &format!("archived_sessions/{}", rollout(B)),
            "session_index.jsonl",
            "sessions/notes.txt",
        ]);
        let roots = [folder.path().to_owned()];
        let found = files(&roots).unwrap();
        let sketch: Vec<_> = (found.iter())
            .map(|file| (file.thread_id.as_ref().unwrap().as_str(), file.part_id.is_some()))
            .collect();
        assert_eq!(sketch, [(A, false), (A, true), (B, false)]);
        assert!(found[2].archived && !is_packed(&found[0].path));
        assert_eq!(current(found.clone()).len(), 2);
        assert_eq!(base(&found, C).unwrap().part_id.as_deref(), Some(C));
        assert_eq!(base(&found, A).unwrap().part_id, None);

        assert_eq!(resolve(B, &roots).unwrap().path, found[2].path);
        assert_eq!(resolve("01a1e0d9", &roots).unwrap().path, found[2].path);
        assert_eq!(resolve("d4be", &roots).unwrap().path, found[1].path);
        let path = found[0].path.to_string_lossy().into_owned();
        assert_eq!(resolve(&path, &[]).unwrap().thread_id, found[0].thread_id);
        let error = resolve("01a1", &roots).unwrap_err();
        assert_eq!(error.to_string(), "`01a1` is the beginning of 2 sessions");
        let error = resolve("01a1e0ff", &roots).unwrap_err();
        assert_eq!((error.code(), error.hint().is_some()), ("not_found", true));
    }

    #[test]
    #[cfg(unix)]
    fn what_leads_out_of_a_home_is_not_found_and_not_opened_later() {
        use std::os::unix::fs::symlink;
        let other = home(&[&format!("sessions/2026/11/15/{}", rollout(B))]);
        let theirs = other.path().join(format!("sessions/2026/11/15/{}", rollout(B)));
        let own = home(&[
            &format!("sessions/2026/11/15/{}", rollout(A)),
            &format!("sessions/2026/11/15/{}.zst", rollout(&format!("{A}_{C}"))),
        ]);
        let day = own.path().join("sessions/2026/11/15");
        symlink(&theirs, day.join(rollout(B))).unwrap();
        fs::hard_link(&theirs, day.join(rollout(C))).unwrap();
        symlink(other.path().join("sessions"), own.path().join("sessions/linked")).unwrap();
        symlink(other.path().join("sessions"), own.path().join("archived_sessions")).unwrap();
        let pipe = day.join(rollout("01a1e0de-091e-7b70-a0eb-000000000000"));
        assert!(std::process::Command::new("mkfifo").arg(pipe).status().unwrap().success());
        let found = files_within(own.path()).unwrap();
        let ids: Vec<_> =
            found.iter().map(|file| file.thread_id.as_ref().unwrap().as_str()).collect();
        assert_eq!(ids, [A, A]);
        let chain = crate::session::chain(&found[0].path, &found);
        crate::session::load_chain(&chain, crate::normalise::Options::default()).unwrap();
        // It became a link, or lies behind one, after it was found.
        fs::remove_file(&found[0].path).unwrap();
        symlink(&theirs, &found[0].path).unwrap();
        found[0].open().unwrap_err();
        let options = crate::normalise::Options::default();
        crate::session::load_chain(&chain, options).unwrap_err();
        fs::remove_file(&found[0].path).unwrap();
        fs::rename(own.path().join("sessions/2026"), own.path().join("kept")).unwrap();
        fs::copy(&theirs, other.path().join("sessions/2026/11/15").join(rollout(A))).unwrap();
        symlink(other.path().join("sessions/2026"), own.path().join("sessions/2026")).unwrap();
        assert!(found[0].path.exists());
        crate::session::load_chain(&chain, options).unwrap_err();
        // Names are taken from no link either.
        let index = "{\"id\":\"x\",\"thread_name\":\"theirs\"}\n";
        fs::write(other.path().join(INDEX), index).unwrap();
        symlink(other.path().join(INDEX), own.path().join(INDEX)).unwrap();
        assert!(names_within(own.path()).is_empty());
    }

    #[test]
    fn the_last_name_of_a_thread_wins() {
        let folder = home(&[]);
        let lines = format!(
            "{{\"id\":\"{A}\",\"thread_name\":\"one\"}}\nbroken\n{{\"id\":\"{A}\",\"thread_name\":\"two\"}}\n"
        );
        fs::write(folder.path().join("session_index.jsonl"), lines).unwrap();
        let names = names(&[folder.path().to_owned()]);
        assert_eq!(names.get(A).map(String::as_str), Some("two"));
    }
}
