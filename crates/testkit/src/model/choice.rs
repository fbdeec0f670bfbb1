//! Which reply answers a request.

use serde_json::Value;

use super::script::{Reply, Script, Times, When};
use super::server::Request;

/// A script and how much of it is left.
pub(super) struct Choice {
    replies: Vec<Reply>,
}

impl Choice {
    pub(super) fn new(script: Script) -> Self {
        Self { replies: script.replies }
    }

    /// Takes the reply for this request, if one applies.
    pub(super) fn take(&mut self, request: &Request) -> Option<Reply> {
        let reply = self
            .replies
            .iter_mut()
            .find(|reply| reply.times != Times::Count(0) && applies(&reply.when, request))?;
        if let Times::Count(left) = &mut reply.times {
            *left -= 1;
        }
        Some(reply.clone())
    }

    /// Adds replies behind those there are.
    pub(super) fn extend(&mut self, replies: Vec<Reply>) {
        self.replies.extend(replies);
    }
}

/// The text of the last user message of a request body.
pub fn last_user_text(body: &Value) -> String {
    let message = items(body).rfind(|item| item["role"] == "user");
    message.map(text_of).unwrap_or_default()
}

fn applies(when: &When, request: &Request) -> bool {
    let body = &request.body;
    let wanted =
        |text: &Option<String>, holds: &dyn Fn(&str) -> bool| text.as_deref().is_none_or(holds);
    wanted(&when.user, &|text| last_user_text(body).contains(text))
        && wanted(&when.input, &|text| history(body).to_string().contains(text))
        && wanted(&when.output_of, &|id| items(body).any(|item| is_output_of(item, id)))
        && wanted(&when.model, &|model| body["model"] == model)
        && when.after_tool.is_none_or(|after| after == is_after_tool(body))
        && when
            .headers
            .iter()
            .all(|(name, text)| request.headers.get(name).is_some_and(|value| value.contains(text)))
}

/// What came before, on either wire.
pub(super) fn history(body: &Value) -> &Value {
    body.get("input").unwrap_or(&body["messages"])
}

fn items(body: &Value) -> impl DoubleEndedIterator<Item = &Value> {
    history(body).as_array().into_iter().flatten()
}

fn text_of(message: &Value) -> String {
    if let Some(text) = message["content"].as_str() {
        return text.to_owned();
    }
    let parts = message["content"].as_array().into_iter().flatten();
    parts.filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
}

fn is_output(item: &Value) -> bool {
    let kind = item["type"].as_str();
    kind.is_some_and(|kind| kind.ends_with("_output")) || item["role"] == "tool"
}

fn is_output_of(item: &Value, call_id: &str) -> bool {
    is_output(item) && (item["call_id"] == call_id || item["tool_call_id"] == call_id)
}

/// Codex 0.166 may append a developer message after the output (a saved approval rule says so).
fn is_after_tool(body: &Value) -> bool {
    let is_context = |item: &Value| item["role"] == "developer" || item["role"] == "system";
    items(body).rfind(|item| !is_context(item)).is_some_and(is_output)
}
