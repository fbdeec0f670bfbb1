//! The catalogue: summaries of all sessions, read once and kept until a file changes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use bindery_core::ids::ThreadId;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::find::{self, SessionFile, Unreadable};
use crate::summary::{Reader, Summary};

/// Summaries by file, each good for one size and time of its file.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Catalogue {
    known: HashMap<PathBuf, Known>,
    /// Something was learned that is not saved yet.
    #[serde(skip)]
    changed: bool,
    #[serde(skip)]
    unreadable: Vec<Unreadable>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Known {
    size: u64,
    modified_ms: i64,
    exact: bool,
    summary: Summary,
}

impl Catalogue {
    /// What was saved before; empty if there is nothing, or nothing of use.
    pub fn open(path: &Path) -> Self {
        let bytes = std::fs::read(path).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    /// Saves it, whole or not at all. The place must not be inside a Codex home.
    pub fn save(&mut self, path: &Path) -> Result<(), Error> {
        if !std::mem::take(&mut self.changed) {
            return Ok(());
        }
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let partial = path.with_extension(format!("{}.new", std::process::id()));
        let bytes = serde_json::to_vec(self).map_err(std::io::Error::other)?;
        std::fs::write(&partial, bytes)?;
        Ok(std::fs::rename(&partial, path)?)
    }

    /// The summaries of all threads under the roots, newest first.
    ///
    /// `exact` counts the turns of long files, too; [`Self::count`] does so for some of them.
    /// Files that cannot be read are left out; [`Self::unreadable`] names them.
    pub fn list(&mut self, roots: &[PathBuf], exact: bool) -> Result<Vec<Summary>, Error> {
        let survey = find::survey(roots)?;
        self.unreadable = survey.unreadable;
        Ok(self.describe(survey.files, &find::names(roots), exact))
    }

    /// The same of a home that somebody else may write to.
    pub fn list_within(&mut self, home: &Path) -> Result<Vec<Summary>, Error> {
        let files = find::files_within(home)?;
        Ok(self.describe(files, &find::names_within(home), false))
    }

    fn describe(
        &mut self,
        files: Vec<SessionFile>,
        names: &HashMap<ThreadId, String>,
        exact: bool,
    ) -> Vec<Summary> {
        let files = find::current(files);
        let is_good = |file: &SessionFile| {
            self.known.get(&file.path).is_some_and(|known| {
                (known.size, known.modified_ms) == (file.size, file.modified_ms)
                    && (known.exact || !exact)
            })
        };
        let stale: Vec<&SessionFile> = files.iter().filter(|file| !is_good(file)).collect();
        self.changed |= !stale.is_empty();
        for (file, summary) in read_all(&stale, exact) {
            let summary = match summary {
                Ok(summary) => summary,
                Err(error) => {
                    // What was known of it before is not true any more.
                    self.known.remove(&file.path);
                    self.unreadable.push(unreadable(file, &error));
                    continue;
                }
            };
            let exact = summary.turns.is_some();
            let (size, modified_ms) = (file.size, file.modified_ms);
            self.known.insert(file.path.clone(), Known { size, modified_ms, exact, summary });
        }
        let known = files.iter().filter_map(|file| self.known.get(&file.path));
        let mut summaries: Vec<Summary> = known.map(|known| known.summary.clone()).collect();
        for summary in &mut summaries {
            let name = summary.id.as_ref().and_then(|id| names.get(id));
            summary.title = name.cloned().or(summary.title.take());
        }
        link(&mut summaries);
        summaries.sort_by_key(|summary| std::cmp::Reverse(summary.updated_ms));
        summaries
    }

    /// Folders and files that the last list could not read.
    pub fn unreadable(&self) -> &[Unreadable] {
        &self.unreadable
    }

    /// Counts turns and messages of those that have none yet, of files up to `largest` bytes.
    pub fn count(&mut self, summaries: &mut [Summary], largest: u64) {
        let wanted = summaries.iter().filter(|s| s.turns.is_none() && s.size <= largest);
        let files: Vec<SessionFile> = wanted
            .filter_map(|summary| {
                let known = self.known.get(&summary.path)?;
                Some(SessionFile {
                    path: summary.path.clone(),
                    thread_id: summary.id.clone(),
                    part_id: None,
                    archived: summary.archived,
                    size: known.size,
                    modified_ms: known.modified_ms,
                    within: None,
                })
            })
            .collect();
        let files: Vec<&SessionFile> = files.iter().collect();
        self.changed |= !files.is_empty();
        for (file, counted) in read_all(&files, true) {
            let Ok(counted) = counted else { continue };
            if let Some(summary) = summaries.iter_mut().find(|s| s.path == file.path) {
                (summary.turns, summary.messages) = (counted.turns, counted.messages);
            }
            if let Some(known) = self.known.get_mut(&file.path) {
                known.exact = true;
                known.summary.turns = counted.turns;
                known.summary.messages = counted.messages;
            }
        }
    }
}

/// Tells parents of their children.
fn link(summaries: &mut [Summary]) {
    let mut children: HashMap<ThreadId, Vec<ThreadId>> = HashMap::new();
    for summary in summaries.iter() {
        if let (Some(parent), Some(id)) = (&summary.parent, &summary.id) {
            children.entry(parent.clone()).or_default().push(id.clone());
        }
    }
    for summary in summaries {
        let found = summary.id.as_ref().and_then(|id| children.remove(id));
        summary.children = found.unwrap_or_default();
    }
}

type Read = Result<Summary, Error>;

fn unreadable(file: &SessionFile, error: &Error) -> Unreadable {
    let source = std::error::Error::source(error).map(ToString::to_string);
    Unreadable { path: file.path.clone(), why: source.unwrap_or_else(|| error.to_string()) }
}

/// Reads summaries on all processors: mostly waiting for the disk, so a few threads are enough.
fn read_all<'a>(files: &[&'a SessionFile], exact: bool) -> Vec<(&'a SessionFile, Read)> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(8);
    let threads = threads.min(files.len().div_ceil(8)).max(1);
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(files.len())));
    let work = || {
        let mut reader = Reader::default();
        let mut own = Vec::new();
        while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            own.push((*file, reader.summary(file, exact)));
        }
        if let Ok(mut found) = found.lock() {
            found.extend(own);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
    found.into_inner().unwrap_or_default()
}
