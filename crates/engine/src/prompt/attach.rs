//! What a user gives along with their words: pictures, files, and what was piped in.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::item::{Content, Message, Role};
use crate::plain_file::{PlainFileError, PlainFileReader};

/// One piece of what a user says, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Words.
    Text(String),
    /// A picture that is elsewhere, or a data URL.
    ImageUrl(String),
    /// A picture on this machine.
    ImageFile(PathBuf),
    /// A text file on this machine.
    TextFile(PathBuf),
}

/// A picture as it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// `image/png`, …
    pub media_type: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Why a piece cannot be sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttachError {
    /// The file is not there, or not to be read.
    #[error("cannot read `{}`", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is longer than what is sent.
    #[error("`{}` has {bytes} bytes, at most {most}", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
        /// Its length.
        bytes: u64,
        /// The most that is sent.
        most: u64,
    },
    /// The file is no text.
    #[error("`{}` is not text in UTF-8", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
    },
    /// The file is no picture, or of a kind that cannot be sent.
    #[error("`{}` is no picture that can be sent: {why}", path.display())]
    NotPicture {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// What came in a data URL is no picture, or of a kind that cannot be sent.
    #[error("a picture was given that cannot be sent: {why}")]
    BadData {
        /// Why.
        why: String,
    },
}

/// The longest text file that is attached; a model's window is not much longer.
pub const MOST_TEXT: u64 = 1 << 20;

/// The longest picture that is read, before it is made smaller.
pub const MOST_PICTURE: u64 = 64 << 20;

/// Makes a picture fit to be sent; what it is given is the file as it is.
pub type Shrink<'a> = &'a dyn Fn(Vec<u8>) -> Result<Picture, String>;

/// The message of a user. Pictures are numbered from one and stand between labels, so that words
/// can speak of them.
pub fn user_message(pieces: &[Piece], shrink: Shrink<'_>) -> Result<Message, AttachError> {
    let mut content = Vec::new();
    let mut pictures = 0;
    for piece in pieces {
        match piece {
            Piece::Text(text) => content.push(input(text.clone())),
            Piece::TextFile(path) => content.push(input(text_file(path)?)),
            Piece::ImageUrl(url) => {
                pictures += 1;
                content.extend(picture(pictures, None, fit_url(url, shrink)?));
            }
            Piece::ImageFile(path) => {
                pictures += 1;
                content.extend(picture(pictures, Some(path), data_url(path, shrink)?));
            }
        }
    }
    let content = content.into_iter().map(Into::into).collect();
    Ok(Message { id: None, role: Role::User, content, phase: None })
}

/// A text file with its name around it.
pub fn text_file(path: &Path) -> Result<String, AttachError> {
    Ok(labelled(path, &read_text(path)?))
}

/// A prompt and what was piped in, as one text. What is piped in without a prompt is the prompt.
pub fn with_stdin(prompt: Option<&str>, piped: Option<&str>) -> Option<String> {
    match (prompt, piped.filter(|piped| !piped.is_empty())) {
        (Some(prompt), Some(piped)) => {
            let end = if piped.ends_with('\n') { "" } else { "\n" };
            Some(format!("{prompt}\n\n<stdin>\n{piped}{end}</stdin>"))
        }
        (Some(prompt), None) => Some(prompt.to_owned()),
        (None, piped) => piped.filter(|piped| !piped.trim().is_empty()).map(str::to_owned),
    }
}

fn input(text: String) -> Content {
    Content::InputText { text }
}

fn picture(number: usize, path: Option<&Path>, url: String) -> [Content; 3] {
    let path = path.map(|path| format!(" path=\"{}\"", path.display())).unwrap_or_default();
    [
        input(format!("<image name=[Image #{number}]{path}>")),
        Content::InputImage { image_url: url, detail: Some("high".to_owned()) },
        input("</image>".to_owned()),
    ]
}

fn labelled(path: &Path, text: &str) -> String {
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("<file path=\"{}\">\n{text}{end}</file>", path.display())
}

fn read_text(path: &Path) -> Result<String, AttachError> {
    let not_text = |_| AttachError::NotText { path: path.to_owned() };
    String::from_utf8(read(path, MOST_TEXT)?).map_err(not_text)
}

/// A picture that came in its address is made smaller as one in a file is; one that is elsewhere
/// stays there.
fn fit_url(url: &str, shrink: Shrink<'_>) -> Result<String, AttachError> {
    let Some(data) = url.strip_prefix("data:") else { return Ok(url.to_owned()) };
    let bad = |why: String| AttachError::BadData { why };
    let (_, data) = data.split_once(";base64,").ok_or_else(|| bad("it is not base64".into()))?;
    let bytes = STANDARD.decode(data.trim()).map_err(|err| bad(err.to_string()))?;
    let picture = shrink(bytes).map_err(bad)?;
    Ok(url_of(&picture))
}

fn url_of(picture: &Picture) -> String {
    format!("data:{};base64,{}", picture.media_type, STANDARD.encode(&picture.bytes))
}

fn data_url(path: &Path, shrink: Shrink<'_>) -> Result<String, AttachError> {
    let not_picture = |why| AttachError::NotPicture { path: path.to_owned(), why };
    let picture = shrink(read(path, MOST_PICTURE)?).map_err(not_picture)?;
    Ok(url_of(&picture))
}

fn read(path: &Path, most: u64) -> Result<Vec<u8>, AttachError> {
    let unreadable = |source| AttachError::Unreadable { path: path.to_owned(), source };
    PlainFileReader::default().read(path, most).map_err(|error| match error {
        PlainFileError::TooLong(_) => {
            let bytes = path.metadata().map_or(most + 1, |meta| meta.len());
            AttachError::TooLong { path: path.to_owned(), bytes, most }
        }
        PlainFileError::NotPlain(_) => unreadable(std::io::Error::other("it is not a file")),
        other => unreadable(other.into()),
    })
}
