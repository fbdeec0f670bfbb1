//! What a model can call: one [`Tool`] each, found by the [`Router`].

mod approve;

mod apply_patch;

mod client;

mod command;

mod env;

mod exec_command;

mod fence;

mod mcp;

mod plan;

mod router;

mod session;

mod shell;

mod view_image;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use bindery_core::surrogates::mended;
use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;

pub(crate) use self::plan::read as read_plan;
pub(crate) use self::router::Router;
pub(crate) use self::session::{Session, Step};
use crate::guard::{self, Guard};
use crate::item::Output;
use crate::model::ToolSpec;
use crate::plain_file::PlainFileReader;
use crate::prompter::Profile;
use crate::sandbox::roots;
use crate::thread::Standing;
use crate::turn::Core;
use crate::turn::voice::Voice;

/// Something a model can call.
pub(crate) trait Tool: Send + Sync {
    /// Its name.
    fn name(&self) -> &str;

    /// The group it is in.
    fn namespace(&self) -> Option<&str> {
        None
    }

    /// As it is offered; none for a tool that is offered with its group.
    fn spec(&self) -> Option<ToolSpec>;

    /// Whether it may run beside others.
    fn parallel(&self) -> bool {
        false
    }

    /// Runs. Whatever goes wrong is said to the model; only a person ends the turn.
    fn call<'a>(&'a self, call: Call, cx: &'a Cx) -> BoxFuture<'a, Ended>;
}

/// One call.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// Names the call, and its item.
    pub(crate) id: String,
    /// What the model gave along: JSON, or free text.
    pub(crate) input: String,
    /// The input is free text.
    pub(crate) free: bool,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ended {
    /// With this answer.
    Output(Output),
    /// A person who was asked wants the turn to end.
    Cancelled,
}

/// What tools of a turn work with.
pub(crate) struct Cx {
    pub(crate) voice: Voice,
    pub(crate) standing: Standing,
    pub(crate) profile: Profile,
    pub(crate) session: Arc<Session>,
    pub(crate) guard: Arc<dyn Guard>,
}

impl Cx {
    pub(crate) fn new(core: &Core, profile: &Profile, voice: &Voice) -> Self {
        let cx = Self {
            voice: voice.clone(),
            standing: core.standing.clone(),
            profile: profile.clone(),
            session: Arc::clone(&core.session),
            guard: Arc::clone(&core.makings.guard),
        };
        // Remembers what roots lead to that the turn names for the first time. One that leads
        // elsewhere now is told when a command or a patch needs it.
        let _ = cx.verify_roots();
        cx
    }

    /// Says which writable folder of the thread is not the one any more that it was.
    fn verify_roots(&self) -> Result<(), String> {
        self.session.verify_roots(&self.standing)
    }

    /// Folders whose files commands can have written, or that came with the project.
    fn writable_folders(&self) -> Vec<PathBuf> {
        let policy = guard::policy(&self.standing.sandbox);
        let tmpdir = roots::temporary_folder();
        let roots = roots::paths(&policy, &self.standing.cwd, tmpdir.as_deref());
        let roots = roots.into_iter().map(|(path, _)| path);
        roots.chain([self.standing.cwd.clone()]).collect()
    }

    /// Reads files for the model. As for commands, a root in a hidden folder is seen.
    fn file_reader(&self) -> PlainFileReader {
        PlainFileReader::hiding(self.guard.hidden_paths().except(self.writable_folders()))
    }

    /// The environment of commands.
    fn command_env(&self) -> BTreeMap<OsString, OsString> {
        env::of_commands(&self.session.environment, &self.writable_folders())
    }

    /// Tells the turn's diff, if it changed since it was told last.
    pub(crate) fn tell_diff(&self) {
        if let Some(diff) = self.session.new_diff(self.voice.turn_id()) {
            self.voice.tell("turn/diff/updated", serde_json::json!({ "diff": diff }));
        }
    }
}

impl Ended {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Output(Output::Text(text.into()))
    }
}

impl Call {
    /// The arguments, or what the model is told about them.
    pub(crate) fn arguments<T: DeserializeOwned>(&self) -> Result<T, Ended> {
        // Some models call a tool without arguments with no JSON at all.
        let input = if self.input.trim().is_empty() { "{}" } else { &self.input };
        serde_json::from_str(&mended(input).0)
            .map_err(|err| Ended::text(format!("failed to parse function arguments: {err}")))
    }
}
