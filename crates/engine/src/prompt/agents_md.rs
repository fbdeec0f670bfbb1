//! `AGENTS.md`: the instructions of a home and of a project.
//!
//! The rules are those of Codex 0.166, to the byte: who writes such a file for one must find it
//! read the same by the other.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::section::{Section, SectionKind};
use crate::config::{Config, ProjectSettings, Trust};
use crate::plain_file::PlainFileReader;

/// How the block begins.
pub(super) const HEADING: &str = "# AGENTS.md instructions";

const NAMES: [&str; 2] = ["AGENTS.override.md", "AGENTS.md"];
const BETWEEN: &str = "\n\n--- project-doc ---\n\n";
const OPEN: &str = "<INSTRUCTIONS>\n";
const CLOSE: &str = "\n</INSTRUCTIONS>";
const REPLACING: &str = "The project's instructions have changed. What follows takes the place of \
    every AGENTS.md instruction given before.\n\n";
const WITHDRAWN: &str = "The project has no instructions any more. Every AGENTS.md instruction \
    given before is withdrawn.";

/// A home's file is read whole, up to here.
const MOST_GLOBAL: u64 = 1 << 20;

/// The instructions that were found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Documents {
    /// The home's, trimmed.
    pub global: Option<Document>,
    /// The project's, from its root to the folder, as they are.
    pub project: Vec<Document>,
    /// Files that the budget cut or left out, that lead out of the project or are hidden.
    pub cut: Vec<PathBuf>,
}

/// One file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Where it is.
    pub path: PathBuf,
    /// What it says.
    pub text: String,
}

/// Finds and reads the instructions for a folder.
pub fn gather(config: &Config, cwd: &Path) -> Documents {
    let mut found = Documents { global: global(&config.home.codex), ..Documents::default() };
    if config.trust != Trust::Untrusted {
        let hidden = config.hidden.clone().except([cwd.to_owned()]);
        project(&config.project, cwd, &PlainFileReader::hiding(hidden), &mut found);
    }
    found
}

impl Documents {
    /// The block for a folder, if there is anything to say.
    pub fn section(&self, cwd: &Path) -> Option<Section> {
        let project = self.project.iter().map(|document| document.text.as_str());
        let project = project.collect::<Vec<_>>().join("\n\n");
        let (text, place) = match (&self.global, self.project.is_empty()) {
            (None, true) => return None,
            (Some(global), true) => (global.text.clone(), String::new()),
            (None, false) => (project, format!(" for {}", cwd.display())),
            (Some(global), false) => {
                let text = format!("{}{BETWEEN}{project}", global.text);
                (text, format!(" for {}", cwd.display()))
            }
        };
        let documents = self.global.iter().chain(&self.project);
        Some(Section {
            kind: SectionKind::ProjectInstructions,
            text: format!("{HEADING}{place}\n\n{OPEN}{text}{CLOSE}"),
            sources: documents.map(|document| document.path.clone()).collect(),
        })
    }
}

/// The block when it takes the place of an earlier one.
pub(super) fn replacing(text: &str) -> String {
    text.replacen(OPEN, &format!("{OPEN}{REPLACING}"), 1)
}

/// The block when there is nothing left to say.
pub(super) fn withdrawn() -> String {
    format!("{HEADING}\n\n{OPEN}{WITHDRAWN}{CLOSE}")
}

/// Whether a block says that there is nothing left to say.
pub(super) fn is_withdrawn(text: &str) -> bool {
    text == withdrawn()
}

/// The block as it was before [`replacing`].
pub(super) fn without_replacement(text: &str) -> String {
    text.replacen(REPLACING, "", 1)
}

/// The home's file: the first that says anything.
fn global(home: &Path) -> Option<Document> {
    NAMES.iter().map(|name| home.join(name)).find_map(|path| {
        let (bytes, _) = read(&path, MOST_GLOBAL)?;
        let text = String::from_utf8_lossy(&bytes).trim().to_owned();
        (!text.is_empty()).then_some(Document { path, text })
    })
}

/// The project's files from its root to the folder, one a folder, as far as the budget goes.
fn project(
    settings: &ProjectSettings,
    cwd: &Path,
    reader: &PlainFileReader,
    found: &mut Documents,
) {
    let mut left = settings.doc_max_bytes;
    if left == 0 {
        return;
    }
    let root = settings.root(cwd).unwrap_or_else(|| cwd.to_owned());
    for path in folders(settings, cwd).iter().filter_map(|folder| in_folder(settings, folder)) {
        if left == 0 {
            found.cut.push(path);
            continue;
        }
        let Some((bytes, whole)) = read_below(reader, &root, &path, left) else {
            found.cut.push(path);
            continue;
        };
        let text = String::from_utf8_lossy(&bytes).into_owned();
        // A file that says nothing costs nothing.
        if text.trim().is_empty() {
            continue;
        }
        left -= bytes.len() as u64;
        if !whole {
            found.cut.push(path.clone());
        }
        found.project.push(Document { path, text });
    }
}

/// The folders from the project's root down to `cwd`; `cwd` alone where there is no root.
fn folders(settings: &ProjectSettings, cwd: &Path) -> Vec<PathBuf> {
    let Some(root) = settings.root(cwd) else { return vec![cwd.to_owned()] };
    let mut folders: Vec<PathBuf> = cwd
        .ancestors()
        .take_while(|folder| folder.starts_with(&root))
        .map(Path::to_owned)
        .collect();
    folders.reverse();
    folders
}

/// The one file of a folder: the first name that is a file, whatever it says. An empty override
/// thus silences the folder. A name that leads into another folder is none.
fn in_folder(settings: &ProjectSettings, folder: &Path) -> Option<PathBuf> {
    let others = settings.doc_fallback_filenames.iter().map(|name| name.trim());
    let is_name = |name: &&str| Path::new(name).file_name() == Some(OsStr::new(name));
    let names = NAMES.into_iter().chain(others.filter(is_name));
    names.map(|name| folder.join(name)).find(|path| path.is_file())
}

/// The same of a project's file. A link may lead elsewhere in the project and nowhere else: a
/// repository, or a command, could have the engine read its own environment to the model.
fn read_below(
    reader: &PlainFileReader,
    root: &Path,
    path: &Path,
    most: u64,
) -> Option<(Vec<u8>, bool)> {
    let (root, place) = (root.canonicalize().ok()?, reader.resolve(path).ok()?);
    // By its place: a link that is put there meanwhile is not followed.
    let file = place.starts_with(&root).then(|| reader.open_place(&place).ok())??;
    read_from(file, most)
}

/// At most so many bytes of a file, and whether that is all of it.
fn read(path: &Path, most: u64) -> Option<(Vec<u8>, bool)> {
    read_from(PlainFileReader::default().open(path).ok()?, most)
}

fn read_from(file: File, most: u64) -> Option<(Vec<u8>, bool)> {
    let length = file.metadata().ok()?.len();
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes).ok()?;
    Some((bytes, length <= most))
}
