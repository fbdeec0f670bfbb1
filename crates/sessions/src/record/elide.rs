//! Leaving binary payloads out of a JSON text while it streams by. Text is kept whole.
//!
//! A payload is a long run of base64: after `base64,`, or one that uses most of the alphabet. A
//! run of one letter, of digits or of words is text, however long it is.

use bindery_core::surrogates::mend;

/// Keeps a JSON text without its binary payloads, so that it still parses.
#[derive(Debug)]
pub(super) struct Elider {
    /// Bytes kept of each payload.
    payload: usize,
    /// Bytes kept of the whole; text beyond it is left out, too.
    total: usize,
    out: Vec<u8>,
    state: State,
    run: Run,
    /// The escape that is being read.
    escape: Vec<u8>,
    /// The text is longer than `total`: no more of it is kept.
    is_full: bool,
    /// Bytes of the current string that there was no room for.
    unread: u64,
    shortened: Shortened,
}

/// What was left out of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shortened {
    /// Binary payloads that were cut.
    pub payloads: u64,
    /// Bytes of base64 that are not there.
    pub payload_bytes: u64,
    /// Bytes of text that are not there: the line is longer than anything that is kept.
    pub text_bytes: u64,
}

impl Shortened {
    /// Nothing is missing.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// Base64 that is being read.
#[derive(Debug, Default)]
struct Run {
    /// Bytes kept.
    kept: usize,
    /// The letters seen, a bit for each.
    letters: u64,
    /// It stands after `base64,`.
    is_marked: bool,
    /// It was found to be text.
    is_text: bool,
    /// Bytes left out.
    dropped: u64,
}

/// Random bytes of 16 KiB use all 64 letters; identifiers, hex and numbers do not.
const MANY_LETTERS: u32 = 48;
/// Brackets and keys are kept as far as this beyond the limit, so that the text stays JSON.
const STRUCTURE: usize = 1 << 20;
/// A buffer larger than this is given back.
const KEPT_BUFFER: usize = 4 << 20;

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Outside,
    Inside,
    Escape,
}

impl Elider {
    pub(super) fn new(payload: usize, total: usize) -> Self {
        Self {
            payload,
            total,
            out: Vec::new(),
            state: State::Outside,
            run: Run::default(),
            escape: Vec::new(),
            is_full: false,
            unread: 0,
            shortened: Shortened::default(),
        }
    }

    /// Begins a new text.
    pub(super) fn begin(&mut self) {
        let mut out = std::mem::take(&mut self.out);
        out.clear();
        out.shrink_to(KEPT_BUFFER);
        *self = Self { out, ..Self::new(self.payload, self.total) };
    }

    /// Takes more of the text.
    pub(super) fn push(&mut self, mut bytes: &[u8]) {
        while let Some(&first) = bytes.first() {
            bytes = match self.state {
                State::Outside => self.outside(bytes),
                State::Inside => self.inside(bytes),
                State::Escape => {
                    self.escaped(first);
                    &bytes[1..]
                }
            };
        }
    }

    /// The text as far as it was kept, and what was not.
    pub(super) fn finish(&mut self) -> (&[u8], Shortened) {
        // A text that ends within a string is no JSON anyway; its numbers must be right.
        self.end_run();
        self.shortened.text_bytes += std::mem::take(&mut self.unread);
        mend(&mut self.out);
        (&self.out, self.shortened)
    }

