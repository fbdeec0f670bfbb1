//! Codex as a language model in the AI SDK's shape: a call goes in, a step of a turn comes out.

mod answers;

mod branch;

mod input;

mod skills;

mod staff;

mod step;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bindery_core::call::CallOptions;
use bindery_core::content::{Gather, Generated};
use bindery_core::ids::ThreadId;
use bindery_core::map::prompt_to_turn::{PlanContext, ThreadChoice, TurnPlan, plan};
use bindery_core::part::Warning;
use bindery_core::spec::Spec;
use bindery_core::wire::app_server::params::{
    ThreadFork, ThreadResume, ThreadSettings, ThreadStart,
};
use bindery_core::wire::app_server::reply::ThreadOpened;

use futures_util::future::BoxFuture;

use crate::answerer::{self, Answerer};
use crate::app_server::AppServer;
use crate::compaction::{Compaction, compact};
use crate::error::Error;
use crate::interrupts::Interrupts;
use crate::tools::ToolSet;
use crate::turn::{Adoption, Deadlines, StartRecorder, Turn, TurnRequest};

pub use self::answers::approval_answer;
use self::branch::{Replan, Stop};
pub use self::input::{InputFilter, Unfiltered};
use self::staff::Staff;
use self::step::Parked;
pub use self::step::Step;

/// Starts threads for new conversations; a pool hands out ones that it has kept warm.
pub trait Threads: Send + Sync + 'static {
    /// A thread with these settings on this server.
    fn start(
        &self,
        server: &AppServer,
        start: ThreadStart,
    ) -> BoxFuture<'static, Result<ThreadOpened, Error>>;
}

/// Starts every thread when it is wanted.
#[derive(Clone, Copy, Debug, Default)]
pub struct OnDemand;

impl Threads for OnDemand {
    fn start(
        &self,
        server: &AppServer,
        start: ThreadStart,
    ) -> BoxFuture<'static, Result<ThreadOpened, Error>> {
        let server = server.clone();
        Box::pin(async move { server.start_thread(&start).await })
    }
}

/// Settings of a model; a call's own options come before them.
#[derive(Clone)]
pub struct ModelSettings {
    /// What threads are opened with, where the call does not say.
    pub thread: ThreadSettings,
    /// What the planner knows: mentions, skills, the thread to go on with.
    pub plan: PlanContext,
    /// How long a turn may take.
    pub deadlines: Deadlines,
    /// Tools that Codex may call and that run here; fixed at a thread's start.
    pub tools: ToolSet,
    /// Who answers its other questions. With [`crate::answerer::ByToken`] they are left to the
    /// caller: the stream ends, and a later call brings the answers.
    pub answerer: Arc<dyn Answerer>,
    /// Where its questions are recorded, to be answered by token.
    pub interrupts: Interrupts,
    /// When a resumed thread is compacted before its turn.
    pub compaction: Compaction,
    /// A compaction that fails, fails the call; otherwise it is a warning.
    pub strict_compaction: bool,
    /// Where threads for new conversations come from.
    pub threads: Arc<dyn Threads>,
    /// What of a prompt's input goes to the worker.
    pub input: Arc<dyn InputFilter>,
    /// Who writes down that a turn is asked for.
    pub recorder: Option<Arc<dyn StartRecorder>>,
}

impl Default for ModelSettings {
    fn default() -> Self {
        Self {
            thread: ThreadSettings::default(),
            plan: PlanContext::default(),
            deadlines: Deadlines { settle: Some(SETTLE), taken: TAKEN, ..Deadlines::default() },
            tools: ToolSet::default(),
            answerer: answerer::refuse(),
            interrupts: Interrupts::default(),
            compaction: Compaction::default(),
            strict_compaction: false,
            threads: Arc::new(OnDemand),
            input: Arc::new(Unfiltered),
            recorder: None,
        }
    }
}

/// A language model on one app-server; clones share it.
#[derive(Clone)]
pub struct LanguageModel {
    server: AppServer,
    settings: ModelSettings,
    /// Threads that are open here, and what they were opened with.
    open: Arc<Mutex<HashMap<ThreadId, Opened>>>,
    /// Turns that wait for answers of their callers.
    parked: Parked,
}

#[derive(Clone, PartialEq)]
struct Opened {
    settings: ThreadSettings,
    model: String,
}

/// A turn, and what its thread was opened with.
#[derive(Debug)]
pub struct Call {
    /// The running turn, to its end or until it waits for the caller.
    pub turn: Step,
    /// The thread's answer to being opened; none for one that was open before.
    pub opened: Option<ThreadOpened>,
}

impl Call {
    /// Everything that comes, to the end of the step.
    pub async fn gathered(mut self, spec: Spec) -> Generated {
        let mut gather = Gather::new(spec);
        while let Some(part) = self.turn.next().await {
            gather.push(&part);
        }
        gather.finish()
    }
}

/// Questions of one model response come within milliseconds of each other; later ones are told in
/// the next step, so nothing hangs on this being long enough.
const SETTLE: Duration = Duration::from_millis(50);

