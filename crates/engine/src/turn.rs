//! One turn: ask the model, run what it calls, ask again, until it is done.
//!
//! The work is one future. An interrupt drops it wherever it waits; what must not be lost is kept
//! in [`Turn`], not in the future, and settled afterwards.

mod ask;

mod asking;

mod fault;

mod finish;

pub(crate) mod voice;

use std::sync::Arc;

use serde_json::json;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use self::asking::Asking;
pub(crate) use self::asking::say_retry;
pub(crate) use self::fault::TurnFault;
pub(crate) use self::finish::panicked;
use self::voice::Voice;
use crate::item::HistoryItem;
use crate::mcp::{self, Server, Servers};
use crate::prompter::Profile;
use crate::review::Target;
use crate::thread::history::History;
use crate::thread::journal::TurnContext;
use crate::thread::{DynamicTool, Entry, Limits, Mailbox, Makings, Overrides, Standing, TurnInput};
use crate::tokens::ThreadUsage;
use crate::tools::{Cx, Router, Session};

/// What a thread owns and its turns work on.
pub(crate) struct Core {
    pub(crate) thread_id: String,
    pub(crate) standing: Standing,
    pub(crate) history: History,
    pub(crate) usage: ThreadUsage,
    /// What the model was told of the context.
    pub(crate) told: Option<serde_json::Value>,
    pub(crate) dynamic_tools: Vec<DynamicTool>,
    pub(crate) limits: Limits,
    pub(crate) makings: Makings,
    pub(crate) session: Arc<Session>,
    pub(crate) mcp: Option<Arc<Servers>>,
}

/// What a turn is for.
pub(crate) enum Job {
    /// The user said something.
    Input(Box<TurnInput>),
    /// The history is to be replaced by a summary.
    Compact,
    /// Changes are to be reviewed.
    Review(Target),
}

/// A running turn.
pub(crate) struct Turn<'a> {
    pub(crate) core: &'a mut Core,
    pub(crate) voice: Voice,
    pub(crate) mailbox: Arc<Mailbox>,
    pub(crate) profile: Profile,
    pub(crate) cx: Arc<Cx>,
    router: Arc<Router>,
    /// MCP servers that run.
    servers: Vec<Arc<Server>>,
    base: String,
    output_schema: Option<serde_json::Value>,
    asking: Asking,
    steps: u32,
    /// Answers cut after something binding, one after the other.
    cuts: u32,
    /// The history was compacted because the server found it too long.
    overflowed: bool,
    /// The reviewer's conversation, while there is one.
    pub(crate) reviewer: Option<Box<Core>>,
}

/// Runs a turn to its end, whatever happens.
pub(crate) async fn run(
    core: &mut Core,
    voice: Voice,
    job: Job,
    mailbox: Arc<Mailbox>,
    cancel: CancellationToken,
) {
    let limits = core.limits;
    let input = match &job {
        Job::Input(input) => Some(&**input),
        Job::Compact | Job::Review(_) => None,
    };
    let mut turn = Turn::new(core, voice.clone(), mailbox, input);
    voice.turn_started(turn.profile.effective_window());
    let end = tokio::select! {
        biased;
        () = cancel.cancelled() => Err(TurnFault::Interrupted),
        error = voice.broken() => Err(TurnFault::Journal(error)),
        () = tokio::time::sleep(limits.time) => Err(TurnFault::time(limits.time)),
        end = turn.work(job) => end,
    };
    turn.finish(end).await;
}

impl<'a> Turn<'a> {
    pub(crate) fn new(
        core: &'a mut Core,
        voice: Voice,
        mailbox: Arc<Mailbox>,
        input: Option<&TurnInput>,
    ) -> Self {
        if let Some(input) = input {
            core.standing.change(input.overrides.clone());
        }
        let output_schema = input.and_then(|input| input.output_schema.clone());
        voice.standing(&core.standing);
        let profile = core.makings.prompter.profile(&core.standing.model);
        let base = core.makings.prompter.base(&core.standing);
        let router = Arc::new(Router::new(&profile, &core.dynamic_tools, None));
        let cx = Arc::new(Cx::new(core, &profile, &voice));
        Self {
            core,
            voice,
            mailbox,
            profile,
            cx,
            router,
            servers: Vec::new(),
            base,
            output_schema,
            asking: Asking::default(),
            steps: 0,
            cuts: 0,
            overflowed: false,
            reviewer: None,
        }
    }

    async fn work(&mut self, job: Job) -> Result<(), TurnFault> {
        match job {
            Job::Compact => self.compact_by_hand().await,
            Job::Review(target) => self.review(target).await,
            Job::Input(input) => self.converse(*input).await,
        }
    }

    /// Takes the user's words and asks the model until it is done.
    pub(crate) async fn converse(&mut self, input: TurnInput) -> Result<(), TurnFault> {
        if self.is_full() {
            self.compact(crate::compact::When::BeforeTurn).await?;
        }
        self.start_servers().await;
        self.tell_context().await?;
        self.take(input).await;
        loop {
            self.take_waiting().await?;
            let more = self.step().await?;
            if !more && self.mailbox.close_if_empty() {
                return Ok(());
            }
        }
    }

