//! One block of context, and the memory of what was told.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{agents_md, environment, git, permissions};
use crate::item::{Content, HistoryItem, Item, Role};

/// A block of context.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Section {
    /// What it is about.
    pub kind: SectionKind,
    /// The text as the model gets it.
    pub text: String,
    /// The files it was made of; none where it comes from settings or the machine.
    pub sources: Vec<PathBuf>,
}

/// What a block is about, in the order they are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SectionKind {
    /// Words of the application.
    DeveloperInstructions,
    /// What may be done.
    Permissions,
    /// `AGENTS.md`.
    ProjectInstructions,
    /// Folder, shell, date, roots.
    Environment,
    /// Branch and changes.
    Git,
}

impl SectionKind {
    /// Every kind, in the order they are told.
    pub const ALL: [Self; 5] = [
        Self::DeveloperInstructions,
        Self::Permissions,
        Self::ProjectInstructions,
        Self::Environment,
        Self::Git,
    ];

    /// In whose name it is told.
    pub fn role(self) -> Role {
        match self {
            Self::DeveloperInstructions | Self::Permissions => Role::Developer,
            Self::ProjectInstructions | Self::Environment | Self::Git => Role::User,
        }
    }

    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::DeveloperInstructions => "developer instructions",
            Self::Permissions => "permissions",
            Self::ProjectInstructions => "project instructions",
            Self::Environment => "environment",
            Self::Git => "git",
        }
    }

    /// The kind of a block that was told, by its wrapper. Words of the application have none.
    pub fn of(text: &str) -> Option<Self> {
        let text = text.trim_start();
        let starts = |opening: &str| text.starts_with(opening);
        if starts(agents_md::HEADING) || starts("<user_instructions>") {
            return Some(Self::ProjectInstructions);
        }
        if starts(environment::OPENING) {
            return Some(Self::Environment);
        }
        if starts(permissions::OPENING) {
            return Some(Self::Permissions);
        }
        starts(git::OPENING).then_some(Self::Git)
    }
}

impl Section {
    /// How many tokens it is, at four bytes each.
    pub fn tokens(&self) -> u64 {
        estimate(self.text.len())
    }

    /// What of it is compared with what was told before.
    fn mark(&self) -> Mark {
        Mark::of(self.kind, &self.text)
    }
}

/// How many tokens so many bytes are, at four bytes each.
pub fn estimate(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(4)
}

/// What the model has been told, kept with the thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Snapshot {
    told: BTreeMap<SectionKind, Mark>,
}

/// A block's text as a number, so that a snapshot stays small.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Mark {
    bytes: usize,
    hash: u64,
}

impl Mark {
    /// Leaves out what may change without being told again: the shell, and counts that change
    /// with every edit.
    fn of(kind: SectionKind, text: &str) -> Self {
        let counted = |line: &&str| match kind {
            SectionKind::Environment => !line.trim_start().starts_with("<shell>"),
            SectionKind::Git => git::is_lasting(line),
            _ => true,
        };
        let mut mark = Self { bytes: 0, hash: 0xcbf2_9ce4_8422_2325 };
        // FNV-1a: stable over versions and machines, which the standard hasher does not promise.
        for byte in text.split('\n').filter(counted).flat_map(|line| line.bytes().chain([b'\n'])) {
            mark.bytes += 1;
            mark.hash = (mark.hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        mark
    }
}

impl Snapshot {
    /// What these blocks would leave behind.
    pub fn of(sections: &[Section]) -> Self {
        Self { told: sections.iter().map(|section| (section.kind, section.mark())).collect() }
    }

    /// What a history shows was told; for threads whose snapshot is not at hand. A block told
    /// twice counts as it was told last.
    ///
    /// `developer` are the words of the application, which have no wrapper to know them by.
    pub fn of_history(history: &[HistoryItem], developer: Option<&str>) -> Self {
        let mut snapshot = Self::default();
        for (role, text) in history.iter().flat_map(texts) {
            let kind = match SectionKind::of(text) {
                Some(kind) if kind.role() == role => kind,
                None if role == Role::Developer && Some(text) == developer => {
                    SectionKind::DeveloperInstructions
                }
                _ => continue,
            };
            let text = match kind {
                SectionKind::ProjectInstructions if agents_md::is_withdrawn(text) => {
                    snapshot.told.remove(&kind);
                    continue;
                }
                SectionKind::ProjectInstructions => agents_md::without_replacement(text),
                _ => text.to_owned(),
            };
            snapshot.told.insert(kind, Mark::of(kind, &text));
        }
        snapshot
    }

    /// Whether a block of this kind was ever told.
    pub fn knows(&self, kind: SectionKind) -> bool {
        self.told.contains_key(&kind)
    }

    pub(super) fn is_current(&self, section: &Section) -> bool {
        self.told.get(&section.kind) == Some(&section.mark())
    }
}

fn texts(item: &HistoryItem) -> Vec<(Role, &str)> {
    let Some(Item::Message(message)) = item.known() else { return Vec::new() };
    let texts = message.content.iter().filter_map(|content| match content.known()? {
        Content::InputText { text } => Some((message.role, text.as_str())),
        _ => None,
    });
    texts.collect()
}
