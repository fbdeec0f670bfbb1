//! `view_image`: the model looks at a picture on this machine.

use std::path::PathBuf;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::json;

use super::{Call, Cx, Ended, Tool, command};
use crate::item::Output;
use crate::model::ToolSpec;
use crate::picture::{Detail, Picture};

/// The tool.
pub(super) struct ViewImage;

#[derive(Deserialize)]
struct Arguments {
    path: PathBuf,
    #[serde(default)]
    detail: Option<String>,
}

impl Tool for ViewImage {
    fn name(&self) -> &'static str {
        "view_image"
    }

    fn spec(&self) -> Option<ToolSpec> {
        Some(ToolSpec::Function {
            name: self.name().to_owned(),
            description: "Shows you a picture that is in a file.".to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string", "description": "The file." },
                    "detail": {
                        "type": "string",
                        "enum": ["high", "original"],
                        "description": "`original` leaves a big picture as big as it is.",
                    },
                },
                "required": ["path"],
                "additionalProperties": false,
            }),
        })
    }

    fn parallel(&self) -> bool {
        true
    }

    fn call<'a>(&'a self, call: Call, cx: &'a Cx) -> BoxFuture<'a, Ended> {
        async move {
            let Arguments { path, detail } = match call.arguments() {
                Ok(arguments) => arguments,
                Err(ended) => return ended,
            };
            let path = command::folder(Some(&path), cx);
            let detail = match detail.as_deref() {
                Some("original") => Detail::Original,
                _ => Detail::High,
            };
            let (file, reader) = (path.clone(), cx.file_reader());
            let read = move || Picture::read(&file, detail, &reader);
            let read = tokio::task::spawn_blocking(read).await;
            let picture = match read {
                Ok(Ok(picture)) => picture,
                Ok(Err(error)) => return Ended::text(format!("view_image failed: {error}")),
                Err(_) => return Ended::text("view_image failed inside the engine"),
            };
            let item =
                json!({ "type": "imageView", "id": call.id, "path": path.to_string_lossy() });
            let begun = cx.voice.begin(item);
            cx.voice.complete(begun);
            Ended::Output(Output::Content(vec![picture.content(detail).into()]))
        }
        .boxed()
    }
}
