//! Where a daemon keeps everything when nobody says where.

use std::path::{Path, PathBuf};

use crate::secret;

/// A folder for each root, among the user's own data: outside of what threads may write to. A user
/// without a home has it where the daemon is started.
pub(super) fn usual(env: impl Fn(&str) -> Option<String>, root: &Path) -> PathBuf {
    let folder = |name: &str| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || folder("HOME").map(|home| home.join(".local/share"));
    let Some(share) = folder("XDG_DATA_HOME").or_else(home) else {
        return PathBuf::from("bindery-data");
    };
    let name = root.file_name().unwrap_or("root".as_ref()).to_string_lossy();
    let mut hash = secret::hash(&root.to_string_lossy());
    hash.truncate(8);
    share.join("bindery").join(format!("{name}-{hash}"))
}

/// Folders of this kind that hold something of this name.
pub(super) fn holding(env: impl Fn(&str) -> Option<String>, name: &str) -> Vec<PathBuf> {
    let usual = usual(env, Path::new("/"));
    let all = usual.parent().and_then(|parent| std::fs::read_dir(parent).ok());
    let all = all.into_iter().flatten().flatten().map(|entry| entry.path());
    let mut holding: Vec<PathBuf> = all.filter(|folder| folder.join(name).exists()).collect();
    holding.sort();
    holding
}

/// The key of the store: among the user's settings, away from what it opens. A user without a home
/// has it beside the data folder.
pub(super) fn key(env: impl Fn(&str) -> Option<String>, data: &Path) -> PathBuf {
    let folder = |name: &str| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || folder("HOME").map(|home| home.join(".config"));
    match folder("XDG_CONFIG_HOME").or_else(home) {
        Some(settings) => settings.join("bindery").join("store.key"),
        None => data.with_extension("key"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_root_has_its_own_folder_in_the_users_data() {
        let env = |name: &str| (name == "HOME").then(|| "/home/ada".to_owned());
        let almanac = usual(env, Path::new("/src/almanac"));
        let words = almanac.to_str().unwrap();
        assert!(words.starts_with("/home/ada/.local/share/bindery/almanac-"), "{words}");
        assert_eq!(usual(env, Path::new("/src/almanac")), almanac);
        assert_ne!(usual(env, Path::new("/other/almanac")), almanac);
        let moved = |name: &str| (name == "XDG_DATA_HOME").then(|| "/data".to_owned());
        assert!(usual(moved, Path::new("/")).starts_with("/data/bindery"));
        let nowhere = |_: &str| Some("not/absolute".to_owned());
        assert_eq!(usual(nowhere, Path::new("/src")), Path::new("bindery-data"));
    }
}
