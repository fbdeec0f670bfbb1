//! Chunks of a chat completion, merged into items.

use bindery_core::surrogates::mended;
use serde_json::Value;
use uuid::Uuid;

use super::super::classify::{self, Again, Failure, Told};
use super::super::dialect::Names;
use super::super::{Answered, Fault, ModelEvent};
use super::closed;
use super::finish_reason::FinishReason;
use super::tags::{TagSplitter, TextPiece};
use super::tools_as_text::{CLOSE, OPEN, parse_call};
use crate::item::{FunctionCall, HistoryItem, Item, Message, Reasoning, Role};
use crate::tokens::TokenCount;

/// More calls in one answer than this nobody means.
const MAX_CALLS: usize = 1024;

/// No window is so small that a history of fewer tokens fills it.
const SHORT: u64 = 2048;

/// How far the answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// More will come.
    Going,
    /// Nothing will come.
    Done,
}

/// Merges chunks.
pub(super) struct Reader<'a> {
    names: &'a Names,
    /// Further reasons to stop that mean a whole answer.
    done_reasons: &'a [String],
    tags: TagSplitter,
    /// What is being said; switching from thoughts to text and back ends an item.
    saying: Saying,
    calls: Vec<Call>,
    answered: Answered,
    finish: Option<String>,
    spoke: bool,
    understood: usize,
    skipped: usize,
    whole: bool,
}

#[derive(Debug, Default)]
enum Saying {
    #[default]
    Nothing,
    /// Blanks before a text are told with the text, or never.
    Blank(String),
    Text(String),
    Thoughts(String),
}

#[derive(Debug, Default)]
struct Call {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    extra_content: Option<Value>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(names: &'a Names, done_reasons: &'a [String]) -> Self {
        Self {
            names,
            done_reasons,
            tags: TagSplitter::default(),
            saying: Saying::Nothing,
            calls: Vec::new(),
            answered: Answered::default(),
            finish: None,
            spoke: false,
            understood: 0,
            skipped: 0,
            whole: false,
        }
    }

    /// Whether the model has said why it stopped.
    pub(super) fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    /// Takes a whole completion, which comes at once or not at all.
    pub(super) fn read_whole(&mut self, data: &str) -> Result<Vec<ModelEvent>, Failure> {
        let (told, _) = self.read(data)?;
        self.whole = true;
        Ok(told)
    }

    /// Takes one chunk.
    pub(super) fn read(&mut self, data: &str) -> Result<(Vec<ModelEvent>, Progress), Failure> {
        if matches!(data.trim(), "[DONE]" | "DONE") {
            self.whole = true;
            return Ok((Vec::new(), Progress::Done));
        }
        let chunk: Value = match serde_json::from_str(&mended(data).0) {
            Ok(chunk @ Value::Object(_)) => chunk,
            other => {
                let err = other.err().map(|err| err.to_string());
                self.skipped += 1;
                tracing::warn!(err, skipped = self.skipped, "skipped a line of a model's stream");
                return Ok((Vec::new(), Progress::Going));
            }
        };
        let mut told = Vec::new();
        self.chunk(&chunk, &mut told)?;
        Ok((told, Progress::Going))
    }

