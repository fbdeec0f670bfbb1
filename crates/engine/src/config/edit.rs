//! Changes one thing in a settings file and leaves the rest of it as it was.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use toml_edit::{DocumentMut, Item, Table, value};

use super::Home;

use crate::plain_file::{PlainFileError, PlainFileReader};

/// A settings file longer than this is something else.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// Changes a TOML file under a lock: whole or not at all, readable by its owner alone. A file that
/// is missing is created; one that is not TOML is left alone and is an error.
pub fn edit_settings_file(
    file: &Path,
    change: impl FnOnce(&mut DocumentMut) -> io::Result<()>,
) -> io::Result<()> {
    let folder = file.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir_all(folder)?;
    let lock = open_private(&file.with_extension("lock"), false)?;
    lock.lock()?;
    let mut document: DocumentMut = read_text(file)?.parse().map_err(io::Error::other)?;
    change(&mut document)?;
    let partial = file.with_extension("partial");
    let mut written = open_private(&partial, true)?;
    written.write_all(document.to_string().as_bytes())?;
    written.sync_all()?;
    fs::rename(&partial, file)
}

/// Records in `bindery.toml` that a project is trusted; gives the file's path.
pub fn save_project_trust(home: &Home, project: &Path) -> io::Result<PathBuf> {
    let folder = home.bindery.as_ref().ok_or_else(|| {
        io::Error::new(io::ErrorKind::NotFound, "no home folder: set `BINDERY_HOME`")
    })?;
    let name = project.to_str().ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidInput, "the project's path is not valid UTF-8")
    })?;
    let file = folder.join("bindery.toml");
    edit_settings_file(&file, |document| {
        let no_table = || io::Error::other("`projects` is no table");
        let mut implicit = Table::new();
        implicit.set_implicit(true);
        let projects = document.entry("projects").or_insert(Item::Table(implicit));
        let projects = projects.as_table_mut().ok_or_else(no_table)?;
        let project = projects.entry(name).or_insert(Item::Table(Table::new()));
        project.as_table_mut().ok_or_else(no_table)?["trust_level"] = value("trusted");
        Ok(())
    })?;
    Ok(file)
}

fn read_text(file: &Path) -> io::Result<String> {
    match PlainFileReader::default().read_text(file, MAX_FILE_BYTES) {
        Err(PlainFileError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
            Ok(String::new())
        }
        Err(PlainFileError::TooLong(_)) => Err(io::Error::other("it is too large")),
        read => Ok(read?),
    }
}

fn open_private(path: &Path, fresh: bool) -> io::Result<File> {
    if fresh {
        // One that a crash left may have other rights.
        let _ = fs::remove_file(path);
    }
    File::options().write(true).create(true).truncate(fresh).mode(0o600).open(path)
}
