//! What is asked of a model, one thing after the other, and what is made of its answers.

use std::time::Instant;

use bindery::engine::config::Config;
use bindery::engine::item::{Content, HistoryItem, Message, Role};
use bindery::engine::model::{Fault, ModelError, ModelRequest};
use serde::Serialize;
use serde_json::{Value, json};

use super::probe::{Respondent, Said, TOOL, tool, user};
use crate::model_server::{key_hint, start_hint};

/// A red square of 32 by 32.
const PICTURE: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAACAAAAAgCAIAAAD8GO2jAAAAJ0lEQ\
                       VR42u3NsQkAAAjAsP7/tF7hIASyp6lTCQQCgUAgEAgEgi/BAjLD/C5w/SM9AAAAAElFTkSuQmCC";

/// So much of an answer is shown.
const SHOWN: usize = 80;

/// So much of a server's words is.
const WORDS: usize = 1000;

/// What came of one question.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Probe {
    /// What was tried.
    pub(super) name: &'static str,
    /// How it went.
    pub(super) status: ProbeStatus,
    /// In words.
    pub(super) text: String,
    /// Which setting to use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) hint: Option<String>,
    /// How long it took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ms: Option<u64>,
    /// No turn works without it.
    #[serde(skip)]
    pub(super) needed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ProbeStatus {
    Ok,
    Warning,
    Error,
    Skipped,
}

use ProbeStatus::{Error, Ok as Fine, Skipped, Warning};

/// The conversation under way.
pub(super) struct Probes<'a> {
    config: &'a Config,
    respondent: &'a Respondent,
    done: Vec<Probe>,
    /// Told while the probe under way was answered.
    notices: Vec<String>,
}

/// How one probe went, in words, and which setting to use.
struct Outcome(ProbeStatus, String, Option<String>);

impl<'a> Probes<'a> {
    /// Tries everything that can be tried.
    pub(super) async fn run(config: &'a Config, respondent: &'a Respondent) -> Vec<Probe> {
        let mut probes = Self { config, respondent, done: Vec::new(), notices: Vec::new() };
        if probes.text().await {
            if probes.tools().await {
                probes.parallel().await;
            } else {
                probes.skip("parallel calls", "there are no tool calls");
            }
            probes.structured().await;
            probes.image().await;
            probes.instructions().await;
        } else {
            let names =
                ["usage", "tool call", "tool result", "parallel calls", "structured", "image"];
            for name in names.into_iter().chain(["instructions"]) {
                probes.skip(name, "there is no answer at all");
            }
        }
        probes.done
    }

    async fn ask(&mut self, change: impl FnOnce(&mut ModelRequest)) -> Result<Said, ModelError> {
        let mut said = self.respondent.ask(change).await?;
        self.notices.append(&mut said.notices);
        Ok(said)
    }

    /// A plain answer, and what the server says that it cost.
    async fn text(&mut self) -> bool {
        let begin = Instant::now();
        let said = self.ask(|r| r.input = vec![user("Reply with the word: ready")]);
        let said = said.await;
        let outcome = match &said {
            Err(error) => self.failed(error),
            Ok(said) if said.text.trim().is_empty() => self.silent(said),
            Ok(said) => Outcome(Fine, self.quote(&said.text), None),
        };
        let fine = self.add("text", outcome, Some(begin), true);
        if let Ok(said) = said
            && fine
        {
            let outcome = match said.usage {
                Some(usage) if usage.input_tokens > 0 => {
                    let (read, written) = (usage.input_tokens, usage.output_tokens);
                    Outcome(Fine, format!("{read} tokens in, {written} out"), None)
                }
                _ => {
                    let text = "the server reports no tokens; the engine estimates them";
                    Outcome(Warning, text.to_owned(), None)
                }
            };
            self.add("usage", outcome, None, false);
        }
        fine
    }

    /// One call, and its result sent back.
    async fn tools(&mut self) -> bool {
        let begin = Instant::now();
        let question = user("Call the tool `lookup` with the key `alpha`, then tell me the value.");
        let asked = self.ask(|r| {
            r.input = vec![question.clone()];
            r.tools = vec![tool()];
        });
        let asked = asked.await;
        let outcome = match &asked {
            Err(error) => self.failed(error),
            Ok(said) => self.called(said),
        };
        if !self.add("tool call", outcome, Some(begin), true) {
            self.skip("tool result", "there is no tool call");
            return false;
        }
        let Ok(said) = asked else { return false };
        let begin = Instant::now();
        let outcome = self.answered(question, said).await;
        self.add("tool result", outcome, Some(begin), true)
    }

