//! Checking files against what we know: a report of drift that can be shared, because it holds
//! names of fields and places, and nothing that anybody wrote.

mod fields;

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use crate::Error;
use crate::error::read_error;
use crate::line::{Broken, Envelope};
use crate::normalise::{Normaliser, Options};
use crate::record::{self, Limits, Record, Records};
use crate::schema;

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
    /// A field we do not know; what is said in it is not shown.
    UnknownField,
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
            Self::UnknownField => "unknown field",
        }
    }

    /// A line with this is not known.
    pub fn is_breach(self) -> bool {
        !matches!(self, Self::UnknownField | Self::PartialLine)
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
            self.line(&record, line, understood, &mut file);
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
        understood: bool,
        file: &mut FileCheck,
    ) {
        self.lines += 1;
        let line = match line {
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
        let tag = file.tag(&line);
        let Some(row) = schema::row(&tag) else {
            file.count(tag.clone());
            return self.find(Kind::UnknownTag, &tag, record, file);
        };
        let found = fields::check(line.payload_text(), row);
        let is_complete = !found.iter().any(|(kind, _)| kind.is_breach());
        for (kind, what) in found {
            self.find(kind, &what, record, file);
        }
        match understood {
            true => self.known += u64::from(is_complete),
            false if is_complete => self.find(Kind::WrongShape, &tag, record, file),
            false => {}
        }
        file.count(tag);
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

    /// The tag, and for an item its type.
    fn tag(&self, line: &Envelope<'_>) -> String {
        let tag = line.tag();
        if line.inner != "item_completed" {
            return tag;
        }
        match crate::normalise::peek_item(line.payload_text()) {
            Some(item) => format!("{tag}/{item}"),
            None => tag,
        }
    }

    fn count(&mut self, tag: String) {
        if self.tags.len() < 1_000 || self.tags.contains_key(&tag) {
            *self.tags.entry(tag).or_default() += 1;
        }
    }
}
