//! The project around a folder: its root, whether it is trusted, how its documents are read.

use std::path::{Path, PathBuf};

use serde::Serialize;
use toml::Value;

use super::reader::Reader;
use super::{ConfigError, Trust};
use crate::git;

/// How the documents of a project are found and read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProjectSettings {
    /// Bytes of all documents together; none are read with 0.
    pub doc_max_bytes: u64,
    /// Names to try after `AGENTS.override.md` and `AGENTS.md`.
    pub doc_fallback_filenames: Vec<String>,
    /// What a project's root contains. With none, the folder itself is the root.
    pub root_markers: Vec<String>,
}

impl Default for ProjectSettings {
    fn default() -> Self {
        Self {
            doc_max_bytes: 32_768,
            doc_fallback_filenames: Vec::new(),
            root_markers: vec![".git".to_owned()],
        }
    }
}

impl ProjectSettings {
    pub(super) fn take(reader: &mut Reader<'_>) -> Result<Self, ConfigError> {
        let usual = Self::default();
        Ok(Self {
            doc_max_bytes: reader.take("project_doc_max_bytes")?.unwrap_or(usual.doc_max_bytes),
            doc_fallback_filenames: reader
                .take("project_doc_fallback_filenames")?
                .unwrap_or_default(),
            root_markers: reader.take("project_root_markers")?.unwrap_or(usual.root_markers),
        })
    }

    /// The nearest folder at or above `cwd` that contains a marker.
    pub fn root(&self, cwd: &Path) -> Option<PathBuf> {
        let marked = |folder: &&Path| self.root_markers.iter().any(|m| folder.join(m).exists());
        if self.root_markers.is_empty() {
            return None;
        }
        cwd.ancestors().find(marked).map(Path::to_owned)
    }
}

/// What `[projects."…"]` says of a folder: of itself, of its root, of the checkout it is a
/// worktree of.
pub(super) fn trust(
    projects: &[(String, Value)],
    settings: &ProjectSettings,
    cwd: &Path,
) -> Result<Trust, (String, String)> {
    if projects.is_empty() {
        return Ok(Trust::Undecided);
    }
    for folder in candidates(settings, cwd) {
        let said = projects.iter().find(|(path, _)| Path::new(path) == folder);
        let Some((path, level)) = said.and_then(|(p, v)| Some((p, v.get("trust_level")?))) else {
            continue;
        };
        return level
            .clone()
            .try_into()
            .map_err(|_| (path.clone(), "`trust_level` is `trusted` or `untrusted`".to_owned()));
    }
    Ok(Trust::Undecided)
}

fn candidates(settings: &ProjectSettings, cwd: &Path) -> Vec<PathBuf> {
    let real = cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned());
    let mut folders = vec![cwd.to_owned(), real.clone()];
    folders.extend(settings.root(&real));
    if let Some(checkout) = real.ancestors().find(|folder| folder.join(".git").exists()) {
        folders.push(checkout.to_owned());
        folders.extend(main_checkout(checkout));
    }
    folders
}

/// The checkout that a worktree belongs to. Its `.git` is a file that names
/// `…/.git/worktrees/NAME` of the other.
fn main_checkout(worktree: &Path) -> Option<PathBuf> {
    let link = git::text(&worktree.join(".git"), git::MOST_BYTES)?;
    let folder = worktree.join(link.strip_prefix("gitdir:")?.trim());
    let worktrees = folder.parent().filter(|parent| parent.ends_with("worktrees"))?;
    let checkout = worktrees.parent()?.parent()?;
    Some(checkout.canonicalize().unwrap_or_else(|_| checkout.to_owned()))
}
