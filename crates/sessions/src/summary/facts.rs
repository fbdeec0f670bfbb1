//! Facts for a summary, gathered from some lines of a file.

use bindery_core::ids::ThreadId;
use serde_json::Value;

use super::{Relation, SessionStatus, Summary};
use crate::clock::millis;
use crate::line::Envelope;
use crate::normalise::{injected_topic, plain_user_text};
use crate::record::{Limits, Record, Records};
use crate::wire::{
    Completed, Edge, Message, Meta, TextItem, ThreadTotal, TokenCount, TurnContext, UserEvent,
};

/// Lines looked at for the user's first words.
const LINES: u64 = 200;
/// The longest title.
const TITLE: usize = 200;

/// What some lines tell.
#[derive(Debug, Default)]
pub(super) struct Facts {
    meta: Option<Meta>,
    title: Option<String>,
    /// The first words in the model's half, if no client's half confirms them.
    likely_title: Option<String>,
    hint: Option<String>,
    name: Option<String>,
    context: Option<TurnContext>,
    environment: Option<String>,
    first_ms: Option<i64>,
    last_ms: Option<i64>,
    tokens: Option<u64>,
    status: SessionStatus,
}

impl Facts {
    /// Reads lines from the beginning until the usual things are known.
    pub(super) fn head(&mut self, bytes: &[u8]) {
        let limits = Limits { line: 512 << 10, payload: 4 << 10, total: 4 << 20 };
        let mut records = Records::small(bytes, limits, bytes.len());
        while let Ok(Some(record)) = records.next() {
            self.head_line(&record);
            let enough = self.title.is_some() && self.context.is_some();
            if enough || record.line >= LINES {
                break;
            }
        }
    }

    /// Nothing more is to be learned from a longer head.
    pub(super) fn is_known(&self) -> bool {
        self.meta.is_some() && (self.title.is_some() || self.hint.is_some())
    }

    /// Reads the last lines.
    pub(super) fn tail(&mut self, bytes: &[u8]) {
        let limits = Limits { line: 64 << 10, payload: 1 << 10, total: 64 << 20 };
        let mut records = Records::small(bytes, limits, bytes.len());
        while let Ok(Some(record)) = records.next() {
            self.tail_line(&record);
        }
    }

    pub(super) fn summary(self) -> Summary {
        let meta = self.meta.unwrap_or_default();
        let context = self.context;
        let (relation, source) = relation_of(&meta);
        let parent = meta.parent_thread_id.clone().or_else(|| spawner(meta.source.as_ref()?));
        let title = self.name.or(self.title).or(self.hint).or(self.likely_title);
        let title = title.or_else(|| meta.agent_path.clone());
        let latest_cwd = context.as_ref().and_then(|context| context.cwd.clone());
        Summary {
            id: meta.id.or(meta.session_id).map(ThreadId::new),
            title: title.map(|title| shorten(&title)),
            cwd: latest_cwd.or(meta.cwd).or(self.environment),
            branch: meta.git.and_then(|git| git.branch),
            model: context.and_then(|context| context.model),
            version: meta.cli_version,
            source: source.or(meta.originator),
            created_ms: meta.timestamp.as_deref().and_then(millis).or(self.first_ms),
            updated_ms: self.last_ms,
            tokens: self.tokens,
            status: self.status,
            parent: parent.or(meta.forked_from_id).map(ThreadId::new),
            relation,
            nickname: meta.agent_nickname,
            ..Summary::default()
        }
    }

    fn head_line(&mut self, record: &Record<'_>) {
        let Ok(line) = Envelope::read(record) else { return };
        if let (Some(start), Some(at)) =
            (self.meta.as_ref().and_then(Meta::own_start), line.ordinal)
            && at < start
        {
            // What a sub-agent was given of its parent are not its own words.
            return;
        }
        self.first_ms = self.first_ms.or_else(|| line.time_ms());
        match (line.kind, line.inner) {
            ("session_meta", _) | ("", "header") if self.meta.is_none() => {
                self.meta = line.payload().ok().map(|(meta, _)| meta);
            }
            ("turn_context", _) => self.context(&line),
            ("event_msg", "user_message") => {
                let text = line.payload::<UserEvent>().ok().map(|(event, _)| event.message);
                self.first_words(text);
            }
            ("event_msg", "item_completed") => self.item(&line),
            ("event_msg", "entered_review_mode") => self.review(&line),
            ("response_item" | "", "message") => self.message(&line),
            _ => {}
        }
    }