    fn outside<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let end = memchr::memchr(b'"', bytes);
        let piece = &bytes[..end.map_or(bytes.len(), |end| end + 1)];
        let room = (self.total.saturating_add(STRUCTURE)).saturating_sub(self.out.len());
        let kept = piece.len().min(room);
        self.out.extend_from_slice(&piece[..kept]);
        self.shortened.text_bytes += (piece.len() - kept) as u64;
        if end.is_some() {
            self.state = State::Inside;
        }
        &bytes[piece.len()..]
    }

    fn inside<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let end = memchr::memchr2(b'"', b'\\', bytes).unwrap_or(bytes.len());
        let (piece, rest) = bytes.split_at(end);
        self.plain(piece);
        match rest.first() {
            Some(b'"') => self.close(),
            Some(_) => {
                self.escape.clear();
                self.escape.push(b'\\');
                self.state = State::Escape;
            }
            None => return rest,
        }
        &rest[1..]
    }

    /// Bytes of a string without escapes: runs of base64, and text between them.
    fn plain(&mut self, mut piece: &[u8]) {
        while !piece.is_empty() {
            let end = piece.iter().position(|byte| letter(*byte).is_none());
            let (run, rest) = piece.split_at(end.unwrap_or(piece.len()));
            self.base64(run);
            let end = rest.iter().position(|byte| letter(*byte).is_some());
            let (text, rest) = rest.split_at(end.unwrap_or(rest.len()));
            if !text.is_empty() {
                self.end_run();
                self.write(text);
            }
            piece = rest;
        }
    }

    fn base64(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if self.run.dropped > 0 {
            self.run.dropped += bytes.len() as u64;
            return;
        }
        if self.run.kept == 0 {
            self.run.is_marked = self.out.ends_with(b"base64,");
        }
        let room = if self.run.is_text { bytes.len() } else { self.payload - self.run.kept };
        let (kept, rest) = bytes.split_at(bytes.len().min(room));
        if !self.run.is_text {
            self.run.kept += kept.len();
            let seen = kept.iter().filter_map(|byte| letter(*byte));
            self.run.letters |= seen.fold(0, |seen, letter| seen | 1 << letter);
        }
        self.write(kept);
        if rest.is_empty() {
            return;
        }
        if self.run.is_marked || self.run.letters.count_ones() >= MANY_LETTERS {
            self.run.dropped = rest.len() as u64;
        } else {
            self.run.is_text = true;
            self.write(rest);
        }
    }

    fn end_run(&mut self) {
        let run = std::mem::take(&mut self.run);
        if run.dropped > 0 {
            self.shortened.payloads += 1;
            self.shortened.payload_bytes += run.dropped;
            self.write(format!("…[{} bytes of base64 left out]", run.dropped).as_bytes());
        }
    }

    fn escaped(&mut self, byte: u8) {
        self.escape.push(byte);
        let length = if self.escape[1] == b'u' { 6 } else { 2 };
        if self.escape.len() < length {
            return;
        }
        self.state = State::Inside;
        // Some writers escape the slash, which is a letter of base64.
        if byte == b'/' && length == 2 && self.run.dropped > 0 {
            self.run.dropped += 2;
            return;
        }
        if byte != b'/' || length != 2 {
            self.end_run();
        }
        let escape = std::mem::take(&mut self.escape);
        self.write(&escape);
        self.escape = escape;
    }

    fn close(&mut self) {
        self.end_run();
        if self.unread > 0 {
            let note = format!("…[{} bytes not read]", self.unread);
            self.out.extend_from_slice(note.as_bytes());
            self.shortened.text_bytes += std::mem::take(&mut self.unread);
        }
        self.out.push(b'"');
        self.state = State::Outside;
    }

    /// Keeps bytes of a string as far as there is room.
    fn write(&mut self, bytes: &[u8]) {
        let room = if self.is_full { 0 } else { self.total.saturating_sub(self.out.len()) };
        // An escape is kept whole or not at all.
        let is_escape = bytes.first() == Some(&b'\\');
        let kept = if is_escape && bytes.len() > room { 0 } else { bytes.len().min(room) };
        self.out.extend_from_slice(&bytes[..kept]);
        if kept < bytes.len() {
            self.unread += (bytes.len() - kept) as u64;
            if !std::mem::replace(&mut self.is_full, true) {
                self.unpair();
            }
        }
    }

    /// Half a character, or half a surrogate pair, would be no JSON.
    fn unpair(&mut self) {
        let at = self.out.len().saturating_sub(6);
        let tail = self.out[at..].to_ascii_lowercase();
        let is_half = tail.starts_with(b"\\ud") && matches!(tail.get(3), Some(b'8'..=b'b'));
        let near = self.out.len().saturating_sub(4);
        let lead = self.out[near..].iter().rposition(|byte| byte & 0xc0 != 0x80);
        let end = match lead.map(|lead| near + lead) {
            _ if is_half => at,
            Some(lead) if std::str::from_utf8(&self.out[lead..]).is_err() => lead,
            _ => return,
        };
        self.unread += (self.out.len() - end) as u64;
        self.out.truncate(end);
    }
}

/// The number of a letter of base64 (of either alphabet); the sign for padding counts as one.
fn letter(byte: u8) -> Option<u32> {
    Some(u32::from(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' | b'-' => 62,
        b'/' | b'_' | b'=' => 63,
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALPHABET: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    fn elided(text: &str, payload: usize, total: usize, cut: usize) -> (String, Shortened) {
        let mut elider = Elider::new(payload, total);
        elider.begin();
        elider.push(&text.as_bytes()[..cut]);
        elider.push(&text.as_bytes()[cut..]);
        let (kept, shortened) = elider.finish();
        (String::from_utf8(kept.to_vec()).unwrap(), shortened)
    }

    #[test]
    fn any_cut_gives_the_same_json() {
        let text = format!(
            r#"{{"a":"0123456789","b":"\ud83d\ude00\ud83d\ude00","c":"äöüäöüäöü","d":"\\\"x\n",
                "e":"data:x;base64,{ALPHABET}\/{ALPHABET} and {ALPHABET}"}}"#
        );
        for (payload, total) in (0..24).map(|n| (64, n * 9)).chain([(64, 1 << 20), (0, 1 << 20)]) {
            let want = elided(&text, payload, total, 0);
            serde_json::from_str::<serde_json::Value>(&want.0).unwrap();
            for cut in (0..text.len()).filter(|cut| text.is_char_boundary(*cut)) {
                assert_eq!(elided(&text, payload, total, cut), want, "cut at {cut}, {total}");
            }
        }
    }

    #[test]
    fn payloads_are_left_out_and_text_is_not() {
        let base64 = ALPHABET.repeat(8);
        #[rustfmt::skip]
        let table = [
            ("a".repeat(500),                               0),
            ("0123456789abcdef".repeat(40),                 0),
            ("word word ".repeat(90),                       0),
            ("日本語".repeat(90),                            0),
            (base64.clone(),                                1),
            (format!("data:image/png;base64,{}", "A".repeat(500)), 1),
            (format!("see {base64} and {base64}: what is it?"), 2),
        ];
        for (text, payloads) in table {
            let line = format!("{{\"text\":\"{text}\",\"after\":1}}");
            let (kept, shortened) = elided(&line, 128, 1 << 20, 0);
            assert_eq!(shortened.payloads, payloads, "{text}");
            assert_eq!((kept == line, shortened.text_bytes), (payloads == 0, 0), "{text}");
            assert!(kept.ends_with("\",\"after\":1}"));
            assert_eq!(kept.contains("what is it?"), text.contains("what is it?"));
        }
    }
}
