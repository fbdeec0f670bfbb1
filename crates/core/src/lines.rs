//! Bytes cut into lines: bounded memory, any chunking, nothing scanned twice.

/// How much of an over-long line is kept, so that it can still be named.
pub const HEAD: usize = 4096;

/// One line of a stream, without its line ending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// A line within the limit.
    Whole(Vec<u8>),
    /// A line over the limit; only its beginning was kept.
    TooLong {
        /// The first [`HEAD`] bytes.
        head: Vec<u8>,
        /// Length of the whole line, without its line feed.
        bytes: u64,
    },
}

/// One line of a stream, without its line ending and without a copy of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineRef<'a> {
    /// A line within the limit.
    Whole(&'a [u8]),
    /// A line over the limit; only its beginning was kept.
    TooLong {
        /// The first [`HEAD`] bytes.
        head: &'a [u8],
        /// Length of the whole line, without its line feed.
        bytes: u64,
    },
}

/// Cuts a byte stream into lines; a chunk may end anywhere.
#[derive(Debug)]
pub struct LineSplitter {
    limit: usize,
    /// The unfinished line, or the head of one that is already too long.
    tail: Vec<u8>,
    /// Length of the unfinished line, kept or not.
    seen: u64,
}

impl LineSplitter {
    /// Takes the longest line to be kept whole, in bytes.
    pub fn new(limit: usize) -> Self {
        Self { limit, tail: Vec::new(), seen: 0 }
    }

    /// Feeds bytes and yields the lines they complete; must be iterated to its end.
    pub fn push<'a>(&'a mut self, mut chunk: &'a [u8]) -> impl Iterator<Item = Line> + 'a {
        std::iter::from_fn(move || self.take(&mut chunk))
    }

    /// Feeds the front of `chunk` up to the first line feed; `None` means all of it was taken.
    pub fn take(&mut self, chunk: &mut &[u8]) -> Option<Line> {
        match memchr::memchr(b'\n', chunk) {
            Some(at) => {
                let piece = &chunk[..at];
                *chunk = &chunk[at + 1..];
                self.keep(piece);
                Some(self.line())
            }
            None => {
                self.keep(std::mem::take(chunk));
                None
            }
        }
    }

    /// As [`Self::take`], but lends the line: one that lies whole in the chunk is not copied.
    pub fn read<'s, 'c: 's>(&'s mut self, chunk: &mut &'c [u8]) -> Option<LineRef<'s>> {
        let Some(at) = memchr::memchr(b'\n', chunk) else {
            self.keep(std::mem::take(chunk));
            return None;
        };
        let (piece, rest) = (&chunk[..at], &chunk[at + 1..]);
        *chunk = rest;
        if self.seen == 0 && piece.len() <= self.limit {
            return Some(LineRef::Whole(without_return(piece)));
        }
        self.keep(piece);
        Some(self.lend())
    }

    /// As [`Self::finish`], but lends the line.
    pub fn read_last(&mut self) -> Option<LineRef<'_>> {
        (self.seen > 0).then(|| self.lend())
    }

    /// Ends the stream: a last line without a line feed still counts.
    pub fn finish(&mut self) -> Option<Line> {
        (self.seen > 0).then(|| self.line())
    }

    fn keep(&mut self, piece: &[u8]) {
        // A line that was lent is still in the buffer.
        if self.seen == 0 {
            self.tail.clear();
            self.tail.shrink_to(ROOM);
        }
        self.seen += piece.len() as u64;
        if self.seen <= self.limit as u64 {
            self.tail.extend_from_slice(piece);
            return;
        }
        let room = HEAD.saturating_sub(self.tail.len()).min(piece.len());
        self.tail.extend_from_slice(&piece[..room]);
        self.tail.truncate(HEAD);
        self.tail.shrink_to(HEAD);
    }

    fn lend(&mut self) -> LineRef<'_> {
        let bytes = std::mem::take(&mut self.seen);
        if bytes > self.limit as u64 {
            return LineRef::TooLong { head: &self.tail, bytes };
        }
        LineRef::Whole(without_return(&self.tail))
    }

    fn line(&mut self) -> Line {
        let bytes = std::mem::take(&mut self.seen);
        let mut line = std::mem::take(&mut self.tail);
        if bytes > self.limit as u64 {
            return Line::TooLong { head: line, bytes };
        }
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        Line::Whole(line)
    }
}

