//! Reading files that a model or a project names, in this process.
//!
//! Such a path may lead to a pipe that nobody writes to, to a device, to a file of the kernel's
//! that never ends or that tells of this process, to what is hidden from commands, or somewhere
//! else by the time it is opened. Only a plain file is read, no more of it than asked for, and
//! every folder on the way to it is opened in the one before it.

mod resolve;

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use bindery_sessions::plain;
use rustix::fs::OFlags;

pub(crate) use self::resolve::{resolve_entry, resolve_links};
use crate::sandbox::HiddenPaths;

/// Reads plain files that are not hidden.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlainFileReader {
    hidden: HiddenPaths,
}

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlainFileError {
    /// The system says no.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It is a folder, a pipe, a device, or a file of the kernel's.
    #[error("path `{}` is not a file", .0.display())]
    NotPlain(PathBuf),
    /// It is hidden from the model, whether it is there or not.
    #[error("`{}` is hidden; use another file", .0.display())]
    Hidden(PathBuf),
    /// It is longer than what is read.
    #[error("it has more than {0} bytes")]
    TooLong(u64),
}

impl PlainFileReader {
    /// A reader to which these paths are hidden.
    pub fn hiding(hidden: HiddenPaths) -> Self {
        Self { hidden }
    }

    /// Where a path leads, be it there or not, if nothing on the way is hidden.
    pub(crate) fn resolve(&self, path: &Path) -> Result<PathBuf, PlainFileError> {
        self.visible(path, resolve_links)
    }

    /// The name itself, in the folder where it really is, if nothing on the way is hidden.
    pub(crate) fn resolve_entry(&self, path: &Path) -> Result<PathBuf, PlainFileError> {
        self.visible(path, resolve_entry)
    }

    fn visible(
        &self,
        path: &Path,
        resolve: impl Fn(&Path, &mut dyn FnMut(&Path)) -> io::Result<PathBuf>,
    ) -> Result<PathBuf, PlainFileError> {
        let hidden = self.hidden.resolve();
        let mut refused = false;
        let place = resolve(path, &mut |step| refused |= hidden.hides(step));
        if refused {
            return Err(PlainFileError::Hidden(path.to_owned()));
        }
        Ok(place?)
    }

    /// Opens a file for reading.
    pub fn open(&self, path: &Path) -> Result<File, PlainFileError> {
        let place = self.resolve(path)?;
        self.open_place(&place).map_err(|error| error.about(path))
    }

    /// Opens a file for reading by the path that [`Self::resolve`] gave; no link is followed.
    pub(crate) fn open_place(&self, place: &Path) -> Result<File, PlainFileError> {
        if self.hidden.resolve().hides(place) {
            return Err(PlainFileError::Hidden(place.to_owned()));
        }
        open_plain(place, OFlags::RDONLY)
    }

    /// Opens a file for writing and changes nothing: says whether it could be written.
    pub(crate) fn probe_writing(&self, path: &Path) -> Result<(), PlainFileError> {
        let place = self.resolve(path)?;
        open_plain(&place, OFlags::WRONLY).map(drop).map_err(|error| error.about(path))
    }

    /// The whole file, if it has at most so many bytes.
    pub fn read(&self, path: &Path, most: u64) -> Result<Vec<u8>, PlainFileError> {
        let file = self.open(path)?;
        if file.metadata()?.len() > most {
            return Err(PlainFileError::TooLong(most));
        }
        let mut bytes = Vec::new();
        file.take(most + 1).read_to_end(&mut bytes)?;
        match bytes.len() as u64 > most {
            true => Err(PlainFileError::TooLong(most)),
            false => Ok(bytes),
        }
    }

    /// The same as text.
    pub fn read_text(&self, path: &Path, most: u64) -> Result<String, PlainFileError> {
        let text = String::from_utf8(self.read(path, most)?);
        Ok(text.map_err(|err| io::Error::new(io::ErrorKind::InvalidData, err.utf8_error()))?)
    }
}

impl From<PlainFileError> for io::Error {
    fn from(error: PlainFileError) -> Self {
        match error {
            PlainFileError::Io(error) => error,
            other => Self::other(other.to_string()),
        }
    }
}

impl PlainFileError {
    /// Names the file as it was asked for.
    fn about(self, path: &Path) -> Self {
        match self {
            Self::NotPlain(_) => Self::NotPlain(path.to_owned()),
            other => other,
        }
    }
}

