//! Files of the machine, for a client that asks for them; nothing of this is the model's doing.

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::{Refused, Served, done, read};
use crate::plain_file::PlainFileReader;
use crate::service::connection::LINE_LIMIT;

/// The largest file that is read: in base64 it still fits a message.
const LARGEST: u64 = (LINE_LIMIT / 4 * 3) as u64;

/// Entries of a folder that are listed.
const ENTRIES: usize = 100_000;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params {
    #[serde(default)]
    path: Option<PathBuf>,
    #[serde(default)]
    data_base64: Option<String>,
    #[serde(default)]
    source_path: Option<PathBuf>,
    #[serde(default)]
    destination_path: Option<PathBuf>,
    #[serde(default)]
    recursive: Option<bool>,
    #[serde(default)]
    force: Option<bool>,
}

/// Files that are worked on at a time, whoever asks: each may be in memory in several forms before
/// its client's outbox counts it.
static AT_A_TIME: Semaphore = Semaphore::const_new(2);

/// Serves one request where it holds nobody up.
pub(super) async fn serve(method: &str, params: &RawValue) -> Served {
    let params: Params = read(params)?;
    let _permit = AT_A_TIME.acquire().await.map_err(Refused::internal)?;
    let method = method.to_owned();
    let work = move || act(&method, &params);
    let result = tokio::task::spawn_blocking(work).await.map_err(Refused::internal)?;
    Ok(result?.into())
}

fn act(method: &str, params: &Params) -> Result<Value, Refused> {
    match method {
        "fs/copy" => copy(params),
        "fs/readFile" => read_file(path(&params.path, "path")?),
        "fs/writeFile" => write_file(path(&params.path, "path")?, params),
        "fs/createDirectory" => create_directory(path(&params.path, "path")?, params),
        "fs/getMetadata" => metadata(path(&params.path, "path")?),
        "fs/readDirectory" => read_directory(path(&params.path, "path")?),
        "fs/remove" => remove(path(&params.path, "path")?, params),
        _ => Err(Refused::not_served(method)),
    }
}

fn path<'a>(path: &'a Option<PathBuf>, name: &str) -> Result<&'a Path, Refused> {
    let path = path.as_deref();
    let path = path.ok_or_else(|| Refused::unreadable(&format_args!("missing field `{name}`")))?;
    match path.is_absolute() {
        true => Ok(path),
        false => {
            let why = "AbsolutePathBuf deserialized without a base path";
            Err(Refused::unreadable(&why))
        }
    }
}

fn read_file(path: &Path) -> Result<Value, Refused> {
    let meta = path.metadata().map_err(Refused::internal)?;
    let size = meta.len();
    if size > LARGEST {
        let why = format!("the file has {size} bytes, and {LARGEST} are the most");
        return Err(Refused::internal(why));
    }
    let bytes = PlainFileReader::default().read(path, LARGEST).map_err(Refused::internal)?;
    Ok(json!({ "dataBase64": STANDARD.encode(bytes) }))
}

fn write_file(path: &Path, params: &Params) -> Result<Value, Refused> {
    let missing = || Refused::unreadable(&"missing field `dataBase64`");
    let data = params.data_base64.as_deref().ok_or_else(missing)?;
    let bytes = STANDARD.decode(data).map_err(|err| {
        Refused::invalid(format!("fs/writeFile requires valid base64 dataBase64: {err}"))
    })?;
    std::fs::write(path, bytes).map_err(Refused::internal)?;
    Ok(done())
}

fn create_directory(path: &Path, params: &Params) -> Result<Value, Refused> {
    let made = match params.recursive.unwrap_or(true) {
        true => std::fs::create_dir_all(path),
        false => std::fs::create_dir(path),
    };
    made.map_err(Refused::internal)?;
    Ok(done())
}

fn metadata(path: &Path) -> Result<Value, Refused> {
    let link = path.symlink_metadata().map_err(Refused::internal)?;
    let meta = path.metadata().map_err(Refused::internal)?;
    let since = |time: std::io::Result<std::time::SystemTime>| {
        let since = time.ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    };
    Ok(json!({
        "isDirectory": meta.is_dir(),
        "isFile": meta.is_file(),
        "isSymlink": link.is_symlink(),
        "createdAtMs": since(meta.created()),
        "modifiedAtMs": since(meta.modified()),
    }))
}

fn read_directory(path: &Path) -> Result<Value, Refused> {
    let entries = std::fs::read_dir(path).map_err(Refused::internal)?;
    let rows = entries.flatten().take(ENTRIES).map(|entry| {
        let meta = entry.path().metadata();
        json!({
            "fileName": entry.file_name().to_string_lossy(),
            "isDirectory": meta.as_ref().is_ok_and(|meta| meta.is_dir()),
            "isFile": meta.as_ref().is_ok_and(|meta| meta.is_file()),
        })
    });
    Ok(json!({ "entries": rows.collect::<Vec<_>>() }))
}

fn remove(path: &Path, params: &Params) -> Result<Value, Refused> {
    let (recursive, force) = (params.recursive.unwrap_or(true), params.force.unwrap_or(true));
    let meta = match path.symlink_metadata() {
        Err(err) if err.kind() == std::io::ErrorKind::NotFound && force => return Ok(done()),
        meta => meta.map_err(Refused::internal)?,
    };
    let removed = match (meta.is_dir(), recursive) {
        (true, true) => std::fs::remove_dir_all(path),
        (true, false) => std::fs::remove_dir(path),
        (false, _) => std::fs::remove_file(path),
    };
    removed.map_err(Refused::internal)?;
    Ok(done())
}

fn copy(params: &Params) -> Result<Value, Refused> {
    let from = path(&params.source_path, "sourcePath")?;
    let to = path(&params.destination_path, "destinationPath")?;
    let meta = from.metadata().map_err(Refused::internal)?;
    if meta.is_dir() && !params.recursive.unwrap_or(false) {
        return Err(Refused::invalid("fs/copy of a folder requires recursive: true"));
    }
    if meta.is_dir() && to.starts_with(from) {
        return Err(Refused::invalid("fs/copy cannot copy a folder into itself"));
    }
    copy_tree(from, to).map_err(Refused::internal)?;
    Ok(done())
}

/// Links are copied as what they lead to, so a circle of them ends with the system's own error.
fn copy_tree(from: &Path, to: &Path) -> std::io::Result<()> {
    if !from.metadata()?.is_dir() {
        return std::fs::copy(from, to).map(drop);
    }
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        copy_tree(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}
