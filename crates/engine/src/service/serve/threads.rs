//! Threads begin, go on, are copied, and are left.

use std::sync::Arc;

use serde_json::{Value, json};
use uuid::Uuid;

use super::params::{OfThread, ThreadFork, ThreadResume, ThreadStart, Wanted};
use super::{Cx, Reply, Served, thread_id};
use crate::service::CODEX_VERSION;
use crate::service::crowd::{Crowd, CrowdOutlet};
use crate::service::ears::Ear;
use crate::service::line::{self, now_ms};
use crate::service::refused::Refused;
use crate::service::shapes;
use crate::service::store::{Kept, Newcomer, Past, Point, Row, Store, Which};
use crate::service::supply::Supplied;
use crate::service::threads::{About, Birth, Loaded};
use crate::thread::{DynamicTool, Makings, Thread, ThreadSettings, ThreadView, system_clock};
use crate::tokens::ThreadUsage;

/// `thread/start`.
pub(super) async fn start(cx: &Cx, params: ThreadStart) -> Served {
    let tools = params.dynamic_tools;
    cx.experimental(tools.is_some(), "thread/start.dynamicTools")?;
    cx.inner.threads.has_room()?;
    let declared = tools.unwrap_or_default();
    let tools = declared.iter().map(DynamicTool::read).collect::<Result<Vec<_>, _>>();
    let tools = tools.map_err(Refused::invalid)?;
    let ephemeral = params.ephemeral.unwrap_or(false);
    let supplied = cx.inner.supply.thread(&params.wanted.wish())?;
    let newcomer = newcomer(cx, &supplied, declared);
    let kept = match ephemeral {
        true => Kept::nowhere(),
        false => cx.inner.store.begin(&newcomer)?,
    };
    let birth = birth(cx, &supplied, &newcomer, ephemeral, &kept);
    let mut settings = ThreadSettings::new(newcomer.id.clone(), supplied.standing.clone());
    settings.dynamic_tools = tools;
    let loaded = cx.load(settings, &supplied, &kept, birth, About::default());
    let warnings = supplied.warnings;
    cx.introduce(loaded, true, warnings).await
}

fn newcomer(cx: &Cx, supplied: &Supplied, dynamic_tools: Vec<Value>) -> Newcomer {
    Newcomer {
        id: Uuid::now_v7().to_string(),
        cwd: supplied.standing.cwd.clone(),
        model: supplied.standing.model.clone(),
        provider: supplied.provider.clone(),
        base_instructions: Some(supplied.prompter.base(&supplied.standing)),
        dynamic_tools,
        originator: cx.ear.client.name.clone(),
        source: cx.inner.settings.source.to_owned(),
        created_ms: now_ms(),
    }
}

fn birth(cx: &Cx, supplied: &Supplied, newcomer: &Newcomer, ephemeral: bool, kept: &Kept) -> Birth {
    Birth {
        provider: supplied.provider.clone(),
        forked_from: None,
        ephemeral,
        path: kept.path.as_ref().map(|path| path.display().to_string()),
        originator: cx.ear.client.name.clone(),
        cli_version: CODEX_VERSION.to_owned(),
        source: json!(newcomer.source),
        git: Value::Null,
        created_at: newcomer.created_ms.div_euclid(1000),
        sources: supplied.sources.clone(),
    }
}

