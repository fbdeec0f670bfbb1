//! A log of every line to and from an app-server, with secrets masked.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::mpsc;

use crate::transport::{Incoming, QUEUE, Transport};

/// Which way a line went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From us.
    Sent,
    /// To us.
    Received,
}

type Write = dyn Fn(Direction, &str) + Send + Sync;

/// Takes the lines of a connection.
#[derive(Clone)]
pub struct PacketLog {
    write: Arc<Write>,
}

impl PacketLog {
    /// A log that gives each line, masked, to this function.
    pub fn new(write: impl Fn(Direction, &str) + Send + Sync + 'static) -> Self {
        Self { write: Arc::new(write) }
    }

    fn write(&self, direction: Direction, line: &[u8]) {
        (self.write)(direction, &masked(&String::from_utf8_lossy(line)));
    }
}

impl fmt::Debug for PacketLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PacketLog")
    }
}

/// The same transport, with every line logged.
pub fn logged(transport: Transport, log: &PacketLog) -> Transport {
    let Transport { outgoing, mut incoming, send_limit, closer } = transport;
    let (sender, mut to_send) = mpsc::channel::<Vec<u8>>(QUEUE);
    let (receiver, received) = mpsc::channel(QUEUE);
    let (out, closing) = (log.clone(), closer.closing());
    closer.track(async move {
        // Whoever sends outlives the connection, so its end must be noticed here.
        while let Some(Some(line)) = closing.run_until_cancelled(to_send.recv()).await {
            out.write(Direction::Sent, &line);
            if outgoing.send(line).await.is_err() {
                break;
            }
        }
    });
    let log = log.clone();
    closer.track(async move {
        while let Some(message) = incoming.recv().await {
            if let Incoming::Line(line) = &message {
                log.write(Direction::Received, line);
            }
            if receiver.send(message).await.is_err() {
                break;
            }
        }
    });
    Transport { outgoing: sender, incoming: received, send_limit, closer }
}

/// A line with the values of secret fields, and what looks like a key, replaced.
pub fn masked(line: &str) -> String {
    match serde_json::from_str::<Value>(line) {
        Ok(mut value) => {
            mask(&mut value);
            value.to_string()
        }
        Err(_) => words(line),
    }
}

const MASK: &str = "***";

fn mask(value: &mut Value) {
    match value {
        Value::Object(map) => map.iter_mut().for_each(|(key, value)| match value {
            Value::String(text) if is_secret(key) => *text = MASK.to_owned(),
            other => mask(other),
        }),
        Value::Array(values) => values.iter_mut().for_each(mask),
        Value::String(text) => {
            let clean = words(text);
            if clean != *text {
                *text = clean;
            }
        }
        _ => {}
    }
}

/// Counts of tokens are numbers and stay; ids and cursors have other names.
fn is_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    ["token", "secret", "password", "passwd", "apikey", "api_key", "authorization", "credential"]
        .iter()
        .any(|word| key.contains(word))
}

/// Masks the words that look like keys: `sk-…`, `ghp_…`, and what follows `Bearer`.
fn words(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut after_bearer = false;
    for word in text.split_inclusive(|c: char| c.is_whitespace() || "\"'`,;()".contains(c)) {
        let bare = word.trim_end_matches(|c: char| c.is_whitespace() || "\"'`,;()".contains(c));
        let is_key = ["sk-", "ghp_", "gho_", "github_pat_", "xoxb-", "AKIA"]
            .iter()
            .any(|prefix| bare.starts_with(prefix) && bare.len() > prefix.len() + 8);
        if is_key || (after_bearer && bare.len() > 8) {
            clean.push_str(MASK);
            clean.push_str(&word[bare.len()..]);
        } else {
            clean.push_str(word);
        }
        after_bearer = bare.eq_ignore_ascii_case("bearer");
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked_and_nothing_else() {
        #[rustfmt::skip]
        let table = [
            (r#"{"apiKey":"abc","n":1}"#,                 r#"{"apiKey":"***","n":1}"#),
            (r#"{"totalTokens":120,"x":["a b"]}"#,        r#"{"totalTokens":120,"x":["a b"]}"#),
            (r#"{"h":{"Authorization":"Bearer x"}}"#,     r#"{"h":{"Authorization":"***"}}"#),
            (r#"{"text":"use sk-abcdefghijkl, then"}"#,   r#"{"text":"use ***, then"}"#),
            (r#"{"cmd":"curl -H 'x: Bearer abcdefghijk'"}"#, r#"{"cmd":"curl -H 'x: Bearer ***'"}"#),
            ("not json: ghp_abcdefghijklmn end",          "not json: *** end"),
        ];
        for (line, want) in table {
            assert_eq!(masked(line), want);
        }
    }
}
