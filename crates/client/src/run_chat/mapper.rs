//! Mappers of stdout: bytes of an agent in, outputs of a run out.

use bindery_core::json_text::JsonText;
use bindery_core::map::exec_to_ndjson::{ExecMapper, Exit, Options};
use bindery_core::map::exec_to_part::{EventParts, ExecParts};
use bindery_core::ndjson::{self, Dialect, Event, Role};

use super::agent::ChatRequest;
use super::{Form, Output};

/// Reads what an agent prints.
pub trait StdoutMapper: Send {
    /// Takes bytes of stdout, cut anywhere.
    fn push(&mut self, bytes: &[u8]) -> Vec<Output>;

    /// Stdout has ended: gives the last line, if it was not ended.
    fn last_line(&mut self) -> Vec<Output> {
        Vec::new()
    }

    /// Takes an event that does not come from stdout.
    fn event(&mut self, event: &Event<'_>) -> Vec<Output>;

    /// Takes the end; gives what is left and the result.
    fn end(&mut self, exit: &Exit) -> Vec<Output>;
}

/// `codex exec --json` → lines of the normalised stream.
#[derive(Debug)]
pub struct NdjsonMapper {
    mapper: ExecMapper,
    dialect: Dialect,
}

impl NdjsonMapper {
    /// A mapper for one run.
    pub fn new(options: Options) -> Self {
        let dialect = options.dialect;
        Self { mapper: ExecMapper::new(options), dialect }
    }
}

impl StdoutMapper for NdjsonMapper {
    fn push(&mut self, bytes: &[u8]) -> Vec<Output> {
        vec![Output::Lines(self.mapper.push(bytes))]
    }

    fn last_line(&mut self) -> Vec<Output> {
        self.push(b"\n")
    }

    fn event(&mut self, event: &Event<'_>) -> Vec<Output> {
        let mut line = Vec::new();
        ndjson::write(event, self.dialect, &mut line);
        vec![Output::Lines(line)]
    }

    fn end(&mut self, exit: &Exit) -> Vec<Output> {
        vec![Output::Lines(self.mapper.flush(exit))]
    }
}

/// `codex exec --json` → stream parts.
#[derive(Debug)]
pub struct PartsMapper(ExecParts);

impl PartsMapper {
    /// A mapper for one run.
    pub fn new(options: Options) -> Self {
        Self(ExecParts::new(options))
    }
}

impl StdoutMapper for PartsMapper {
    fn push(&mut self, bytes: &[u8]) -> Vec<Output> {
        vec![Output::Parts(self.0.push(bytes))]
    }

    fn last_line(&mut self) -> Vec<Output> {
        self.push(b"\n")
    }

    fn event(&mut self, event: &Event<'_>) -> Vec<Output> {
        vec![Output::Parts(self.0.event(event))]
    }

    fn end(&mut self, exit: &Exit) -> Vec<Output> {
        vec![Output::Parts(self.0.flush(exit))]
    }
}

/// Plain text → the words of the answer.
#[derive(Debug)]
pub struct TextMapper {
    form: Form,
    parts: EventParts,
    agent: String,
    model: Option<String>,
    begun: bool,
    /// The beginning of a character whose rest is still to come.
    half: Vec<u8>,
}

impl TextMapper {
    /// A mapper for one run of an agent.
    pub fn new(agent: &str, request: &ChatRequest, form: Form) -> Self {
        Self {
            form,
            parts: EventParts::default(),
            agent: agent.to_owned(),
            model: request.model.clone(),
            begun: false,
            half: Vec::new(),
        }
    }

    fn give(&mut self, event: &Event<'_>) -> Output {
        match self.form {
            Form::Ndjson(dialect) => {
                let mut line = Vec::new();
                ndjson::write(event, dialect, &mut line);
                Output::Lines(line)
            }
            Form::Parts => {
                let mut parts = Vec::new();
                self.parts.take(event, &mut parts);
                Output::Parts(parts)
            }
        }
    }

    fn begin(&mut self) -> Vec<Output> {
        if std::mem::replace(&mut self.begun, true) {
            return Vec::new();
        }
        let (agent, model) = (self.agent.clone(), self.model.clone());
        vec![self.give(&Event::Init {
            session_id: None,
            model_id: model.map(JsonText::from),
            agent: Some(&agent),
            cwd: None,
        })]
    }

    fn say(&mut self, text: &str) -> Vec<Output> {
        let mut outputs = self.begin();
        if !text.is_empty() {
            let (role, content) = (Role::Assistant, JsonText::from(text));
            outputs.push(self.give(&Event::Message { role, content, delta: true, id: None }));
        }
        outputs
    }
}

impl StdoutMapper for TextMapper {
    fn push(&mut self, bytes: &[u8]) -> Vec<Output> {
        self.half.extend_from_slice(bytes);
        let bytes = std::mem::take(&mut self.half);
        let end = match std::str::from_utf8(&bytes) {
            // Only a character that may still become whole is kept back.
            Err(err) if err.error_len().is_none() => err.valid_up_to(),
            _ => bytes.len() - half_at_end(&bytes),
        };
        self.half = bytes[end..].to_vec();
        self.say(&String::from_utf8_lossy(&bytes[..end]))
    }

    fn event(&mut self, event: &Event<'_>) -> Vec<Output> {
        let mut outputs = self.begin();
        outputs.push(self.give(event));
        outputs
    }

    fn end(&mut self, exit: &Exit) -> Vec<Output> {
        let left = std::mem::take(&mut self.half);
        let mut outputs = self.say(&String::from_utf8_lossy(&left));
        let result = exit.result();
        if let Some(message) = result.error.clone() {
            outputs.push(self.give(&Event::Error { message, fatal: true }));
        }
        outputs.push(self.give(&Event::Result(result)));
        outputs
    }
}

/// How many bytes at the end begin a character that is not whole; at most three.
fn half_at_end(bytes: &[u8]) -> usize {
    let tail = &bytes[bytes.len().saturating_sub(3)..];
    let unfinished = |len: &usize| {
        let piece = std::str::from_utf8(&tail[tail.len() - len..]);
        piece.is_err_and(|err| err.error_len().is_none() && err.valid_up_to() == 0)
    };
    (1..=tail.len()).filter(unfinished).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cut_inside_characters_comes_out_whole() {
        let text = "zwölf 🎉 Boxkämpfer";
        for size in 1..9 {
            let request = ChatRequest::new("hi");
            let mut mapper = TextMapper::new("x", &request, Form::Ndjson(Dialect::Compat));
            let mut outputs = Vec::new();
            for chunk in text.as_bytes().chunks(size) {
                outputs.extend(mapper.push(chunk));
            }
            outputs.extend(mapper.end(&Exit::code(0)));
            let mut said = String::new();
            for output in outputs {
                let Output::Lines(lines) = output else { panic!("{output:?}") };
                for line in lines.split(|&b| b == b'\n').filter(|line| !line.is_empty()) {
                    let event: serde_json::Value = serde_json::from_slice(line).unwrap();
                    said.push_str(event["content"].as_str().unwrap_or_default());
                }
            }
            assert_eq!(said, text, "in chunks of {size}");
        }
    }

    #[test]
    fn broken_bytes_are_shown_as_such_and_do_not_stick() {
        let request = ChatRequest::new("hi");
        let mut mapper = TextMapper::new("x", &request, Form::Ndjson(Dialect::Compat));
        mapper.push(b"\xff ok \xe2\x82");
        assert_eq!(mapper.half, b"\xe2\x82");
        mapper.push(b"x");
        assert_eq!(mapper.half, b"");
    }
}
