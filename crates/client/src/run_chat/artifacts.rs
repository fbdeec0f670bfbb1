//! Files that a run leaves in a folder for its caller.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use bindery_core::ndjson::Artifact;

/// The most files that are looked at.
const FILES: usize = 10_000;

/// How deep folders are looked into.
const DEPTH: usize = 16;

/// A folder as it was before the run.
#[derive(Debug, Default)]
pub(super) struct Before {
    folder: PathBuf,
    files: BTreeMap<String, State>,
}

type State = (u64, Option<SystemTime>);

impl Before {
    /// Looks at a folder that need not be there yet.
    pub(super) fn look(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), files: list(folder) }
    }

    /// The files that are new or different since, by path.
    pub(super) fn changed(&self) -> Vec<Artifact> {
        let now = list(&self.folder).into_iter();
        let changed = now.filter(|(path, state)| self.files.get(path) != Some(state));
        changed.map(|(path, (size_bytes, _))| artifact(path, size_bytes)).collect()
    }
}

/// Links are not followed: an agent must not be able to give away what lies outside.
fn list(folder: &Path) -> BTreeMap<String, State> {
    let mut files = BTreeMap::new();
    let mut folders = vec![(folder.to_owned(), String::new(), 0)];
    while let Some((folder, prefix, depth)) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
            if metadata.is_dir() && depth < DEPTH {
                folders.push((entry.path(), format!("{path}/"), depth + 1));
            } else if metadata.is_file() && files.len() < FILES {
                files.insert(path, state(&metadata));
            }
        }
    }
    files
}

fn state(metadata: &Metadata) -> State {
    (metadata.len(), metadata.modified().ok())
}

fn artifact(path: String, size_bytes: u64) -> Artifact {
    let label = path.rsplit('/').next().unwrap_or_default().to_owned();
    let ending = label.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    Artifact {
        mime_type: media_type(ending.as_deref().unwrap_or_default()),
        path,
        size_bytes,
        label,
    }
}

fn media_type(ending: &str) -> &'static str {
    match ending {
        "txt" | "log" => "text/plain",
        "md" => "text/markdown",
        "html" | "htm" => "text/html",
        "css" => "text/css",
        "csv" => "text/csv",
        "js" | "mjs" => "text/javascript",
        "json" => "application/json",
        "jsonl" | "ndjson" => "application/x-ndjson",
        "pdf" => "application/pdf",
        "zip" => "application/zip",
        "gz" => "application/gzip",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "svg" => "image/svg+xml",
        "webp" => "image/webp",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_and_changed_files_are_found_and_links_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let write =
            |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("old.txt", "old");
        write("kept.txt", "kept");
        let before = Before::look(folder.path());
        write("old.txt", "longer than before");
        std::fs::create_dir(folder.path().join("deep")).unwrap();
        write("deep/Plot.PNG", "x");
        #[cfg(unix)]
        std::os::unix::fs::symlink("/etc/hostname", folder.path().join("link.txt")).unwrap();
        let found: Vec<_> =
            before.changed().into_iter().map(|file| (file.path, file.mime_type)).collect();
        let want =
            [("deep/Plot.PNG".to_owned(), "image/png"), ("old.txt".to_owned(), "text/plain")];
        assert_eq!(found, want);
        assert_eq!(Before::look(Path::new("no/such/folder")).changed(), []);
    }
}
