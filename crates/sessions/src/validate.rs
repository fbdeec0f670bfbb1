//! Checking files against what we know: a report of drift that can be shared, because it holds
//! names of fields and places, and nothing that anybody wrote.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use crate::Error;
use crate::error::read_error;
use crate::line::{Broken, Envelope};
use crate::normalise::{Normaliser, Options};
use crate::record::{self, Limits, Record, Records};
use crate::schema::{self, Drift, Oddity};

/// What was found in some files.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Files read.
    pub files: u64,
    /// Lines read.
    pub lines: u64,
    /// Bytes read, unpacked.
    pub bytes: u64,
    /// Lines that are as we know them.
    pub known: u64,
    /// Lines that no transcript accounts for; always zero, or we have a bug.
    pub lost: u64,
    /// Bytes of binary payloads in long lines that no transcript has.
    pub payload_bytes: u64,
    /// Bytes of text that no transcript has: their lines are longer than anything that is kept.
    pub text_bytes: u64,
    /// Files and lines by the Codex version that began the file.
    pub versions: BTreeMap<String, Version>,
    /// What is not as we know it, most frequent first.
    pub findings: Vec<Finding>,
    #[serde(skip)]
    index: BTreeMap<(Kind, String, String), usize>,
}

/// Files of one Codex version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Version {
    /// Files.
    pub files: u64,
    /// Lines.
    pub lines: u64,
    /// Lines by tag.
    pub tags: BTreeMap<String, u64>,
}

/// Something that is not as we know it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// What sort of thing.
    pub kind: Kind,
    /// The tag, and the field if it is about one.
    pub what: String,
    /// The version that began the file.
    pub version: String,
    /// How often.
    pub count: u64,
    /// The first file, by its name alone: folders may tell who wrote it.
    pub file: String,
    /// The first line there.
    pub line: u64,
}

/// Sorts of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A line or payload type we do not know.
    UnknownTag,
    /// A field we need is not there.
    MissingField,
    /// A known type in another shape.
    WrongShape,
    /// Half a line, or bytes that are no text.
    BrokenLine,
    /// The last line is not whole: perhaps it is just being written.
    PartialLine,
    /// A type, status or role inside a line that we do not know.
    UnknownWord,
    /// Several records in one line.
    GluedLine,
    /// Text that is too long to be kept.
    CutText,
    /// A field we do not know; what is said in it is not shown.
    UnknownField,
    /// A binary payload that is too long to be kept.
    CutPayload,
}

impl Kind {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::UnknownTag => "unknown tag",
            Self::MissingField => "missing field",
            Self::WrongShape => "wrong shape",
            Self::BrokenLine => "broken line",
            Self::PartialLine => "partial line",
            Self::UnknownWord => "unknown word",
            Self::GluedLine => "glued line",
            Self::CutText => "cut text",
            Self::UnknownField => "unknown field",
            Self::CutPayload => "cut payload",
        }
    }

    /// A line with this is not known.
    pub fn is_breach(self) -> bool {
        !matches!(self, Self::UnknownField | Self::PartialLine | Self::CutPayload)
    }
}

impl Report {
    /// True when every line is known (a last one that is not whole aside).
    pub fn is_clean(&self) -> bool {
        self.lost == 0 && !self.findings.iter().any(|finding| finding.kind.is_breach())
    }

    /// Checks one file. Also normalises it: every line must be accounted for.
    pub fn check(&mut self, path: &Path) -> Result<(), Error> {
        let mut records = Records::new(record::open(path)?, Limits::default());
        let mut normaliser = Normaliser::new(Options::default(), |_| {});
        let mut file = FileCheck::new(path);
        while let Some(record) = records.next().map_err(read_error(path))? {
            self.bytes += record.length + u64::from(record.ended);
            let line = Envelope::read(&record);
            let understood = normaliser.take_line(&record, line);
            let seen =
                Seen { understood, drift: normaliser.drift(), records: normaliser.records() };
            self.line(&record, line, &seen, &mut file);
        }
        let (_, ledger) = normaliser.finish();
        self.lost += ledger.missing().len() as u64;
        self.files += 1;
        let version = self.versions.entry(file.version).or_default();
        version.files += 1;
        version.lines += ledger.lines();
        for (tag, count) in file.tags {
            *version.tags.entry(tag).or_default() += count;
        }
        self.findings.sort_by_key(|finding| (finding.kind, std::cmp::Reverse(finding.count)));
        self.index = BTreeMap::new();
        for (place, finding) in self.findings.iter().enumerate() {
            let key = (finding.kind, finding.what.clone(), finding.version.clone());
            self.index.insert(key, place);
        }
        Ok(())
    }