/// Memory kept for the next line that is cut by the end of a chunk.
const ROOM: usize = 1024 * 1024;

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(limit: usize, chunks: &[&[u8]]) -> Vec<Line> {
        let mut splitter = LineSplitter::new(limit);
        let mut lines = Vec::new();
        for chunk in chunks {
            lines.extend(splitter.push(chunk));
        }
        lines.extend(splitter.finish());
        lines
    }

    /// The same through the lending side.
    fn lent(limit: usize, chunks: &[&[u8]]) -> Vec<Line> {
        let own = |line: LineRef<'_>| match line {
            LineRef::Whole(line) => Line::Whole(line.to_vec()),
            LineRef::TooLong { head, bytes } => Line::TooLong { head: head.to_vec(), bytes },
        };
        let mut splitter = LineSplitter::new(limit);
        let mut lines = Vec::new();
        for mut chunk in chunks.iter().copied() {
            while let Some(line) = splitter.read(&mut chunk) {
                lines.push(own(line));
            }
        }
        lines.extend(splitter.read_last().map(own));
        lines
    }

    fn whole(text: &str) -> Line {
        Line::Whole(text.into())
    }

    #[test]
    fn reads_lines_with_either_ending() {
        let lines = split(99, &[b"one\ntwo\r\n\n\r\nlast"]);
        assert_eq!(lines, [whole("one"), whole("two"), whole(""), whole(""), whole("last")]);
        assert_eq!(split(99, &[b"one\n"]), [whole("one")]);
        assert_eq!(split(99, &[]), []);
    }

    #[test]
    fn an_over_long_line_is_named_and_the_next_one_read() {
        let lines = split(3, &[b"abc\nabcd\nok\nabcde"]);
        let long = |head: &str, bytes| Line::TooLong { head: head.into(), bytes };
        assert_eq!(lines, [whole("abc"), long("abcd", 4), whole("ok"), long("abcde", 5)]);
    }

    #[test]
    fn memory_stays_bounded_however_long_the_line() {
        let mut splitter = LineSplitter::new(64 * 1024);
        let chunk = vec![b'x'; 10_000];
        for _ in 0..5_000 {
            assert_eq!(splitter.push(&chunk).count(), 0);
            assert!(splitter.tail.capacity() <= 2 * 64 * 1024);
        }
        assert!(splitter.tail.capacity() <= HEAD);
        let lines: Vec<_> = splitter.push(b"\nnext\n").collect();
        let long = Line::TooLong { head: vec![b'x'; HEAD], bytes: 50_000_000 };
        assert_eq!(lines, [long, whole("next")]);
    }

    #[test]
    fn chunk_borders_never_matter() {
        let text = "{\"a\":1}\r\nzwölf Boxkämpfer\n\n\r\ntoo long for the limit of this test\nx\r";
        for limit in [0, 1, 7, 18, 99] {
            let whole = split(limit, &[text.as_bytes()]);
            for cut in 0..=text.len() {
                let (a, b) = text.as_bytes().split_at(cut);
                assert_eq!(split(limit, &[a, b]), whole, "limit {limit}, cut at {cut}");
            }
        }
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_same_lines(
            bytes in prop::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), any::<u8>()], 0..400),
            limit in 0..40_usize,
            size in 1..50_usize,
        ) {
            let chunks: Vec<_> = bytes.chunks(size).collect();
            let lines = split(limit, &chunks);
            prop_assert_eq!(&lines, &split(limit, &[&bytes]));
            prop_assert_eq!(&lines, &lent(limit, &chunks));
            prop_assert_eq!(&lines, &lent(limit, &[&bytes]));
        }

        #[test]
        fn lines_agree_with_the_standard_splitter(
            bytes in prop::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..400),
        ) {
            let mut want: Vec<_> = bytes
                .split(|&byte| byte == b'\n')
                .map(|line| Line::Whole(line.strip_suffix(b"\r").unwrap_or(line).to_vec()))
                .collect();
            if bytes.last().is_none_or(|&byte| byte == b'\n') {
                want.pop();
            }
            prop_assert_eq!(split(usize::MAX, &[&bytes]), want);
        }
    }
}
