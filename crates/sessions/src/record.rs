//! Records: the lines of a session file as they are, in bounded memory.
//!
//! A record is whatever stands between two line feeds: JSON, half of it, bytes that are no text.
//! A line over the limit is read through to its end, and binary payloads inside it are left out:
//! a 40 MB image costs no more than its beginning. Text is kept whole, up to a line of 256 MiB.

mod elide;

mod source;

use std::io::{self, Read};

use bindery_core::surrogates::mend;

use self::elide::Elider;
pub use self::elide::Shortened;
pub use self::source::{Source, is_packed, open, open_file, open_within};

/// How the reader bounds its memory.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The longest line that is kept as it is.
    pub line: usize,
    /// What is kept of each binary payload of a longer line.
    pub payload: usize,
    /// What is kept of a line at most, its text included.
    pub total: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { line: 1 << 20, payload: 16 << 10, total: 256 << 20 }
    }
}

impl Limits {
    /// Keeps every line whole, whatever it costs.
    pub fn none() -> Self {
        Self { line: usize::MAX, payload: usize::MAX, total: usize::MAX }
    }
}

/// One line of a file.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Its number, from 1.
    pub line: u64,
    /// Where it begins in the (unpacked) file.
    pub offset: u64,
    /// Its length in the file, without the line feed.
    pub length: u64,
    /// Its bytes, without the line feed and without the payloads of a line over the limit.
    pub raw: &'a [u8],
    /// What the bytes lack.
    pub shortened: Shortened,
    /// A line feed follows; else the file ends here, perhaps in the middle of a write.
    pub ended: bool,
}

/// Reads records from bytes.
pub struct Records<R> {
    source: R,
    limits: Limits,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes after `start` that are known to hold no line feed.
    scanned: usize,
    offset: u64,
    line: u64,
    spill: Elider,
    done: bool,
}

/// Fits the second-level cache, so that a block is still warm when its lines are parsed.
const BLOCK: usize = 256 << 10;

impl<R: Read> Records<R> {
    /// Reads from the beginning of `source`.
    pub fn new(source: R, limits: Limits) -> Self {
        Self::at(source, limits, 0, 0)
    }

    /// Reads from a short source, without a buffer for a long one.
    pub fn small(source: R, limits: Limits, length: usize) -> Self {
        Self::at_block(source, limits, 0, 0, (length + 1).min(BLOCK))
    }

    /// Reads from the middle: `source` stands at `offset`, after `line` lines.
    pub fn at(source: R, limits: Limits, offset: u64, line: u64) -> Self {
        Self::at_block(source, limits, offset, line, BLOCK)
    }

    fn at_block(source: R, limits: Limits, offset: u64, line: u64, block: usize) -> Self {
        Self {
            source,
            limits,
            buffer: vec![0; block],
            start: 0,
            end: 0,
            scanned: 0,
            offset,
            line,
            spill: Elider::new(limits.payload, limits.total),
            done: false,
        }
    }

