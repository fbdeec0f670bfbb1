//! Threads in session files, as Codex keeps them: each may be begun by one and gone on with by the
//! other.

mod entries;

mod journal;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bindery_core::open::Open;
use bindery_sessions::catalogue::Catalogue;
use bindery_sessions::find::{self, SessionFile};
use bindery_sessions::resume::{self, Options, Resumed};
use bindery_sessions::summary::Summary;
use bindery_sessions::write::{self, Clock, ForkPoint, Meta, Recorder, place};
use bindery_sessions::{Error, clock};
use serde_json::Value;

use self::journal::DiskJournal;
use super::refused::Refused;
use super::store::{Kept, Newcomer, Past, Point, Row, Store, Which};
use crate::thread::DynamicTool;
use crate::tokens::{ThreadUsage, TokenCount};

/// Threads in the session files of a Codex home.
pub struct Disk {
    home: PathBuf,
    clock: Clock,
    catalogue: Mutex<Catalogue>,
}

impl Disk {
    /// Keeps threads in this home, which need not exist yet.
    pub fn new(home: impl Into<PathBuf>) -> Self {
        Self { home: home.into(), clock: Clock::system(), catalogue: Mutex::default() }
    }

    fn files(&self) -> Result<Vec<SessionFile>, Refused> {
        match self.home.is_dir() {
            true => find::files(std::slice::from_ref(&self.home)).map_err(|err| fault(&err)),
            false => Ok(Vec::new()),
        }
    }

    /// The file of a thread, and all files, among which are those it continues.
    fn find(&self, id: &str) -> Result<(Option<SessionFile>, Vec<SessionFile>), Refused> {
        let files = self.files()?;
        let is_it = |file: &SessionFile| file.thread_id.as_ref().is_some_and(|t| t.as_str() == id);
        let found = find::current(files.clone()).into_iter().find(is_it);
        Ok((found, files))
    }

    fn source(&self, which: &Which) -> Result<(SessionFile, Vec<SessionFile>), Refused> {
        match which {
            Which::Id(id) => {
                let (found, files) = self.find(id)?;
                let found = found.filter(|file| !file.archived);
                Ok((found.ok_or_else(|| Refused::no_rollout(id))?, files))
            }
            Which::File(path) => {
                let found = find::resolve(&path.to_string_lossy(), &[]);
                Ok((found.map_err(|err| fault(&err))?, self.files()?))
            }
        }
    }

    fn past(&self, file: &Path, files: &[SessionFile], kept: Kept) -> Result<Past, Refused> {
        let resumed = resume::load(file, files, Options::default()).map_err(|err| fault(&err))?;
        let names = find::names(std::slice::from_ref(&self.home));
        Ok(past(resumed, file, kept, |id| {
            names.get(&bindery_core::ids::ThreadId::new(id)).cloned()
        }))
    }

    fn meta(newcomer: &Newcomer) -> Meta {
        let mut meta = Meta::new(newcomer.id.clone(), newcomer.cwd.clone());
        meta.originator = newcomer.originator.clone();
        meta.source = Value::from(newcomer.source.as_str());
        meta.model_provider = Some(newcomer.provider.clone());
        meta.base_instructions = newcomer.base_instructions.clone();
        meta.dynamic_tools = newcomer.dynamic_tools.clone();
        meta
    }
}

impl Store for Disk {
    fn begin(&self, newcomer: &Newcomer) -> Result<Kept, Refused> {
        let (meta, created) = (Self::meta(newcomer), newcomer.created_ms);
        let path = place::new_file(&self.home, &newcomer.id, &self.clock, created);
        let journal = DiskJournal::later(&self.home, meta, self.clock.clone(), created);
        Ok(Kept { journal: Arc::new(journal), path: Some(path) })
    }

    fn resume(&self, which: &Which) -> Result<Past, Refused> {
        let (file, files) = self.source(which)?;
        let recorder = Recorder::append(&self.home, &file.path, self.clock.clone());
        let recorder = recorder.map_err(|err| fault(&err))?;
        let path = recorder.path().to_owned();
        let journal = Arc::new(DiskJournal::now(recorder));
        self.past(&path, &files, Kept { journal, path: Some(path.clone()) })
    }

