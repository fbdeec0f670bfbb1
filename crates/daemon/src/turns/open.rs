//! A turn is opened on a worker, or taken over from a daemon that is gone.

use std::sync::Arc;
use std::time::Duration;

use bindery_client::answerer::ByToken;
use bindery_client::compaction::compact;
use bindery_client::model::{InputFilter, ModelSettings, Unfiltered};
use bindery_client::pool::Lease;
use bindery_client::turn::{Adoption, Deadlines, Turn, TurnRequest};
use bindery_core::ids::{ThreadId, TurnId};
use bindery_core::map::prompt_to_turn::ThreadSource;
use bindery_core::part::Part;
use bindery_core::spec::codex_of;
use bindery_core::wire::app_server::notification::Tokens;
use bindery_core::wire::app_server::params::ThreadResume;
use bindery_core::wire::rpc::RequestId;
use serde_json::Value;

use super::log::{Kind, events_of};
use super::{Inner, Live, call};
use crate::error::Error;
use crate::files::TenantFiles;
use crate::store::{
    InterruptFilter, InterruptRow, InterruptState, Store, ThreadRow, TurnKind, TurnRow,
};
use crate::tenant::Tenant;

/// Questions of one model response come within milliseconds of each other.
const SETTLE: Duration = Duration::from_millis(50);

/// Longer than any question may wait: the deadline is the store's, which outlives us.
const NEVER: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// Everything a turn is run with.
pub(super) struct Scene {
    pub(super) tenant: Tenant,
    pub(super) thread: ThreadRow,
    pub(super) turn: TurnRow,
    pub(super) live: Arc<Live>,
}

/// A turn that runs, and its room on the worker where it does not keep that itself.
pub(super) struct Opened {
    pub(super) turn: Turn,
    pub(super) _lease: Option<Lease>,
}

impl Inner {
    pub(super) async fn scene(
        &self,
        tenant: &str,
        thread: &str,
        turn: &str,
    ) -> Result<Option<Scene>, Error> {
        let Some(live) = self.live().get(turn).cloned() else { return Ok(None) };
        let found = (
            self.store.tenant(tenant).await?,
            self.store.thread(tenant, thread).await?,
            self.store.turn(tenant, turn).await?,
        );
        let (Some(tenant), Some(thread), Some(turn)) = found else { return Ok(None) };
        Ok(Some(Scene { tenant, thread, turn, live }))
    }

    /// Begins a turn with this request of its.
    pub(super) async fn open(&self, scene: &Scene, request: Value) -> Result<Opened, Error> {
        match scene.turn.kind {
            TurnKind::Prompt => {
                let options = call::of(&scene.tenant, &scene.thread, request)?;
                let settings = self.settings(scene, call::context(&scene.thread));
                let (tenant, backend) = (&scene.tenant, &scene.thread.backend);
                let model = self.workers.model(tenant, backend, settings)?;
                let step = model.stream(&options).await?.turn;
                let gone = || Error::Internal("the turn was over before it began".to_owned());
                Ok(Opened { turn: step.into_turn().ok_or_else(gone)?, _lease: None })
            }
            TurnKind::Review => {
                let (lease, thread) = self.begun(scene).await?;
                let turn = self.request(scene, thread);
                let turn = lease.server().start_review(turn, request).await?;
                Ok(Opened { turn, _lease: Some(lease) })
            }
            TurnKind::Compact => Err(Error::Internal("a compaction has no parts".to_owned())),
        }
    }

    /// Makes a thread's history shorter.
    pub(super) async fn compact(&self, scene: &Scene) -> Result<(), Error> {
        let lease = self.lease(scene).await?;
        let thread = session(&scene.thread)?;
        Ok(compact(lease.server(), &thread, self.idle()).await?)
    }

    /// Goes on with a turn that runs, or has ended unheard.
    pub(super) async fn adopt(&self, scene: &Scene, request: Value) -> Result<Opened, Error> {
        let adoption = self.adoption(scene).await?;
        let thread = session(&scene.thread)?;
        if scene.turn.kind != TurnKind::Prompt {
            let lease = self.lease(scene).await?;
            let turn = lease.server().adopt_turn(self.request(scene, thread), adoption)?;
            return Ok(Opened { turn, _lease: Some(lease) });
        }
        let options = call::of(&scene.tenant, &scene.thread, request)?;
        let mut context = call::context(&scene.thread);
        context.thread = ThreadSource::Fresh;
        let settings = self.settings(scene, context);
        let model = self.workers.model(&scene.tenant, &scene.thread.backend, settings)?;
        Ok(Opened { turn: model.adopt(&options, thread, adoption).await?, _lease: None })
    }

