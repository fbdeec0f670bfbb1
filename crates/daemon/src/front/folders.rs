//! The folders that the turns of calls run in.
//!
//! A turn that waits for its caller goes on in a later call, which may name another folder or none:
//! the turn stays where it began, so its folder is kept for as long as it waits.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bindery_core::ids::ThreadId;
use bindery_core::part::Part;
use bindery_core::usage::Unified;

use crate::error::Error;
use crate::tenant::ThreadFolder;

/// Folders that are kept at most. A turn whose caller never comes back leaves one.
const MOST: usize = 1024;

/// The folders of turns that run or wait, by thread; clones share them.
#[derive(Clone, Default)]
pub(super) struct TurnFolders {
    folders: Arc<Mutex<HashMap<ThreadId, Arc<ThreadFolder>>>>,
}

impl TurnFolders {
    /// A call's turn runs. One whose thread was `opened` for it runs in `folder`; one that goes on
    /// runs where it began.
    pub(super) fn enter(
        &self,
        thread: &ThreadId,
        opened: bool,
        folder: Option<ThreadFolder>,
    ) -> TurnFolder {
        let mut folders = self.folders();
        let known = folders.get(thread).filter(|_| !opened).cloned();
        let path = folder.as_ref().map(|folder| folder.path().to_owned());
        let elsewhere = known.filter(|known| Some(known.path()) != path.as_deref());
        let folder = elsewhere.or_else(|| folder.map(Arc::new));
        if let Some(folder) = &folder {
            if folders.len() >= MOST {
                folders.clear();
            }
            folders.insert(thread.clone(), folder.clone());
        }
        TurnFolder { all: self.clone(), thread: thread.clone(), folder, waits: false, lost: false }
    }

    fn folders(&self) -> MutexGuard<'_, HashMap<ThreadId, Arc<ThreadFolder>>> {
        self.folders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where one turn runs.
pub(super) struct TurnFolder {
    all: TurnFolders,
    thread: ThreadId,
    folder: Option<Arc<ThreadFolder>>,
    /// The turn waits for a later call.
    waits: bool,
    lost: bool,
}

impl TurnFolder {
    /// That the folder is not where it was, the first time that it is not.
    pub(super) fn lost(&mut self) -> Option<Error> {
        let folder = self.folder.as_ref().filter(|folder| !self.lost && !folder.is_in_place())?;
        self.lost = true;
        Some(folder.moved())
    }

    /// What the turn says; it may be that it waits.
    pub(super) fn told(&mut self, part: &Part) {
        if let Part::Finish { finish_reason, .. } = part {
            self.waits = finish_reason.unified == Unified::ToolCalls;
        }
    }
}

impl Drop for TurnFolder {
    fn drop(&mut self) {
        if !self.waits {
            self.all.folders().remove(&self.thread);
        }
    }
}
