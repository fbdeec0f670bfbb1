//! The script as data: what the server waits for and what it does.
//!
//! Strings in a message that is sent are filled: `"$id"` is the id of the last message received,
//! `"$params.threadId"` and `"$result.decision"` are fields of it, `"$fill"` is the filler of
//! [`Step::Huge`], and `$n` anywhere in a string is the round of the innermost loop, from 1.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::model::Bytes;

/// What a scripted app-server does, from its start to its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    /// Done in order; after the last, the server reads on until its input ends, then ends well.
    pub steps: Vec<Step>,
    /// Where the process writes the messages it received, one a line, as they come.
    pub record: Option<PathBuf>,
    /// Whether the process lives on when asked to terminate, so that it must be killed.
    pub ignore_terminate: bool,
}

/// One thing the server does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    /// The next message must have this method; anything else fails the script.
    Expect {
        /// The method.
        method: String,
    },
    /// Skips messages up to one with this method.
    Await {
        /// The method.
        method: String,
    },
    /// The next message must be an answer to our request with this id.
    ExpectAnswer {
        /// The id.
        id: Value,
    },
    /// Waits for so many more messages of any kind.
    Receive {
        /// How many.
        count: usize,
    },
    /// Answers the last message received.
    Reply {
        /// The result.
        result: Value,
    },
    /// Refuses the last message received.
    Refuse {
        /// The error code.
        code: i64,
        /// The error text.
        message: String,
    },
    /// Sends a message.
    Send {
        /// The message.
        message: Value,
    },
    /// Sends bytes as they are: half a line, not JSON, not UTF-8.
    Bytes {
        /// The bytes.
        bytes: Bytes,
    },
    /// Sends a message in which the string `"$fill"` is replaced by so many letters.
    Huge {
        /// The message.
        message: Value,
        /// How many letters.
        bytes: usize,
    },
    /// Writes to standard error; nothing in memory.
    Stderr {
        /// The text, without its newline.
        text: String,
    },
    /// Waits.
    Delay {
        /// For so long.
        ms: u64,
    },
    /// Closes the output and lives on.
    CloseOutput,
    /// Ends at once, with a code or, without one, by abort.
    Crash {
        /// The exit code.
        #[serde(default)]
        code: Option<i32>,
    },
    /// Reads on and says nothing; ends well when the input does.
    Silence,
    /// Neither reads nor writes nor ends.
    Hang,
    /// Does these steps again and again.
    Repeat {
        /// How often; without it, until the input ends.
        #[serde(default)]
        times: Option<u32>,
        /// The steps.
        steps: Vec<Step>,
    },
}

impl Script {
    /// A script of these groups of steps, one after the other.
    pub fn new(groups: impl IntoIterator<Item = Vec<Step>>) -> Self {
        Self { steps: groups.into_iter().flatten().collect(), ..Self::default() }
    }

    /// Writes the script where the process is told to read it.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn write(&self, path: &Path) {
        let text = serde_json::to_string_pretty(self).expect("a script is JSON");
        std::fs::write(path, text).expect("a place for the script");
    }
}

impl Step {
    /// The next message must have this method.
    pub fn expect(method: &str) -> Self {
        Self::Expect { method: method.to_owned() }
    }

    /// Skips to a message with this method.
    pub fn wait_for(method: &str) -> Self {
        Self::Await { method: method.to_owned() }
    }

    /// Answers the last message received.
    pub fn reply(result: Value) -> Self {
        Self::Reply { result }
    }

    /// Answers under an id nobody asked with.
    pub fn stray_reply(id: Value, result: Value) -> Self {
        Self::Send { message: json!({ "id": id, "result": result }) }
    }

    /// Refuses as a server does that has too much to do.
    pub fn overload() -> Self {
        Self::Refuse { code: -32001, message: "Server overloaded; retry later.".to_owned() }
    }

    /// Sends a notification, stamped as Codex stamps it.
    pub fn notify(method: &str, params: Value) -> Self {
        let message =
            json!({ "method": method, "params": params, "emittedAtMs": super::shapes::MS });
        Self::Send { message }
    }

    /// Sends a request of the server to the client.
    pub fn request(id: Value, method: &str, params: Value) -> Self {
        Self::Send { message: json!({ "id": id, "method": method, "params": params }) }
    }

    /// Raw bytes.
    pub fn bytes(bytes: &[u8]) -> Self {
        Self::Bytes { bytes: Bytes::Raw(bytes.to_vec()) }
    }

    /// Ends at once with this code.
    pub fn crash(code: i32) -> Self {
        Self::Crash { code: Some(code) }
    }
}
