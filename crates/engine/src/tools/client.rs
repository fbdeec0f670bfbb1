//! Tools of the client: it declares them, it runs them, we pass the calls on.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, Cx, Ended, Tool};
use crate::item::{Content, Output};
use crate::model::ToolSpec;
use crate::thread::DynamicTool;
use crate::turn::voice::Begun;

/// A tool of the client's.
struct ClientTool {
    name: String,
    namespace: Option<String>,
    spec: Option<ToolSpec>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reply {
    content_items: Vec<Value>,
    success: bool,
}

/// Adds a declared tool or group.
pub(super) fn add(
    declared: &DynamicTool,
    tools: &mut Vec<Arc<dyn Tool>>,
    groups: &mut Vec<ToolSpec>,
) {
    match declared {
        DynamicTool::Function { name, .. } => {
            let taken = tools.iter().any(|tool| tool.name() == name && tool.namespace().is_none());
            if taken {
                tracing::warn!(name, "the client's tool has the name of another; it is left out");
                return;
            }
            let spec = function(declared);
            tools.push(Arc::new(ClientTool { name: name.clone(), namespace: None, spec }));
        }
        DynamicTool::Namespace { name: group, description, tools: inner } => {
            let specs = inner.iter().filter_map(function).collect();
            for tool in inner {
                if let DynamicTool::Function { name, .. } = tool {
                    let (name, namespace) = (name.clone(), Some(group.clone()));
                    tools.push(Arc::new(ClientTool { name, namespace, spec: None }));
                }
            }
            groups.push(ToolSpec::Namespace {
                name: group.clone(),
                description: description.clone(),
                tools: specs,
            });
        }
    }
}

fn function(tool: &DynamicTool) -> Option<ToolSpec> {
    match tool {
        DynamicTool::Function { name, description, input_schema } => Some(ToolSpec::Function {
            name: name.clone(),
            description: description.clone(),
            parameters: input_schema.clone(),
        }),
        DynamicTool::Namespace { .. } => None,
    }
}

impl Tool for ClientTool {
    fn name(&self) -> &str {
        &self.name
    }

    fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    fn spec(&self) -> Option<ToolSpec> {
        self.spec.clone()
    }

    /// The client decides what its tools do to each other.
    fn parallel(&self) -> bool {
        true
    }

    fn call<'a>(&'a self, call: Call, cx: &'a Cx) -> BoxFuture<'a, Ended> {
        async move {
            let arguments: Value = match call.arguments() {
                Ok(arguments) => arguments,
                Err(ended) => return ended,
            };
            let begun = cx.voice.begin(json!({
                "type": "dynamicToolCall",
                "id": call.id,
                "namespace": self.namespace,
                "tool": self.name,
                "arguments": arguments,
                "status": "inProgress",
                "contentItems": null,
                "success": null,
                "durationMs": null,
            }));
            let params = json!({
                "callId": call.id,
                "namespace": self.namespace,
                "tool": self.name,
                "arguments": arguments,
            });
            let reply = match cx.voice.ask("item/tool/call", params, None).await {
                Ok(reply) => Reply::deserialize(&reply).map_err(|err| err.to_string()),
                Err(refusal) => Err(refusal.why),
            };
            end(reply, begun, cx)
        }
        .boxed()
    }
}

fn end(reply: Result<Reply, String>, mut begun: Begun, cx: &Cx) -> Ended {
    begun.item["durationMs"] = json!((cx.voice.now_ms() - begun.started_ms).max(0));
    let (output, success) = match reply {
        Ok(Reply { content_items, success }) => {
            let output = output_of(&content_items);
            begun.item["contentItems"] = Value::Array(content_items);
            (output, success)
        }
        Err(why) => (Output::Text(format!("dynamic tool request failed: {why}")), false),
    };
    begun.item["success"] = json!(success);
    begun.item["status"] = json!(if success { "completed" } else { "failed" });
    cx.voice.complete(begun);
    Ended::Output(output)
}

/// One text goes as it is, anything else as a list.
fn output_of(items: &[Value]) -> Output {
    if let [only] = items
        && let Some(text) = text_of(only)
    {
        return Output::Text(text.to_owned());
    }
    let content = items.iter().map(|item| match (text_of(item), item["imageUrl"].as_str()) {
        (Some(text), _) => Content::InputText { text: text.to_owned() },
        (None, Some(url)) => Content::InputImage { image_url: url.to_owned(), detail: None },
        // A kind that models are not sent, such as sound: the model is told what it was.
        (None, None) => Content::InputText { text: format!("[a piece of kind {}]", item["type"]) },
    });
    Output::Content(content.map(Into::into).collect())
}

fn text_of(item: &Value) -> Option<&str> {
    item.get("text").and_then(Value::as_str)
}