    /// One question and everything that follows from its answer; true when the model is to be
    /// asked again.
    async fn step(&mut self) -> Result<bool, TurnFault> {
        self.steps += 1;
        if self.steps > self.core.limits.steps {
            return Err(TurnFault::steps(self.core.limits.steps));
        }
        let more = match self.ask().await {
            Err(TurnFault::Model(error)) if error.kind == crate::model::Fault::ContextOverflow => {
                return self.overflow(error).await;
            }
            asked => asked?,
        };
        if (more || !self.mailbox.is_empty()) && self.is_full() {
            self.compact(crate::compact::When::MidTurn).await?;
        }
        Ok(more)
    }

    /// The server found the history too long: compact once and go on.
    async fn overflow(&mut self, error: crate::model::ModelError) -> Result<bool, TurnFault> {
        self.core.history.count_full(self.profile.effective_window());
        if std::mem::replace(&mut self.overflowed, true) {
            return Err(TurnFault::Model(error));
        }
        self.compact(crate::compact::When::MidTurn).await?;
        Ok(true)
    }

    fn is_full(&self) -> bool {
        self.core.history.used() >= self.profile.compact_at()
    }

    /// Tells the model what changed around it since it was last told.
    async fn tell_context(&mut self) -> Result<(), TurnFault> {
        let context = self.gather().await;
        let mut entries = vec![Entry::TurnContext(self.turn_context())];
        if self.core.told.as_ref() != Some(&context.told) {
            entries.push(Entry::WorldState(context.told.clone()));
        }
        self.core.told = Some(context.told);
        self.record(context.items);
        self.voice.write(&entries);
        Ok(())
    }

    pub(crate) async fn gather(&mut self) -> crate::prompter::Context {
        let prompter = Arc::clone(&self.core.makings.prompter);
        let context = prompter.context(&self.core.standing, self.core.told.as_ref()).await;
        context.warnings.iter().for_each(|warning| self.voice.warn(warning));
        context
    }

    fn turn_context(&self) -> TurnContext {
        let Standing { model, cwd, approval, sandbox, effort, summary, .. } = &self.core.standing;
        TurnContext {
            turn_id: self.voice.turn_id().to_owned(),
            cwd: cwd.to_string_lossy().into_owned(),
            approval_policy: json!(approval),
            sandbox_policy: json!(sandbox),
            model: model.clone(),
            effort: effort.clone(),
            summary: summary.clone(),
        }
    }

    async fn take_waiting(&mut self) -> Result<(), TurnFault> {
        for input in self.mailbox.take() {
            if input.overrides != Overrides::default() {
                self.change(input.overrides.clone());
                self.tell_context().await?;
            }
            self.output_schema = input.output_schema.clone().or(self.output_schema.take());
            self.take(input).await;
        }
        Ok(())
    }

    fn change(&mut self, overrides: Overrides) {
        self.core.standing.change(overrides);
        self.voice.standing(&self.core.standing);
        self.profile = self.core.makings.prompter.profile(&self.core.standing.model);
        self.base = self.core.makings.prompter.base(&self.core.standing);
        self.renew_router();
        self.cx = Arc::new(Cx::new(self.core, &self.profile, &self.voice));
    }

    /// Starts the MCP servers that do not run yet; a thread without any pays nothing.
    async fn start_servers(&mut self) {
        if let Some(servers) = self.core.mcp.clone() {
            let voice = self.voice.clone();
            self.servers = servers.ready(&|told| voice.tell_thread(mcp::STARTUP, told)).await;
            self.renew_router();
        }
    }

    fn renew_router(&mut self) {
        let servers = self.core.mcp.as_ref().map(|mcp| (mcp, self.servers.as_slice()));
        self.router = Arc::new(Router::new(&self.profile, &self.core.dynamic_tools, servers));
    }

    /// The user's words become part of the history and an item of the turn.
    async fn take(&mut self, input: TurnInput) {
        // A turn without words is the model's to go on as it likes.
        if input.input.is_empty() {
            return;
        }
        let prompter = Arc::clone(&self.core.makings.prompter);
        let items = prompter.user(&self.core.standing, &input.input).await;
        self.record(items);
        let item = json!({
            "type": "userMessage",
            "id": Uuid::now_v7().to_string(),
            "clientId": input.client_id,
            "content": input.input,
        });
        let begun = self.voice.begin(item);
        self.voice.complete(begun);
    }

    /// Adds to the history and writes it down.
    pub(crate) fn record(&mut self, items: Vec<HistoryItem>) {
        if items.is_empty() {
            return;
        }
        let entries: Vec<Entry> = items.iter().cloned().map(Entry::Item).collect();
        items.into_iter().for_each(|item| self.core.history.push(item));
        self.voice.write(&entries);
    }
}
