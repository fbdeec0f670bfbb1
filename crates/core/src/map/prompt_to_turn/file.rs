//! Files of any form → an image, a path, or text; what is neither is refused with the reason.

mod content;

mod text;

mod url;

use super::notes::{Notes, Place};
use super::own;
use super::{Download, Fetched, PlanContext};
use crate::file::FileData;
use crate::prompt::FilePart;
use crate::spec::Metadata;
use content::Kind;

/// A file of the prompt.
pub(super) struct File<'a> {
    /// The content.
    pub(super) data: &'a FileData,
    /// IANA media type, perhaps `image/*`; empty if it is not given.
    pub(super) media_type: &'a str,
    /// Its name.
    pub(super) filename: Option<&'a str>,
    /// Options for providers.
    pub(super) options: Option<&'a Metadata>,
    /// Where it stands.
    pub(super) place: Place,
}

impl<'a> File<'a> {
    /// The file of a part.
    pub(super) fn of(part: &'a FilePart, place: Place) -> Self {
        Self {
            data: &part.data,
            media_type: &part.media_type,
            filename: part.filename.as_deref(),
            options: part.provider_options.as_ref(),
            place,
        }
    }

    fn described(&self) -> String {
        let media_type = if self.media_type.is_empty() { "no type" } else { self.media_type };
        let name = self.filename.map(|name| format!(", `{name}`")).unwrap_or_default();
        format!("file ({media_type}{name})")
    }
}

/// A file in a form that Codex takes.
#[derive(Debug, PartialEq)]
pub(super) enum Carried {
    /// An image as a data URL.
    Image(String),
    /// The path of an image on Codex's machine.
    LocalImage(String),
    /// A text file, labelled and fenced.
    Text(String),
}

/// Brings a file into a form that Codex takes, or notes why not.
pub(super) fn carry(file: &File<'_>, notes: &mut Notes<'_>) -> Option<Carried> {
    let trouble = match read(file, notes.context) {
        Ok(carried) => {
            note_doubtful(&carried, file, notes);
            return Some(carried);
        }
        Err(trouble) => trouble,
    };
    let why = match trouble {
        Trouble::Cannot(why) => why,
        Trouble::NotFetched(download) => {
            let why = format!("Codex fetches no addresses; `{}` is not downloaded", download.url);
            notes.want(download);
            why
        }
    };
    notes.unsupported(file.described(), format!("{}: {why}", file.place));
    None
}

/// Codex 0.166 puts a text in the place of an image that it cannot read, and says nothing.
fn note_doubtful(carried: &Carried, file: &File<'_>, notes: &mut Notes<'_>) {
    if let Carried::Image(url) = carried
        && !content::is_readable(url)
    {
        let why = "it is no PNG, JPEG, GIF or WebP image; Codex leaves out what it cannot read";
        notes.compatibility(file.described(), format!("{}: {why}", file.place));
    }
}

/// Why a file is not carried.
enum Trouble {
    Cannot(String),
    NotFetched(Download),
}

impl From<&str> for Trouble {
    fn from(why: &str) -> Self {
        Self::Cannot(why.to_owned())
    }
}

fn read(file: &File<'_>, context: &PlanContext) -> Result<Carried, Trouble> {
    let kind = Kind::of(file.media_type, file.filename);
    if let Some(path) = own::find_text(file.options, "localPath") {
        return local(path.to_owned(), kind);
    }
    match file.data {
        FileData::Reference { .. } => Err("Codex cannot follow another provider's handle".into()),
        _ if kind == Kind::Other => Err("Codex takes images and text only".into()),
        FileData::Text { text } => content::carry(text.as_bytes(), file.media_type, file.filename),
        FileData::Data { data } => {
            let bytes = content::base64(data).ok_or("its data is not valid base64")?;
            content::carry(&bytes, file.media_type, file.filename)
        }
        FileData::Url { url } => at(url, file, kind, context),
    }
}

fn at(url: &str, file: &File<'_>, kind: Kind, context: &PlanContext) -> Result<Carried, Trouble> {
    match url::scheme(url).as_str() {
        "data" => {
            let (media_type, bytes) = url::data(url).ok_or("its data URL cannot be read")?;
            let declared = content::more_exact(file.media_type, &media_type);
            content::carry(&bytes, declared, file.filename)
        }
        "file" => local(url::file_path(url).ok_or("its file URL names no local path")?, kind),
        "http" | "https" => match context.fetched.get(url) {
            Some(Fetched::File { bytes, media_type }) => {
                let declared = content::more_exact(file.media_type, media_type);
                content::carry(bytes, declared, file.filename)
            }
            Some(Fetched::Refused(why)) => {
                Err(Trouble::Cannot(format!("`{url}` was not downloaded: {why}")))
            }
            None => Err(Trouble::NotFetched(Download {
                url: url.to_owned(),
                media_type: file.media_type.to_owned(),
            })),
        },
        scheme => Err(Trouble::Cannot(format!("addresses of scheme `{scheme}` cannot be read"))),
    }
}

/// Codex reads images from its disk itself; any other file it would have to be told about.
fn local(path: String, kind: Kind) -> Result<Carried, Trouble> {
    match kind {
        Kind::Image => Ok(Carried::LocalImage(path)),
        Kind::Unknown if content::is_image_name(&path) => Ok(Carried::LocalImage(path)),
        _ => Err("only images go by path; pass the file's text, or mention its path".into()),
    }
}
