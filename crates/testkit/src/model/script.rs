//! The script as data: replies, when each applies, and the steps each is made of.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What the model says, over all requests it will get.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    /// Tried in order for each request: the first that applies and is not used up answers.
    pub replies: Vec<Reply>,
}

/// The answer to one request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Reply {
    /// Which requests it may answer; by default all.
    pub when: When,
    /// How often it may be used; by default once.
    pub times: Times,
    /// What is streamed. `response.completed` follows by itself unless a step ends the stream.
    pub steps: Vec<Step>,
}

/// Conditions on a request; all that are set must hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct When {
    /// Text found in the last user message.
    pub user: Option<String>,
    /// Text found anywhere in the JSON of the input.
    pub input: Option<String>,
    /// Whether the last input item (developer messages aside) is the output of a tool.
    pub after_tool: Option<bool>,
    /// The id of a call whose output is in the input.
    pub output_of: Option<String>,
    /// The exact name of the model asked for.
    pub model: Option<String>,
    /// Text found in a header, by lower-case header name; `""` asks only that it is there.
    pub headers: BTreeMap<String, String>,
}

/// How often a reply may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Times {
    /// Without end: the default answer, or the last one repeated.
    Always,
    /// So many times.
    #[serde(untagged)]
    Count(u32),
}

/// One thing the model does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    /// An assistant message.
    Text {
        /// The whole text.
        text: String,
        /// Characters per delta; 0 sends one delta.
        #[serde(default)]
        chunk: usize,
        /// `commentary` or `final_answer`, as newer models say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        phase: Option<String>,
    },
    /// An assistant message that is begun and never completed: what a cut leaves behind.
    Begin {
        /// The text so far, as one delta.
        text: String,
    },
    /// A reasoning item.
    Reasoning {
        /// Summary parts, each streamed as one delta.
        #[serde(default)]
        summary: Vec<String>,
        /// Raw reasoning texts, each streamed as one delta.
        #[serde(default)]
        content: Vec<String>,
    },
    /// A function call. Several in one reply are several calls at once.
    Call {
        /// The tool.
        name: String,
        /// Its arguments; a string is sent as it is, so that broken JSON can be sent too. A string
        /// inside them such as `${call_1.agent_id}` is filled from the output of an earlier call.
        #[serde(default)]
        arguments: Value,
        /// Pairs the call with its output.
        call_id: String,
        /// The namespace of a tool that lives in one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        namespace: Option<String>,
    },
    /// A call of a custom (free-form) tool such as `apply_patch`.
    CustomCall {
        /// The tool.
        name: String,
        /// Its input, as it is.
        input: String,
        /// Pairs the call with its output.
        call_id: String,
    },
    /// A web search done by the provider.
    WebSearch {
        /// What was searched for.
        query: String,
    },
    /// Any output item: sent as added, then as done.
    Item {
        /// The item.
        item: Value,
    },
    /// Any stream event, named by its `type`.
    Event {
        /// The event.
        event: Value,
    },
    /// The numbers `response.completed` will carry.
    Usage(Usage),
    /// A plain HTTP answer instead of a stream; only as the first step that sends anything.
    Status {
        /// The status code.
        status: u16,
        /// The body.
        body: Value,
        /// Further headers.
        #[serde(default)]
        headers: BTreeMap<String, String>,
    },
    /// Ends the stream with `response.failed`.
    Failed {
        /// The error code, for example `context_length_exceeded`.
        code: String,
        /// The error text.
        message: String,
    },
    /// Ends the stream with `response.incomplete`.
    Incomplete {
        /// The reason, for example `max_output_tokens`.
        reason: String,
    },
    /// Waits.
    Delay {
        /// For so long.
        ms: u64,
    },
    /// Waits until the test opens this gate once more.
    Gate {
        /// The gate.
        name: String,
    },
    /// Sends bytes as they are, inside the stream.
    Bytes {
        /// The bytes.
        bytes: Bytes,
    },
    /// Ends the connection in the middle of the stream.
    Cut,
    /// Ends the connection without any answer, if none was begun.
    HangUp,
    /// Leaves the stream open and says nothing more.
    Silence,
}

/// Bytes, as text where they are text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Bytes {
    /// UTF-8.
    Text(String),
    /// Anything.
    Raw(Vec<u8>),
}

/// Token counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Usage {
    /// Tokens of the request.
    pub input: u64,
    /// Those of them that were cached.
    pub cached: u64,
    /// Tokens of the answer.
    pub output: u64,
    /// Those of them that were reasoning.
    pub reasoning: u64,
}

impl Script {
    /// A script of these replies.
    pub fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self { replies: replies.into_iter().collect() }
    }

    /// A model that always says the same.
    pub fn always(text: &str) -> Self {
        Self::new([Reply::text(text).always()])
    }
}

impl From<Vec<Reply>> for Script {
    fn from(replies: Vec<Reply>) -> Self {
        Self { replies }
    }
}