    fn chunk(&mut self, chunk: &Value, told: &mut Vec<ModelEvent>) -> Result<(), Failure> {
        let choice = &chunk["choices"][0];
        for place in [chunk, choice] {
            if !place["error"].is_null() || place["object"] == "error" {
                return Err(classify::failed(&Told::from_value(place)));
            }
        }
        match chunk["choices"].is_array() {
            true => self.understood += 1,
            false => self.skipped += 1,
        }
        let text = |key: &str| chunk[key].as_str().filter(|text| !text.is_empty());
        self.answered.id = text("id").map(str::to_owned).or(self.answered.id.take());
        self.answered.model = text("model").map(str::to_owned).or(self.answered.model.take());
        self.answered.usage = usage(&chunk["usage"]).or(self.answered.usage);
        let delta = choice.get("delta").or_else(|| choice.get("message")).unwrap_or(&Value::Null);
        for text in thoughts(delta) {
            self.think(text, told);
        }
        self.content(&delta["content"], told);
        if let Some(refusal) = delta["refusal"].as_str() {
            self.say(refusal, told);
        }
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            self.end_item(told);
            self.call(call);
        }
        // The form before there were several calls.
        if delta["function_call"].is_object() {
            self.end_item(told);
            self.call(&serde_json::json!({ "index": 0, "function": delta["function_call"] }));
        }
        if let Some(reason) = choice["finish_reason"].as_str().filter(|text| !text.is_empty()) {
            self.finish = Some(reason.to_owned());
        }
        Ok(())
    }

    /// A string, or parts; Mistral's thoughts are parts.
    fn content(&mut self, content: &Value, told: &mut Vec<ModelEvent>) {
        if let Some(text) = content.as_str() {
            return self.tell_apart(text, told);
        }
        for part in content.as_array().into_iter().flatten() {
            match part["type"].as_str() {
                Some("thinking") => {
                    for thought in part["thinking"].as_array().into_iter().flatten() {
                        self.think(thought["text"].as_str().unwrap_or_default(), told);
                    }
                }
                _ => self.tell_apart(part["text"].as_str().unwrap_or_default(), told),
            }
        }
    }

    /// Text may have thoughts and calls in it.
    fn tell_apart(&mut self, text: &str, told: &mut Vec<ModelEvent>) {
        if !text.is_empty() {
            let pieces = self.tags.push(text);
            self.tell_pieces(pieces, told);
        }
    }

    fn tell_pieces(&mut self, pieces: Vec<TextPiece>, told: &mut Vec<ModelEvent>) {
        for piece in pieces {
            match piece {
                TextPiece::Text(text) => self.say(&text, told),
                TextPiece::Thought(text) => self.think(&text, told),
                TextPiece::Call(text) => self.call_in_text(&text, told),
            }
        }
    }

    /// A call of a tool that was offered; anything else is text.
    fn call_in_text(&mut self, text: &str, told: &mut Vec<ModelEvent>) {
        let call = parse_call(text).filter(|(name, _)| {
            let name = self.names.clean(name);
            self.names.is_offered(name) && self.calls.len() < MAX_CALLS
        });
        let Some((name, arguments)) = call else {
            return self.say(&format!("{OPEN}{text}{CLOSE}"), told);
        };
        self.end_item(told);
        self.calls.push(Call { name, arguments, ..Call::default() });
    }

    fn say(&mut self, text: &str, told: &mut Vec<ModelEvent>) {
        if text.is_empty() {
            return;
        }
        if !matches!(self.saying, Saying::Text(_) | Saying::Blank(_)) {
            self.end_item(told);
            self.saying = Saying::Blank(String::new());
        }
        if let Saying::Blank(blank) = &mut self.saying {
            blank.push_str(text);
            if blank.trim().is_empty() {
                return;
            }
            let begun = std::mem::take(blank);
            told.push(ModelEvent::ItemBegun(message(None)));
            told.push(ModelEvent::Text(begun.clone()));
            self.saying = Saying::Text(begun);
        } else if let Saying::Text(said) = &mut self.saying {
            said.push_str(text);
            told.push(ModelEvent::Text(text.to_owned()));
        }
    }

    fn think(&mut self, text: &str, told: &mut Vec<ModelEvent>) {
        if text.is_empty() {
            return;
        }
        if !matches!(self.saying, Saying::Thoughts(_)) {
            self.end_item(told);
            told.push(ModelEvent::ItemBegun(reasoning(None)));
            self.saying = Saying::Thoughts(String::new());
        }
        if let Saying::Thoughts(thought) = &mut self.saying {
            thought.push_str(text);
            told.push(ModelEvent::Thought(text.to_owned()));
        }
    }

    fn end_item(&mut self, told: &mut Vec<ModelEvent>) {
        match std::mem::take(&mut self.saying) {
            Saying::Nothing | Saying::Blank(_) => {}
            Saying::Text(text) => {
                self.spoke = true;
                told.push(ModelEvent::ItemDone(message(Some(text))));
            }
            Saying::Thoughts(text) => told.push(ModelEvent::ItemDone(reasoning(Some(text)))),
        }
    }

    /// Pieces of a call are known by index, else by id, else they belong to the last one.
    fn call(&mut self, piece: &Value) {
        let index = piece["index"].as_u64();
        let id = piece["id"].as_str().unwrap_or_default();
        let name = piece["function"]["name"].as_str().unwrap_or_default();
        let same = |call: &Call| match index {
            // Older Ollama and Gemini number every call 0; a second id and name tell them apart,
            // or, without ids, a second name behind arguments that are whole.
            Some(_) => {
                let is_other =
                    [id, name, &call.id].iter().all(|word| !word.is_empty()) && id != call.id;
                let is_next = id.is_empty() && !name.is_empty() && is_whole(&call.arguments);
                call.index == index && !is_other && !is_next
            }
            None if !id.is_empty() => call.id == id,
            None => name.is_empty(),
        };
        let at = self.calls.iter().rposition(same).unwrap_or_else(|| {
            if self.calls.len() < MAX_CALLS {
                self.calls.push(Call { index, ..Call::default() });
            }
            self.calls.len() - 1
        });
        let call = &mut self.calls[at];
        if !id.is_empty() {
            id.clone_into(&mut call.id);
        }
        // Some servers send the name again with every piece, some in pieces.
        if call.name != name {
            call.name.push_str(name);
        }
        if let Some(extra) = piece.get("extra_content").filter(|extra| !extra.is_null()) {
            call.extra_content = Some(extra.clone());
        }
        match &piece["function"]["arguments"] {
            Value::String(text) => call.arguments.push_str(text),
            Value::Null => {}
            // A few send the arguments as they are.
            other => call.arguments.push_str(&other.to_string()),
        }
    }

    /// The end of the stream: what was still open, and the answer. What was said is told also
    /// where the answer failed.
    pub(super) fn finish(mut self, strange: usize) -> (Vec<ModelEvent>, Result<Answered, Failure>) {
        let mut told = Vec::new();
        let held = self.tags.flush();
        self.tell_pieces(held, &mut told);
        self.end_item(&mut told);
        if let Err(failure) = self.check_finish(strange) {
            // What is asked for again is void, and told by the next answer.
            let told = if failure.again == Again::Never { told } else { Vec::new() };
            return (told, Err(failure));
        }
        let calls = std::mem::take(&mut self.calls);
        let mut ids: Vec<String> = Vec::new();
        for mut call in calls {
            // An id that names two calls would give both the same answer.
            // Some servers number the calls of every answer from nought.
            let is_new =
                |id: &String| !id.is_empty() && !ids.contains(id) && !self.names.is_used_id(id);
            let id = Some(std::mem::take(&mut call.id)).filter(is_new);
            let id = id.unwrap_or_else(|| format!("call_{}", Uuid::now_v7().simple()));
            ids.push(id.clone());
            self.names.clean(&call.name).to_owned().clone_into(&mut call.name);
            told.push(ModelEvent::ItemDone(self.names.restore(done(call, id))));
        }
        (told, Ok(self.answered))
    }

    fn check_finish(&self, strange: usize) -> Result<(), Failure> {
        let Some(reason) = self.finish.as_deref() else { return self.check_unfinished(strange) };
        match FinishReason::read(reason, self.done_reasons) {
            FinishReason::Done => Ok(()),
            FinishReason::Length => Err(self.too_long()),
            FinishReason::Filtered => Err(incomplete(reason)),
            FinishReason::Failed => {
                let words = format!("the model's server gave up its answer: {reason}");
                Err(Failure::new(Fault::Transport, Again::Stream, words))
            }
            FinishReason::Unknown => {
                let words = format!(
                    "the model's server ended its answer with `{reason}`, which is not known to \
                     mean success; if it does, add it to `finish_reasons` of the chat profile"
                );
                Err(Failure::new(Fault::Incomplete, Again::Never, words))
            }
        }
    }

    /// Servers that say that all is said need no reason, unless a call is half.
    fn check_unfinished(&self, strange: usize) -> Result<(), Failure> {
        let skipped = self.skipped + strange;
        if self.understood == 0 && skipped > 0 {
            let words = format!("the model's server said nothing we understand in {skipped} lines");
            return Err(Failure::new(Fault::Garbage, Again::Stream, words));
        }
        let half = |call: &Call| !call.arguments.is_empty() && !is_whole(&call.arguments);
        let is_half = self.calls.iter().any(half);
        // A stream that just ends may have been cut anywhere.
        if self.understood == 0 || is_half || !self.whole {
            return Err(closed());
        }
        Ok(())
    }

    /// We ask for no limit, so that nothing but thoughts means that the window is full.
    fn too_long(&self) -> Failure {
        let is_short = self.answered.usage.is_some_and(|usage| usage.total_tokens < SHORT);
        if self.spoke || is_short || !self.calls.is_empty() {
            return incomplete("length; `max_tokens` of the chat profile sets how long it may be");
        }
        let words = "the history is longer than the model's window: it ran out of room before it \
                     could answer";
        Failure::new(Fault::ContextOverflow, Again::Never, words)
    }
}

