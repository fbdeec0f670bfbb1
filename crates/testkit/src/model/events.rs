//! The events of the Responses stream, in the order OpenAI sends them.

use serde_json::{Value, json};

use super::script::{Step, Usage};

/// Builds the events of one response; numbers items as it goes.
pub(super) struct Events {
    request: usize,
    items: usize,
    sequence: u64,
}

impl Events {
    pub(super) fn new(request: usize) -> Self {
        Self { request, items: 0, sequence: 0 }
    }

    pub(super) fn created(&mut self) -> Vec<u8> {
        let response = self.response("in_progress");
        self.sse([json!({ "type": "response.created", "response": response })])
    }

    pub(super) fn completed(&mut self, usage: Usage) -> Vec<u8> {
        let mut response = self.response("completed");
        response["usage"] = json!({
            "input_tokens": usage.input,
            "input_tokens_details": { "cached_tokens": usage.cached },
            "output_tokens": usage.output,
            "output_tokens_details": { "reasoning_tokens": usage.reasoning },
            "total_tokens": usage.input + usage.output,
        });
        self.sse([json!({ "type": "response.completed", "response": response })])
    }

    pub(super) fn failed(&mut self, code: &str, message: &str) -> Vec<u8> {
        let mut response = self.response("failed");
        response["error"] = json!({ "code": code, "message": message });
        self.sse([json!({ "type": "response.failed", "response": response })])
    }

    pub(super) fn incomplete(&mut self, reason: &str) -> Vec<u8> {
        let mut response = self.response("incomplete");
        response["incomplete_details"] = json!({ "reason": reason });
        self.sse([json!({ "type": "response.incomplete", "response": response })])
    }

    /// The events of a step that says something; empty for one that does not.
    pub(super) fn of_step(&mut self, step: &Step) -> Vec<u8> {
        let events = match step {
            Step::Text { text, chunk, phase } => self.text(text, *chunk, phase.as_deref()),
            Step::Begin { text } => {
                let events = self.text(text, 0, None).into_iter();
                events.take_while(|event| event["type"] != "response.output_text.done").collect()
            }
            Step::Reasoning { summary, content } => self.reasoning(summary, content),
            Step::Call { name, arguments, call_id, namespace } => {
                self.call(name, arguments, call_id, namespace.as_deref())
            }
            Step::CustomCall { name, input, call_id } => self.custom_call(name, input, call_id),
            Step::WebSearch { query } => self.web_search(query),
            Step::Item { item } => self.item(item.clone(), item.clone(), Vec::new()),
            Step::Event { event } => vec![event.clone()],
            _ => Vec::new(),
        };
        self.sse(events)
    }

    fn text(&mut self, text: &str, chunk: usize, phase: Option<&str>) -> Vec<Value> {
        let id = self.next_id("msg");
        let message = |status: &str, content: Value| {
            let mut item = json!({
                "type": "message", "id": id, "role": "assistant",
                "status": status, "content": content,
            });
            if let Some(phase) = phase {
                item["phase"] = json!(phase);
            }
            item
        };
        let part = |text: &str| json!({ "type": "output_text", "text": text, "annotations": [] });
        let at = |kind: &str| json!({ "type": kind, "item_id": id, "content_index": 0 });
        let mut inner = vec![with(at("response.content_part.added"), "part", part(""))];
        inner.extend(
            chunks(text, chunk)
                .map(|delta| with(at("response.output_text.delta"), "delta", json!(delta))),
        );
        inner.push(with(at("response.output_text.done"), "text", json!(text)));
        inner.push(with(at("response.content_part.done"), "part", part(text)));
        self.item(
            message("in_progress", json!([])),
            message("completed", json!([part(text)])),
            inner,
        )
    }

    fn reasoning(&mut self, summary: &[String], content: &[String]) -> Vec<Value> {
        let id = self.next_id("rs");
        let mut inner = Vec::new();
        for (index, text) in summary.iter().enumerate() {
            let at = |kind: &str| json!({ "type": kind, "item_id": id, "summary_index": index });
            let part = |text: &str| json!({ "type": "summary_text", "text": text });
            inner.extend([
                with(at("response.reasoning_summary_part.added"), "part", part("")),
                with(at("response.reasoning_summary_text.delta"), "delta", json!(text)),
                with(at("response.reasoning_summary_text.done"), "text", json!(text)),
                with(at("response.reasoning_summary_part.done"), "part", part(text)),
            ]);
        }
        for (index, text) in content.iter().enumerate() {
            let at = |kind: &str| json!({ "type": kind, "item_id": id, "content_index": index });
            inner.extend([
                with(at("response.reasoning_text.delta"), "delta", json!(text)),
                with(at("response.reasoning_text.done"), "text", json!(text)),
            ]);
        }
        let parts = |kind: &str, texts: &[String]| -> Vec<Value> {
            texts.iter().map(|text| json!({ "type": kind, "text": text })).collect()
        };
        let mut done = json!({
            "type": "reasoning", "id": id, "summary": parts("summary_text", summary),
            "encrypted_content": null,
        });
        if !content.is_empty() {
            done["content"] = Value::Array(parts("reasoning_text", content));
        }
        self.item(json!({ "type": "reasoning", "id": id, "summary": [] }), done, inner)
    }

