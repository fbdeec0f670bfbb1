//! Protocol drift: the words the installed Codex has, against those we know.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bindery_core::wire::app_server::inventory::{self, Fate};
use serde_json::Value;
use tokio::process::Command;
use tokio::time::timeout;

use crate::error::Error;

/// Words that 0.166 sends on request and leaves out of both its schemas.
pub const HIDDEN: &[&str] = &["rawResponseItem/completed", "rawResponse/completed"];

/// The words of a protocol.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory {
    /// Methods of what the server tells.
    pub notifications: BTreeSet<String>,
    /// Methods of what the server asks.
    pub requests: BTreeSet<String>,
    /// Types of thread items.
    pub items: BTreeSet<String>,
}

/// How far the installed Codex and we are apart; empty where there is nothing to tell.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Drift {
    /// Notifications that would show as unknown.
    pub unknown_notifications: Vec<String>,
    /// Requests that would be refused as unknown.
    pub unknown_requests: Vec<String>,
    /// Items that would show as unknown.
    pub unknown_items: Vec<String>,
    /// Notifications we know and this Codex does not.
    pub missing_notifications: Vec<String>,
    /// Requests we know and this Codex does not.
    pub missing_requests: Vec<String>,
    /// Items we know and this Codex does not.
    pub missing_items: Vec<String>,
}

impl Inventory {
    /// What we know.
    pub fn ours() -> Self {
        let words = |table: &[(&str, Fate)]| table.iter().map(|(word, _)| (*word).into()).collect();
        Self {
            notifications: words(inventory::NOTIFICATIONS),
            requests: words(inventory::SERVER_REQUESTS),
            items: words(inventory::THREAD_ITEMS),
        }
    }

    /// Adds the words of another.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.notifications.extend(other.notifications);
        self.requests.extend(other.requests);
        self.items.extend(other.items);
        self
    }
}

impl Drift {
    /// This Codex says nothing that we do not know; what it never says does no harm.
    pub fn is_harmless(&self) -> bool {
        self.unknown_notifications.is_empty()
            && self.unknown_requests.is_empty()
            && self.unknown_items.is_empty()
    }

    /// Neither side has a word that the other lacks.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// Asks this Codex for its schemas, the experimental one too, and compares them with what we know.
pub async fn check(program: &Path) -> Result<Drift, Error> {
    let mut offered = Inventory::default();
    for experimental in [false, true] {
        let folder = Folder::new()?;
        generate(program, &folder.path, experimental).await?;
        offered = offered.and(inventory_of(&folder.path)?);
    }
    Ok(compare(&offered))
}

/// Has a Codex write its JSON schemas into a folder.
pub async fn generate(program: &Path, folder: &Path, experimental: bool) -> Result<(), Error> {
    let mut command = Command::new(program);
    command.args(["app-server", "generate-json-schema", "--out"]).arg(folder);
    if experimental {
        command.arg("--experimental");
    }
    command.stdin(Stdio::null()).kill_on_drop(true);
    let failed = |source| Error::Spawn { program: program.display().to_string(), source };
    let output = match timeout(PATIENCE, command.output()).await {
        Ok(output) => output.map_err(failed)?,
        Err(_) => return Err(Error::Timeout { what: WHAT.to_owned(), after: PATIENCE }),
    };
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.trim().lines().last().unwrap_or_default();
        return Err(unreadable(format!("{}: {said}", output.status)));
    }
    Ok(())
}

/// Reads the words out of the folder that [`generate`] filled.
pub fn inventory_of(folder: &Path) -> Result<Inventory, Error> {
    let notifications = read(&folder.join("ServerNotification.json"))?;
    let requests = read(&folder.join("ServerRequest.json"))?;
    let items = notifications.pointer("/definitions/ThreadItem").cloned().unwrap_or_default();
    let found = Inventory {
        notifications: words(&notifications, "method"),
        requests: words(&requests, "method"),
        items: words(&items, "type"),
    };
    // A schema that moved would otherwise look like a Codex that says nothing.
    if found.notifications.is_empty() || found.requests.is_empty() || found.items.is_empty() {
        return Err(unreadable("its schema has another layout than we know".to_owned()));
    }
    Ok(found)
}

/// Compares the words of a Codex with ours.
pub fn compare(offered: &Inventory) -> Drift {
    let ours = Inventory::ours();
    let less = |a: &BTreeSet<String>, b: &BTreeSet<String>| a.difference(b).cloned().collect();
    let hidden = HIDDEN.iter().map(|word| (*word).to_owned()).collect();
    let mut missing: Vec<String> = less(&ours.notifications, &offered.notifications);
    missing.retain(|word| !BTreeSet::contains(&hidden, word));
    Drift {
        unknown_notifications: less(&offered.notifications, &ours.notifications),
        unknown_requests: less(&offered.requests, &ours.requests),
        unknown_items: less(&offered.items, &ours.items),
        missing_notifications: missing,
        missing_requests: less(&ours.requests, &offered.requests),
        missing_items: less(&ours.items, &offered.items),
    }
}

const WHAT: &str = "generate-json-schema";

/// It takes well under a second; a loaded machine may take more.
const PATIENCE: Duration = Duration::from_secs(60);

/// The words that tell the variants of a schema apart.
fn words(schema: &Value, tag: &str) -> BTreeSet<String> {
    let variants = schema["oneOf"].as_array().into_iter().flatten();
    let tags = variants.filter_map(|variant| variant["properties"][tag]["enum"].as_array());
    tags.flatten().filter_map(|word| word.as_str().map(str::to_owned)).collect()
}

fn read(path: &Path) -> Result<Value, Error> {
    let told = |err: &dyn std::fmt::Display| unreadable(format!("{}: {err}", path.display()));
    let bytes = fs::read(path).map_err(|err| told(&err))?;
    serde_json::from_slice(&bytes).map_err(|err| told(&err))
}

fn unreadable(why: String) -> Error {
    Error::Protocol { what: WHAT.to_owned(), why }
}

/// A folder that goes when it is no longer needed.
struct Folder {
    path: PathBuf,
}

impl Folder {
    fn new() -> Result<Self, Error> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("bindery-schema-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let failed = |err| unreadable(format!("no folder {}: {err}", path.display()));
        // Left behind by a process of the same number that was killed.
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).map_err(failed)?;
        Ok(Self { path })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(err) = fs::remove_dir_all(&self.path) {
            tracing::debug!(path = %self.path.display(), %err, "a folder stays behind");
        }
    }
}
