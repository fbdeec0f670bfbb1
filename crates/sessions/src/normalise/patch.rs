//! Patches: the changes in an `apply_patch` text, and in the items that tell of them.

use bindery_core::item::{ChangeKind, FileChange};
use serde_json::Value;

/// The changes of a patch text; empty if it is none.
pub(super) fn parse(patch: &str) -> Vec<FileChange> {
    let mut changes: Vec<FileChange> = Vec::new();
    let Some(at) = patch.find("*** Begin Patch") else { return changes };
    for line in patch[at..].lines().skip(1) {
        if line.starts_with("*** End Patch") {
            break;
        }
        if let Some(change) = header(line) {
            changes.push(change);
        } else if let Some(change) = changes.last_mut() {
            body(change, line);
        }
    }
    changes
}

/// The changes of an item or end event: `{path: {type, content | unified_diff, move_path}}`.
pub(super) fn of_item(changes: &Value) -> Vec<FileChange> {
    let Some(map) = changes.as_object() else { return Vec::new() };
    let change = |(path, change): (&String, &Value)| {
        let word = |key: &str| change.get(key).and_then(Value::as_str).map(str::to_owned);
        let (kind, diff) = match change.get("type").and_then(Value::as_str) {
            Some("add") => (ChangeKind::Add, word("content")),
            Some("delete") => (ChangeKind::Delete, word("content")),
            _ => (ChangeKind::Update { move_path: word("move_path") }, word("unified_diff")),
        };
        FileChange { path: path.clone(), kind, diff: diff.unwrap_or_default() }
    };
    map.iter().map(change).collect()
}

fn header(line: &str) -> Option<FileChange> {
    let (word, path) = line.strip_prefix("*** ")?.split_once(": ")?;
    let kind = match word {
        "Add File" => ChangeKind::Add,
        "Delete File" => ChangeKind::Delete,
        "Update File" => ChangeKind::Update { move_path: None },
        _ => return None,
    };
    Some(FileChange { path: path.trim().to_owned(), kind, diff: String::new() })
}

fn body(change: &mut FileChange, line: &str) {
    if let (Some(path), ChangeKind::Update { move_path }) =
        (line.strip_prefix("*** Move to: "), &mut change.kind)
    {
        *move_path = Some(path.trim().to_owned());
        return;
    }
    let line = match change.kind {
        ChangeKind::Add => line.strip_prefix('+').unwrap_or(line),
        _ => line,
    };
    change.diff.push_str(line);
    change.diff.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_text_tells_its_changes() {
        let patch = "*** Begin Patch\n*** Add File: a\n+one\n+two\n*** Update File: b\n\
                     *** Move to: c\n@@\n-x\n+y\n*** Delete File: d\n*** End Patch";
        let sketch: Vec<String> =
            parse(patch).iter().map(|c| format!("{} {:?} {:?}", c.path, c.kind, c.diff)).collect();
        assert_eq!(
            sketch,
            [
                "a Add \"one\\ntwo\\n\"",
                "b Update { move_path: Some(\"c\") } \"@@\\n-x\\n+y\\n\"",
                "d Delete \"\"",
            ]
        );
        assert!(parse("no patch").is_empty());
    }
}
