//! What makes a turn a reviewer's: its own rubric, fewer tools, a mark on its requests.

use std::sync::Arc;

use bindery_core::open::Open;
use bindery_core::wire::app_server::input::UserInput;
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::item::HistoryItem;
use crate::model::{Answered, Model, ModelError, ModelEvent, ModelRequest};
use crate::prompter::{Context, PatchForm, Profile, Prompter};
use crate::thread::Standing;

/// The reviewer's base prompt.
pub(super) const RUBRIC: &str = include_str!("rubric.md");

/// Prompts of the thread, for one that only looks.
pub(super) struct Reviewer(pub(super) Arc<dyn Prompter>);

impl Prompter for Reviewer {
    fn profile(&self, model: &str) -> Profile {
        Profile { plan: false, patch: PatchForm::None, ..self.0.profile(model) }
    }

    fn base(&self, standing: &Standing) -> String {
        standing.base_instructions.clone().unwrap_or_else(|| RUBRIC.to_owned())
    }

    fn context<'a>(
        &'a self,
        standing: &'a Standing,
        told: Option<&'a Value>,
    ) -> BoxFuture<'a, Context> {
        self.0.context(standing, told)
    }

    fn user<'a>(
        &'a self,
        standing: &'a Standing,
        input: &'a [Open<UserInput>],
    ) -> BoxFuture<'a, Vec<HistoryItem>> {
        self.0.user(standing, input)
    }

    fn compaction(&self) -> String {
        self.0.compaction()
    }
}

/// Tells the server what it is asked for.
pub(super) struct ReviewModel(pub(super) Arc<dyn Model>);

impl Model for ReviewModel {
    fn answer(
        &self,
        mut request: ModelRequest,
        events: mpsc::Sender<ModelEvent>,
    ) -> BoxFuture<'_, Result<Answered, ModelError>> {
        request.purpose.get_or_insert("review");
        self.0.answer(request, events)
    }
}
