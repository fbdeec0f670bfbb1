//! Pieces of what was said and returned: text and images, in the words of either wire.

use serde_json::{Value, json};

use super::file::{Carried, File, carry};
use super::notes::{Notes, Place};
use crate::file::FileData;
use crate::open::{Open, tag_of};
use crate::prompt::{OutputContent, ToolOutput};

/// A piece of a message or of a tool's answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Piece {
    Text(String),
    Image { url: String, detail: Option<String> },
}

impl Piece {
    /// The piece as the Responses API writes input.
    pub(super) fn response(&self) -> Value {
        match self {
            Self::Text(text) => json!({ "type": "input_text", "text": text }),
            Self::Image { url, detail: Some(detail) } => {
                json!({ "type": "input_image", "image_url": url, "detail": detail })
            }
            Self::Image { url, detail: None } => json!({ "type": "input_image", "image_url": url }),
        }
    }

    /// The piece as the app-server takes it from a dynamic tool.
    pub(super) fn dynamic(&self) -> Value {
        match self {
            Self::Text(text) => json!({ "type": "inputText", "text": text }),
            Self::Image { url, .. } => json!({ "type": "inputImage", "imageUrl": url }),
        }
    }
}

/// A tool's answer.
pub(super) struct Output {
    /// What it says.
    pub(super) pieces: Vec<Piece>,
    /// The tool did what it should.
    pub(super) success: bool,
}

impl Output {
    /// The body of a `function_call_output`: text where it is text alone.
    pub(super) fn response(&self) -> Value {
        match &self.pieces[..] {
            [] => json!(""),
            [Piece::Text(text)] => json!(text),
            pieces => pieces.iter().map(Piece::response).collect(),
        }
    }
}

/// A file as a piece of history, where only content counts: a path can but be told.
pub(super) fn piece(file: &File<'_>, notes: &mut Notes<'_>) -> Option<Piece> {
    Some(match carry(file, notes)? {
        Carried::Image(url) => Piece::Image { url, detail: None },
        Carried::Text(text) => Piece::Text(text),
        Carried::LocalImage(path) => {
            notes.compatibility(
                "local image",
                format!("{}: in the history only the path is told: {path}", file.place),
            );
            Piece::Text(format!("[image file: {path}]"))
        }
    })
}

/// Reads a tool's answer.
///
/// The Responses API has no field for failure, so the text says it.
pub(super) fn read(output: &Open<ToolOutput>, place: Place, notes: &mut Notes<'_>) -> Output {
    let (text, success) = match output {
        Open::Known(ToolOutput::Text { value }) => (value.clone(), true),
        Open::Known(ToolOutput::Json { value }) => (value.to_string(), true),
        Open::Known(ToolOutput::ErrorText { value }) => (format!("Error: {value}"), false),
        Open::Known(ToolOutput::ErrorJson { value }) => (format!("Error: {value}"), false),
        Open::Known(ToolOutput::ExecutionDenied { reason }) => (denied(reason.as_deref()), false),
        Open::Known(ToolOutput::Content { value }) => {
            let pieces = value.iter().filter_map(|piece| content(piece, place, notes)).collect();
            return Output { pieces, success: true };
        }
        Open::Unknown { raw, why } => {
            let feature = format!("tool output of type `{}`", tag_of(raw, "type"));
            notes.compatibility(feature, format!("{place}: sent as JSON text, because {why}"));
            (raw.to_string(), true)
        }
    };
    Output { pieces: vec![Piece::Text(text)], success }
}

fn denied(reason: Option<&str>) -> String {
    let why = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    format!("Not run: the user denied this call{why}")
}

fn content(piece: &Open<OutputContent>, place: Place, notes: &mut Notes<'_>) -> Option<Piece> {
    let in_output = |data: &FileData, media_type: &str, filename: Option<&str>, notes: &mut _| {
        let file = File { data, media_type, filename, options: None, place };
        self::piece(&file, notes)
    };
    match piece {
        Open::Known(OutputContent::Text(part)) => Some(Piece::Text(part.text.clone())),
        Open::Known(OutputContent::File(part)) => self::piece(&File::of(part, place), notes),
        Open::Known(OutputContent::FileData { data, media_type, filename }) => {
            let data = FileData::Data { data: data.clone() };
            in_output(&data, media_type, filename.as_deref(), notes)
        }
        Open::Known(OutputContent::FileUrl { url }) => {
            in_output(&FileData::Url { url: url.clone() }, "", None, notes)
        }
        Open::Known(OutputContent::FileId { .. }) => {
            notes.unsupported(
                "file id in a tool result",
                format!("{place}: Codex cannot follow another provider's handle"),
            );
            None
        }
        Open::Known(OutputContent::Custom { .. }) => {
            notes.unsupported("custom content in a tool result", format!("{place}: left out"));
            None
        }
        Open::Unknown { raw, why } => {
            let feature = format!("tool result content of type `{}`", tag_of(raw, "type"));
            notes.unsupported(feature, format!("{place}: {why}"));
            None
        }
    }
}
