//! Content: what `doGenerate` returns, folded from the parts of a stream.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::Value;

use crate::ids::PartId;
use crate::part::{Part, Warning};
use crate::spec::{Metadata, Spec, codex_of};
use crate::usage::{FinishReason, Usage};

/// A whole answer, in the shape of the AI SDK's generate result.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Generated {
    /// The answer's pieces in the order they began.
    pub content: Vec<Value>,
    /// Why it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<FinishReason>,
    /// Tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// What could not be carried.
    pub warnings: Vec<Warning>,
    /// Thread, turn and totals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_metadata: Option<Metadata>,
    /// Id, time and model of the response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<Value>,
    /// Errors of the stream; a generate call fails with the first.
    #[serde(skip)]
    pub errors: Vec<Value>,
}

/// Folds stream parts into a whole answer: streaming and generating share one path.
pub struct Gather {
    spec: Spec,
    generated: Generated,
    open: HashMap<PartId, usize>,
}

impl Gather {
    /// An empty answer in the words of `spec`.
    pub fn new(spec: Spec) -> Self {
        Self { spec, generated: Generated::default(), open: HashMap::new() }
    }

    /// Takes one part.
    pub fn push(&mut self, part: &Part) {
        match part {
            Part::StreamStart { warnings } => self.generated.warnings.extend_from_slice(warnings),
            Part::ResponseMetadata { .. } => self.generated.response = self.untyped(part),
            Part::TextStart(run) => self.begin(&run.id, "text"),
            Part::ReasoningStart(run) => self.begin(&run.id, "reasoning"),
            Part::TextDelta(delta) | Part::ReasoningDelta(delta) => {
                self.extend(&delta.id, &delta.delta);
            }
            Part::TextEnd { id, provider_metadata, .. } => self.end(id, provider_metadata.as_ref()),
            Part::ReasoningEnd(run) => self.end(&run.id, run.provider_metadata.as_ref()),
            Part::ToolResult(result) if result.preliminary => {}
            Part::Finish { usage, finish_reason, provider_metadata } => {
                self.generated.usage = Some(usage.clone());
                self.generated.finish_reason = Some(finish_reason.for_spec(self.spec));
                self.generated.provider_metadata.clone_from(provider_metadata);
            }
            Part::Error { error } => self.generated.errors.push(error.clone()),
            Part::ToolInputStart(_)
            | Part::ToolInputDelta(_)
            | Part::ToolInputEnd(_)
            | Part::Raw { .. }
            | Part::Ping => {}
            Part::Custom { .. } if self.spec == Spec::V3 => {}
            other => self.generated.content.extend(other.to_json(self.spec)),
        }
    }

    /// The whole answer; pieces that were withdrawn are not in it.
    pub fn finish(mut self) -> Generated {
        self.generated.content.retain(|piece| !piece.is_null());
        self.generated
    }

    fn begin(&mut self, id: &PartId, kind: &str) {
        self.open.insert(id.clone(), self.generated.content.len());
        self.generated.content.push(serde_json::json!({ "type": kind, "text": "" }));
    }

    fn extend(&mut self, id: &PartId, delta: &str) {
        let index = self.open.get(id).copied();
        if let Some(Value::String(text)) =
            index.and_then(|i| self.generated.content.get_mut(i)).and_then(|c| c.get_mut("text"))
        {
            text.push_str(delta);
        }
    }

    /// A run that Codex gave up (a retry, a steer) is taken out again.
    fn end(&mut self, id: &PartId, metadata: Option<&Metadata>) {
        let Some(piece) =
            self.open.remove(id).and_then(|index| self.generated.content.get_mut(index))
        else {
            return;
        };
        let details = codex_of(metadata);
        if details.is_some_and(|d| d.get("discarded") == Some(&Value::Bool(true))) {
            *piece = Value::Null;
            return;
        }
        if let Some(text) = details.and_then(|d| d.get("text")) {
            piece["text"] = text.clone();
        }
        if let Some(metadata) = metadata {
            piece["providerMetadata"] = Value::Object(metadata.clone());
        }
    }

    fn untyped(&self, part: &Part) -> Option<Value> {
        let mut value = part.to_json(self.spec)?;
        value.as_object_mut()?.remove("type");
        Some(value)
    }
}
