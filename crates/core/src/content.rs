//! Content: what `doGenerate` returns, folded from the parts of a stream.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::Value;

use crate::ids::{CallId, PartId};
use crate::open::Open;
use crate::part::{Part, ToolCall, Warning};
use crate::prompt::{AssistantPart, Message, Prompt};
use crate::spec::{Metadata, PROVIDER_KEY, Spec, codex_of};
use crate::usage::{FinishReason, Usage};

/// A whole answer, in the shape of the AI SDK's generate result.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Generated {
    /// The answer's pieces in the order they began.
    pub content: Vec<Value>,
    /// Why it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<FinishReason>,
    /// Tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// What could not be carried.
    pub warnings: Vec<Warning>,
    /// Thread, turn and totals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_metadata: Option<Metadata>,
    /// Id, time and model of the response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<Value>,
    /// Errors of the stream; a generate call fails with the first.
    #[serde(skip)]
    pub errors: Vec<Value>,
}

/// Folds stream parts into a whole answer: streaming and generating share one path.
pub struct Gather {
    spec: Spec,
    generated: Generated,
    open: HashMap<PartId, usize>,
    /// Calls of earlier steps, which this one may answer.
    earlier: HashMap<CallId, ToolCall>,
}

impl Gather {
    /// An empty answer in the words of `spec`.
    pub fn new(spec: Spec) -> Self {
        Self {
            spec,
            generated: Generated::default(),
            open: HashMap::new(),
            earlier: HashMap::new(),
        }
    }

    /// An answer to this prompt. The AI SDK's `generateText` takes no result whose call is not in
    /// the same answer, so a call of an earlier step (one that waited for an approval) is told
    /// again before its result.
    pub fn to(spec: Spec, prompt: &Prompt) -> Self {
        let parts = prompt.0.iter().flat_map(|message| match message {
            Open::Known(Message::Assistant { content, .. }) => content.as_slice(),
            _ => &[],
        });
        let earlier = parts.filter_map(earlier_call).map(|call| (call.tool_call_id.clone(), call));
        Self { earlier: earlier.collect(), ..Self::new(spec) }
    }

    /// Takes one part.
    pub fn push(&mut self, part: &Part) {
        match part {
            Part::StreamStart { warnings } => self.generated.warnings.extend_from_slice(warnings),
            Part::ResponseMetadata { .. } => self.generated.response = self.untyped(part),
            Part::TextStart(run) => self.begin(&run.id, "text"),
            Part::ReasoningStart(run) => self.begin(&run.id, "reasoning"),
            Part::TextDelta(delta) | Part::ReasoningDelta(delta) => {
                self.extend(&delta.id, &delta.delta);
            }
            Part::TextEnd { id, provider_metadata, .. } => self.end(id, provider_metadata.as_ref()),
            Part::ReasoningEnd(run) => self.end(&run.id, run.provider_metadata.as_ref()),
            Part::ToolResult(result) if result.preliminary => {}
            Part::ToolCall(call) => {
                self.earlier.remove(&call.tool_call_id);
                self.generated.content.extend(part.to_json(self.spec));
            }
            Part::ToolResult(result) => {
                if let Some(call) = self.earlier.remove(&result.tool_call_id) {
                    self.generated.content.extend(Part::ToolCall(call).to_json(self.spec));
                }
                self.generated.content.extend(part.to_json(self.spec));
            }
            Part::Finish { usage, finish_reason, provider_metadata } => {
                self.generated.usage = Some(usage.clone());
                self.generated.finish_reason = Some(finish_reason.for_spec(self.spec));
                self.generated.provider_metadata.clone_from(provider_metadata);
            }
            Part::Error { error } => self.generated.errors.push(error.clone()),
            Part::ToolInputStart(_)
            | Part::ToolInputDelta(_)
            | Part::ToolInputEnd(_)
            | Part::Raw { .. }
            | Part::Ping => {}
            Part::Custom { .. } if self.spec == Spec::V3 => {}
            other => self.generated.content.extend(other.to_json(self.spec)),
        }
    }

    /// The whole answer; pieces that were withdrawn are not in it.
    pub fn finish(mut self) -> Generated {
        self.generated.content.retain(|piece| !piece.is_null());
        tell_answer_apart(&mut self.generated.content);
        self.generated
    }

    fn begin(&mut self, id: &PartId, kind: &str) {
        self.open.insert(id.clone(), self.generated.content.len());
        self.generated.content.push(serde_json::json!({ "type": kind, "text": "" }));
    }

    fn extend(&mut self, id: &PartId, delta: &str) {
        let index = self.open.get(id).copied();
        if let Some(Value::String(text)) =
            index.and_then(|i| self.generated.content.get_mut(i)).and_then(|c| c.get_mut("text"))
        {
            text.push_str(delta);
        }
    }

