//! What a file's content is, by its type, its name and its first bytes.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};

use super::{Carried, Trouble, text};

/// What can be made of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Image,
    Text,
    /// The type does not say; the content may.
    Unknown,
    /// Neither image nor text.
    Other,
}

impl Kind {
    /// The kind by type, else by name.
    pub(super) fn of(media_type: &str, filename: Option<&str>) -> Self {
        let media_type = bare(media_type);
        let vague = ["", "*", "*/*", "application/*", "application/octet-stream"];
        if media_type == "image/svg+xml" || text::is_text_type(&media_type) {
            Self::Text
        } else if media_type == "image" || media_type.starts_with("image/") {
            Self::Image
        } else if !vague.contains(&media_type.as_str()) {
            Self::Other
        } else if filename.is_some_and(text::is_text_name) {
            Self::Text
        } else {
            Self::Unknown
        }
    }
}

/// Makes an image or a text of content.
pub(super) fn carry(
    bytes: &[u8],
    media_type: &str,
    filename: Option<&str>,
) -> Result<Carried, Trouble> {
    match Kind::of(media_type, filename) {
        Kind::Image if bytes.is_empty() => Err("it is empty".into()),
        Kind::Image => {
            let declared = bare(media_type);
            let exact = declared.contains('/') && !declared.ends_with('*');
            let found = sniffed(bytes).or(exact.then_some(declared.as_str()));
            let found = found.ok_or("it is no PNG, JPEG, GIF or WebP image")?;
            Ok(Carried::Image(data_url(found, bytes)))
        }
        Kind::Text => {
            let content = std::str::from_utf8(bytes).map_err(|_| "its text is not UTF-8")?;
            Ok(Carried::Text(text::fenced(content, &bare(media_type), filename)))
        }
        Kind::Unknown => {
            let found = sniffed(bytes).ok_or("its type does not say whether it is text")?;
            Ok(Carried::Image(data_url(found, bytes)))
        }
        Kind::Other => Err("Codex takes images and text only".into()),
    }
}

/// Of two types the one that says more: what was found may refine the prompt's own, not deny it.
pub(super) fn more_exact<'a>(own: &'a str, found: &'a str) -> &'a str {
    let own_bare = bare(own);
    let (kind, exact) = own_bare.split_once('/').unwrap_or((&own_bare, "*"));
    let is_vague = matches!(exact, "*" | "octet-stream");
    let refines = matches!(kind, "" | "*" | "application")
        || bare(found).split('/').next().is_some_and(|found| found == kind);
    if is_vague && refines && !found.is_empty() { found } else { own }
}

/// Reads base64 as people send it: either alphabet, padded or not, with line breaks.
pub(super) fn base64(data: &str) -> Option<Vec<u8>> {
    const LAX: GeneralPurposeConfig =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    const PLAIN: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LAX);
    const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LAX);
    let decode = |data: &str| PLAIN.decode(data).or_else(|_| URL_SAFE.decode(data)).ok();
    match data.contains(|c: char| c.is_ascii_whitespace()) {
        true => decode(&data.split_ascii_whitespace().collect::<String>()),
        false => decode(data),
    }
}

/// Whether the image of a data URL of ours begins as PNG, JPEG, GIF or WebP do.
pub(super) fn is_readable(data_url: &str) -> bool {
    let body = data_url.split_once(',').map_or("", |(_, body)| body);
    ["iVBORw0KGg", "/9j/", "R0lGOD", "UklGR"].iter().any(|magic| body.starts_with(magic))
}

/// Whether a path ends as images do.
pub(super) fn is_image_name(path: &str) -> bool {
    let ending = path.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    ending.is_some_and(|ending| {
        ["png", "jpg", "jpeg", "gif", "webp", "bmp", "tif", "tiff", "heic", "avif"]
            .contains(&ending.as_str())
    })
}

fn bare(media_type: &str) -> String {
    media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// The first bytes are right more often than the type that somebody declared.
fn sniffed(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

fn data_url(media_type: &str, bytes: &[u8]) -> String {
    format!("data:{media_type};base64,{}", STANDARD.encode(bytes))
}
