//! Tools of MCP servers: asked for where they must be, called, told.

use std::sync::Arc;
use std::time::Instant;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rmcp::model::CallToolResult;
use serde_json::{Map, Value, json};

use super::{Call, Cx, Ended, Tool, approve};
use crate::item::{Content, Output};
use crate::mcp::{Called, Offered, Server, Servers, Speaker};
use crate::model::ToolSpec;
use crate::thread::Approval;
use crate::truncate::{Budget, cut};
use crate::turn::voice::Begun;

/// Bytes of one text of a result that are told and kept; models get less.
const KEPT: usize = 1 << 20;

/// A tool of a server's.
struct McpTool {
    servers: Arc<Servers>,
    server: Arc<Server>,
    offered: Offered,
}

/// Whether a call may be made.
enum Permit {
    Yes,
    No(String),
    /// No, and the turn is to end.
    Cancel,
}

/// Adds the tools of running servers, each server's as a group.
pub(super) fn add(
    servers: &Arc<Servers>,
    running: &[Arc<Server>],
    tools: &mut Vec<Arc<dyn Tool>>,
    groups: &mut Vec<ToolSpec>,
) {
    for server in running.iter().filter(|server| !server.tools.is_empty()) {
        groups.push(ToolSpec::Namespace {
            name: server.namespace.clone(),
            description: format!("Tools of the MCP server `{}`.", server.name),
            tools: server.tools.iter().map(spec).collect(),
        });
        for offered in &server.tools {
            let (servers, server) = (Arc::clone(servers), Arc::clone(server));
            tools.push(Arc::new(McpTool { servers, server, offered: offered.clone() }));
        }
    }
}

fn spec(offered: &Offered) -> ToolSpec {
    let mut parameters = (*offered.tool.input_schema).clone();
    // A schema without properties is refused by some servers of models.
    parameters.entry("type").or_insert_with(|| json!("object"));
    parameters.entry("properties").or_insert_with(|| json!({}));
    ToolSpec::Function {
        name: offered.name.clone(),
        description: offered.tool.description.as_deref().unwrap_or_default().to_owned(),
        parameters: Value::Object(parameters),
    }
}

impl Tool for McpTool {
    fn name(&self) -> &str {
        &self.offered.name
    }

    fn namespace(&self) -> Option<&str> {
        Some(&self.server.namespace)
    }

    fn spec(&self) -> Option<ToolSpec> {
        None
    }

    fn call<'a>(&'a self, call: Call, cx: &'a Cx) -> BoxFuture<'a, Ended> {
        async move {
            let arguments: Map<String, Value> = match call.arguments() {
                Ok(arguments) => arguments,
                Err(ended) => return ended,
            };
            let begun = cx.voice.begin(self.item(&call.id, &arguments));
            match self.permit(&arguments, cx).await {
                Permit::Yes => {}
                Permit::No(why) => return end(Err(why), begun, Instant::now(), cx),
                Permit::Cancel => {
                    end(Err("the user stopped the turn".to_owned()), begun, Instant::now(), cx);
                    return Ended::Cancelled;
                }
            }
            let at = Instant::now();
            // A server's own question is one too.
            let asks = cx.standing.approval.lets_servers_ask();
            let speaker = Speaker { voice: &cx.voice, asks, item_id: &call.id };
            let called = self.server.call(&self.offered.tool, arguments, speaker);
            let called = called.await;
            end(called, begun, at, cx)
        }
        .boxed()
    }
}

impl McpTool {
    fn item(&self, id: &str, arguments: &Map<String, Value>) -> Value {
        json!({
            "type": "mcpToolCall",
            "id": id,
            "server": self.server.name,
            "tool": self.offered.tool.name,
            "status": "inProgress",
            "arguments": arguments,
            "appContext": null,
            "mcpAppUi": null,
            "pluginId": null,
            "readOnlyHint": self.hint(|hints| hints.read_only_hint),
            "result": null,
            "error": null,
            "durationMs": null,
        })
    }

    fn hint(&self, of: impl Fn(&rmcp::model::ToolAnnotations) -> Option<bool>) -> Option<bool> {
        self.offered.tool.annotations.as_ref().and_then(of)
    }

    /// A tool that its server calls harmless; the person chose the server.
    fn only_reads(&self) -> bool {
        self.hint(|hints| hints.read_only_hint) == Some(true)
            && self.hint(|hints| hints.destructive_hint) != Some(true)
    }