    /// A run that Codex gave up (a retry, a steer) is taken out again.
    fn end(&mut self, id: &PartId, metadata: Option<&Metadata>) {
        let Some(piece) =
            self.open.remove(id).and_then(|index| self.generated.content.get_mut(index))
        else {
            return;
        };
        let details = codex_of(metadata);
        if details.is_some_and(|d| d.get("discarded") == Some(&Value::Bool(true))) {
            *piece = Value::Null;
            return;
        }
        if let Some(text) = details.and_then(|d| d.get("text")) {
            piece["text"] = text.clone();
        }
        if let Some(metadata) = metadata {
            piece["providerMetadata"] = Value::Object(metadata.clone());
        }
    }

    fn untyped(&self, part: &Part) -> Option<Value> {
        let mut value = part.to_json(self.spec)?;
        value.as_object_mut()?.remove("type");
        Some(value)
    }
}

/// The AI SDK takes all text for one answer: what was said on the way to it is reasoning. The
/// answer is what Codex says it is, else the last message.
fn tell_answer_apart(content: &mut [Value]) {
    let declared = |piece: &Value| piece["providerMetadata"][PROVIDER_KEY]["phase"].clone();
    let texts: Vec<usize> =
        (0..content.len()).filter(|index| content[*index]["type"] == "text").collect();
    let is_answer = |index: &&usize| declared(&content[**index]) != "commentary";
    let answer = texts.iter().rfind(is_answer).or(texts.last()).copied();
    for index in texts.into_iter().filter(|index| Some(*index) != answer) {
        let piece = &mut content[index];
        if !["final_answer", "plan"].iter().any(|phase| declared(piece) == *phase) {
            piece["type"] = "reasoning".into();
            piece["providerMetadata"][PROVIDER_KEY]["phase"] = "commentary".into();
        }
    }
}

fn earlier_call(part: &Open<AssistantPart>) -> Option<ToolCall> {
    let Open::Known(AssistantPart::ToolCall {
        tool_call_id,
        tool_name,
        input,
        provider_executed,
        ..
    }) = part
    else {
        return None;
    };
    // What the caller ran itself is answered by the caller.
    provider_executed.unwrap_or(false).then(|| ToolCall {
        tool_call_id: tool_call_id.clone(),
        tool_name: tool_name.clone(),
        input: input.to_string(),
        provider_executed: true,
        dynamic: true,
        provider_metadata: None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_answer_is_text() {
        let text = |text: &str, phase: Option<&str>| {
            let metadata = phase.map(|phase| json!({ "codex": { "phase": phase } }));
            json!({ "type": "text", "text": text, "providerMetadata": metadata })
        };
        let (commentary, answer) = (Some("commentary"), Some("final_answer"));
        #[rustfmt::skip]
        let table = [
            (vec![text("a", None), text("b", None)],             "b"),
            (vec![text("a", commentary), text("b", answer)],     "b"),
            (vec![text("a", answer), text("b", commentary)],     "a"),
            (vec![text("a", commentary), text("b", commentary)], "b"),
            (vec![text("a", answer), text("b", answer)],         "ab"),
            (vec![text("a", Some("plan")), text("b", None)],     "ab"),
        ];
        for (mut content, want) in table {
            let before = content.clone();
            tell_answer_apart(&mut content);
            let texts = content.iter().filter(|piece| piece["type"] == "text");
            let told: String = texts.filter_map(|piece| piece["text"].as_str()).collect();
            assert_eq!(told, want, "{before:?}");
            let kinds = content.iter().filter(|piece| piece["type"] == "reasoning");
            let said = |piece: &Value| piece["providerMetadata"]["codex"]["phase"].clone();
            assert!(kinds.clone().all(|piece| said(piece) == "commentary"), "{before:?}");
            assert_eq!(told.len() + kinds.count(), 2, "{before:?}");
        }
    }

    #[test]
    fn a_call_of_an_earlier_step_is_told_again_before_its_result() {
        let prompt: Prompt = serde_json::from_value(json!([
            { "role": "user", "content": "go" },
            { "role": "assistant", "content": [
                { "type": "tool-call", "toolCallId": "ours", "toolName": "codex_command_execution",
                  "input": { "command": "ls" }, "providerExecuted": true },
                { "type": "tool-call", "toolCallId": "theirs", "toolName": "mine", "input": {} },
            ] },
        ]))
        .unwrap();
        let result = |id: &str| -> Part {
            let part = json!({ "type": "tool-result", "toolCallId": id, "toolName": "t",
                "result": "done", "dynamic": true });
            serde_json::from_value(part).unwrap()
        };
        let mut gather = Gather::to(Spec::V3, &prompt);
        for part in [result("ours"), result("ours"), result("theirs")] {
            gather.push(&part);
        }
        let content = gather.finish().content;
        let told: Vec<_> =
            content.iter().map(|c| (c["type"].clone(), c["toolCallId"].clone())).collect();
        let row = |kind: &str, id: &str| (json!(kind), json!(id));
        let results = [row("tool-result", "ours"), row("tool-result", "theirs")];
        assert_eq!(told[..2], [row("tool-call", "ours"), row("tool-result", "ours")]);
        assert_eq!(told[2..], results);
        assert_eq!(content[0]["input"], json!("{\"command\":\"ls\"}"));
        assert_eq!(content[0]["dynamic"], json!(true));
    }
}
