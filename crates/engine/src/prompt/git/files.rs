//! What a repository's own files say: branch, head, remote.

use std::path::Path;

use super::Git;
use crate::git::{MOST_BYTES, Repository, text};

/// Packed references are not longer.
const MOST_PACKED: u64 = 32 << 20;

/// The repository around a folder.
pub(super) fn read(cwd: &Path) -> Option<Git> {
    let Repository { root, folder, common } = Repository::around(cwd)?;
    let head = text(&folder.join("HEAD"), MOST_BYTES)?;
    let head = head.trim();
    let (branch, commit) = match head.strip_prefix("ref: ") {
        Some(name) => {
            let branch = name.strip_prefix("refs/heads/").unwrap_or(name);
            (Some(branch.to_owned()), reference(&folder, &common, name))
        }
        None => (None, Some(head.to_owned())),
    };
    Some(Git {
        root,
        branch,
        head: commit.filter(|commit| is_hash(commit)),
        remote: remote(&common),
        ..Git::default()
    })
}

fn reference(folder: &Path, shared: &Path, name: &str) -> Option<String> {
    // A name out of a file must not lead out of the folder.
    if Path::new(name).components().any(|part| !matches!(part, std::path::Component::Normal(_))) {
        return None;
    }
    let loose =
        [folder, shared].into_iter().find_map(|folder| text(&folder.join(name), MOST_BYTES));
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
    let config = text(&shared.join("config"), MOST_BYTES)?;
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