    /// Two calls at once, and both results sent back.
    async fn parallel(&mut self) {
        let begin = Instant::now();
        let question = user(
            "Call the tool `lookup` twice at the same time, with the keys `alpha` and `beta`, then \
             tell me both values.",
        );
        let asked = self.ask(|r| {
            r.input = vec![question.clone()];
            r.tools = vec![tool()];
            r.parallel_tool_calls = true;
        });
        let asked = asked.await;
        let allowed = self.config.entry.parallel_tool_calls;
        let one_by_one = || {
            allowed.then(|| "set `parallel_tool_calls = false` for it in `[[models]]`".to_owned())
        };
        let outcome = match asked {
            Err(error) => {
                let Outcome(status, text, hint) = self.failed(&error);
                Outcome(status, text, hint.or_else(one_by_one))
            }
            Ok(said) if said.calls().len() < 2 => {
                let count = said.calls().len();
                let text = format!("{count} of 2 calls came at once: it calls one by one");
                Outcome(Warning, text, None)
            }
            Ok(said) => match self.answered(question, said).await {
                Outcome(Fine, ..) => Outcome(Fine, "2 calls and their results".to_owned(), None),
                Outcome(status, text, hint) => Outcome(status, text, hint.or_else(one_by_one)),
            },
        };
        self.add("parallel calls", outcome, Some(begin), false);
    }

    /// An answer that fits a schema.
    async fn structured(&mut self) {
        let begin = Instant::now();
        let schema = json!({
            "type": "object",
            "properties": { "colour": { "type": "string" }, "count": { "type": "integer" } },
            "required": ["colour", "count"],
            "additionalProperties": false,
        });
        let asked = self.ask(|r| {
            r.input = vec![user("A box holds three red balls. Give their colour and their count.")];
            r.output_schema = Some(schema);
        });
        let outcome = match asked.await {
            Err(error) => self.failed(&error),
            Ok(said) => match serde_json::from_str::<Value>(said.text.trim()) {
                Ok(value) if value["colour"].is_string() && value["count"].is_i64() => {
                    Outcome(Fine, self.quote(&said.text), None)
                }
                Ok(_) => self.misfit("JSON that does not fit the schema", &said),
                Err(_) => self.misfit("no JSON", &said),
            },
        };
        self.add("structured", outcome, Some(begin), false);
    }

    /// A picture, where the model is said to see them.
    async fn image(&mut self) {
        if !self.config.entry.images {
            self.skip("image", "the engine shows this model no pictures");
            return;
        }
        let begin = Instant::now();
        let text = "Which colour has this picture? Answer with one word.".to_owned();
        let picture = Content::InputImage { image_url: PICTURE.to_owned(), detail: None };
        let content = vec![Content::InputText { text }.into(), picture.into()];
        let message = Message { id: None, role: Role::User, content, phase: None };
        let asked = self.ask(|r| r.input = vec![message.into()]);
        let blind = || Some("set `images = false` for it in `[[models]]`".to_owned());
        let outcome = match asked.await {
            Err(error) => {
                let Outcome(status, text, hint) = self.failed(&error);
                Outcome(status, text, hint.or_else(blind))
            }
            Ok(said) if said.text.to_lowercase().contains("red") => {
                Outcome(Fine, self.quote(&said.text), None)
            }
            Ok(said) => {
                let text = format!("a red square was called {}", self.quote(&said.text));
                Outcome(Warning, text, blind())
            }
        };
        self.add("image", outcome, Some(begin), false);
    }

    /// Words of the application in the middle of a history, as turns have them.
    async fn instructions(&mut self) {
        let begin = Instant::now();
        let said = |role, text: &str| HistoryItem::from(Message::text(role, text));
        let asked = self.ask(|r| {
            r.input = vec![
                user("Say hello."),
                said(Role::Assistant, "Hello."),
                said(Role::Developer, "From now on answer in capital letters."),
                user("Say hello again."),
            ];
        });
        let outcome = match asked.await {
            Err(error) => self.failed(&error),
            Ok(said) if said.text.trim().is_empty() => self.silent(&said),
            Ok(said) => Outcome(Fine, self.quote(&said.text), None),
        };
        self.add("instructions", outcome, Some(begin), false);
    }