    fn line(
        &mut self,
        record: &Record<'_>,
        line: Result<Envelope<'_>, Broken>,
        seen: &Seen<'_>,
        file: &mut FileCheck,
    ) {
        self.lines += 1;
        self.cut(record, file);
        let line = match line {
            _ if seen.records > 1 => {
                self.drift(seen.drift, record, file);
                return self.find(Kind::GluedLine, "several records", record, file);
            }
            Ok(line) => line,
            Err(Broken::Blank) => {
                self.known += 1;
                return;
            }
            Err(Broken::Partial) => {
                return self.find(Kind::PartialLine, Broken::Partial.word(), record, file);
            }
            Err(broken) => return self.find(Kind::BrokenLine, broken.word(), record, file),
        };
        if record.line == 1 {
            file.learn_version(&line);
        }
        let tag = line.full_tag();
        file.count(tag.clone());
        let is_complete = self.drift(seen.drift, record, file);
        if schema::shape(&tag).is_none() {
            return self.find(Kind::UnknownTag, &name_of(&tag), record, file);
        }
        match seen.understood {
            true => self.known += u64::from(is_complete && record.shortened.text_bytes == 0),
            false if is_complete => self.find(Kind::WrongShape, &tag, record, file),
            false => {}
        }
    }

    /// What is odd in a line; true if nothing of it is a breach.
    fn drift(&mut self, drift: &[Drift], record: &Record<'_>, file: &FileCheck) -> bool {
        let mut is_complete = true;
        for Drift { oddity, what } in drift {
            let kind = match oddity {
                Oddity::Missing => Kind::MissingField,
                // The line's own type is the tag.
                Oddity::Word if what.starts_with("line.type=") => continue,
                Oddity::Word => Kind::UnknownWord,
                Oddity::Field => Kind::UnknownField,
                Oddity::Unshown => continue,
            };
            is_complete &= !kind.is_breach();
            self.find(kind, what, record, file);
        }
        is_complete
    }

    fn cut(&mut self, record: &Record<'_>, file: &FileCheck) {
        let cut = record.shortened;
        self.payload_bytes += cut.payload_bytes;
        self.text_bytes += cut.text_bytes;
        if cut.payloads > 0 {
            self.find(Kind::CutPayload, "base64 in a line over 1 MiB", record, file);
        }
        if cut.text_bytes > 0 {
            self.find(Kind::CutText, "text of a line over 256 MiB", record, file);
        }
    }

    fn find(&mut self, kind: Kind, what: &str, record: &Record<'_>, file: &FileCheck) {
        let key = (kind, what.to_owned(), file.version.clone());
        if let Some(finding) = self.index.get(&key).and_then(|at| self.findings.get_mut(*at)) {
            finding.count += 1;
            return;
        }
        // A file of garbage must not fill the memory with the names of its garbage.
        if self.findings.len() >= 10_000 {
            return;
        }
        self.index.insert(key, self.findings.len());
        self.findings.push(Finding {
            kind,
            what: what.chars().take(200).collect(),
            version: file.version.clone(),
            count: 1,
            file: file.name.clone(),
            line: record.line,
        });
    }
}

/// What the normaliser saw in a line.
struct Seen<'a> {
    understood: bool,
    drift: &'a [Drift],
    records: usize,
}

/// A tag is made of words; what is none may be what somebody wrote.
fn name_of(tag: &str) -> String {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte);
    let words = tag.split('/').map(|part| match part.bytes().all(is_word) && part.len() <= 64 {
        true => part,
        false => "(no word)",
    });
    words.collect::<Vec<_>>().join("/")
}

/// What is kept while one file is checked.
struct FileCheck {
    name: String,
    version: String,
    tags: BTreeMap<String, u64>,
}

impl FileCheck {
    fn new(path: &Path) -> Self {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let version = "unknown".to_owned();
        Self { name: name.unwrap_or_default(), version, tags: BTreeMap::new() }
    }

    fn learn_version(&mut self, line: &Envelope<'_>) {
        if line.kind.is_empty() {
            "0.29 or older".clone_into(&mut self.version);
        } else if let Ok((meta, _)) = line.payload::<crate::wire::Meta>() {
            self.version = meta.cli_version.unwrap_or_else(|| self.version.clone());
        }
    }

    fn count(&mut self, tag: String) {
        let tag = name_of(&tag);
        if self.tags.len() < 1_000 || self.tags.contains_key(&tag) {
            *self.tags.entry(tag).or_default() += 1;
        }
    }
}
