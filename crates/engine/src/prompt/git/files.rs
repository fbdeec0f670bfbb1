//! What a repository's own files say: branch, head, remote.

use std::path::{Path, PathBuf};

use super::Git;

/// No file of git's that we read is longer, but for packed references.
const MOST: u64 = 1 << 20;
const MOST_PACKED: u64 = 32 << 20;

/// The repository around a folder.
pub(super) fn read(cwd: &Path) -> Option<Git> {
    let root = cwd.ancestors().find(|folder| folder.join(".git").exists())?;
    let folder = git_folder(root)?;
    let shared = shared_folder(&folder);
    let head = text(&folder.join("HEAD"), MOST)?;
    let head = head.trim();
    let (branch, commit) = match head.strip_prefix("ref: ") {
        Some(name) => {
            let branch = name.strip_prefix("refs/heads/").unwrap_or(name);
            (Some(branch.to_owned()), reference(&folder, &shared, name))
        }
        None => (None, Some(head.to_owned())),
    };
    Some(Git {
        root: root.to_owned(),
        branch,
        head: commit.filter(|commit| is_hash(commit)),
        remote: remote(&shared),
        ..Git::default()
    })
}

/// `.git`, or what it points to in a worktree or a submodule.
fn git_folder(root: &Path) -> Option<PathBuf> {
    let path = root.join(".git");
    if path.is_dir() {
        return Some(path);
    }
    let link = text(&path, MOST)?;
    Some(root.join(link.strip_prefix("gitdir:")?.trim()))
}

/// Where a worktree keeps what it shares with the others.
fn shared_folder(folder: &Path) -> PathBuf {
    match text(&folder.join("commondir"), MOST) {
        Some(shared) => folder.join(shared.trim()),
        None => folder.to_owned(),
    }
}

fn reference(folder: &Path, shared: &Path, name: &str) -> Option<String> {
    // A name out of a file must not lead out of the folder.
    if Path::new(name).components().any(|part| !matches!(part, std::path::Component::Normal(_))) {
        return None;
    }
    let loose = [folder, shared].into_iter().find_map(|folder| text(&folder.join(name), MOST));
    if let Some(loose) = loose {
        return Some(loose.trim().to_owned());
    }
    let packed = text(&shared.join("packed-refs"), MOST_PACKED)?;
    let line = packed.lines().find(|line| line.split(' ').nth(1) == Some(name))?;
    Some(line.split(' ').next()?.to_owned())
}

fn is_hash(text: &str) -> bool {
    (40..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The address of `origin`. Includes and rewrites are git's affair; the plain line is enough here.
fn remote(shared: &Path) -> Option<String> {
    let config = text(&shared.join("config"), MOST)?;
    let mut lines = config.lines().map(str::trim);
    lines.find(|line| *line == "[remote \"origin\"]")?;
    let section = lines.take_while(|line| !line.starts_with('['));
    let mut urls = section.filter_map(|line| {
        let (key, value) = line.split_once('=')?;
        (key.trim().eq_ignore_ascii_case("url")).then(|| value.trim().trim_matches('"'))
    });
    urls.next().map(without_secret)
}

/// An address without what stands before the `@`: it may be a token.
fn without_secret(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    format!("{scheme}://{host}{path}")
}

fn text(path: &Path, most: u64) -> Option<String> {
    let length = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?.len();
    if length > most { None } else { std::fs::read_to_string(path).ok() }
}