impl Reply {
    /// A reply of these steps.
    pub fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        Self { steps: steps.into_iter().collect(), ..Self::default() }
    }

    /// A reply that is one message.
    pub fn text(text: &str) -> Self {
        Self::new([Step::text(text)])
    }

    /// May be used without end.
    pub fn always(self) -> Self {
        Self { times: Times::Always, ..self }
    }

    /// May be used so many times.
    pub fn times(self, count: u32) -> Self {
        Self { times: Times::Count(count), ..self }
    }

    /// Only if the last user message contains this.
    pub fn when_user(mut self, text: &str) -> Self {
        self.when.user = Some(text.to_owned());
        self
    }

    /// Only if the JSON of the input contains this.
    pub fn when_input(mut self, text: &str) -> Self {
        self.when.input = Some(text.to_owned());
        self
    }

    /// Only if the last input item is, or is not, the output of a tool.
    pub fn when_after_tool(mut self, after_tool: bool) -> Self {
        self.when.after_tool = Some(after_tool);
        self
    }

    /// Only if the output of this call is in the input.
    pub fn when_output_of(mut self, call_id: &str) -> Self {
        self.when.output_of = Some(call_id.to_owned());
        self
    }

    /// Only if this header contains this text.
    pub fn when_header(mut self, name: &str, text: &str) -> Self {
        self.when.headers.insert(name.to_lowercase(), text.to_owned());
        self
    }
}

impl Step {
    /// A message in one delta.
    pub fn text(text: &str) -> Self {
        Self::Text { text: text.to_owned(), chunk: 0, phase: None }
    }

    /// A message in deltas of so many characters.
    pub fn chunked(text: &str, chunk: usize) -> Self {
        Self::Text { text: text.to_owned(), chunk, phase: None }
    }

    /// A message that is begun and never completed.
    pub fn begin(text: &str) -> Self {
        Self::Begin { text: text.to_owned() }
    }

    /// A message said while working, before a tool call.
    pub fn commentary(text: &str) -> Self {
        Self::Text { text: text.to_owned(), chunk: 0, phase: Some("commentary".to_owned()) }
    }

    /// Reasoning with these summary parts.
    pub fn reasoning<'a>(summary: impl IntoIterator<Item = &'a str>) -> Self {
        Self::Reasoning {
            summary: summary.into_iter().map(str::to_owned).collect(),
            content: Vec::new(),
        }
    }

    /// A function call.
    pub fn call(name: &str, arguments: Value, call_id: &str) -> Self {
        let (name, call_id) = (name.to_owned(), call_id.to_owned());
        Self::Call { name, arguments, call_id, namespace: None }
    }

    /// A call of the shell tool Codex 0.166 offers.
    pub fn exec(cmd: &str, call_id: &str) -> Self {
        Self::call("exec_command", serde_json::json!({ "cmd": cmd }), call_id)
    }

    /// A call of a tool that lives in a namespace.
    pub fn call_in(namespace: &str, name: &str, arguments: Value, call_id: &str) -> Self {
        let (name, call_id) = (name.to_owned(), call_id.to_owned());
        Self::Call { name, arguments, call_id, namespace: Some(namespace.to_owned()) }
    }

    /// A custom tool call.
    pub fn custom(name: &str, input: &str, call_id: &str) -> Self {
        let (name, call_id) = (name.to_owned(), call_id.to_owned());
        Self::CustomCall { name, input: input.to_owned(), call_id }
    }

    /// A patch through the custom tool `apply_patch`; the text begins at `*** Begin Patch`.
    pub fn patch(patch: &str, call_id: &str) -> Self {
        Self::custom("apply_patch", patch, call_id)
    }

    /// An HTTP status with the usual error body.
    pub fn status(status: u16, kind: &str, message: &str) -> Self {
        let body = serde_json::json!({ "error": { "type": kind, "message": message } });
        Self::Status { status, body, headers: BTreeMap::new() }
    }

    /// 429 as a used-up plan answers it: Codex does not retry.
    pub fn usage_limit() -> Self {
        let body = serde_json::json!({ "error": {
            "type": "usage_limit_reached",
            "message": "The usage limit has been reached",
            "plan_type": "pro",
            "resets_in_seconds": 3600,
        } });
        Self::Status { status: 429, body, headers: BTreeMap::new() }
    }

    /// 429 that says when to come again; Codex 0.166 gives up at once on one that does not.
    pub fn rate_limit(retry_after: u32) -> Self {
        let body = serde_json::json!({ "error": { "type": "rate_limit", "message": "slow down" } });
        let headers = BTreeMap::from([("retry-after".to_owned(), retry_after.to_string())]);
        Self::Status { status: 429, body, headers }
    }

    /// `response.failed` with this code.
    pub fn failed(code: &str, message: &str) -> Self {
        Self::Failed { code: code.to_owned(), message: message.to_owned() }
    }

    /// Waits for [`Model::open`](super::Model::open).
    pub fn gate(name: &str) -> Self {
        Self::Gate { name: name.to_owned() }
    }

    /// Raw bytes.
    pub fn bytes(bytes: &[u8]) -> Self {
        Self::Bytes { bytes: Bytes::Raw(bytes.to_vec()) }
    }
}

impl Bytes {
    /// The bytes themselves.
    pub fn as_slice(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Raw(bytes) => bytes,
        }
    }
}

impl Default for Times {
    fn default() -> Self {
        Self::Count(1)
    }
}

impl Default for Usage {
    fn default() -> Self {
        Self { input: 100, cached: 10, output: 20, reasoning: 5 }
    }
}
