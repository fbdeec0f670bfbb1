//! A session file as a stream of bytes, packed or not.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use ruzstd::decoding::StreamingDecoder;

use crate::Error;
use crate::error::read_error;
use crate::plain;

/// The bytes of a file, unpacked.
pub enum Source {
    /// As they are on disk.
    Plain(File),
    /// Through zstd.
    Packed(Box<dyn Read + Send>),
    /// A packed file whose head is broken: nothing can be read from it.
    Broken(Option<io::Error>),
}

/// True for `….zst`.
pub fn is_packed(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "zst")
}

/// Opens a session file.
pub fn open(path: &Path) -> Result<Source, Error> {
    open_within(path, None)
}

/// Opens a session file that must lie in this home, with no link on the way.
pub fn open_within(path: &Path, home: Option<&Path>) -> Result<Source, Error> {
    let file = open_file(path, home)?;
    if !is_packed(path) {
        return Ok(Source::Plain(file));
    }
    Ok(match StreamingDecoder::new(io::BufReader::new(file)) {
        Ok(decoder) => Source::Packed(Box::new(decoder)),
        Err(error) => Source::Broken(Some(io::Error::other(error.to_string()))),
    })
}

/// The same as it is on disk.
pub fn open_file(path: &Path, home: Option<&Path>) -> Result<File, Error> {
    let opened = match home {
        Some(home) => plain::open_file(home, path),
        None => File::open(path),
    };
    opened.map_err(read_error(path))
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(file) => file.read(buffer),
            Self::Packed(decoder) => decoder.read(buffer),
            Self::Broken(error) => error.take().map_or(Ok(0), Err),
        }
    }
}
