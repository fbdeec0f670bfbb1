//! Putting sessions away and giving them names.

use std::fs::{self, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde_json::json;

use super::clock::{Clock, stamp};
use super::hold::Hold;
use super::place;
use super::recorder::Head;
use crate::Error;
use crate::error::record_error;

/// Moves a session to the archive.
pub fn archive(home: &Path, path: &Path) -> Result<PathBuf, Error> {
    shelve(home, path, |name| Some(place::archived(home, name)))
}

/// Moves a session back from the archive.
pub fn unarchive(home: &Path, path: &Path) -> Result<PathBuf, Error> {
    shelve(home, path, |name| place::active(home, name))
}

fn shelve(
    home: &Path,
    path: &Path,
    place: impl FnOnce(&str) -> Option<PathBuf>,
) -> Result<PathBuf, Error> {
    let head = Head::read(path)?;
    let _hold = Hold::take_file(home, &head.thread, path)?;
    let name = path.file_name().and_then(|name| name.to_str());
    let target = name.and_then(place).ok_or_else(|| Error::Unfit {
        path: path.to_owned(),
        why: "its name is not one of a session",
    })?;
    if target == path {
        return Ok(target);
    }
    if target.exists() {
        let source = std::io::Error::from(std::io::ErrorKind::AlreadyExists);
        return Err(Error::Record { path: target, source });
    }
    if let Some(folder) = target.parent() {
        fs::create_dir_all(folder).map_err(record_error(folder))?;
    }
    fs::rename(path, &target).map_err(record_error(&target))?;
    Ok(target)
}

/// Names a thread: a line more in `session_index.jsonl`, where the last one wins.
pub fn rename(home: &Path, thread: &str, name: &str, clock: &Clock) -> Result<(), Error> {
    let path = home.join("session_index.jsonl");
    let line = json!({
        "id": thread,
        "thread_name": name,
        "updated_at": stamp(clock.millis()),
    });
    let add = || -> std::io::Result<()> {
        let mut file = OpenOptions::new().create(true).append(true).read(true).open(&path)?;
        let mut text = format!("{line}\n");
        if file.metadata()?.len() > 0 {
            let mut last = [0];
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
            if last != *b"\n" {
                text.insert(0, '\n');
            }
        }
        // One write, so that lines of two writers do not mix.
        file.write_all(text.as_bytes())
    };
    add().map_err(record_error(&path))
}