/// `thread/resume`.
pub(super) async fn resume(cx: &Cx, params: ThreadResume) -> Served {
    cx.experimental(params.history.is_some(), "thread/resume.history")?;
    cx.experimental(params.path.is_some(), "thread/resume.path")?;
    if params.history.is_some() {
        let why = "thread/resume.history is not served by the built-in engine; \
                   start a thread and give it the items with thread/inject_items";
        return Err(Refused::invalid(why));
    }
    if params.path.is_none() {
        thread_id(&params.thread_id, "session")?;
    }
    let wants_turns = !params.exclude_turns;
    if let Some(loaded) = cx.inner.threads.get(&params.thread_id) {
        let mut overrides = params.wanted.clone().overrides();
        if overrides.sandbox.is_some() {
            // What a mode comes with is in the settings of the thread's folder.
            let mut wish = params.wanted.wish();
            wish.cwd = Some(match wish.cwd {
                Some(cwd) => cwd,
                None => loaded.view().await.standing.cwd,
            });
            overrides.sandbox = Some(cx.inner.supply.thread(&wish)?.standing.sandbox);
        }
        cx.check_overrides(&overrides)?;
        loaded.thread.change(overrides).await.map_err(|err| Refused::invalid(err.to_string()))?;
        return cx.rejoin(loaded, wants_turns, Vec::new()).await;
    }
    cx.inner.threads.has_room()?;
    let which = match params.path {
        Some(path) => Which::File(path),
        None => Which::Id(params.thread_id),
    };
    let past = cx.on_store(move |store| store.resume(&which)).await?;
    // It may have been loaded meanwhile, or under another name.
    if let Some(loaded) = cx.inner.threads.get(&past.row.id) {
        return cx.rejoin(loaded, wants_turns, Vec::new()).await;
    }
    let (loaded, warnings) = cx.revive(past, params.wanted)?;
    cx.rejoin(loaded, wants_turns, warnings).await
}

/// `thread/fork`.
pub(super) async fn fork(cx: &Cx, params: ThreadFork) -> Served {
    cx.experimental(params.before_turn_id.is_some(), "thread/fork.beforeTurnId")?;
    cx.experimental(params.path.is_some(), "thread/fork.path")?;
    if params.path.is_none() {
        thread_id(&params.thread_id, "session")?;
    }
    if params.ephemeral {
        let why = "thread/fork.ephemeral is not served by the built-in engine";
        return Err(Refused::invalid(why));
    }
    cx.inner.threads.has_room()?;
    let which = match params.path {
        Some(path) => Which::File(path),
        None => Which::Id(params.thread_id),
    };
    let point = match (params.last_turn_id, params.before_turn_id) {
        (Some(last), _) => Point::After(last),
        (None, Some(before)) => Point::Before(before),
        (None, None) => Point::End,
    };
    let supplied = cx.inner.supply.thread(&params.wanted.clone().wish())?;
    let newcomer = newcomer(cx, &supplied, Vec::new());
    let past = cx.on_store(move |store| store.fork(&which, &point, &newcomer)).await?;
    let (loaded, warnings) = cx.revive(past, params.wanted)?;
    cx.introduce(loaded, !params.exclude_turns, warnings).await
}

/// `thread/unsubscribe`.
pub(super) fn unsubscribe(cx: &Cx, params: &OfThread) -> Served {
    thread_id(&params.thread_id, "thread")?;
    let status = match cx.inner.threads.get(&params.thread_id) {
        None => "notLoaded",
        Some(loaded) if loaded.crowd.leave(cx.ear.id) => "unsubscribed",
        Some(_) => "notSubscribed",
    };
    Ok(json!({ "status": status }).into())
}