    fn fork(&self, which: &Which, point: &Point, newcomer: &Newcomer) -> Result<Past, Refused> {
        let (source, files) = self.source(which)?;
        let point = match point {
            Point::End => ForkPoint::End,
            Point::Before(turn) => ForkPoint::Before(turn.clone()),
            Point::After(turn) => ForkPoint::After(turn.clone()),
        };
        let meta = Self::meta(newcomer);
        let recorder = write::fork(&self.home, &source, &files, &point, &meta, self.clock.clone());
        let recorder = recorder.map_err(|err| fault(&err))?;
        let path = recorder.path().to_owned();
        let journal = Arc::new(DiskJournal::now(recorder));
        let files = self.files()?;
        self.past(&path, &files, Kept { journal, path: Some(path.clone()) })
    }

    fn read(&self, id: &str) -> Result<Past, Refused> {
        let (found, files) = self.find(id)?;
        let file = found.ok_or_else(|| Refused::not_loaded(id))?;
        self.past(&file.path, &files, Kept { path: Some(file.path.clone()), ..Kept::nowhere() })
    }

    fn list(&self, archived: bool) -> Result<Vec<Row>, Refused> {
        if !self.home.is_dir() {
            return Ok(Vec::new());
        }
        let roots = [self.home.clone()];
        let mut catalogue = self.catalogue.lock().unwrap_or_else(PoisonError::into_inner);
        let summaries = catalogue.list(&roots, false).map_err(|err| fault(&err))?;
        let names = find::names(&roots);
        let rows = summaries.into_iter().filter(|summary| summary.archived == archived);
        Ok(rows.filter_map(|summary| row(summary, &names)).collect())
    }

    fn archive(&self, id: &str) -> Result<(), Refused> {
        let (file, _) = self.source(&Which::Id(id.to_owned()))?;
        write::archive(&self.home, &file.path).map(drop).map_err(|err| fault(&err))
    }

    fn unarchive(&self, id: &str) -> Result<Row, Refused> {
        let (found, _) = self.find(id)?;
        let missing = || Refused::invalid(format!("no archived rollout found for thread id {id}"));
        let file = found.filter(|file| file.archived).ok_or_else(missing)?;
        write::unarchive(&self.home, &file.path).map_err(|err| fault(&err))?;
        Ok(self.read(id)?.row)
    }

    fn delete(&self, id: &str) -> Result<(), Refused> {
        let (found, _) = self.find(id)?;
        let file = found.ok_or_else(|| Refused::no_rollout(id))?;
        let hold = write::hold::Hold::take_file(&self.home, id, &file.path);
        let _hold = hold.map_err(|err| fault(&err))?;
        std::fs::remove_file(&file.path).map_err(Refused::internal)
    }

    fn rename(&self, id: &str, name: &str) -> Result<(), Refused> {
        let (found, _) = self.find(id)?;
        found.ok_or_else(|| Refused::no_rollout(id))?;
        write::rename(&self.home, id, name, &self.clock).map_err(|err| fault(&err))
    }
}

/// A failure in Codex's words, where it has some.
fn fault(err: &Error) -> Refused {
    match err {
        Error::Held { thread, .. } => {
            Refused::invalid(format!("thread {thread} already has an active writer"))
        }
        Error::NotFound { name, .. } => Refused::invalid(format!("no rollout found for {name}")),
        err => {
            let cause = std::error::Error::source(err).map(|cause| format!(": {cause}"));
            let cause = cause.unwrap_or_default();
            Refused::internal(format!("failed to read thread: {err}{cause}"))
        }
    }
}

