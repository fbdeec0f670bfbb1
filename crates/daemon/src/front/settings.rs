//! The provider's settings as the client's.

use std::collections::BTreeSet;
use std::future::pending;
use std::sync::Arc;

use bindery_client::answerer::Answerer;
use bindery_client::compaction::Compaction;
use bindery_client::interrupts::Interrupts;
use bindery_client::model::ModelSettings;
use bindery_client::tools::{LIMIT, Tool, ToolSet};
use bindery_core::interrupt::{Answer, Ask, Interrupt};
use futures_util::future::BoxFuture;

use super::hub::Hub;
use super::request::{Compact, FrontSettings, millis};

/// What the client runs a call with.
pub(super) fn of(asked: &FrontSettings, hub: &Hub, interrupts: &Interrupts) -> ModelSettings {
    let mut settings = ModelSettings {
        tools: tools(asked, hub, interrupts),
        answerer: Arc::new(Callbacks {
            kinds: asked.callbacks.iter().cloned().collect(),
            hub: hub.clone(),
        }),
        interrupts: interrupts.clone(),
        strict_compaction: asked.strict_compaction.unwrap_or(false),
        ..ModelSettings::default()
    };
    if asked.compaction == Some(Compact::Always) {
        settings.compaction = Compaction::Always;
    }
    let deadlines = &mut settings.deadlines;
    deadlines.idle = millis(asked.idle_timeout_ms).unwrap_or(deadlines.idle);
    deadlines.answer = millis(asked.answer_timeout_ms).unwrap_or(deadlines.answer);
    deadlines.interrupt = millis(asked.interrupt_timeout_ms).unwrap_or(deadlines.interrupt);
    deadlines.whole = millis(asked.turn_timeout_ms).or(deadlines.whole);
    settings
}

/// Tools that the caller runs while the stream is open: the answer comes by token, or too late.
fn tools(asked: &FrontSettings, hub: &Hub, interrupts: &Interrupts) -> ToolSet {
    let limit = millis(asked.tool_timeout_ms).unwrap_or(LIMIT);
    asked.tools.iter().fold(ToolSet::default(), |tools, declared| {
        let (hub, interrupts) = (hub.clone(), interrupts.clone());
        let shown = move |call: bindery_client::tools::Call| {
            let token = interrupts.of_call(&call.thread_id, &call.call_id);
            let record = token.and_then(|token| interrupts.get(&token));
            if let Some(record) = record {
                hub.show(record.interrupt);
            }
            pending()
        };
        let description = declared.description.clone();
        let tool = Tool::new(description, declared.input_schema.clone(), shown).within(limit);
        tools.with(declared.name.clone(), tool)
    })
}

/// Shows the kinds of questions that the caller answers at once, and leaves the others to the
/// caller's next call.
struct Callbacks {
    kinds: BTreeSet<String>,
    hub: Hub,
}

impl Answerer for Callbacks {
    fn answer(&self, interrupt: Interrupt) -> BoxFuture<'static, Option<Answer>> {
        if !self.leaves(&interrupt) {
            self.hub.show(interrupt);
        }
        Box::pin(pending())
    }

    fn leaves(&self, interrupt: &Interrupt) -> bool {
        !self.kinds.contains(kind(&interrupt.ask))
    }
}

/// The word for a question, as it stands in its JSON.
fn kind(ask: &Ask) -> &'static str {
    match ask {
        Ask::Command { .. } => "command",
        Ask::FileChange { .. } => "fileChange",
        Ask::Permissions { .. } => "permissions",
        Ask::UserInput { .. } => "userInput",
        Ask::Elicitation { .. } => "elicitation",
        Ask::ToolCall { .. } => "toolCall",
    }
}