impl Cx {
    /// Asks the store where it holds nobody up.
    pub(super) async fn on_store<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&dyn Store) -> Result<T, Refused> + Send + 'static,
    ) -> Result<T, Refused> {
        let store = Arc::clone(&self.inner.store);
        let asked = tokio::task::spawn_blocking(move || ask(&*store)).await;
        asked.unwrap_or_else(|err| Err(Refused::internal(err)))
    }

    fn load(
        &self,
        settings: ThreadSettings,
        supplied: &Supplied,
        kept: &Kept,
        birth: Birth,
        about: About,
    ) -> Arc<Loaded> {
        let crowd = Crowd::new(&settings.id, &self.inner.ears, &self.inner.desk);
        let makings = Makings {
            model: supplied.model.clone(),
            outlet: Arc::new(CrowdOutlet(crowd.clone())),
            journal: kept.journal.clone(),
            prompter: supplied.prompter.clone(),
            guard: supplied.guard.clone(),
            clock: system_clock,
        };
        let mut settings = settings;
        settings.mcp = supplied.mcp.clone();
        settings.environment = supplied.environment.clone();
        let updated_at = about.updated_at.max(birth.created_at);
        let about = About { updated_at, ..about };
        let thread = Thread::open(settings, makings, &self.inner.tasks);
        let loaded = Arc::new(Loaded::new(thread, crowd, birth, about));
        self.inner.threads.add(loaded.clone());
        loaded
    }

    /// Loads a thread that was, and gives what the user should know.
    fn revive(&self, past: Past, wanted: Wanted) -> Result<(Arc<Loaded>, Vec<String>), Refused> {
        let Past { kept, row, history, context, turns, usage, base_instructions, dynamic_tools } =
            past;
        let mut wish = wanted.wish();
        wish.cwd = wish.cwd.or(Some(row.cwd.clone()));
        wish.model = wish.model.or(row.model.clone());
        wish.provider = wish.provider.or(row.provider.clone());
        wish.base_instructions = wish.base_instructions.or(base_instructions);
        let mut supplied = self.inner.supply.thread(&wish)?;
        supplied.standing.effort = supplied.standing.effort.or(row.effort.clone());
        let mut settings = ThreadSettings::new(row.id.clone(), supplied.standing.clone());
        (settings.history, settings.context) = (history, context);
        (settings.turns, settings.usage) = (turns, usage);
        settings.dynamic_tools = dynamic_tools;
        let Row { name, preview, updated_at, .. } = row.clone();
        let birth = birth_of(row, supplied.provider.clone(), supplied.sources.clone());
        let about = About { name, preview, updated_at };
        let loaded = self.load(settings, &supplied, &kept, birth, about);
        Ok((loaded, supplied.warnings))
    }

    /// Answers with a thread that is new to everyone.
    async fn introduce(&self, loaded: Arc<Loaded>, turns: bool, warnings: Vec<String>) -> Served {
        let view = loaded.view().await;
        let thread = self.shape(&loaded, &view, turns);
        let result = shapes::opened(thread, &view.standing, &loaded.birth);
        let (ear, ears) = (self.ear.clone(), self.inner.ears.clone());
        let bare = self.shape(&loaded, &view, false);
        loaded.crowd.join(&ear);
        Ok(Reply::then(result, move || {
            ears.tell("thread/started", &json!({ "thread": bare }));
            warn(&ear, warnings);
        }))
    }

    /// Answers with a thread that goes on: first the answer, then the open questions, then what
    /// happened since the answer was made.
    async fn rejoin(&self, loaded: Arc<Loaded>, turns: bool, warnings: Vec<String>) -> Served {
        let hold = loaded.crowd.hold();
        let view = loaded.view().await;
        let thread = self.shape(&loaded, &view, turns);
        let result = shapes::opened(thread, &view.standing, &loaded.birth);
        let ear = self.ear.clone();
        Ok(Reply::then(result, move || {
            if turns {
                let told = usage(&view);
                let told = told.map(|params| line::notice("thread/tokenUsage/updated", &params));
                told.iter().for_each(|line| ear.tell("thread/tokenUsage/updated", line));
            }
            loaded.crowd.welcome(&ear);
            drop(hold);
            warn(&ear, warnings);
        }))
    }

    pub(super) fn shape(&self, loaded: &Loaded, view: &ThreadView, turns: bool) -> Value {
        shapes::thread(view, &loaded.birth, &loaded.about(), turns)
    }
}

fn warn(ear: &Ear, warnings: Vec<String>) {
    for message in warnings {
        let params = json!({ "summary": message, "details": null });
        ear.tell("configWarning", &line::notice("configWarning", &params));
    }
}

/// What was used so far, as it was told last.
fn usage(view: &ThreadView) -> Option<Value> {
    let turn = view.usage_turn.clone();
    let turn = turn.or_else(|| view.turns.last()?["id"].as_str().map(str::to_owned))?;
    let ThreadUsage { total, last } = view.usage;
    let told = json!({ "total": total, "last": last, "modelContextWindow": view.window });
    Some(json!({ "threadId": view.id, "turnId": turn, "tokenUsage": told }))
}

/// What is fixed about a thread that was.
pub(super) fn birth_of(row: Row, provider: String, sources: Vec<String>) -> Birth {
    Birth {
        provider,
        forked_from: row.forked_from,
        ephemeral: false,
        path: row.path.map(|path| path.display().to_string()),
        originator: row.originator,
        cli_version: row.cli_version,
        source: row.source,
        git: row.git,
        created_at: row.created_at,
        sources,
    }
}