    fn call(&mut self, name: &str, args: &Value, call_id: &str, space: Option<&str>) -> Vec<Value> {
        let id = self.next_id("fc");
        let args = match args {
            Value::String(raw) => raw.clone(),
            Value::Null => "{}".to_owned(),
            args => args.to_string(),
        };
        let item = |status: &str, arguments: &str| {
            let mut item = json!({
                "type": "function_call", "id": id, "call_id": call_id, "name": name,
                "arguments": arguments, "status": status,
            });
            if let Some(space) = space {
                item["namespace"] = json!(space);
            }
            item
        };
        let at = |kind: &str| json!({ "type": kind, "item_id": id });
        let inner = vec![
            with(at("response.function_call_arguments.delta"), "delta", json!(args)),
            with(at("response.function_call_arguments.done"), "arguments", json!(args)),
        ];
        self.item(item("in_progress", ""), item("completed", &args), inner)
    }

    fn custom_call(&mut self, name: &str, input: &str, call_id: &str) -> Vec<Value> {
        let id = self.next_id("ctc");
        let item = |status: &str, input: &str| {
            json!({
                "type": "custom_tool_call", "id": id, "call_id": call_id, "name": name,
                "input": input, "status": status,
            })
        };
        let at = |kind: &str| json!({ "type": kind, "item_id": id });
        let inner = vec![
            with(at("response.custom_tool_call_input.delta"), "delta", json!(input)),
            with(at("response.custom_tool_call_input.done"), "input", json!(input)),
        ];
        self.item(item("in_progress", ""), item("completed", input), inner)
    }

    fn web_search(&mut self, query: &str) -> Vec<Value> {
        let id = self.next_id("ws");
        let started = json!({ "type": "web_search_call", "id": id, "status": "in_progress" });
        let done = json!({
            "type": "web_search_call", "id": id, "status": "completed",
            "action": { "type": "search", "query": query },
        });
        let at = |kind: &str| json!({ "type": kind, "item_id": id });
        let inner = vec![
            at("response.web_search_call.in_progress"),
            at("response.web_search_call.searching"),
            at("response.web_search_call.completed"),
        ];
        self.item(started, done, inner)
    }

    /// An item from its beginning to its end.
    fn item(&mut self, added: Value, done: Value, mut inner: Vec<Value>) -> Vec<Value> {
        let index = self.items;
        self.items += 1;
        inner.insert(0, json!({ "type": "response.output_item.added", "item": added }));
        inner.push(json!({ "type": "response.output_item.done", "item": done }));
        inner.into_iter().map(|event| with(event, "output_index", json!(index))).collect()
    }

    fn response(&self, status: &str) -> Value {
        let id = format!("resp_{}", self.request);
        json!({ "id": id, "object": "response", "status": status, "output": [] })
    }

    fn next_id(&self, kind: &str) -> String {
        format!("{kind}_{}_{}", self.request, self.items)
    }

    fn sse(&mut self, events: impl IntoIterator<Item = Value>) -> Vec<u8> {
        let mut text = String::new();
        for event in events {
            let event = with(event, "sequence_number", json!(self.sequence));
            self.sequence += 1;
            let kind = event["type"].as_str().unwrap_or("message");
            text.push_str(&format!("event: {kind}\ndata: {event}\n\n"));
        }
        text.into_bytes()
    }
}

fn with(mut event: Value, key: &str, value: Value) -> Value {
    if let Some(fields) = event.as_object_mut() {
        fields.insert(key.to_owned(), value);
    }
    event
}

/// Cuts between characters, never inside one.
pub(super) fn chunks(text: &str, size: usize) -> impl Iterator<Item = String> {
    let letters: Vec<char> = text.chars().collect();
    let size = if size == 0 { letters.len().max(1) } else { size };
    letters.chunks(size).map(|chunk| chunk.iter().collect()).collect::<Vec<String>>().into_iter()
}
