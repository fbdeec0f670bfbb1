//! Cutting long strings of a JSON text short while it streams by.

/// Keeps a JSON text with its long strings cut, so that it still parses.
#[derive(Debug)]
pub(super) struct Elider {
    /// Bytes kept of each string.
    string: usize,
    /// Bytes kept of the whole.
    total: usize,
    out: Vec<u8>,
    state: State,
    /// Bytes of the current string that were kept, and that were not.
    kept: usize,
    dropped: u64,
    /// The escape that is being read.
    escape: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Outside,
    Inside,
    Escape,
}

impl Elider {
    pub(super) fn new(string: usize, total: usize) -> Self {
        Self {
            string,
            total,
            out: Vec::new(),
            state: State::Outside,
            kept: 0,
            dropped: 0,
            escape: Vec::new(),
        }
    }

    /// Begins a new text.
    pub(super) fn begin(&mut self) {
        self.out.clear();
        self.state = State::Outside;
        (self.kept, self.dropped) = (0, 0);
        self.escape.clear();
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

    /// The text as far as it was kept.
    pub(super) fn finish(&mut self) -> &[u8] {
        &self.out
    }

    fn outside<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let end = memchr::memchr(b'"', bytes);
        let piece = &bytes[..end.map_or(bytes.len(), |end| end + 1)];
        self.write(piece);
        if end.is_some() {
            self.state = State::Inside;
            (self.kept, self.dropped) = (0, 0);
        }
        &bytes[piece.len()..]
    }

    fn inside<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let end = memchr::memchr2(b'"', b'\\', bytes).unwrap_or(bytes.len());
        let (piece, rest) = bytes.split_at(end);
        self.keep(piece);
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

    /// Keeps plain bytes of a string as far as there is room.
    fn keep(&mut self, piece: &[u8]) {
        let room = if self.dropped > 0 { 0 } else { self.string - self.kept };
        let end = piece.len().min(room);
        self.write(&piece[..end]);
        self.kept += end;
        self.dropped += (piece.len() - end) as u64;
    }

    fn escaped(&mut self, byte: u8) {
        self.escape.push(byte);
        let length = if self.escape[1] == b'u' { 6 } else { 2 };
        if self.escape.len() < length {
            return;
        }
        self.state = State::Inside;
        if self.dropped == 0 && self.kept + length <= self.string {
            let escape = std::mem::take(&mut self.escape);
            self.write(&escape);
            self.escape = escape;
            self.kept += length;
        } else {
            self.dropped += length as u64;
        }
    }

    fn close(&mut self) {
        if self.dropped > 0 {
            self.unpair();
            let note = format!("…[{} bytes not read]", self.dropped);
            self.write(note.as_bytes());
        }
        self.write(b"\"");
        self.state = State::Outside;
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
        self.dropped += (self.out.len() - end) as u64;
        self.out.truncate(end);
    }

    fn write(&mut self, bytes: &[u8]) {
        let room = self.total.saturating_sub(self.out.len());
        self.out.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_cut_gives_the_same_json() {
        let text =
            r#"{"a":"0123456789","b":"\ud83d\ude00\ud83d\ude00","c":"äöüäöüäöü","d":"\\\"x\n"}"#;
        for string in 0..24 {
            let mut whole = Elider::new(string, 1 << 20);
            whole.begin();
            whole.push(text.as_bytes());
            let want = whole.finish().to_vec();
            serde_json::from_slice::<serde_json::Value>(&want).unwrap();
            for cut in 0..text.len() {
                let mut parts = Elider::new(string, 1 << 20);
                parts.begin();
                parts.push(&text.as_bytes()[..cut]);
                parts.push(&text.as_bytes()[cut..]);
                assert_eq!(parts.finish(), want, "cut at {cut}, {string} kept");
            }
        }
    }
}