/// Opens a plain file by a path without links. A link that was put in the way is not followed, and
/// opening waits for nobody.
fn open_plain(place: &Path, how: OFlags) -> Result<File, PlainFileError> {
    let not_plain = || PlainFileError::NotPlain(place.to_owned());
    // Asked before: opening a device may do something.
    if !place.symlink_metadata()?.is_file() {
        return Err(not_plain());
    }
    let opened = plain::open_below(Path::new("/"), place, how | OFlags::NONBLOCK)?;
    if is_of_kernel(&opened)? {
        return Err(not_plain());
    }
    let file = File::from(opened);
    if file.metadata()?.is_file() { Ok(file) } else { Err(not_plain()) }
}

/// File systems whose files are made up by the kernel as they are read: proc, sysfs, debugfs,
/// tracefs, securityfs, both kinds of cgroups, configfs, bpf, pstore, efivarfs, binfmt, selinux.
#[cfg(target_os = "linux")]
const OF_KERNEL: [i128; 13] = [
    0x9fa0,
    0x6265_6572,
    0x6462_6720,
    0x7472_6163,
    0x7363_6673,
    0x0027_e0eb,
    0x6367_7270,
    0x6265_6570,
    0xcafe_4a11,
    0x6165_676c,
    0xde5e_81e4,
    0x4249_4e4d,
    0xf97c_ff8c,
];

#[cfg(target_os = "linux")]
fn is_of_kernel(file: impl AsFd) -> io::Result<bool> {
    let kind = i128::from(rustix::fs::fstatfs(file)?.f_type) & 0xffff_ffff;
    Ok(OF_KERNEL.contains(&kind))
}

#[cfg(not(target_os = "linux"))]
fn is_of_kernel(_: impl AsFd) -> io::Result<bool> {
    Ok(false)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn read(path: &Path) -> Result<Vec<u8>, PlainFileError> {
        PlainFileReader::default().read(path, 64)
    }

    #[test]
    fn only_plain_files_are_read_and_none_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "text").unwrap();
        symlink("file", at("link")).unwrap();
        assert_eq!(read(&at("file")).unwrap(), b"text");
        assert_eq!(read(&at("link")).unwrap(), b"text");
        rustix::fs::mkfifoat(rustix::fs::CWD, at("pipe"), 0o600.into()).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        symlink("/dev/zero", at("device")).unwrap();
        symlink("/proc/self/environ", at("environment")).unwrap();
        for name in ["pipe", "socket", "device", "."] {
            let refused = read(&at(name));
            assert!(matches!(refused, Err(PlainFileError::NotPlain(_))), "{name}: {refused:?}");
        }
        let huge = fs::File::create(at("huge")).unwrap();
        huge.set_len(1 << 40).unwrap();
        assert!(matches!(read(&at("huge")), Err(PlainFileError::TooLong(64))));
        assert!(matches!(read(&at("none")), Err(PlainFileError::Io(_))));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn files_of_the_kernel_are_none() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("environment");
        symlink("/proc/self/environ", &link).unwrap();
        for path in [Path::new("/proc/self/environ"), Path::new("/proc/version"), &link] {
            let refused = read(path);
            assert!(matches!(refused, Err(PlainFileError::NotPlain(_))), "{refused:?}");
        }
        // To the system's owner a plain file that waits for the kernel to say something.
        assert!(read(Path::new("/proc/kmsg")).is_err());
    }

    #[test]
    fn what_is_hidden_is_not_read_by_any_name() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("data/own")).unwrap();
        for file in ["data/key", "data/own/file", "free"] {
            fs::write(at(file), "text").unwrap();
        }
        symlink(at("data/key"), at("link")).unwrap();
        symlink(at("free"), at("data/outward")).unwrap();
        let hidden = HiddenPaths::new(vec![at("data")]).except([at("data/own")]);
        let reader = PlainFileReader::hiding(hidden);
        let own = std::env::current_dir().unwrap();
        let round = format!("/proc/self/root{}", at("data/key").display());
        let up = own.join("..").join("..").join(&round[1..]);
        for path in [at("data/key"), at("link"), at("data/none"), at("data/outward"), at("data")] {
            let refused = reader.read(&path, 64);
            assert!(matches!(refused, Err(PlainFileError::Hidden(_))), "{path:?}: {refused:?}");
        }
        for path in [PathBuf::from(round), up] {
            assert!(reader.read(&path, 64).is_err(), "{path:?}");
        }
        assert_eq!(reader.read(&at("free"), 64).unwrap(), b"text");
        assert_eq!(reader.read(&at("data/own/file"), 64).unwrap(), b"text");
    }
}