    fn context(&mut self, line: &Envelope<'_>) {
        if let Ok((context, _)) = line.payload() {
            self.context = Some(context);
        }
    }

    fn item(&mut self, line: &Envelope<'_>) {
        match crate::normalise::item_kind(line).as_deref() {
            Ok("UserMessage") => {
                let Ok((done, _)) = line.payload::<Completed<TextItem>>() else { return };
                let pieces = done.item.content.iter();
                let texts = pieces.filter_map(|piece| piece.get("text")?.as_str());
                self.first_words(Some(texts.collect::<Vec<_>>().join("\n")));
            }
            Ok("EnteredReviewMode") => self.review(line),
            _ => {}
        }
    }

    fn review(&mut self, line: &Envelope<'_>) {
        let Ok((value, _)) = line.payload::<Value>() else { return };
        let hint =
            value.get("user_facing_hint").or_else(|| value.get("item")?.get("user_facing_hint"));
        self.hint = hint.and_then(Value::as_str).map(|hint| format!("review: {hint}"));
    }

    fn message(&mut self, line: &Envelope<'_>) {
        let Ok((message, _)) = line.payload::<Message>() else { return };
        if message.role != "user" {
            return;
        }
        let texts = message.content.into_iter().filter_map(|block| block.text);
        for text in texts {
            match injected_topic(&text) {
                Some("environment") => {
                    let cwd =
                        text.split_once("<cwd>").and_then(|(_, rest)| rest.split_once("</cwd>"));
                    self.environment =
                        cwd.map(|(cwd, _)| cwd.to_owned()).or(self.environment.take());
                }
                Some(_) => {}
                None if self.likely_title.is_none() && !text.trim().is_empty() => {
                    self.likely_title = Some(plain_user_text(&text).to_owned());
                }
                None => {}
            }
        }
    }

    fn first_words(&mut self, text: Option<String>) {
        let text = text.filter(|text| !text.trim().is_empty());
        if self.title.is_none() {
            self.title = text.map(|text| plain_user_text(&text).to_owned());
        }
    }

    fn tail_line(&mut self, record: &Record<'_>) {
        let Ok(line) = Envelope::read(record) else { return };
        self.last_ms = line.time_ms().or(self.last_ms);
        match (line.kind, line.inner) {
            ("turn_context", _) => self.context(&line),
            ("token_usage_record", _) => {
                let total =
                    line.payload::<ThreadTotal>().ok().and_then(|(t, _)| t.thread_token_usage);
                self.tokens = total.map(|total| total.total_tokens).or(self.tokens);
            }
            ("event_msg", "token_count") => {
                let info = line.payload::<TokenCount>().ok().and_then(|(count, _)| count.info);
                self.tokens = info.map(|i| i.total_token_usage.total_tokens).or(self.tokens);
            }
            ("event_msg", "task_started" | "turn_started") => self.status = SessionStatus::Open,
            ("event_msg", "turn_aborted") => self.status = SessionStatus::Aborted,
            ("event_msg", "task_complete" | "turn_complete") => {
                let failed = line.payload::<Edge>().is_ok_and(|(edge, _)| edge.error.is_some());
                self.status = if failed { SessionStatus::Failed } else { SessionStatus::Done };
            }
            ("event_msg", "thread_name_updated") => {
                let value = line.payload::<Value>().ok().map(|(value, _)| value);
                let name = value.and_then(|v| Some(v.get("thread_name")?.as_str()?.to_owned()));
                self.name = name.or(self.name.take());
            }
            _ => {}
        }
    }
}

fn relation_of(meta: &Meta) -> (Option<Relation>, Option<String>) {
    let agent = meta.source.as_ref().and_then(|source| source.get("subagent"));
    let source = match (&meta.source, agent) {
        (Some(Value::String(word)), _) => Some(word.clone()),
        (_, Some(_)) => Some("subagent".to_owned()),
        _ => None,
    };
    let relation = match agent {
        Some(Value::String(kind)) if kind == "review" => Some(Relation::Review),
        Some(_) => Some(Relation::SubAgent),
        None if meta.forked_from_id.is_some() => Some(Relation::Fork),
        None => None,
    };
    (relation, source)
}

/// The thread that spawned a sub-agent.
fn spawner(source: &Value) -> Option<String> {
    let spawn = source.get("subagent")?.get("thread_spawn")?;
    Some(spawn.get("parent_thread_id")?.as_str()?.to_owned())
}

/// One line, bounded.
fn shorten(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    let end = line.floor_char_boundary(TITLE);
    if end < line.len() { format!("{}…", &line[..end]) } else { line.to_owned() }
}