/// An event that is named an error.
pub(super) fn failed(data: &str) -> Failure {
    classify::failed(&Told::read(data))
}

fn incomplete(reason: &str) -> Failure {
    let words = format!("the model's server ended its answer early: {reason}");
    Failure::new(Fault::Incomplete, Again::Never, words)
}

/// What the servers call thoughts: `reasoning_content` is DeepSeek's, llama.cpp's and SGLang's,
/// `reasoning` is OpenRouter's, vLLM's and Ollama's. A server that sends both means one.
fn thoughts(delta: &Value) -> Vec<&str> {
    let reasoning = &delta["reasoning"];
    let places = [
        &delta["reasoning_content"],
        reasoning,
        &reasoning["text"],
        &reasoning["content"],
        &delta["thinking"],
    ];
    places.into_iter().filter_map(Value::as_str).find(|text| !text.is_empty()).into_iter().collect()
}

fn message(text: Option<String>) -> HistoryItem {
    match text {
        Some(text) => Message::text(Role::Assistant, text).into(),
        None => {
            Message { id: None, role: Role::Assistant, content: Vec::new(), phase: None }.into()
        }
    }
}

fn reasoning(text: Option<String>) -> HistoryItem {
    let part = |text| vec![serde_json::json!({ "type": "reasoning_text", "text": text })];
    Item::Reasoning(Reasoning { content: text.map(part), ..Reasoning::default() }).into()
}

