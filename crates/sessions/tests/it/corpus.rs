//! The corpus of real session files: those of older versions packed, those of newer ones in a folder
//! for each version.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// One file of the corpus.
pub(crate) struct Entry {
    /// `0.166.0/shell.rollout.jsonl`.
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
}

pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/sessions")
}

/// All files, of every kind.
pub(crate) fn all() -> &'static [Entry] {
    static ALL: OnceLock<Vec<Entry>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut entries = unpack("corpus.zst");
        entries.extend(unpacked());
        entries
    })
}

/// The files in folders, by name.
fn unpacked() -> Vec<Entry> {
    let list = |folder: &Path| {
        let mut paths: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths
    };
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    let mut entries = Vec::new();
    for version in list(&folder()).into_iter().filter(|path| path.is_dir()) {
        for path in list(&version) {
            let name = format!("{}/{}", name(&version), name(&path));
            entries.push(Entry { name, bytes: std::fs::read(&path).unwrap() });
        }
    }
    entries
}

/// All session files.
pub(crate) fn sessions() -> impl Iterator<Item = &'static Entry> {
    let endings = [".rollout.jsonl", ".snapshot.jsonl"];
    all().iter().filter(move |entry| endings.iter().any(|ending| entry.name.ends_with(ending)))
}

/// One file.
pub(crate) fn file(name: &str) -> &'static Entry {
    all().iter().find(|entry| entry.name == name).unwrap_or_else(|| panic!("no {name}"))
}

pub(crate) fn unpack(name: &str) -> Vec<Entry> {
    let file = std::fs::File::open(folder().join(name)).unwrap();
    let mut bytes = Vec::new();
    ruzstd::decoding::StreamingDecoder::new(file).unwrap().read_to_end(&mut bytes).unwrap();
    let (mut rest, mut entries) = (bytes.as_slice(), Vec::new());
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| *byte == b'\n').unwrap();
        let head = std::str::from_utf8(&rest[1..end]).unwrap();
        let (name, length) = head.rsplit_once(' ').unwrap();
        let length: usize = length.parse().unwrap();
        let body = &rest[end + 1..end + 1 + length];
        entries.push(Entry { name: name.to_owned(), bytes: body.to_vec() });
        rest = &rest[end + 2 + length..];
    }
    entries
}
