//! What a turn changed in all, as git would show it.
//!
//! Made of what the patches say, not of the disk: what commands or people change meanwhile is not
//! the turn's.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

use crate::patch::{Action, Before, Done, Plan, hunks};

/// Contents beyond this are told by their names only.
const MAX_KEPT: usize = 64 << 20;

/// git's lines around a change.
const CONTEXT: usize = 3;

const NO_OBJECT: &str = "0000000000000000000000000000000000000000";

/// The files a turn touched, as they were before it and as they are now.
#[derive(Clone, Debug, Default)]
pub struct TurnDiff {
    root: PathBuf,
    files: BTreeMap<PathBuf, File>,
    kept: usize,
}

#[derive(Clone, Debug)]
struct File {
    before: Snapshot,
    now: Snapshot,
    /// The file that was moved here, by its name at the beginning of the turn.
    from: Option<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Snapshot {
    Nothing,
    Text(String),
    /// Told by git's name for it where we have seen the content.
    Opaque(Option<String>),
}

impl TurnDiff {
    /// Nothing changed yet. Names are told from `root`, files outside it by their whole path.
    pub fn new(root: &Path) -> Self {
        // Files are told by where they really are, so the root is too.
        let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        Self { root, ..Self::default() }
    }

    /// Takes up what was written of a plan.
    pub fn note(&mut self, plan: &Plan, done: &Done) {
        for step in plan.steps.iter().take(done.steps) {
            let (path, before) = (&step.target.place, &step.target.before);
            match &step.action {
                Action::Add { content } => self.put(path, before, content),
                Action::Delete => drop(self.remove(path, before)),
                Action::Update { content, to: None } => self.put(path, before, content),
                Action::Update { content, to: Some(to) } => {
                    let from = self.remove(path, before);
                    self.put(&to.place, &to.before, content);
                    if let Some(file) = self.files.get_mut(&to.place) {
                        file.from = Some(from.unwrap_or_else(|| path.clone()));
                    }
                }
            }
        }
    }

    /// The whole diff; empty where all is again as it was.
    pub fn text(&self) -> String {
        // By the old name, as Codex sorts them. A name stands for one file only.
        let mut told: BTreeMap<&Path, String> = BTreeMap::new();
        let mut arrived: BTreeSet<&Path> = BTreeSet::new();
        for (path, file) in &self.files {
            let from = self.moved(file).filter(|from| !told.contains_key(from.as_path()));
            if let Some(from) = from {
                let old = &self.files[from].before;
                told.insert(from, self.entry(from, path, old, &file.now));
                arrived.insert(path);
            }
        }
        for (path, file) in &self.files {
            let done = told.contains_key(&**path) || arrived.contains(&**path);
            if !done && file.before != file.now {
                told.insert(path, self.entry(path, path, &file.before, &file.now));
            }
        }
        told.into_values().collect()
    }

    /// Where a file came from, if git would call it the same file: nothing was there before, and
    /// the old name is gone.
    fn moved<'a>(&self, file: &'a File) -> Option<&'a PathBuf> {
        let from = file.from.as_ref()?;
        let old = self.files.get(from)?;
        let fits = file.before == Snapshot::Nothing
            && file.now != Snapshot::Nothing
            && old.before != Snapshot::Nothing
            && old.now == Snapshot::Nothing;
        fits.then_some(from)
    }

    fn put(&mut self, path: &Path, before: &Before, content: &str) {
        let now = self.keep(content);
        self.set(path, before, now);
    }

    /// Gives the name the file had at the beginning of the turn, if it was moved here.
    fn remove(&mut self, path: &Path, before: &Before) -> Option<PathBuf> {
        self.set(path, before, Snapshot::Nothing);
        self.files.get_mut(path)?.from.take()
    }

    fn set(&mut self, path: &Path, before: &Before, now: Snapshot) {
        if let Some(file) = self.files.get_mut(path) {
            self.kept -= file.now.len();
            file.now = now;
            return;
        }
        let before = match before {
            Before::Nothing => Snapshot::Nothing,
            Before::Text(text) => self.keep(text),
            Before::Opaque => Snapshot::Opaque(None),
        };
        self.files.insert(path.to_owned(), File { before, now, from: None });
    }

    fn keep(&mut self, text: &str) -> Snapshot {
        if self.kept + text.len() > MAX_KEPT {
            return Snapshot::Opaque(Some(object(text)));
        }
        self.kept += text.len();
        Snapshot::Text(text.to_owned())
    }

    fn entry(&self, from: &Path, to: &Path, old: &Snapshot, new: &Snapshot) -> String {
        let (a, b) = (format!("a/{}", self.name(from)), format!("b/{}", self.name(to)));
        let mode = match (old, new) {
            (Snapshot::Nothing, _) => "new file mode 100644\n",
            (_, Snapshot::Nothing) => "deleted file mode 100644\n",
            _ => "",
        };
        let mut text = format!("diff --git {a} {b}\n{mode}");
        if old == new {
            let (from, to) = (self.name(from), self.name(to));
            text.push_str(&format!("similarity index 100%\nrename from {from}\nrename to {to}\n"));
            return text;
        }
        if let (Some(old), Some(new)) = (old.object(), new.object()) {
            text.push_str(&format!("index {old}..{new}\n"));
        }
        let a = if *old == Snapshot::Nothing { "/dev/null" } else { &a };
        let b = if *new == Snapshot::Nothing { "/dev/null" } else { &b };
        match (old.text(), new.text()) {
            (Some(old), Some(new)) => text.push_str(&headed(a, b, &hunks(old, new, CONTEXT))),
            _ => text.push_str(&format!("Binary files {a} and {b} differ\n")),
        }
        text
    }

    fn name(&self, path: &Path) -> String {
        let path = path.strip_prefix(&self.root).unwrap_or(path);
        path.to_string_lossy().into_owned()
    }
}

/// An empty file has no lines to show, so git shows no head for them either.
fn headed(a: &str, b: &str, hunks: &str) -> String {
    if hunks.is_empty() {
        return String::new();
    }
    let end = if hunks.ends_with('\n') { "" } else { "\n" };
    format!("--- {a}\n+++ {b}\n{hunks}{end}")
}

impl Snapshot {
    fn text(&self) -> Option<&str> {
        match self {
            Self::Nothing => Some(""),
            Self::Text(text) => Some(text),
            Self::Opaque(_) => None,
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Nothing | Self::Opaque(_) => 0,
        }
    }

    fn object(&self) -> Option<String> {
        match self {
            Self::Nothing => Some(NO_OBJECT.to_owned()),
            Self::Text(text) => Some(object(text)),
            Self::Opaque(object) => object.clone(),
        }
    }
}

/// git's name for a content.
fn object(text: &str) -> String {
    let blob = [format!("blob {}\0", text.len()).as_bytes(), text.as_bytes()].concat();
    let digest = digest(&SHA1_FOR_LEGACY_USE_ONLY, &blob);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