fn row(
    summary: Summary,
    names: &std::collections::HashMap<bindery_core::ids::ThreadId, String>,
) -> Option<Row> {
    let id = summary.id?;
    let name = names.get(&id).cloned();
    let preview = summary.title.filter(|title| Some(title) != name.as_ref());
    // As Codex does: a thread in which nobody has said anything is no thread yet.
    if preview.is_none() && name.is_none() {
        return None;
    }
    Some(Row {
        id: id.to_string(),
        preview: preview.unwrap_or_default(),
        name,
        cwd: summary.cwd.unwrap_or_default().into(),
        model: summary.model,
        effort: None,
        provider: None,
        created_at: summary.created_ms.unwrap_or_default().div_euclid(1000),
        updated_at: summary.updated_ms.unwrap_or_default().div_euclid(1000),
        path: Some(summary.path),
        cli_version: summary.version.unwrap_or_default(),
        originator: String::new(),
        source: summary.source.map_or(Value::from("unknown"), Value::from),
        git: summary.branch.map_or(
            Value::Null,
            |branch| serde_json::json!({ "sha": null, "branch": branch, "originUrl": null }),
        ),
        forked_from: summary.parent.map(|parent| parent.to_string()),
    })
}

fn past(resumed: Resumed, file: &Path, kept: Kept, name: impl Fn(&str) -> Option<String>) -> Past {
    let Resumed { meta, history, turn_context, world_state, tokens, turns, .. } = resumed;
    let context = turn_context.unwrap_or_default();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let id = text(&meta["id"]).unwrap_or_default();
    let cwd = text(&context["cwd"]).or(text(&meta["cwd"])).unwrap_or_default();
    let modified = file.metadata().and_then(|meta| meta.modified()).ok();
    let updated = modified.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    let row = Row {
        preview: preview(&turns),
        name: name(&id),
        id,
        cwd: cwd.into(),
        model: text(&context["model"]),
        effort: text(&context["effort"]),
        provider: text(&meta["model_provider"]),
        created_at: text(&meta["timestamp"])
            .and_then(|time| clock::millis(&time))
            .unwrap_or_default()
            .div_euclid(1000),
        updated_at: updated.map_or(0, |since| since.as_secs().cast_signed()),
        path: kept.path.clone(),
        cli_version: text(&meta["cli_version"]).unwrap_or_default(),
        originator: text(&meta["originator"]).unwrap_or_default(),
        source: meta["source"].clone(),
        git: git(&meta["git"]),
        forked_from: text(&meta["forked_from_id"]),
    };
    let tools = meta["dynamic_tools"].as_array().into_iter().flatten();
    Past {
        kept,
        row,
        history: history.into_iter().map(Open::from_value).collect(),
        context: world_state.map(|mut state| state["bindery"].take()).filter(|s| !s.is_null()),
        turns,
        usage: tokens.map(|info| usage(&info)).unwrap_or_default(),
        base_instructions: text(&meta["base_instructions"]["text"]),
        dynamic_tools: tools.filter_map(|tool| DynamicTool::read(tool).ok()).collect(),
    }
}

fn preview(turns: &[Value]) -> String {
    let items = turns.iter().flat_map(|turn| turn["items"].as_array().into_iter().flatten());
    let said = items.filter(|item| item["type"] == "userMessage").find_map(|item| {
        let pieces = item["content"].as_array()?;
        pieces.iter().find_map(|piece| piece["text"].as_str()).map(str::to_owned)
    });
    said.unwrap_or_default()
}

fn git(meta: &Value) -> Value {
    match meta {
        Value::Object(_) => serde_json::json!({
            "sha": meta["commit_hash"],
            "branch": meta["branch"],
            "originUrl": meta["repository_url"],
        }),
        _ => Value::Null,
    }
}

fn usage(info: &Value) -> ThreadUsage {
    let count = |value: &Value| TokenCount {
        input_tokens: value["input_tokens"].as_u64().unwrap_or(0),
        cached_input_tokens: value["cached_input_tokens"].as_u64().unwrap_or(0),
        cache_write_input_tokens: value["cache_write_input_tokens"].as_u64().unwrap_or(0),
        output_tokens: value["output_tokens"].as_u64().unwrap_or(0),
        reasoning_output_tokens: value["reasoning_output_tokens"].as_u64().unwrap_or(0),
        total_tokens: value["total_tokens"].as_u64().unwrap_or(0),
    };
    ThreadUsage { total: count(&info["total_token_usage"]), last: count(&info["last_token_usage"]) }
}
