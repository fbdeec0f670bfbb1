//! One line, dispatched by its type.

use bindery_core::ids::ThreadId;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::Normaliser;
use crate::ledger::{Account, Hidden};
use crate::line::Envelope;
use crate::wire;

/// Why a line becomes a card.
#[derive(Debug)]
pub(crate) struct Odd {
    /// A more exact tag than the line's own.
    pub(super) tag: Option<String>,
    pub(super) why: String,
}

impl From<String> for Odd {
    fn from(why: String) -> Self {
        Self { tag: None, why }
    }
}

impl From<&str> for Odd {
    fn from(why: &str) -> Self {
        Self { tag: None, why: why.to_owned() }
    }
}

impl Normaliser<'_> {
    pub(super) fn entry(&mut self, line: &Envelope<'_>) -> Result<(), Odd> {
        match (line.kind, line.inner) {
            ("session_meta", _) | ("", "header") => self.meta(read(line)?),
            ("", "state") => self.hide(line, Hidden::Filler)?,
            ("response_item" | "", inner) => self.response_item(line, inner)?,
            ("event_msg", inner) => self.event(line, inner)?,
            ("turn_context", _) => self.context(read(line)?),
            ("compacted", _) => self.compacted(read(line)?),
            ("token_usage_record", _) => self.usage_record(read(line)?),
            ("world_state", _) => self.hide(line, Hidden::WorldState)?,
            ("retained_context", _) => self.hide(line, Hidden::RetainedContext)?,
            ("inter_agent_communication_metadata" | "inter_agent_communication", _) => {
                self.hide(line, Hidden::AgentRouting)?;
            }
            ("dynamic_tools_updated", _) => {
                read::<IgnoredAny>(line)?;
                self.settle(Account::Turn);
            }
            _ => return Err("unknown line type".into()),
        }
        Ok(())
    }

    fn hide(&mut self, line: &Envelope<'_>, reason: Hidden) -> Result<(), Odd> {
        read::<IgnoredAny>(line)?;
        self.settle(Account::Hidden(reason));
        Ok(())
    }

    fn response_item(&mut self, line: &Envelope<'_>, inner: &str) -> Result<(), Odd> {
        match inner {
            "message" => {
                let (message, metadata) = line.payload()?;
                self.message(message, metadata);
            }
            "reasoning" => self.reasoning(read(line)?),
            "function_call" | "custom_tool_call" => self.call(read(line)?),
            "function_call_output" | "custom_tool_call_output" => {
                let (output, _) = line.payload::<wire::CallOutput<'_>>()?;
                match output.call_id.clone() {
                    Some(id) => self.output(&id, output.output),
                    None => self.told(&output),
                }
            }
            "local_shell_call" => self.local_shell(read(line)?),
            "web_search_call" => self.web_search_call(read(line)?),
            "image_generation_call" => self.image_call(read(line)?, super::slot::MODEL),
            "tool_search_call" => self.call(tool_search(read(line)?)),
            "tool_search_output" => {
                let (output, _) = line.payload::<ToolSearchOutput<'_>>()?;
                self.output(&output.call_id, output.tools);
            }
            "ghost_snapshot" => self.hide(line, Hidden::GhostSnapshot)?,
            "agent_message" => self.agent_mail(read(line)?),
            "additional_tools" => self.additional_tools(&read(line)?),
            "compaction" | "compaction_summary" | "context_compaction" => {
                read::<IgnoredAny>(line)?;
                self.compaction_mark(None, super::slot::MODEL, |_| {});
            }
            "configuration_update" => {
                read::<IgnoredAny>(line)?;
                self.settle(Account::Turn);
            }
            _ => return Err("unknown response item".into()),
        }
        Ok(())
    }

    fn event(&mut self, line: &Envelope<'_>, inner: &str) -> Result<(), Odd> {
        match inner {
            "item_completed" => self.item_completed(line)?,
            "token_count" => self.token_count(read(line)?),
            "task_started" | "turn_started" => self.started(read(line)?),
            "task_complete" | "turn_complete" => self.completed(read(line)?),
            "turn_aborted" => self.aborted(read(line)?),
            "user_message" => self.user_event(read(line)?),
            "agent_message" => {
                let event: wire::AgentEvent = read(line)?;
                self.agent_event(event.message, event.phase, None, None);
            }
            "agent_reasoning" | "agent_reasoning_raw_content" => {
                let event: wire::TextEvent = read(line)?;
                self.reasoning_event(event.text, inner == "agent_reasoning_raw_content");
            }
            "exec_command_end" => self.command(read(line)?, None, None, None),
            "patch_apply_end" => self.patch(read(line)?, None, None, None),
            "mcp_tool_call_end" => self.mcp_end(&read(line)?),
            "web_search_end" => self.web_search_end(&read(line)?),
            "image_generation_end" => self.image_call(read(line)?, super::slot::CLIENT),
            "view_image_tool_call" => self.view_image(&read(line)?),
            "context_compacted" => {
                read::<IgnoredAny>(line)?;
                self.compaction_mark(None, super::slot::CLIENT, |_| {});
            }
            "entered_review_mode" => self.review("entered", &read(line)?),
            "exited_review_mode" => self.review("exited", &read(line)?),
            "thread_rolled_back" => {
                let value: Value = read(line)?;
                let count = value.get("num_turns").and_then(Value::as_u64);
                self.rolled_back(count.ok_or("no `num_turns`")?);
            }
            "sub_agent_activity" => self.sub_agent(&read(line)?, None),
            "thread_goal_updated" => self.goal(&read(line)?),
            "error" => self.failed(&read(line)?),
            "thread_name_updated" | "thread_settings_applied" => {
                read::<IgnoredAny>(line)?;
                self.settle(Account::Turn);
            }
            "undo_completed" | "guardian_assessment" => {
                let value: Value = read(line)?;
                self.notice(&inner.replace('_', "-"), String::new(), value, None);
            }
            _ => return Err("unknown event".into()),
        }
        Ok(())
    }

    fn meta(&mut self, meta: wire::Meta) {
        if self.has_head {
            return self.settle(Account::Hidden(Hidden::CopiedHead));
        }
        self.settle(Account::Turn);
        if self.inherited {
            return;
        }
        self.has_head = true;
        self.own_start = meta.own_start();
        for tool in meta.dynamic_tools.iter().flatten() {
            let name = tool.get("name").and_then(Value::as_str);
            self.clients.extend(name.map(str::to_owned));
        }
        self.head.id = meta.id.or(meta.session_id).map(ThreadId::new);
        self.head.version = meta.cli_version;
        self.head.cwd = meta.cwd;
        self.head.forked_from = meta.forked_from_id.map(ThreadId::new);
        if let Some(parent) = self.head.forked_from.clone() {
            let data = json!({ "from": parent, "ordinal": meta.forked_from_ordinal_exclusive });
            let mut slot = self.notice_slot("fork", format!("forked from {parent}"), data);
            // The line itself is the file's head.
            slot.item.origin.lines.clear();
            self.early_slots.push(slot);
        }
    }
}

pub(super) fn read<'a, T: Deserialize<'a>>(line: &Envelope<'a>) -> Result<T, Odd> {
    Ok(line.payload()?.0)
}

#[derive(Deserialize)]
struct ToolSearch {
    call_id: String,
    #[serde(default)]
    arguments: Value,
}

#[derive(Deserialize)]
struct ToolSearchOutput<'a> {
    call_id: String,
    #[serde(borrow)]
    tools: &'a serde_json::value::RawValue,
}

fn tool_search(search: ToolSearch) -> wire::Call {
    wire::Call {
        name: "tool_search".to_owned(),
        namespace: None,
        call_id: search.call_id,
        arguments: Some(search.arguments.to_string()),
        input: None,
        passthrough: None,
    }
}