fn is_whole(arguments: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(arguments).is_ok()
}

fn done(call: Call, call_id: String) -> HistoryItem {
    let Call { name, arguments, extra_content, .. } = call;
    let arguments = if arguments.trim().is_empty() { "{}".to_owned() } else { unwrap(arguments) };
    let (id, namespace) = (None, None);
    let call = FunctionCall { id, name, namespace, arguments, call_id, extra_content };
    Item::FunctionCall(call).into()
}

/// Some servers encode the arguments twice: a JSON string with JSON in it.
fn unwrap(arguments: String) -> String {
    let inner = serde_json::from_str::<String>(&arguments).ok();
    let is_object =
        |text: &String| serde_json::from_str::<Value>(text).is_ok_and(|value| value.is_object());
    inner.filter(is_object).unwrap_or(arguments)
}

fn usage(usage: &Value) -> Option<TokenCount> {
    let number = |path: &str| usage.pointer(path).and_then(Value::as_u64);
    let input = number("/prompt_tokens")?;
    let output = number("/completion_tokens").unwrap_or_default();
    // DeepSeek has a field of its own.
    let cached = number("/prompt_tokens_details/cached_tokens")
        .or_else(|| number("/prompt_cache_hit_tokens"));
    Some(TokenCount {
        input_tokens: input,
        cached_input_tokens: cached.unwrap_or_default(),
        cache_write_input_tokens: 0,
        output_tokens: output,
        reasoning_output_tokens: number("/completion_tokens_details/reasoning_tokens")
            .unwrap_or_default(),
        total_tokens: number("/total_tokens").unwrap_or(input + output),
    })
}

#[cfg(test)]
mod tests;