    async fn permit(&self, arguments: &Map<String, Value>, cx: &Cx) -> Permit {
        let tool = &self.offered.tool.name;
        if self.servers.is_allowed(&self.server.name, tool) {
            return Permit::Yes;
        }
        match cx.standing.approval {
            Approval::Untrusted => self.ask(arguments, cx).await,
            _ if self.only_reads() => Permit::Yes,
            Approval::Never if cx.standing.sandbox.is_full_access() => Permit::Yes,
            Approval::Never => Permit::No(format!(
                "`{tool}` was not called: it needs an approval, and the approval policy is `never`"
            )),
            // By kinds of question this one is none: only those of servers are, as with Codex.
            Approval::OnRequest | Approval::Granular(_) => self.ask(arguments, cx).await,
        }
    }

    async fn ask(&self, arguments: &Map<String, Value>, cx: &Cx) -> Permit {
        let (server, tool) = (&self.server.name, &self.offered.tool.name);
        let shown = arguments.iter();
        let shown = shown.map(|(name, value)| {
            json!({ "name": name, "value": value,
            "display_name": name })
        });
        let params = json!({
            "serverName": server,
            "mode": "form",
            "_meta": {
                "codex_approval_kind": "mcp_tool_call",
                "persist": ["session"],
                "tool_description": self.offered.tool.description,
                "tool_params": arguments,
                "tool_params_display": shown.collect::<Vec<_>>(),
            },
            "message": format!("Allow the {server} MCP server to run tool \"{tool}\"?"),
            "requestedSchema": { "type": "object", "properties": {} },
        });
        let asked = approve::ask_reviewer("mcpServer/elicitation/request", params, cx);
        let answer = match asked.await {
            Ok(answer) => answer,
            Err(refusal) => return Permit::No(format!("approval request failed: {}", refusal.why)),
        };
        match answer["action"].as_str() {
            Some("accept") => {
                if answer["_meta"]["persist"] == "session" {
                    self.servers.allow(server, tool);
                }
                Permit::Yes
            }
            Some("cancel") => Permit::Cancel,
            _ => Permit::No("rejected by user".to_owned()),
        }
    }
}

fn end(called: Called, mut begun: Begun, at: Instant, cx: &Cx) -> Ended {
    let took = at.elapsed();
    let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    begun.item["durationMs"] = json!(millis);
    let failed = called.as_ref().map_or(true, |result| result.is_error == Some(true));
    begun.item["status"] = json!(if failed { "failed" } else { "completed" });
    let output = match called {
        Ok(result) => {
            let content: Vec<Value> = result.content.iter().filter_map(value_of).collect();
            begun.item["result"] = told(&result, &content);
            output(&result, &content, took.as_secs_f64())
        }
        Err(why) => {
            begun.item["error"] = json!({ "message": why });
            Output::Text(why)
        }
    };
    cx.voice.complete(begun);
    Ended::Output(output)
}

fn value_of(block: &rmcp::model::ContentBlock) -> Option<Value> {
    serde_json::to_value(block).ok()
}

/// The result as clients get it: whole, unless nobody would want to keep it.
fn told(result: &CallToolResult, content: &[Value]) -> Value {
    let mut content = content.to_vec();
    for piece in &mut content {
        if let Some(Value::String(text)) = piece.get_mut("text") {
            *text = cut(text, Budget::Bytes(KEPT));
        }
    }
    let structured = result.structured_content.as_ref().map(|value| {
        let text = value.to_string();
        if text.len() > KEPT { json!(cut(&text, Budget::Bytes(KEPT))) } else { value.clone() }
    });
    json!({ "content": content, "structuredContent": structured, "_meta": result.meta })
}

/// The result as the model gets it: what is structured, else texts and pictures.
fn output(result: &CallToolResult, content: &[Value], seconds: f64) -> Output {
    let head = format!("Wall time: {seconds:.4} seconds\nOutput:\n");
    if let Some(value) = result.structured_content.as_ref().filter(|value| !value.is_null()) {
        return Output::Text(format!("{head}{value}"));
    }
    if content.iter().all(|piece| piece["type"] == "text") {
        let texts: Vec<&str> = content.iter().filter_map(|piece| piece["text"].as_str()).collect();
        return Output::Text(format!("{head}{}", texts.join("\n")));
    }
    let pieces = content.iter().map(piece_of);
    let head = Content::InputText { text: head };
    Output::Content(std::iter::once(head).chain(pieces).map(Into::into).collect())
}

fn piece_of(piece: &Value) -> Content {
    match (piece["type"].as_str(), piece["data"].as_str(), piece["mimeType"].as_str()) {
        (Some("image"), Some(data), Some(kind)) => {
            Content::InputImage { image_url: format!("data:{kind};base64,{data}"), detail: None }
        }
        (Some("text"), ..) => {
            Content::InputText { text: piece["text"].as_str().unwrap_or_default().to_owned() }
        }
        // A kind that models are not sent, such as sound or a link: as it came.
        _ => Content::InputText { text: piece.to_string() },
    }
}
