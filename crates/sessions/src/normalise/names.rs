//! Tool names: what each of them is, whatever a version called it.

use bindery_core::item::{Tool, ToolSort};

/// The sort of a tool by the name the model called it.
#[rustfmt::skip]
pub fn sort_of(name: &str, namespace: Option<&str>) -> ToolSort {
    let within = |prefix: &str| namespace.is_some_and(|namespace| namespace.starts_with(prefix));
    if within("mcp__") || name.starts_with("mcp__") {
        return ToolSort::Mcp;
    }
    if within("multi_agent") || within("collaboration") {
        return ToolSort::Agent;
    }
    match name {
        "shell" | "shell_command" | "exec_command" | "local_shell" | "container.exec"
        | "unified_exec" | "write_stdin" | "bash"                            => ToolSort::Bash,
        "apply_patch"                                                        => ToolSort::Edit,
        "web_search" | "web_search_call" | "web_search_preview"
        | "search_query" | "web__run" | "web.run"                            => ToolSort::WebSearch,
        "update_plan"                                                        => ToolSort::Plan,
        "view_image" | "image_generation" | "image_generation_call"          => ToolSort::Image,
        "spawn_agent" | "send_input" | "resume_agent" | "wait_agent" | "close_agent"
        | "send_message" | "followup_task" | "interrupt_agent" | "list_agents" => ToolSort::Agent,
        "list_mcp_resources" | "list_mcp_resource_templates" | "read_mcp_resource" => ToolSort::Mcp,
        "request_user_input" | "request_permissions"                         => ToolSort::Question,
        // 0.42 and older name an MCP tool `server__tool`.
        name if name.contains("__")                                          => ToolSort::Mcp,
        _                                                                    => ToolSort::Other,
    }
}

/// The name of a tool for renderers that know one name for each sort.
pub fn canonical_name(tool: &Tool) -> String {
    match tool.sort {
        ToolSort::Bash if tool.name == "write_stdin" => "WriteStdin".to_owned(),
        ToolSort::Bash => "Bash".to_owned(),
        ToolSort::Edit => "Edit".to_owned(),
        ToolSort::WebSearch => "WebSearch".to_owned(),
        ToolSort::Plan => "UpdatePlan".to_owned(),
        ToolSort::Image if tool.name.contains("generation") => "GenerateImage".to_owned(),
        ToolSort::Image => "ViewImage".to_owned(),
        ToolSort::Agent => "Task".to_owned(),
        ToolSort::Question => "AskUserQuestion".to_owned(),
        ToolSort::Mcp => match tool.name.strip_prefix("mcp:").and_then(|n| n.split_once('/')) {
            Some((server, tool)) => format!("mcp__{server}__{tool}"),
            None => tool.name.clone(),
        },
        ToolSort::Client | ToolSort::Other => tool.name.clone(),
    }
}

/// `mcp:server/tool`, from any spelling of an MCP tool.
pub(super) fn mcp_name(name: &str, namespace: Option<&str>) -> Option<String> {
    if let Some(server) = namespace.and_then(|namespace| namespace.strip_prefix("mcp__")) {
        return Some(format!("mcp:{}/{name}", server.trim_end_matches("__")));
    }
    let (server, tool) = name.strip_prefix("mcp__").unwrap_or(name).split_once("__")?;
    Some(format!("mcp:{server}/{tool}"))
}

/// `snake_case` → `camelCase`.
pub(super) fn camel(word: &str) -> String {
    let mut camel = String::with_capacity(word.len());
    let mut upper = false;
    for letter in word.chars() {
        match letter {
            '_' => upper = true,
            letter if std::mem::take(&mut upper) => camel.extend(letter.to_uppercase()),
            letter => camel.push(letter),
        }
    }
    camel
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_spellings_of_an_mcp_tool_are_one() {
        #[rustfmt::skip]
        let table = [
            ("demo__echo",      None,                "mcp:demo/echo"),
            ("mcp__demo__echo", None,                "mcp:demo/echo"),
            ("echo",            Some("mcp__demo__"), "mcp:demo/echo"),
            ("echo",            Some("mcp__demo"),   "mcp:demo/echo"),
        ];
        for (name, namespace, want) in table {
            assert_eq!(mcp_name(name, namespace).as_deref(), Some(want), "{name} {namespace:?}");
            assert_eq!(sort_of(name, namespace), ToolSort::Mcp);
        }
    }
}
