//! What session files of the versions we know hold: for each tag the fields a reader cannot do
//! without, and all others that were seen or are known from the source.

/// Tag, needed fields, other fields.
pub(crate) type Row = (&'static str, &'static [&'static str], &'static [&'static str]);

/// The row of a tag.
pub(crate) fn row(tag: &str) -> Option<&'static Row> {
    let place = ROWS.binary_search_by(|(known, ..)| (*known).cmp(tag)).ok()?;
    ROWS.get(place)
}

#[rustfmt::skip]
const ROWS: &[Row] = &[
    ("bare/custom_tool_call", &["type", "call_id", "name"], &["id", "status", "input"]),
    ("bare/custom_tool_call_output", &["type", "call_id", "output"], &[]),
    ("bare/function_call", &["type", "name", "call_id"], &["id", "arguments"]),
    ("bare/function_call_output", &["type", "call_id", "output"], &[]),
    ("bare/header", &[], &["id", "timestamp", "instructions", "git"]),
    ("bare/local_shell_call", &["type", "call_id", "action"], &["id", "status"]),
    ("bare/message", &["type", "role", "content"], &["id"]),
    ("bare/reasoning", &["type"], &["summary", "id", "content", "encrypted_content"]),
    ("bare/state", &["record_type"], &[]),
    ("compacted", &["message"], &[
        "replacement_history", "replacement_history_metadata", "retained_context",
        "window_number", "first_window_id", "previous_window_id", "window_id",
        "compaction_response_id", "latest_token_usage_record", "resume_metadata",
        "guardian_history"]),
    ("dynamic_tools_updated", &[], &[]),
    ("event_msg/agent_message", &["type", "message"], &["phase", "memory_citation"]),
    ("event_msg/agent_reasoning", &["type", "text"], &[]),
    ("event_msg/agent_reasoning_raw_content", &["type", "text"], &[]),
    ("event_msg/context_compacted", &["type"], &[]),
    ("event_msg/entered_review_mode", &["type"], &[
        "target", "user_facing_hint", "turn_id", "item_id"]),
    ("event_msg/error", &["type", "message"], &["codex_error_info"]),
    ("event_msg/exec_command_end", &["type", "call_id", "command"], &[
        "process_id", "turn_id", "cwd", "parsed_cmd", "source", "stdout", "stderr",
        "aggregated_output", "exit_code", "duration", "formatted_output", "status"]),
    ("event_msg/exited_review_mode", &["type"], &["review_output", "turn_id", "item_id"]),
    ("event_msg/guardian_assessment", &["type"], &[]),
    ("event_msg/image_generation_end", &["type", "call_id"], &[
        "status", "revised_prompt", "result", "saved_path"]),
    ("event_msg/item_completed", &["type", "item"], &[
        "thread_id", "turn_id", "started_at_ms", "completed_at_ms"]),
    ("event_msg/item_completed/AgentMessage", &["type", "id", "content"], &["phase"]),
    ("event_msg/item_completed/CollabAgentToolCall", &["type", "id"], &[
        "tool", "status", "sender_thread_id", "receiver_thread_ids", "receiver_agents", "prompt",
        "model", "reasoning_effort", "agents_states"]),
    ("event_msg/item_completed/CommandExecution", &["type", "id", "command"], &[
        "process_id", "cwd", "parsed_cmd", "source", "status", "aggregated_output", "exit_code",
        "duration", "stdout", "stderr", "formatted_output"]),
    ("event_msg/item_completed/ContextCompaction", &["type", "id"], &[]),
    ("event_msg/item_completed/DynamicToolCall", &["type", "id"], &[
        "tool", "arguments", "status", "content_items", "success", "duration"]),
    ("event_msg/item_completed/EnteredReviewMode", &["type", "id"], &[
        "target", "user_facing_hint"]),
    ("event_msg/item_completed/ExitedReviewMode", &["type", "id"], &["review_output"]),
    ("event_msg/item_completed/Extension", &["type", "id"], &[]),
    ("event_msg/item_completed/FileChange", &["type", "id", "changes"], &[
        "status", "stdout", "stderr"]),
    ("event_msg/item_completed/HookPrompt", &["type", "id"], &["fragments"]),
    ("event_msg/item_completed/ImageGeneration", &["type", "id"], &[
        "status", "revised_prompt", "result", "saved_path", "failure"]),
    ("event_msg/item_completed/ImageView", &["type", "id"], &["path"]),
    ("event_msg/item_completed/McpToolCall", &["type", "id"], &[
        "server", "tool", "arguments", "status", "result", "duration"]),
    ("event_msg/item_completed/Plan", &["type", "id", "text"], &[]),
    ("event_msg/item_completed/Reasoning", &["type", "id"], &["summary_text", "raw_content"]),
    ("event_msg/item_completed/Sleep", &["type", "id"], &["duration_ms"]),
    ("event_msg/item_completed/SubAgentActivity", &["type", "id"], &[
        "model", "reasoning_effort", "kind", "agent_thread_id", "agent_path"]),
    ("event_msg/item_completed/UserMessage", &["type", "id", "content"], &[]),
    ("event_msg/item_completed/WebSearch", &["type", "id", "action"], &["query"]),
    ("event_msg/mcp_tool_call_end", &["type", "call_id"], &[
        "turn_id", "invocation", "duration", "result"]),
    ("event_msg/patch_apply_end", &["type", "call_id", "changes"], &[
        "turn_id", "stdout", "stderr", "success", "status"]),
    ("event_msg/sub_agent_activity", &["type"], &[
        "event_id", "occurred_at_ms", "agent_thread_id", "agent_path", "kind"]),
    ("event_msg/task_complete", &["type"], &[
        "root_turn_id", "turn_id", "last_agent_message", "error", "started_at", "completed_at",
        "duration_ms", "time_to_first_token_ms"]),
    ("event_msg/task_started", &["type"], &[
        "turn_attribution", "turn_id", "root_turn_id", "started_at", "model_context_window",
        "collaboration_mode_kind"]),
    ("event_msg/thread_goal_updated", &["type"], &["threadId", "goal"]),
    ("event_msg/thread_name_updated", &["type"], &["thread_id", "thread_name"]),
    ("event_msg/thread_rolled_back", &["type", "num_turns"], &[]),
    ("event_msg/thread_settings_applied", &["type"], &["thread_id", "thread_settings"]),
    ("event_msg/token_count", &["type"], &["info", "rate_limits"]),
    ("event_msg/turn_aborted", &["type"], &[
        "root_turn_id", "turn_id", "reason", "started_at", "completed_at", "duration_ms"]),
    ("event_msg/turn_complete", &["type"], &[
        "turn_id", "last_agent_message", "error", "duration_ms"]),
    ("event_msg/turn_started", &["type"], &["turn_id", "model_context_window", "started_at"]),
    ("event_msg/undo_completed", &["type"], &["success", "message"]),
    ("event_msg/user_message", &["type", "message"], &[
        "images", "local_images", "audio", "local_audio", "text_elements", "kind"]),
    ("event_msg/view_image_tool_call", &["type", "call_id"], &["path"]),
    ("event_msg/web_search_end", &["type", "call_id", "action"], &["query"]),
    ("inter_agent_communication", &[], &[]),
    ("inter_agent_communication_metadata", &[], &["trigger_turn"]),
    ("response_item/additional_tools", &["type", "role"], &["id", "tools"]),
    ("response_item/agent_message", &["type", "content"], &[
        "id", "author", "recipient", "internal_chat_message_metadata_passthrough"]),
    ("response_item/compaction", &["type"], &["id", "encrypted_content"]),
    ("response_item/compaction_summary", &["type"], &["id", "encrypted_content"]),
    ("response_item/configuration_update", &["type"], &[]),
    ("response_item/context_compaction", &["type"], &["id", "encrypted_content"]),
    ("response_item/custom_tool_call", &["type", "call_id", "name"], &[
        "id", "status", "input", "internal_chat_message_metadata_passthrough"]),
    ("response_item/custom_tool_call_output", &["type", "call_id", "output"], &[
        "id", "internal_chat_message_metadata_passthrough"]),
    ("response_item/function_call", &["type", "name", "call_id"], &[
        "status", "id", "arguments", "internal_chat_message_metadata_passthrough", "namespace"]),
    ("response_item/function_call_output", &["type", "call_id", "output"], &[
        "id", "internal_chat_message_metadata_passthrough"]),
    ("response_item/ghost_snapshot", &["type"], &["ghost_commit"]),
    ("response_item/image_generation_call", &["type"], &["id",
        "status", "revised_prompt", "result", "internal_chat_message_metadata_passthrough"]),
    ("response_item/local_shell_call", &["type", "call_id", "action"], &["status"]),
    ("response_item/message", &["type", "role", "content"], &[
        "id", "internal_chat_message_metadata_passthrough", "status", "phase"]),
    ("response_item/reasoning", &["type"], &["summary", "content",
        "id", "encrypted_content", "internal_chat_message_metadata_passthrough"]),
    ("response_item/tool_search_call", &["type"], &[
        "id", "call_id", "status", "execution", "arguments",
        "internal_chat_message_metadata_passthrough"]),
    ("response_item/tool_search_output", &["type"], &[
        "id", "call_id", "status", "execution", "tools",
        "internal_chat_message_metadata_passthrough"]),
    ("response_item/web_search_call", &["type"], &["action",
        "id", "status", "internal_chat_message_metadata_passthrough"]),
    ("retained_context/verified_answer", &["type", "call_id"], &[
        "turn_id", "questions", "acceptance_order"]),
    ("session_meta", &["id"], &[
        "session_id", "timestamp", "cwd", "runtime_workspace_roots", "originator", "cli_version",
        "source", "thread_source", "model_provider", "base_instructions", "history_mode",
        "context_window", "git", "forked_from_id", "parent_thread_id", "agent_nickname",
        "agent_path", "subagent_history_start_ordinal", "multi_agent_version", "dynamic_tools",
        "forked_from_ordinal_exclusive", "history_base", "agent_role", "instructions"]),
    ("token_usage_record", &["response_id", "usage"], &[
        "thread_id", "turn_id", "session_id", "root_turn_id", "turn_token_usage",
        "thread_token_usage"]),
    ("turn_context", &["summary"], &[
        "turn_id", "root_turn_id", "disabled_plugin_ids", "cwd", "approval_policy",
        "approvals_reviewer", "sandbox_policy", "permission_profile", "model",
        "collaboration_mode", "multi_agent_version", "realtime_active", "comp_hash",
        "active_permission_profile", "file_system_sandbox_policy", "effort", "current_date",
        "timezone", "personality", "user_instructions", "truncation_policy",
        "final_output_json_schema", "developer_instructions", "workspace_roots",
        "multi_agent_mode"]),
    ("world_state", &["state"], &["full"]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_order() {
        assert!(ROWS.is_sorted_by(|a, b| a.0 < b.0));
        assert!(row("session_meta").is_some() && row("moon").is_none());
    }
}
