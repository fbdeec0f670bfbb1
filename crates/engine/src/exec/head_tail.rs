//! The beginning and the end of an output of any length, in bounded memory.

use std::collections::VecDeque;

use crate::truncate::gap;

/// Bytes that are kept of one output: half of them from its beginning, half from its end.
pub const MOST: usize = 1024 * 1024;

/// Keeps the first and the last bytes it is given, and counts them all.
#[derive(Clone, Debug)]
pub struct HeadTail {
    room: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
    line_ends: u64,
    last: Option<u8>,
}

impl Default for HeadTail {
    fn default() -> Self {
        Self::new(MOST)
    }
}

impl HeadTail {
    /// Keeps at most this many bytes.
    pub fn new(most: usize) -> Self {
        Self {
            room: most,
            head: Vec::new(),
            tail: VecDeque::new(),
            total: 0,
            line_ends: 0,
            last: None,
        }
    }

    /// Adds to the end.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        self.line_ends += memchr::memchr_iter(b'\n', bytes).count() as u64;
        self.last = bytes.last().copied().or(self.last);
        let free = self.room / 2 - self.head.len();
        let (first, rest) = bytes.split_at(bytes.len().min(free));
        self.head.extend_from_slice(first);
        let most = self.room - self.room / 2;
        let rest = &rest[rest.len().saturating_sub(most)..];
        let over = (self.tail.len() + rest.len()).saturating_sub(most);
        self.tail.drain(..over);
        self.tail.extend(rest);
    }

    /// How many bytes there were.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// How many lines there were; one without an end counts.
    pub fn lines(&self) -> u64 {
        self.line_ends + u64::from(self.last.is_some_and(|byte| byte != b'\n'))
    }

    /// How many bytes of the middle are gone.
    pub fn omitted(&self) -> u64 {
        self.total - (self.head.len() + self.tail.len()) as u64
    }

    /// What was kept. Bytes that are no text are shown as `U+FFFD`; if the middle is gone, a line
    /// in its place says so.
    pub fn text(&self) -> String {
        let omitted = self.omitted();
        if omitted == 0 {
            let tail = self.tail.iter().copied();
            let whole: Vec<u8> = self.head.iter().copied().chain(tail).collect();
            return lossy(whole);
        }
        let head = &self.head[..self.head.len() - unfinished(&self.head)];
        let cut = self.tail.iter().take(3).take_while(|byte| **byte & 0xC0 == 0x80).count();
        let tail: Vec<u8> = self.tail.iter().copied().skip(cut).collect();
        let head = String::from_utf8_lossy(head);
        format!("{head}\n{}\n{}", gap(omitted), lossy(tail))
    }
}

/// Text of bytes that are text nearly always, without a second copy of them.
fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// How many bytes at the end are the beginning of a character whose rest has not come.
pub(super) fn unfinished(bytes: &[u8]) -> usize {
    let last = bytes.iter().rev().take(3).position(|byte| byte & 0xC0 == 0xC0);
    let Some(back) = last else { return 0 };
    let length = match bytes[bytes.len() - 1 - back] {
        0xC0..=0xDF => 2,
        0xE0..=0xEF => 3,
        _ => 4,
    };
    if back + 1 < length { back + 1 } else { 0 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pushed(most: usize, pieces: &[&[u8]]) -> HeadTail {
        let mut buffer = HeadTail::new(most);
        pieces.iter().for_each(|piece| buffer.push(piece));
        buffer
    }

    #[test]
    fn what_fits_is_kept_whole() {
        let buffer = pushed(8, &[b"ab\n", b"", b"cd\n", b"ef"]);
        assert_eq!(buffer.text(), "ab\ncd\nef");
        assert_eq!((buffer.total(), buffer.lines(), buffer.omitted()), (8, 3, 0));
    }

    #[test]
    fn the_middle_goes_first() {
        let buffer = pushed(8, &[b"abcdefgh", b"ijklmnop"]);
        assert_eq!(buffer.text(), "abcd\n... 8 bytes omitted ...\nmnop");
        let at_once = pushed(8, &[b"abcdefghijklmnop"]);
        assert_eq!(at_once.text(), buffer.text());
    }

    #[test]
    fn a_character_is_not_cut_in_two() {
        let buffer = pushed(8, &["éüñ".as_bytes(), "xx".as_bytes(), "€€".as_bytes()]);
        assert_eq!(buffer.text(), "éü\n... 6 bytes omitted ...\n€");
        assert_eq!(unfinished("a€".as_bytes()), 0);
        assert_eq!(unfinished(&"a€".as_bytes()[..3]), 2);
        assert_eq!(unfinished(&[0xFF]), 1);
        assert_eq!(unfinished(&[]), 0);
    }

    #[test]
    fn bytes_that_are_no_text_are_shown() {
        assert_eq!(pushed(8, &[&[0x61, 0xFF, 0x62]]).text(), "a\u{FFFD}b");
    }

    #[test]
    fn memory_is_bounded() {
        let mut buffer = HeadTail::default();
        let piece = vec![b'x'; 3 * 1024 * 1024 + 1];
        (0..4).for_each(|_| buffer.push(&piece));
        assert_eq!(buffer.total() - buffer.omitted(), MOST as u64);
    }

    #[test]
    fn where_pieces_begin_and_end_changes_nothing() {
        let text = "äöü\n🎉 end";
        for size in 1..text.len() {
            let pieces: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
            let buffer = pushed(text.len(), &pieces);
            assert_eq!((buffer.text().as_str(), buffer.lines(), buffer.omitted()), (text, 2, 0));
        }
    }

    proptest! {
        #[test]
        fn a_buffer_never_keeps_more_than_its_room(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..20),
            room in 0_usize..64,
        ) {
            let mut buffer = HeadTail::new(room);
            pieces.iter().for_each(|piece| buffer.push(piece));
            let all = pieces.concat();
            prop_assert!(buffer.head.len() + buffer.tail.len() <= room);
            prop_assert_eq!(buffer.omitted(), all.len().saturating_sub(room) as u64);
            prop_assert!(all.starts_with(&buffer.head));
            prop_assert!(all.ends_with(&buffer.tail.iter().copied().collect::<Vec<_>>()));
            let _ = buffer.text();
        }
    }
}
