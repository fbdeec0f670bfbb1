//! What a turn told, read to its end.

use std::time::Duration;

use bindery_core::content::{Gather, Generated};
use bindery_core::part::{Part, ToolResult};
use bindery_core::spec::{Spec, codex_of};
use bindery_core::usage::Unified;
use futures_util::{Stream, StreamExt};
use serde_json::Value;
use tokio::time::timeout;

/// No turn of a test takes this long; reaching it is a hang.
const HANG: Duration = Duration::from_secs(120);

/// What a turn told.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) parts: Vec<Part>,
}

impl Told {
    /// Reads a turn to its end.
    pub(crate) async fn of(mut turn: impl Stream<Item = Part> + Unpin) -> Self {
        let mut parts = Vec::new();
        while let Some(part) = timeout(HANG, turn.next()).await.expect("the turn hangs") {
            parts.push(part);
        }
        assert!(matches!(parts.last(), Some(Part::Finish { .. })), "no finish: {parts:?}");
        Self { parts }
    }

    /// The whole answer, as `doGenerate` gives it.
    pub(crate) fn generated(&self) -> Generated {
        let mut gather = Gather::new(Spec::V4);
        self.parts.iter().for_each(|part| gather.push(part));
        gather.finish()
    }

    /// The answer's text.
    pub(crate) fn text(&self) -> String {
        let content = self.generated().content;
        let on_the_way =
            |piece: &Value| piece["providerMetadata"]["codex"]["phase"] == "commentary";
        let said = |piece: &&Value| piece["type"] == "text" || on_the_way(piece);
        let texts = content.iter().filter(said);
        texts.filter_map(|piece| piece["text"].as_str()).collect::<Vec<_>>().join("|")
    }

    /// Everything that was streamed as text, whatever became of it.
    pub(crate) fn streamed(&self) -> String {
        let deltas = self.parts.iter().filter_map(|part| match part {
            Part::TextDelta(delta) => Some(delta.delta.as_str()),
            _ => None,
        });
        deltas.collect()
    }

    /// Why it ended.
    pub(crate) fn end(&self) -> Unified {
        self.generated().finish_reason.unwrap().unified
    }

    /// The errors it told.
    pub(crate) fn errors(&self) -> Vec<Value> {
        self.generated().errors
    }

    /// The final results of a tool.
    pub(crate) fn results(&self, tool: &str) -> Vec<ToolResult> {
        let results = self.parts.iter().filter_map(|part| match part {
            Part::ToolResult(result) if result.tool_name == tool && !result.preliminary => {
                Some(result.clone())
            }
            _ => None,
        });
        results.collect()
    }

    /// The details of the custom parts of a kind.
    pub(crate) fn customs(&self, wanted: &str) -> Vec<Value> {
        let customs = self.parts.iter().filter_map(|part| match part {
            Part::Custom { kind, provider_metadata } if kind == wanted => {
                Some(Value::Object(codex_of(provider_metadata.as_ref())?.clone()))
            }
            _ => None,
        });
        customs.collect()
    }
}