    async fn adoption(&self, scene: &Scene) -> Result<Adoption, Error> {
        let turn = &scene.turn;
        let Some(backend_turn) = &turn.backend_turn else {
            return Err(Error::Internal("a turn without a name was to be taken over".to_owned()));
        };
        let told = told(&*self.store, &turn.id).await?;
        let used = told.iter().rev().find_map(thread_usage);
        let used = used.or_else(|| scene.thread.usage.clone());
        // A thread without an account has used nothing yet.
        let used: Option<Tokens> = used.map(serde_json::from_value).transpose().ok().flatten();
        // That of a copy has what its original had, which nobody has told.
        let used = used.or_else(|| scene.thread.fork.is_none().then(Tokens::default));
        let asked = self.asked(&turn.id).await?;
        let asked = asked.into_iter().filter_map(|row| {
            let request: RequestId = serde_json::from_value(row.request).ok()?;
            Some((request, row.interrupt))
        });
        Ok(Adoption {
            turn_id: TurnId::new(backend_turn.as_str()),
            told,
            asked: asked.collect(),
            used,
        })
    }

    /// What a turn has asked and the worker may ask again.
    pub(super) async fn asked(&self, turn: &str) -> Result<Vec<InterruptRow>, Error> {
        let filter = InterruptFilter { turn: Some(turn.to_owned()), ..InterruptFilter::default() };
        let rows = self.store.interrupts(filter).await?.into_iter();
        let open = |row: &InterruptRow| {
            use InterruptState::{Answered, Expired, Open};
            matches!(row.state, Open | Answered | Expired)
        };
        Ok(rows.filter(open).collect())
    }

    fn settings(
        &self,
        scene: &Scene,
        plan: bindery_core::map::prompt_to_turn::PlanContext,
    ) -> ModelSettings {
        let input: Arc<dyn InputFilter> = match self.config.exit_with_parent {
            true => Arc::new(Unfiltered),
            false => Arc::new(TenantFiles::new(&self.config, &scene.tenant)),
        };
        ModelSettings {
            plan,
            input,
            deadlines: self.deadlines(),
            tools: self.hooks.tools(&scene.tenant),
            answerer: Arc::new(ByToken),
            interrupts: scene.live.interrupts.clone(),
            recorder: Some(Arc::new(self.recorder(scene))),
            ..ModelSettings::default()
        }
    }

    fn request(&self, scene: &Scene, thread: ThreadId) -> TurnRequest {
        let mut request = TurnRequest::new(thread, "");
        request.input.clear();
        request.deadlines = self.deadlines();
        request.answerer = Arc::new(ByToken);
        request.interrupts = scene.live.interrupts.clone();
        request.recorder = Some(Arc::new(self.recorder(scene)));
        request
    }

    /// The same, with a thread that may not have run yet.
    async fn begun(&self, scene: &Scene) -> Result<(Lease, ThreadId), Error> {
        let Scene { tenant, thread, .. } = scene;
        if thread.session.is_some() || thread.fork.is_some() {
            return Ok((self.lease(scene).await?, session(thread)?));
        }
        let lease = self.workers.lease(tenant, &thread.backend, None).await?;
        let opened = lease.server().start_thread(&call::beginning(tenant, thread)?).await?;
        Ok((lease, opened.thread.id))
    }

    /// Room on the worker, with the thread loaded and heard.
    async fn lease(&self, scene: &Scene) -> Result<Lease, Error> {
        let thread = session(&scene.thread)?;
        let backend = &scene.thread.backend;
        let lease = self.workers.lease(&scene.tenant, backend, Some(thread.as_str())).await?;
        let settings = call::resumption(&scene.tenant, &scene.thread)?;
        let resume = ThreadResume { thread_id: thread, settings, exclude_turns: true };
        lease.server().resume_thread(&resume).await?;
        Ok(lease)
    }

    fn deadlines(&self) -> Deadlines {
        Deadlines { idle: self.idle(), answer: NEVER, settle: Some(SETTLE), ..Deadlines::default() }
    }

    pub(super) fn idle(&self) -> Duration {
        Duration::from_secs(self.config.turns.idle_seconds)
    }
}

pub(super) fn session(thread: &ThreadRow) -> Result<ThreadId, Error> {
    let missing = || Error::Conflict {
        code: "thread_empty",
        message: format!("thread `{}` has not run yet", thread.id),
    };
    thread.session.as_deref().map(ThreadId::from).ok_or_else(missing)
}

/// Everything that was told of a turn.
pub(super) async fn told(store: &dyn Store, turn: &str) -> Result<Vec<Part>, Error> {
    let chunks = store.events(turn, 0, usize::MAX).await?;
    let events = chunks.iter().flat_map(events_of).filter(|event| event.kind == Kind::Part);
    let parts = events.map(|event| serde_json::from_str(event.json()));
    parts
        .collect::<Result<_, _>>()
        .map_err(|err| Error::Internal(format!("a stored part cannot be read: {err}")))
}

/// The thread's totals, as a `finish` tells them.
pub(super) fn thread_usage(part: &Part) -> Option<Value> {
    let Part::Finish { provider_metadata, .. } = part else { return None };
    codex_of(provider_metadata.as_ref())?.get("threadUsage").cloned()
}
