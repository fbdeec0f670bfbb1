//! Parts that were told → the mapper that told them, for a turn that another process goes on with.
//!
//! What the mapper must know again: what is open, what is complete, what was numbered. Codex tells
//! finished items again to whoever asks, so a mapper that knows what it said tells only the rest.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::runs::Channel;
use super::{TurnContext, TurnMapper};
use crate::ids::{ItemId, PartId, ThreadId, TurnId};
use crate::part::{Part, Run};
use crate::spec::{Metadata, codex_of};
use crate::usage::Unified;

impl TurnMapper {
    /// The mapper of a turn that has told these parts already.
    pub fn recall(context: TurnContext, told: &[Part]) -> Self {
        let mut mapper = Self::new(context);
        let mut agents: BTreeMap<ThreadId, Vec<Part>> = BTreeMap::new();
        for part in told {
            match agent_part(part) {
                Some((thread, part)) => agents.entry(thread).or_default().push(part),
                None => mapper.remember(part),
            }
        }
        for (thread, told) in agents {
            let turn = told.iter().rev().find_map(turn_of);
            let mapper_of = |turn| Self::recall(TurnContext::new(thread.clone(), turn), &told);
            mapper.agents.put(&thread, turn.map(mapper_of));
        }
        mapper
    }

    fn remember(&mut self, part: &Part) {
        match part {
            Part::StreamStart { .. } => self.started = true,
            Part::Finish { finish_reason, .. } => {
                self.started = false;
                self.finished = finish_reason.unified != Unified::ToolCalls;
            }
            Part::TextStart(run) | Part::ReasoningStart(run) => self.remember_start(run),
            Part::TextDelta(delta) | Part::ReasoningDelta(delta) => {
                self.runs.remember_delta(&delta.id, &delta.delta);
            }
            Part::TextEnd { id, .. } => self.runs.remember_end(id),
            Part::ReasoningEnd(run) => self.runs.remember_end(&run.id),
            Part::ToolInputStart(start) => self.tools.remember_start(&start.id, &start.tool_name),
            Part::ToolCall(call) => {
                let number = call.tool_call_id.as_str().strip_prefix("plan-");
                let number = number.and_then(|number| number.parse().ok());
                self.plans = self.plans.max(number.unwrap_or(0));
                self.tools.remember_call(call);
                let input: Value = serde_json::from_str(&call.input).unwrap_or_default();
                self.remember_agents(&input["threads"]);
            }
            Part::ToolResult(result) => {
                self.tools.remember_result(result);
                // Who was called may be known only afterwards.
                self.remember_agents(&result.result["receiverThreadIds"]);
            }
            Part::Custom { kind, provider_metadata } => {
                self.remember_custom(kind, codex_of(provider_metadata.as_ref()));
            }
            Part::Error { .. } => self.failed = true,
            _ => {}
        }
    }

    fn remember_start(&mut self, run: &Run) {
        let details = codex_of(run.provider_metadata.as_ref());
        let Some(item) = text(details, "itemId") else { return };
        let index = || index_of(&run.id);
        let channel = match (text(details, "form"), text(details, "phase")) {
            (Some("summary"), _) => Channel::Summary(index()),
            (Some(_), _) => Channel::Raw(index()),
            (None, Some("plan")) => Channel::Plan,
            (None, _) => Channel::Message,
        };
        self.runs.remember_start(&ItemId::new(item), channel, &run.id);
    }

    fn remember_agents(&mut self, threads: &Value) {
        let threads = threads.as_array().into_iter().flatten();
        threads.filter_map(Value::as_str).for_each(|thread| self.agents.learn(thread));
    }

    fn remember_custom(&mut self, kind: &str, details: Option<&Map<String, Value>>) {
        match kind {
            "codex.user-message" => self.asked = true,
            "codex.retry" => self.runs.abandon(),
            "codex.diff" => self.last_diff = text(details, "diff").map(str::to_owned),
            "codex.subagent" => {
                text(details, "agentThreadId").into_iter().for_each(|t| self.agents.learn(t));
            }
            _ => {}
        }
    }
}

/// The items that these parts tell to their end.
pub fn finished_items(told: &[Part]) -> Vec<ItemId> {
    told.iter().filter_map(finished_item).collect()
}

fn finished_item(part: &Part) -> Option<ItemId> {
    let named = |metadata: &Option<Metadata>| {
        let details = codex_of(metadata.as_ref())?;
        let cut = details.contains_key("discarded") || details.contains_key("incomplete");
        let item = details.get("itemId")?.as_str().filter(|_| !cut)?;
        Some(ItemId::new(item))
    };
    match part {
        Part::TextEnd { provider_metadata, .. } => named(provider_metadata),
        // An item of a sub-agent is none of the turn's own.
        Part::Custom { kind, provider_metadata } if kind != "codex.subagent" => {
            named(provider_metadata)
        }
        Part::Custom { provider_metadata, .. } => {
            let wrapped = codex_of(provider_metadata.as_ref())?.contains_key("part");
            if wrapped { None } else { named(provider_metadata) }
        }
        Part::ToolResult(result) if !result.preliminary => {
            Some(ItemId::new(result.tool_call_id.as_str()))
        }
        _ => None,
    }
}

/// A part of a sub-agent, out of its wrapping.
fn agent_part(part: &Part) -> Option<(ThreadId, Part)> {
    let Part::Custom { kind, provider_metadata } = part else { return None };
    let details = codex_of(provider_metadata.as_ref()).filter(|_| kind == "codex.subagent")?;
    let thread = details.get("agentThreadId")?.as_str()?;
    let part = serde_json::from_value(details.get("part")?.clone()).ok()?;
    Some((ThreadId::new(thread), part))
}

fn turn_of(part: &Part) -> Option<TurnId> {
    match part {
        Part::ResponseMetadata { id: Some(id), .. } => Some(TurnId::new(id.as_str())),
        _ => None,
    }
}

fn text<'a>(details: Option<&'a Map<String, Value>>, key: &str) -> Option<&'a str> {
    details?.get(key)?.as_str()
}

/// `item:summary:3`, `item:raw:0~1` → the number.
fn index_of(id: &PartId) -> u32 {
    let last = id.as_str().rsplit(':').next().unwrap_or_default();
    last.split('~').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}