    /// Sends back the results of calls.
    async fn answered(&mut self, question: HistoryItem, said: Said) -> Outcome {
        let outputs = said.outputs();
        let asked = self.ask(|r| {
            r.input = std::iter::once(question).chain(said.items).chain(outputs).collect();
            r.tools = vec![tool()];
        });
        match asked.await {
            Err(error) => self.failed(&error),
            Ok(said) if !said.calls().is_empty() => {
                Outcome(Fine, "taken; it calls again".to_owned(), None)
            }
            Ok(said) if said.text.trim().is_empty() => self.silent(&said),
            Ok(said) => Outcome(Fine, self.quote(&said.text), None),
        }
    }

    fn called(&self, said: &Said) -> Outcome {
        let calls = said.calls();
        let Some(call) = calls.first() else {
            let text = format!("it answers with words and no call: {}", self.quote(&said.text));
            let hint = "the server may have to be told to read calls (vLLM: \
                        `--enable-auto-tool-choice --tool-call-parser NAME`, llama.cpp: \
                        `--jinja`), or the model was not taught to call";
            return Outcome(Error, text, Some(hint.to_owned()));
        };
        let arguments: Option<Value> = serde_json::from_str(&call.arguments).ok();
        match arguments {
            Some(Value::Object(_)) if call.name == TOOL => {
                let text = format!("{}({})", call.name, self.shown(&call.arguments));
                Outcome(Fine, text, None)
            }
            Some(Value::Object(_)) => {
                let text = format!("it calls `{}`, which is no tool", self.shown(&call.name));
                Outcome(Error, text, None)
            }
            _ => {
                let text = format!("the arguments are no JSON: {}", self.quote(&call.arguments));
                Outcome(Error, text, None)
            }
        }
    }

    fn misfit(&self, what: &str, said: &Said) -> Outcome {
        let text = format!("the answer is {what}: {}", self.quote(&said.text));
        let id = &self.config.provider.id;
        let hint = format!(
            "on the chat wire set `structured_output` of `[model_providers.{id}.chat]` to \
             `json_object` or `prompt`"
        );
        Outcome(Error, text, Some(hint))
    }

    fn silent(&self, said: &Said) -> Outcome {
        let text = match said.items.is_empty() {
            true => "the answer is empty",
            false => "the answer has no text",
        };
        Outcome(Error, text.to_owned(), None)
    }

    /// The server's words; where a setting would help they name it.
    fn failed(&self, error: &ModelError) -> Outcome {
        let status = error.status.filter(|status| !error.message.contains(&status.to_string()));
        let status = status.map(|status| format!(" (HTTP {status})")).unwrap_or_default();
        let words: String = error.message.chars().take(WORDS).collect();
        let provider = &self.config.provider;
        let hint = match error.kind {
            Fault::Auth => Some(key_hint(provider)),
            Fault::Transport if error.message.contains("cannot reach") => {
                Some(start_hint(provider))
            }
            Fault::ContextOverflow => {
                Some("set `model_context_window` to what the server has".to_owned())
            }
            Fault::Idle => Some("give it longer with `--timeout SECONDS`".to_owned()),
            _ => None,
        };
        Outcome(Error, format!("{words}{status}"), hint)
    }

    fn quote(&self, text: &str) -> String {
        format!("“{}”", self.shown(text))
    }

    fn shown(&self, text: &str) -> String {
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let line = self.respondent.hide(&line);
        match line.char_indices().nth(SHOWN) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => line,
        }
    }

    /// Keeps what came of a probe; whether it went well enough to go on. What went well only after
    /// the wire had mended the request is no more than a warning.
    fn add(
        &mut self,
        name: &'static str,
        Outcome(status, text, hint): Outcome,
        begin: Option<Instant>,
        needed: bool,
    ) -> bool {
        let notices = std::mem::take(&mut self.notices).join("; ");
        let (status, hint) = match status {
            Fine if !notices.is_empty() => (Warning, Some(self.respondent.hide(&notices))),
            _ => (status, hint),
        };
        let millis =
            |begin: Instant| u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.done.push(Probe { name, status, text, hint, ms: begin.map(millis), needed });
        matches!(status, Fine | Warning)
    }

    fn skip(&mut self, name: &'static str, why: &str) {
        self.add(name, Outcome(Skipped, format!("not tried: {why}"), None), None, false);
    }
}