    /// The next record; none at the end.
    #[expect(clippy::should_implement_trait, reason = "a record borrows the reader's buffer")]
    pub fn next(&mut self) -> io::Result<Option<Record<'_>>> {
        loop {
            let unseen = &self.buffer[self.start + self.scanned..self.end];
            if let Some(at) = memchr::memchr(b'\n', unseen) {
                let length = self.scanned + at;
                return Ok(Some(self.take(length, true)));
            }
            self.scanned = self.end - self.start;
            if self.done {
                let rest = self.scanned;
                return Ok((rest > 0).then(|| self.take(rest, false)));
            }
            if self.scanned > self.limits.line {
                return self.long().map(Some);
            }
            self.fill()?;
        }
    }

    fn take(&mut self, length: usize, ended: bool) -> Record<'_> {
        let from = self.start;
        self.start += length + usize::from(ended);
        self.scanned = 0;
        if length > self.limits.line {
            self.spill.begin();
            self.spill.push(&self.buffer[from..from + length]);
            return self.spilled(length as u64, ended);
        }
        let (offset, length_in_file) = self.advance(length as u64, ended);
        let raw = &mut self.buffer[from..from + length];
        mend(raw);
        let raw = &*raw;
        let line = self.line;
        let shortened = Shortened::default();
        Record { line, offset, length: length_in_file, raw, shortened, ended }
    }

    fn advance(&mut self, length: u64, ended: bool) -> (u64, u64) {
        let offset = self.offset;
        self.offset += length + u64::from(ended);
        self.line += 1;
        (offset, length)
    }

    fn spilled(&mut self, length: u64, ended: bool) -> Record<'_> {
        let (offset, length) = self.advance(length, ended);
        let line = self.line;
        let (raw, shortened) = self.spill.finish();
        Record { line, offset, length, raw, shortened, ended }
    }

    /// Reads a line over the limit through to its end.
    fn long(&mut self) -> io::Result<Record<'_>> {
        self.spill.begin();
        let mut length = 0_u64;
        loop {
            let block = &self.buffer[self.start..self.end];
            let found = memchr::memchr(b'\n', block);
            let piece = &block[..found.unwrap_or(block.len())];
            self.spill.push(piece);
            length += piece.len() as u64;
            self.start += piece.len() + usize::from(found.is_some());
            self.scanned = 0;
            if found.is_some() || (self.done && self.start == self.end) {
                return Ok(self.spilled(length, found.is_some()));
            }
            (self.start, self.end) = (0, 0);
            self.fill()?;
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        if self.end == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        let read = loop {
            match self.source.read(&mut self.buffer[self.end..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        self.end += read;
        self.done = read == 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], limits: Limits) -> Vec<(u64, u64, u64, String, bool, bool)> {
        let mut records = Records::new(bytes, limits);
        let mut all = Vec::new();
        while let Some(record) = records.next().unwrap() {
            let text = String::from_utf8_lossy(record.raw).into_owned();
            let Record { line, offset, length, shortened, ended, .. } = record;
            all.push((line, offset, length, text, shortened.is_none(), ended));
        }
        all
    }

    #[test]
    fn lines_are_records_whatever_they_hold() {
        let bytes = b"{\"a\":1}\n\n\xff\x00\nhalf";
        #[rustfmt::skip]
        let want = vec![
            (1, 0,  7, "{\"a\":1}".to_owned(),   true, true),
            (2, 8,  0, String::new(),            true, true),
            (3, 9,  2, "\u{fffd}\0".to_owned(),  true, true),
            (4, 12, 4, "half".to_owned(),        true, false),
        ];
        assert_eq!(read(bytes, Limits::default()), want);
    }

    #[test]
    fn half_a_surrogate_pair_costs_a_character_and_not_the_line() {
        let long = format!("{{\"a\":\"\\ud83d\",\"b\":\"{}\"}}", "x".repeat(3 << 20));
        for line in [r#"{"a":"\ud83d"}"#, &long] {
            let records = read(line.as_bytes(), Limits::default());
            assert_eq!(records[0].2, line.len() as u64);
            let value: serde_json::Value = serde_json::from_str(&records[0].3).unwrap();
            assert_eq!(value["a"], "\u{fffd}");
        }
    }

    #[test]
    fn a_long_line_stays_json_and_the_next_one_is_found() {
        let image = format!("data:image/png;base64,{}", "x".repeat(3 << 20));
        let long = format!("{{\"n\":7,\"image\":\"{image}\",\"after\":[1]}}");
        let bytes = format!("{long}\n{{}}\n");
        let records = read(bytes.as_bytes(), Limits::default());
        assert_eq!(records.len(), 2);
        let (_, offset, length, text, whole, ended) = &records[0];
        assert_eq!((*offset, *length, *whole, *ended), (0, long.len() as u64, false, true));
        assert!(text.len() < 20_000);
        let value: serde_json::Value = serde_json::from_str(text).unwrap();
        assert_eq!((&value["n"], &value["after"][0]), (&7.into(), &1.into()));
        assert_eq!(records[1].3, "{}");
        assert_eq!(records[1].1, length + 1);
    }

    #[test]
    fn any_block_border_gives_the_same_records() {
        let bytes = format!("{}\n{}\nend", "a".repeat(BLOCK - 1), "b".repeat(BLOCK + 7));
        let lengths: Vec<u64> =
            read(bytes.as_bytes(), Limits::default()).iter().map(|r| r.2).collect();
        assert_eq!(lengths, [BLOCK as u64 - 1, BLOCK as u64 + 7, 3]);
    }
}
