//! A turn runs in its thread's folder and in no other, whatever is put in the place of that.
//!
//! A worker knows a folder by its path, and a command of the same tenant may put a link there. So
//! the folder is opened before a turn begins, held while it runs, and looked for again whenever the
//! worker says something. What a worker does between a swap and the next word of it is not
//! prevented.

use std::path::Path;

use bindery_client::turn::Turn;
use bindery_core::part::Part;
use bindery_core::usage::{FinishReason, Unified};
use serde_json::{Value, json};

use super::Inner;
use super::call;
use super::flow::Flow;
use super::open::Scene;
use crate::error::Error;
use crate::tenant::ThreadFolder;

/// Whether a turn is where it must be.
pub(super) enum Confinement {
    /// The caller's own daemon holds nothing to a root.
    None,
    /// In this folder.
    Folder(ThreadFolder),
    /// It is not; this is what is told.
    Broken(Error),
}

impl Confinement {
    /// Opens the folder of a turn with this request, and those that it may write besides.
    pub(super) fn of(inner: &Inner, scene: &Scene, request: &Value) -> Self {
        if inner.config.exit_with_parent {
            return Self::None;
        }
        let folder = ThreadFolder::open(&scene.tenant.settings.root, Path::new(&scene.thread.cwd));
        let folder = folder.and_then(|folder| {
            let roots = call::writable_roots(&scene.tenant, &scene.thread, request)?;
            folder.with_roots(&roots)
        });
        folder.map_or_else(Self::Broken, Self::Folder)
    }

    pub(super) fn is_broken(&self) -> bool {
        matches!(self, Self::Broken(_))
    }

    /// What is wrong, if anything is.
    pub(super) fn broken(&self) -> Option<Error> {
        let Self::Broken(err) = self else { return None };
        Some(match err {
            Error::Conflict { code, message } => Error::Conflict { code, message: message.clone() },
            Error::Forbidden(why) => Error::Forbidden(why.clone()),
            other => Error::Internal(other.to_string()),
        })
    }
}

impl Flow<'_> {
    /// The same parts, if the folder still is where it was. If not, the turn is stopped, and its
    /// last words say why.
    pub(super) fn confined(&mut self, turn: &Turn, mut parts: Vec<Part>) -> Vec<Part> {
        if let Confinement::Folder(folder) = &self.confinement
            && !folder.is_in_place()
        {
            self.confinement = Confinement::Broken(folder.moved());
        }
        let Some(err) = self.confinement.broken() else { return parts };
        if self.error.as_ref().is_none_or(|error| error["kind"] != err.code()) {
            tracing::warn!(turn = self.scene.turn.id, %err, "the turn is stopped");
            turn.control().interrupt();
            let error = json!({
                "message": err.to_string(), "kind": err.code(), "hint": err.hint(),
            });
            self.error = Some(error.clone());
            parts.insert(0, Part::Error { error });
        }
        for part in &mut parts {
            if let Part::Finish { finish_reason, .. } = part
                && finish_reason.unified != Unified::ToolCalls
            {
                *finish_reason = FinishReason::new(Unified::Error, err.code());
            }
        }
        parts
    }
}
