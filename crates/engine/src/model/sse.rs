//! Server-sent events from bytes that are cut anywhere.
//!
//! Our own and not a crate: lines and events must have a bound, and what is no field at all must be
//! counted, since a server that says only such lines is not a model.

use memchr::memchr2;

/// The longest event we keep. Finished responses repeat everything that was said in them.
const MAX_EVENT: usize = 32 * 1024 * 1024;

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Event {
    /// The field `event`; empty where there is none.
    pub name: String,
    /// The fields `data`, a line each.
    pub data: String,
    /// The field `id`, or that of an earlier event.
    pub id: String,
}

/// A line or an event beyond the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event longer than {MAX_EVENT} bytes")]
pub(super) struct TooLong;

/// Feeds on chunks, gives events.
#[derive(Debug, Default)]
pub(super) struct Parser {
    line: Vec<u8>,
    name: String,
    id: String,
    data: Vec<u8>,
    has_data: bool,
    /// A line feed that comes next belongs to the carriage return before it.
    after_return: bool,
    begun: bool,
    strange: usize,
}

impl Parser {
    /// Takes a chunk, adds the events it completes.
    pub(super) fn push(
        &mut self,
        mut chunk: &[u8],
        events: &mut Vec<Event>,
    ) -> Result<(), TooLong> {
        while !chunk.is_empty() {
            if std::mem::take(&mut self.after_return) && chunk[0] == b'\n' {
                chunk = &chunk[1..];
                continue;
            }
            let end = memchr2(b'\n', b'\r', chunk);
            let piece = &chunk[..end.unwrap_or(chunk.len())];
            if self.line.len() + self.data.len() + piece.len() > MAX_EVENT {
                return Err(TooLong);
            }
            self.line.extend_from_slice(piece);
            let Some(end) = end else { return Ok(()) };
            self.after_return = chunk[end] == b'\r';
            chunk = &chunk[end + 1..];
            events.extend(self.end_line());
        }
        Ok(())
    }

    /// Ends the stream: some servers forget the empty line after the last event.
    pub(super) fn finish(&mut self) -> Option<Event> {
        let last = if self.line.is_empty() { None } else { self.end_line() };
        last.or_else(|| self.dispatch())
    }

    /// How many lines were no field.
    pub(super) fn strange(&self) -> usize {
        self.strange
    }

    fn end_line(&mut self) -> Option<Event> {
        let mut line = std::mem::take(&mut self.line);
        if !std::mem::replace(&mut self.begun, true) && line.starts_with(b"\xef\xbb\xbf") {
            line.drain(..3);
        }
        if line.is_empty() {
            return self.dispatch();
        }
        self.field(&line);
        // Given back for its memory.
        line.clear();
        self.line = line;
        None
    }

    fn field(&mut self, line: &[u8]) {
        let colon = memchr::memchr(b':', line).unwrap_or(line.len());
        let value = line.get(colon + 1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match &line[..colon] {
            b"" | b"retry" => {}
            b"data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
            }
            b"event" => self.name = String::from_utf8_lossy(value).into_owned(),
            // llama.cpp tells an error in a field of its own.
            b"error" => {
                "error".clone_into(&mut self.name);
                self.has_data = true;
                self.data.extend_from_slice(value);
            }
            b"id" if !value.contains(&0) => self.id = String::from_utf8_lossy(value).into_owned(),
            _ => self.strange += 1,
        }
    }

    fn dispatch(&mut self) -> Option<Event> {
        let name = std::mem::take(&mut self.name);
        let data = std::mem::take(&mut self.data);
        if !std::mem::take(&mut self.has_data) {
            return None;
        }
        let data = String::from_utf8(data)
            .unwrap_or_else(|err| String::from_utf8_lossy(err.as_bytes()).into_owned());
        Some(Event { name, data, id: self.id.clone() })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Event, MAX_EVENT, Parser, TooLong};

    fn read(chunks: &[&[u8]]) -> (Vec<Event>, usize) {
        let mut parser = Parser::default();
        let mut events = Vec::new();
        for chunk in chunks {
            parser.push(chunk, &mut events).unwrap();
        }
        events.extend(parser.finish());
        (events, parser.strange())
    }

    fn event(name: &str, data: &str, id: &str) -> Event {
        Event { name: name.to_owned(), data: data.to_owned(), id: id.to_owned() }
    }

    #[test]
    fn fields_are_read_as_the_standard_says() {
        #[rustfmt::skip]
        let table: &[(&[u8], Vec<Event>, usize)] = &[
            (b"data: a\n\n",                       vec![event("", "a", "")], 0),
            (b"data:a\r\n\r\n",                    vec![event("", "a", "")], 0),
            (b"data: a\r\rdata: b\r\r",            vec![event("", "a", ""), event("", "b", "")], 0),
            (b"event: x\ndata: a\ndata:  b\n\n",   vec![event("x", "a\n b", "")], 0),
            (b": ping\n\nid: 7\ndata: a\n\ndata\n\n", vec![event("", "a", "7"), event("", "", "7")], 0),
            (b"event: lost\n\ndata: a\n\n",        vec![event("", "a", "")], 0),
            (b"\xef\xbb\xbfdata: a\n\n",           vec![event("", "a", "")], 0),
            (b"data: \xff\n\n",                    vec![event("", "\u{fffd}", "")], 0),
            (b"retry: 5\ndata: a",                 vec![event("", "a", "")], 0),
            (b"error: {}\n\n",                      vec![event("error", "{}", "")], 0),
            (b"<html>\n<p>no</p>\n\n",             vec![], 2),
            (b"\xff\xfe garbage\n\ndata: a\n\n",   vec![event("", "a", "")], 1),
            (b"",                                  vec![], 0),
        ];
        for (bytes, events, strange) in table {
            assert_eq!(read(&[bytes]), (events.clone(), *strange), "{bytes:?}");
        }
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let mut parser = Parser::default();
        let mut events = Vec::new();
        let chunk = vec![b'x'; MAX_EVENT];
        assert_eq!(parser.push(&chunk, &mut events), Ok(()));
        assert_eq!(parser.push(b"y", &mut events), Err(TooLong));
        let mut parser = Parser::default();
        let line = [b"data: ".as_slice(), &vec![b'x'; MAX_EVENT / 2], b"\n"].concat();
        assert_eq!(parser.push(&line, &mut events), Ok(()));
        assert_eq!(parser.push(&line, &mut events), Err(TooLong));
    }

    proptest! {
        #[test]
        fn any_cut_gives_the_same_events(
            lines in prop::collection::vec(
                prop::sample::select(vec![
                    "data: a", "data:b", "event: e", "id: 1", ": c", "", "", "odd", "data: ä€",
                ]), 0..20),
            ends in prop::collection::vec(prop::sample::select(vec!["\n", "\r", "\r\n"]), 20),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        ) {
            let text: String = lines.iter().zip(&ends).map(|(l, e)| format!("{l}{e}")).collect();
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|two| &bytes[two[0]..two[1]]).collect();
            prop_assert_eq!(read(&chunks), read(&[bytes]));
        }
    }
}
