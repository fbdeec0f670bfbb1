//! Diffs of file changes.

use bindery_core::item::{ChangeKind, FileChange};

/// One line of a diff.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    Added(&'a str),
    Removed(&'a str),
    Hunk(&'a str),
    Context(&'a str),
}

/// The lines of a change; an added or deleted file is all of its content.
pub(super) fn lines(change: &FileChange) -> impl Iterator<Item = Line<'_>> {
    change.diff.lines().map(move |line| match (&change.kind, line.as_bytes().first()) {
        (ChangeKind::Add, _) => Line::Added(line),
        (ChangeKind::Delete, _) => Line::Removed(line),
        (_, Some(b'+')) => Line::Added(&line[1..]),
        (_, Some(b'-')) => Line::Removed(&line[1..]),
        (_, Some(b'@')) => Line::Hunk(line),
        (_, Some(b' ')) => Line::Context(&line[1..]),
        _ => Line::Context(line),
    })
}

/// Lines added and removed.
pub(super) fn counts(change: &FileChange) -> (usize, usize) {
    lines(change).fold((0, 0), |(added, removed), line| match line {
        Line::Added(_) => (added + 1, removed),
        Line::Removed(_) => (added, removed + 1),
        _ => (added, removed),
    })
}