/// Who stops an answer and asks again at once may be here before the stop is: a closed connection
/// is noticed when it is.
const TAKEN: Duration = Duration::from_millis(500);

/// Threads remembered as open; forgetting one costs a `thread/resume`, nothing else.
const REMEMBERED: usize = 1024;

impl LanguageModel {
    /// A model on this server.
    pub fn new(server: AppServer, settings: ModelSettings) -> Self {
        let parked = Parked::new(settings.deadlines.answer);
        Self { server, settings, open: Arc::default(), parked }
    }

    /// The same server, open threads and waiting turns with other settings.
    pub(crate) fn with(&self, settings: ModelSettings) -> Self {
        let parked = self.parked.with_patience(settings.deadlines.answer);
        Self { server: self.server.clone(), settings, open: self.open.clone(), parked }
    }

    /// Takes a thread for closed: its next turn resumes it.
    pub(crate) fn forget(&self, thread: &ThreadId) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(thread);
    }

    /// Runs a call and gives its parts as they come.
    pub async fn stream(&self, options: &CallOptions) -> Result<Call, Error> {
        let mut context = self.context(options).await?;
        let mut warnings = Vec::new();
        loop {
            let mut plan = plan(options, &context)?;
            plan.warnings.splice(..0, warnings.iter().cloned());
            match self.run(plan).await {
                Ok(call) => return Ok(call),
                Err(Stop::Replan(replan)) => warnings.extend(replan.apply(&mut context)),
                Err(Stop::Error(error)) => return Err(error),
            }
        }
    }

    /// Runs a call to its end; streaming and generating share one path.
    pub async fn generate(&self, options: &CallOptions, spec: Spec) -> Result<Generated, Error> {
        Ok(self.stream(options).await?.gathered(spec).await)
    }

    async fn run(&self, mut plan: TurnPlan) -> Result<Call, Stop> {
        plan.input = self.settings.input.filter(plan.input).await?;
        if let ThreadChoice::Resume(thread) = &plan.thread
            && let Some(turn) = self.parked.take(thread)
        {
            let shown = plan.after.as_ref().is_none_or(|after| after == turn.turn_id());
            if shown && !plan.answers.is_empty() {
                return Ok(self.go_on(turn, plan));
            }
            // The caller has something newer to say; what was asked is no longer of interest.
            withdraw(turn).await;
        }
        if let Some(turn) = plan.answered_turn() {
            return Err(Stop::Replan(Replan::Without(turn.clone())));
        }
        if plan.only_answers() {
            return Err(Error::NothingWaits.into());
        }
        self.begin(plan).await
    }

    /// Whether a turn of this thread waits for answers of the caller.
    pub fn waits(&self, thread: &ThreadId) -> bool {
        self.parked.has(thread)
    }

    /// Goes on with a turn that waited.
    fn go_on(&self, turn: Turn, plan: TurnPlan) -> Call {
        let refused = answers::deliver(&self.settings.interrupts, turn.thread_id(), plan.answers);
        for why in refused {
            tracing::warn!(thread = %turn.thread_id(), %why, "an answer was not taken");
        }
        if !plan.input.is_empty() {
            let control = turn.control();
            // The reply comes behind the parts that the caller is about to read.
            self.server.track(async move {
                if let Err(err) = control.steer(plan.input).await {
                    tracing::warn!(turn = %control.turn_id(), %err, "the turn was not steered");
                }
            });
        }
        Call { turn: Step::new(turn, self.parked.clone()), opened: None }
    }

    async fn begin_on(&self, thread: &ThreadChoice, plan: &TurnPlan) -> Result<Call, Error> {
        let settings = over(&self.settings.thread, &plan.thread_settings);
        let (thread_id, model, opened) = self.open(thread, plan, settings).await?;
        let mut warnings = plan.warnings.clone();
        warnings.extend(self.compact(thread, opened.as_ref()).await?);
        let request = TurnRequest {
            after: self.newest_turn(&thread_id).filter(|_| plan.after.is_some()),
            thread_id,
            inject: plan.inject.clone(),
            input: plan.input.clone(),
            settings: plan.turn_settings.clone(),
            model: Some(model),
            warnings,
            declared_tools: names(&plan.dynamic_tools),
            marks: plan.marks.clone(),
            raw_chunks: plan.raw_chunks,
            deadlines: self.settings.deadlines,
            answerer: self.staff(&plan.dynamic_tools),
            interrupts: self.settings.interrupts.clone(),
            recorder: self.settings.recorder.clone(),
        };
        let turn = self.server.start_turn(request).await?;
        Ok(Call { turn: Step::new(turn, self.parked.clone()), opened })
    }

    /// Goes on with a turn of this call that a process which is gone has started.
    pub fn adopt(
        &self,
        options: &CallOptions,
        thread_id: ThreadId,
        adoption: Adoption,
    ) -> Result<Turn, Error> {
        let plan = plan(options, &self.settings.plan)?;
        let mut request = TurnRequest::new(thread_id, "");
        request.declared_tools = names(&plan.dynamic_tools);
        request.marks = plan.marks;
        request.deadlines = self.settings.deadlines;
        request.answerer = self.staff(&plan.dynamic_tools);
        request.interrupts = self.settings.interrupts.clone();
        self.server.adopt_turn(request, adoption)
    }

    /// Who answers what a turn with these tools of its caller asks.
    fn staff(&self, tools: &[serde_json::Value]) -> Arc<dyn Answerer> {
        Arc::new(Staff {
            tools: self.settings.tools.clone(),
            declared: names(tools),
            others: self.settings.answerer.clone(),
        })
    }

    /// Compacts a thread that was just resumed, where the settings say so.
    async fn compact(
        &self,
        thread: &ThreadChoice,
        opened: Option<&ThreadOpened>,
    ) -> Result<Option<Warning>, Error> {
        let (ThreadChoice::Resume(thread), Some(opened)) = (thread, opened) else {
            return Ok(None);
        };
        if !self.settings.compaction.is_due(opened) {
            return Ok(None);
        }
        match compact(&self.server, thread, self.settings.deadlines.idle).await {
            Err(err) if !self.settings.strict_compaction => {
                Ok(Some(Warning::Other { message: err.to_string() }))
            }
            other => other.map(|()| None),
        }
    }

    /// Opens the thread, unless it is open here with the same settings.
    async fn open(
        &self,
        thread: &ThreadChoice,
        plan: &TurnPlan,
        settings: ThreadSettings,
    ) -> Result<(ThreadId, String, Option<ThreadOpened>), Error> {
        let opened = match thread {
            ThreadChoice::Fresh => self.start(plan, settings.clone()).await?,
            ThreadChoice::Resume(thread) => {
                if let Some(known) = self.known(thread, &settings) {
                    return Ok((thread.clone(), known.model, None));
                }
                let (thread_id, settings) = (thread.clone(), settings.clone());
                let resume = ThreadResume { thread_id, settings, exclude_turns: true };
                self.server.resume_thread(&resume).await?
            }
            ThreadChoice::Fork { thread_id, last_turn_id } => {
                let fork = ThreadFork {
                    thread_id: thread_id.clone(),
                    last_turn_id: last_turn_id.clone(),
                    settings: settings.clone(),
                    ephemeral: plan.ephemeral,
                    exclude_turns: true,
                };
                self.server.fork_thread(&fork).await?
            }
        };
        let (thread_id, model) = (opened.thread.id.clone(), opened.model.clone());
        self.remember(&thread_id, Opened { settings, model: model.clone() });
        Ok((thread_id, model, Some(opened)))
    }

    async fn start(
        &self,
        plan: &TurnPlan,
        settings: ThreadSettings,
    ) -> Result<ThreadOpened, Error> {
        let declared = names(&plan.dynamic_tools);
        let ours = self.settings.tools.advertised().into_iter();
        // A tool that the caller declares is the caller's, whatever we have under its name.
        let ours = ours.filter(|tool| names(std::slice::from_ref(tool)).is_disjoint(&declared));
        let tools: Vec<_> = plan.dynamic_tools.iter().cloned().chain(ours).collect();
        let start = ThreadStart {
            settings,
            ephemeral: plan.ephemeral,
            dynamic_tools: (!tools.is_empty()).then_some(tools),
            // A step ends when the response does that calls the caller's tools.
            experimental_raw_events: !plan.dynamic_tools.is_empty(),
        };
        self.settings.threads.start(&self.server, start).await
    }

    fn known(&self, thread: &ThreadId, settings: &ThreadSettings) -> Option<Opened> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.get(thread).filter(|known| known.settings == *settings).cloned()
    }

    fn remember(&self, thread: &ThreadId, opened: Opened) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() >= REMEMBERED {
            open.clear();
        }
        open.insert(thread.clone(), opened);
    }
}

/// Ends a turn that nobody goes on with, and waits until its thread is free.
async fn withdraw(mut turn: Turn) {
    turn.control().interrupt();
    while turn.next().await.is_some() {}
}

/// The call's settings, and the model's where the call says nothing.
fn over(base: &ThreadSettings, call: &ThreadSettings) -> ThreadSettings {
    let (base, call) = (base.clone(), call.clone());
    let mut extra = base.extra;
    extra.extend(call.extra);
    ThreadSettings {
        model: call.model.or(base.model),
        model_provider: call.model_provider.or(base.model_provider),
        cwd: call.cwd.or(base.cwd),
        approval_policy: call.approval_policy.or(base.approval_policy),
        approvals_reviewer: call.approvals_reviewer.or(base.approvals_reviewer),
        sandbox: call.sandbox.or(base.sandbox),
        base_instructions: call.base_instructions.or(base.base_instructions),
        developer_instructions: call.developer_instructions.or(base.developer_instructions),
        config: call.config.or(base.config),
        extra,
    }
}

fn names(tools: &[serde_json::Value]) -> BTreeSet<String> {
    tools.iter().filter_map(|tool| tool.get("name")?.as_str().map(str::to_owned)).collect()
}
