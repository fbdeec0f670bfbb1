//! A session file as a stream of bytes, packed or not.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
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
    Ok(Source::Packed(Box::new(Frames::Between(Some(BufReader::new(file))))))
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
        }
    }
}

type Decoder = StreamingDecoder<BufReader<File>, ruzstd::decoding::FrameDecoder>;

/// The frames of a packed file, one after the other: a file that was appended to has several.
enum Frames {
    Between(Option<BufReader<File>>),
    Inside(Box<Decoder>),
}

impl Frames {
    /// Goes to the next frame; false at the end of the file.
    fn next_frame(&mut self, mut file: BufReader<File>) -> io::Result<bool> {
        if file.fill_buf()?.is_empty() {
            return Ok(false);
        }
        // A frame of notes comes without content; its head says how long it is.
        let mut head = [0; 8];
        let seen = file.fill_buf()?;
        let known = seen.len().min(8);
        head[..known].copy_from_slice(&seen[..known]);
        if let Some(length) = note_length(&head) {
            io::copy(&mut file.by_ref().take(8 + length), &mut io::sink())?;
            *self = Self::Between(Some(file));
            return Ok(true);
        }
        let decoder = StreamingDecoder::new(file);
        let decoder = decoder.map_err(|error| io::Error::other(error.to_string()))?;
        *self = Self::Inside(Box::new(decoder));
        Ok(true)
    }
}

impl Read for Frames {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self {
                Self::Inside(decoder) => {
                    let read = decoder.read(buffer)?;
                    if read > 0 || buffer.is_empty() {
                        return Ok(read);
                    }
                    let Self::Inside(decoder) = std::mem::replace(self, Self::Between(None)) else {
                        return Ok(0);
                    };
                    *self = Self::Between(Some(decoder.into_inner()));
                }
                Self::Between(file) => {
                    let Some(file) = file.take() else { return Ok(0) };
                    if !self.next_frame(file)? {
                        return Ok(0);
                    }
                }
            }
        }
    }
}

/// The length of a frame without content.
fn note_length(head: &[u8; 8]) -> Option<u64> {
    let number = |from: usize| {
        u32::from_le_bytes([head[from], head[from + 1], head[from + 2], head[from + 3]])
    };
    (0x184d_2a50..=0x184d_2a5f).contains(&number(0)).then(|| u64::from(number(4)))
}
