//! What is too long to be sent to a backend, refused before it is stored or sent.

use bindery_client::transport::FRAME_LIMIT;
use bindery_core::wire::app_server::input::UserInput;

use crate::error::Error;

/// Refuses what the backend would not take in one message: it answers one by closing the
/// connection, with all turns on it.
pub fn check_length(what: &'static str, value: &impl serde::Serialize) -> Result<(), Error> {
    let (bytes, limit) = (json_bytes(value), MESSAGE_LIMIT);
    if bytes <= limit {
        return Ok(());
    }
    Err(Error::TooLong { what, bytes, limit })
}

/// What is around a prompt in its message: settings, names and the rest of the envelope.
const ENVELOPE: usize = 64 * 1024;

/// The longest prompt, answer or list of tools.
const MESSAGE_LIMIT: u64 = (FRAME_LIMIT - ENVELOPE) as u64;

/// The length of a value as JSON, which is not written anywhere.
pub fn json_bytes(value: &impl serde::Serialize) -> u64 {
    struct Count(u64);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // What cannot be written has no end.
    match serde_json::to_writer(&mut count, value) {
        Ok(()) => count.0,
        Err(_) => u64::MAX,
    }
}

/// Files that one prompt may name. The worker reads them all into memory, however often the prompt
/// names the same one.
const MAX_FILES: usize = 100;

/// Refuses a prompt whose files, which are sent as base64, are longer than a prompt may be.
pub fn check_files(input: &[UserInput]) -> Result<(), Error> {
    let files = input.iter().filter_map(|input| match input {
        UserInput::LocalImage { path, .. } => Some(path),
        _ => None,
    });
    let (mut count, mut bytes) = (0, 0);
    for path in files {
        count += 1;
        if count > MAX_FILES {
            return Err(Error::invalid("input", format!("it names more than {MAX_FILES} files")));
        }
        // What is not there is told by whoever reads it.
        bytes += std::fs::metadata(path).map_or(0, |file| file.len().div_ceil(3) * 4);
    }
    if bytes > MESSAGE_LIMIT {
        let what = "the list of the prompt's files";
        return Err(Error::TooLong { what, bytes, limit: MESSAGE_LIMIT });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(path: &std::path::Path) -> UserInput {
        serde_json::from_value(serde_json::json!({ "type": "localImage", "path": path })).unwrap()
    }

    #[test]
    fn the_same_file_counts_as_often_as_it_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.png");
        let file = std::fs::File::create(&path).unwrap();
        // Four bytes are sent for three.
        file.set_len(MESSAGE_LIMIT / 4).unwrap();
        assert!(check_files(&vec![image(&path); 2]).is_ok());
        assert_eq!(check_files(&vec![image(&path); 4]).unwrap_err().status(), 413);
        file.set_len(0).unwrap();
        assert!(check_files(&vec![image(&path); MAX_FILES]).is_ok());
        assert_eq!(check_files(&vec![image(&path); MAX_FILES + 1]).unwrap_err().status(), 422);
    }
}
