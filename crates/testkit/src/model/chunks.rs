//! The chunks of the Chat Completions stream, as OpenAI sends them, and the completion that a
//! client gets who asked for no stream.

use serde_json::{Value, json};

use super::events::chunks;
use super::script::{Step, Usage};

/// Builds the chunks of one completion; numbers calls as it goes.
pub(super) struct Chunks {
    request: usize,
    model: Value,
    with_usage: bool,
    calls: usize,
    message: Value,
}

impl Chunks {
    pub(super) fn new(request: usize, body: &Value) -> Self {
        Self {
            request,
            model: body["model"].clone(),
            with_usage: body["stream_options"]["include_usage"] == true,
            calls: 0,
            message: json!({ "role": "assistant", "content": null }),
        }
    }

    pub(super) fn created(&mut self) -> Vec<u8> {
        sse([self.delta(json!({ "role": "assistant", "content": "" }))])
    }

    pub(super) fn completed(&mut self, numbers: Usage) -> Vec<u8> {
        let reason = self.reason();
        let mut chunks = vec![self.chunk(json!([self.choice(json!({}), Some(reason))]))];
        if self.with_usage {
            let mut last = self.chunk(json!([]));
            last["usage"] = usage(numbers);
            chunks.push(last);
        }
        let mut bytes = sse(chunks);
        bytes.extend_from_slice(b"data: [DONE]\n\n");
        bytes
    }

    /// Servers tell what fails under way in an object of its own.
    pub(super) fn failed(&mut self, code: &str, message: &str) -> Vec<u8> {
        sse([json!({ "error": { "code": code, "message": message, "type": "server_error" } })])
    }

    pub(super) fn incomplete(&mut self, reason: &str) -> Vec<u8> {
        let reason = if reason == "max_output_tokens" { "length" } else { reason };
        let mut bytes = sse([self.chunk(json!([self.choice(json!({}), Some(reason))]))]);
        bytes.extend_from_slice(b"data: [DONE]\n\n");
        bytes
    }

    /// The chunks of a step that says something; empty for one that this wire cannot say.
    pub(super) fn of_step(&mut self, step: &Step) -> Vec<u8> {
        if let Step::Event { event } = step {
            return sse([event.clone()]);
        }
        let deltas = self.deltas(step);
        let deltas: Vec<Value> = deltas.into_iter().map(|delta| self.delta(delta)).collect();
        sse(deltas)
    }

    /// The whole completion, from the steps told to [`Self::of_step`].
    pub(super) fn whole(&self, numbers: Usage) -> Value {
        let choice = json!({ "index": 0, "message": self.message, "finish_reason": self.reason() });
        let mut whole = self.chunk(json!([choice]));
        whole["object"] = json!("chat.completion");
        whole["usage"] = usage(numbers);
        whole
    }

    fn deltas(&mut self, step: &Step) -> Vec<Value> {
        match step {
            Step::Text { text, chunk, .. } => self.text("content", chunks(text, *chunk)),
            Step::Begin { text } => self.text("content", chunks(text, 0)),
            Step::Reasoning { summary, content } => {
                let texts = summary.iter().chain(content).cloned();
                self.text("reasoning_content", texts)
            }
            Step::Call { name, arguments, call_id, namespace } => {
                let name = match namespace {
                    Some(namespace) => format!("{namespace}__{name}"),
                    None => name.clone(),
                };
                let arguments = match arguments {
                    Value::String(raw) => raw.clone(),
                    Value::Null => "{}".to_owned(),
                    arguments => arguments.to_string(),
                };
                self.call(&name, &arguments, call_id)
            }
            Step::CustomCall { name, input, call_id } => {
                self.call(name, &json!({ "input": input }).to_string(), call_id)
            }
            _ => Vec::new(),
        }
    }

    fn text(&mut self, field: &str, texts: impl Iterator<Item = String>) -> Vec<Value> {
        let mut deltas = Vec::new();
        for text in texts {
            let before = self.message[field].as_str().unwrap_or_default();
            self.message[field] = json!(format!("{before}{text}"));
            deltas.push(json!({ field: text }));
        }
        deltas
    }

    /// The name first, the arguments in two pieces.
    fn call(&mut self, name: &str, arguments: &str, id: &str) -> Vec<Value> {
        let index = self.calls;
        self.calls += 1;
        let function = |text: &str| json!({ "name": name, "arguments": text });
        let call = |text: &str| json!({ "id": id, "type": "function", "function": function(text) });
        match self.message["tool_calls"].as_array_mut() {
            Some(calls) => calls.push(call(arguments)),
            None => self.message["tool_calls"] = json!([call(arguments)]),
        }
        let mut first = call("");
        first["index"] = json!(index);
        let mut deltas = vec![json!({ "tool_calls": [first] })];
        let half = arguments.chars().count().div_ceil(2);
        deltas.extend(chunks(arguments, half).map(|text| {
            let piece = json!({ "index": index, "function": { "arguments": text } });
            json!({ "tool_calls": [piece] })
        }));
        deltas
    }

    fn reason(&self) -> &'static str {
        if self.calls > 0 { "tool_calls" } else { "stop" }
    }

    fn delta(&self, delta: Value) -> Value {
        self.chunk(json!([self.choice(delta, None)]))
    }

    fn choice(&self, delta: Value, reason: Option<&str>) -> Value {
        json!({ "index": 0, "delta": delta, "finish_reason": reason })
    }

    fn chunk(&self, choices: Value) -> Value {
        json!({
            "id": format!("chatcmpl_{}", self.request), "object": "chat.completion.chunk",
            "model": self.model, "choices": choices,
        })
    }
}

fn usage(usage: Usage) -> Value {
    json!({
        "prompt_tokens": usage.input,
        "prompt_tokens_details": { "cached_tokens": usage.cached },
        "completion_tokens": usage.output,
        "completion_tokens_details": { "reasoning_tokens": usage.reasoning },
        "total_tokens": usage.input + usage.output,
    })
}

fn sse(chunks: impl IntoIterator<Item = Value>) -> Vec<u8> {
    let lines = chunks.into_iter().map(|chunk| format!("data: {chunk}\n\n"));
    lines.collect::<String>().into_bytes()
}
