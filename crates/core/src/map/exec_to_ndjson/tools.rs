//! Tool calls: each is told once, and each gets exactly one result.

use std::collections::VecDeque;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::value::RawValue;

use crate::json_text::JsonText;
use crate::ndjson::{Event, Parameters, State, ToolResult, ToolUse};

/// The most calls that can be open at once; beyond it the oldest is closed.
const OPEN_LIMIT: usize = 4096;

/// How much of an open command's output is kept (as JSON), for the case that its end never comes.
const TAIL_LIMIT: usize = 64 * 1024;

/// A call as a line tells it.
pub(super) struct Call<'a> {
    pub(super) id: JsonText<'a>,
    pub(super) name: JsonText<'a>,
    pub(super) parameters: Parameters<'a>,
    pub(super) call_id: Option<JsonText<'a>>,
}

/// The answer to a call.
pub(super) struct Answer<'a> {
    pub(super) state: State,
    pub(super) output: JsonText<'a>,
    pub(super) exit_code: Option<i64>,
    pub(super) result: Option<&'a RawValue>,
}

/// The calls of a run.
#[derive(Debug, Default)]
pub(super) struct Tools {
    open: VecDeque<Open>,
    /// Calls that were closed without their answer, should it come all the same.
    closed: VecDeque<String>,
    /// Put before the name of every call.
    pub(super) prefix: String,
}

#[derive(Debug)]
struct Open {
    id: String,
    name: String,
    /// `tool_use` was given; a search has no input before it is done.
    told: bool,
    /// Pieces of output as they came: base64 or a list of numbers.
    pieces: VecDeque<Box<str>>,
    bytes: usize,
}

impl Tools {
    pub(super) fn new(prefix: String) -> Self {
        Self { prefix, ..Self::default() }
    }

    /// The name of an item in this stream.
    pub(super) fn name<'a>(&self, id: &JsonText<'a>) -> JsonText<'a> {
        match self.prefix.as_str() {
            "" => id.clone(),
            prefix => JsonText::from(format!("{prefix}{}", id.decode())),
        }
    }

    /// Nothing waits for an answer.
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// A call begins.
    pub(super) fn begin(&mut self, call: Call<'_>, sink: &mut dyn FnMut(&Event<'_>)) {
        if self.announce(&call.id, &call.name, true) {
            self.tell(call, sink);
        }
        self.keep_bound(sink);
    }

    /// A call begins whose input is not yet known.
    pub(super) fn announce(&mut self, id: &JsonText<'_>, name: &JsonText<'_>, told: bool) -> bool {
        let id = id.decode();
        if self.find(&id).is_some() {
            return false;
        }
        let (id, name) = (id.into_owned(), name.decode().into_owned());
        self.open.push_back(Open { id, name, told, pieces: VecDeque::new(), bytes: 0 });
        true
    }

    /// A command printed something.
    pub(super) fn output(&mut self, id: &JsonText<'_>, piece: &str) {
        let Some(at) = self.find(&id.decode()) else { return };
        let Some(open) = self.open.get_mut(at) else { return };
        if piece.len() > TAIL_LIMIT {
            return;
        }
        open.bytes += piece.len();
        open.pieces.push_back(piece.into());
        while open.bytes > TAIL_LIMIT {
            open.bytes -= open.pieces.pop_front().map_or(open.bytes, |piece| piece.len());
        }
    }

    /// A call is answered; one that was never told of is told now.
    pub(super) fn end(
        &mut self,
        call: Call<'_>,
        answer: Answer<'_>,
        sink: &mut dyn FnMut(&Event<'_>),
    ) {
        let open = self.find(&call.id.decode()).and_then(|at| self.open.remove(at));
        if open.is_none() && self.was_closed(&call.id) {
            return;
        }
        let result = ToolResult {
            tool_id: self.name(&call.id),
            tool_name: call.name.clone(),
            status: answer.state.status(),
            output: answer.output,
            state: answer.state,
            exit_code: answer.exit_code,
            result: answer.result,
        };
        if open.is_none_or(|open| !open.told) {
            self.tell(call, sink);
        }
        sink(&Event::ToolResult(result));
    }

    /// A call is answered by a line that says nothing else about it.
    pub(super) fn answer(
        &mut self,
        id: &JsonText<'_>,
        answer: Answer<'_>,
        sink: &mut dyn FnMut(&Event<'_>),
    ) {
        let at = self.find(&id.decode());
        let name = at.and_then(|at| self.open.get(at)).map(|open| open.name.clone());
        let name = JsonText::from(name.unwrap_or_else(|| "unknown".to_owned()));
        let call = Call { id: id.clone(), name, parameters: Parameters::Empty {}, call_id: None };
        self.end(call, answer, sink);
    }

    /// Gives every open call a result, so that none looks as if it still ran.
    pub(super) fn close(&mut self, state: State, sink: &mut dyn FnMut(&Event<'_>)) {
        while let Some(open) = self.open.pop_front() {
            self.close_one(open, state, sink);
        }
    }

    /// A new run begins in the same stream; names may come again.
    pub(super) fn forget(&mut self) {
        self.closed.clear();
    }

    fn close_one(&mut self, open: Open, state: State, sink: &mut dyn FnMut(&Event<'_>)) {
        let output = open.text();
        let Open { id, name, told, .. } = open;
        let (raw_id, name) = (JsonText::from(id.as_str()), JsonText::from(name));
        if !told {
            let parameters = Parameters::Empty {};
            let call = Call { id: raw_id.clone(), name: name.clone(), parameters, call_id: None };
            self.tell(call, sink);
        }
        sink(&Event::ToolResult(ToolResult {
            tool_id: self.name(&raw_id),
            tool_name: name,
            status: state.status(),
            output: JsonText::from(output),
            state,
            exit_code: None,
            result: None,
        }));
        if self.closed.len() >= OPEN_LIMIT {
            self.closed.pop_front();
        }
        self.closed.push_back(id);
    }

    fn tell(&self, call: Call<'_>, sink: &mut dyn FnMut(&Event<'_>)) {
        sink(&Event::ToolUse(ToolUse {
            tool_id: self.name(&call.id),
            tool_name: call.name,
            parameters: call.parameters,
            call_id: call.call_id,
        }));
    }

    fn keep_bound(&mut self, sink: &mut dyn FnMut(&Event<'_>)) {
        while self.open.len() > OPEN_LIMIT
            && let Some(open) = self.open.pop_front()
        {
            self.close_one(open, State::Incomplete, sink);
        }
    }

    fn find(&self, id: &str) -> Option<usize> {
        self.open.iter().position(|open| open.id == id)
    }

    fn was_closed(&self, id: &JsonText<'_>) -> bool {
        !self.closed.is_empty() && self.closed.iter().any(|closed| *closed == id.decode())
    }
}

impl Open {
    /// What was printed last.
    fn text(&self) -> String {
        let bytes: Vec<u8> = self.pieces.iter().flat_map(|piece| bytes_of(piece)).collect();
        String::from_utf8_lossy(&bytes).trim_start_matches('\u{fffd}').to_owned()
    }
}

fn bytes_of(piece: &str) -> Vec<u8> {
    match piece.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(text) => BASE64_STANDARD.decode(text).unwrap_or_default(),
        None => serde_json::from_str(piece).unwrap_or_default(),
    }
}
