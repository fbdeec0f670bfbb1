//! Calls of the history, under names that the Responses API takes, each answered once.

use std::collections::{BTreeMap, HashSet};

use super::super::instructions::digest;
use super::super::notes::{Notes, Place};
use crate::ids::CallId;

/// The longest call id and tool name that the Responses API takes.
const LONGEST: usize = 64;

/// All calls so far.
#[derive(Default)]
pub(super) struct Calls {
    open: Vec<OpenCall>,
    used: HashSet<String>,
    renamed: BTreeMap<String, String>,
}

/// A call without a result.
pub(super) struct OpenCall {
    /// Its id as we send it.
    pub(super) call_id: String,
    /// Its id in the prompt.
    pub(super) original: CallId,
    /// Its tool.
    pub(super) tool_name: String,
    /// Where it stands.
    pub(super) place: Place,
}

impl Calls {
    /// Takes a call; ids that repeat, as counters of other providers do, are told apart.
    pub(super) fn open(&mut self, original: &CallId, tool_name: &str, place: Place) -> String {
        let id = original.as_str();
        let fits = !id.is_empty() && id.len() <= LONGEST - "-9999".len();
        let base = if fits { id.to_owned() } else { format!("call_{}", digest(id)) };
        let mut call_id = base.clone();
        let mut again = 1;
        while !self.used.insert(call_id.clone()) {
            again += 1;
            call_id = format!("{base}-{again}");
        }
        self.open.push(OpenCall {
            call_id: call_id.clone(),
            original: original.clone(),
            tool_name: tool_name.to_owned(),
            place,
        });
        call_id
    }

    /// Takes a result: the id of its call as we sent it, none if no such call is open.
    pub(super) fn answer(&mut self, original: &CallId) -> Option<String> {
        let at = self.open.iter().position(|open| open.original == *original)?;
        Some(self.open.remove(at).call_id)
    }

    /// Closes all open calls.
    pub(super) fn take_open(&mut self) -> Vec<OpenCall> {
        std::mem::take(&mut self.open)
    }

    /// A tool's name in the letters that the Responses API takes.
    pub(super) fn name(&mut self, tool_name: &str, notes: &mut Notes<'_>) -> String {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if !tool_name.is_empty() && tool_name.len() <= LONGEST && tool_name.chars().all(plain) {
            return tool_name.to_owned();
        }
        if let Some(name) = self.renamed.get(tool_name) {
            return name.clone();
        }
        let letters = tool_name.chars().map(|c| if plain(c) { c } else { '_' });
        let mut name: String = letters.take(LONGEST).collect();
        if name.is_empty() {
            name.push_str("tool");
        }
        let details = format!("in the history it is called `{name}`, as function names must be");
        notes.compatibility(format!("tool name `{tool_name}`"), details);
        self.renamed.insert(tool_name.to_owned(), name.clone());
        name
    }
}
