//! The last user turn → input, with its mentions, skills and marked places.

use serde_json::Value;

use super::detail;
use super::file::{Carried, File, carry};
use super::history::Placed;
use super::inject::{note_unknown, placed};
use super::mention;
use super::notes::{Notes, Place};
use super::own::{self, Own};
use crate::open::Open;
use crate::prompt::{Message, TextPart, UserPart};
use crate::spec::Metadata;
use crate::wire::app_server::input::{TextElement, UserInput};

/// The input of all messages of the turn; Codex makes one user message of it.
pub(super) fn items(latest: &[Placed<'_>], own: &Own, notes: &mut Notes<'_>) -> Vec<UserInput> {
    let mut reader = Reader { input: Vec::new(), named: Vec::new(), own, notes };
    for (index, message) in latest {
        let Message::User { content, provider_options } = message else { continue };
        let options = provider_options.as_ref();
        reader.note_unknown_options(options, &format!("prompt[{index}]"));
        reader.references(options, &format!("prompt[{index}]"));
        let mut of_message = own::find(options, "textElements");
        for (place, part) in placed(*index, content) {
            reader.part(part, options, &mut of_message, place);
        }
        if of_message.is_some() {
            let why = format!("prompt[{index}]: the message has no text");
            reader.notes.unsupported("providerOptions.codex.textElements", why);
        }
    }
    // References follow the text that speaks of them, each once.
    reader.input.append(&mut reader.named);
    reader.input
}

struct Reader<'o, 'n, 'c> {
    input: Vec<UserInput>,
    named: Vec<UserInput>,
    own: &'o Own,
    notes: &'n mut Notes<'c>,
}

impl Reader<'_, '_, '_> {
    fn part(
        &mut self,
        part: &Open<UserPart>,
        message: Option<&Metadata>,
        elements: &mut Option<&Value>,
        place: Place,
    ) {
        match part {
            Open::Known(UserPart::Text(part)) => self.text(part, elements.take(), place),
            Open::Known(UserPart::File(part)) => {
                self.file(&File::of(part, place), message);
            }
            Open::Known(UserPart::Image { image, media_type, provider_options }) => {
                let media_type = media_type.as_deref().unwrap_or("image/*");
                let options = provider_options.as_ref();
                let file = File { data: image, media_type, filename: None, options, place };
                self.file(&file, message);
            }
            Open::Unknown { raw, why } => note_unknown(raw, why, place, self.notes),
        }
    }

    fn text(&mut self, part: &TextPart, of_message: Option<&Value>, place: Place) {
        let options = part.provider_options.as_ref();
        self.note_unknown_options(options, &place.to_string());
        self.references(options, &place.to_string());
        let own = own::find(options, "textElements").into_iter();
        let given: Vec<&Value> = own.chain(of_message).collect();
        let mut text_elements = Vec::new();
        for elements in given {
            self.elements(elements, &part.text, place, &mut text_elements);
        }
        if self.own.parse_mentions || self.notes.context.parse_mentions {
            for found in mention::parse(&part.text, self.notes.context) {
                let range = found.element.byte_range;
                let free = |other: &TextElement| {
                    range.end <= other.byte_range.start || other.byte_range.end <= range.start
                };
                if text_elements.iter().all(free) {
                    text_elements.push(found.element);
                    self.name(found.what);
                }
            }
        }
        text_elements.sort_by_key(|element| element.byte_range.start);
        if !part.text.is_empty() {
            self.input.push(UserInput::Text { text: part.text.clone(), text_elements });
        }
    }

    fn file(&mut self, file: &File<'_>, message: Option<&Metadata>) {
        self.note_unknown_options(file.options, &file.place.to_string());
        self.references(file.options, &file.place.to_string());
        match carry(file, self.notes) {
            Some(Carried::Image(url)) => {
                let detail = self.detail(file, message);
                self.input.push(UserInput::Image { url, detail });
            }
            Some(Carried::LocalImage(path)) => {
                let detail = self.detail(file, message);
                self.input.push(UserInput::LocalImage { path, detail });
            }
            Some(Carried::Text(text)) => self.input.push(UserInput::text(text)),
            None => {}
        }
    }

    fn detail(&mut self, file: &File<'_>, message: Option<&Metadata>) -> Option<String> {
        detail::choose(file.options, message, self.own, file.place, self.notes)
    }

    fn elements(&mut self, given: &Value, text: &str, place: Place, into: &mut Vec<TextElement>) {
        let one = std::slice::from_ref(given);
        for element in given.as_array().map_or(one, Vec::as_slice) {
            match mention::element(element, text) {
                Ok(element) => into.push(element),
                Err(why) => self.notes.unsupported(
                    "providerOptions.codex.textElements",
                    format!("{place}: {element}: {why}"),
                ),
            }
        }
    }

    /// Mentions and skills that options name.
    fn references(&mut self, options: Option<&Metadata>, place: &str) {
        for (option, read) in [
            ("mentions", mention::mention as fn(&Value, &_) -> _),
            ("skills", mention::skill as fn(&Value, &_) -> _),
        ] {
            let Some(given) = own::find(options, option) else { continue };
            let one = std::slice::from_ref(given);
            for value in given.as_array().map_or(one, Vec::as_slice) {
                match read(value, self.notes.context) {
                    Ok(what) => self.name(what),
                    Err(why) => self.notes.unsupported(
                        format!("providerOptions.codex.{option}"),
                        format!("{place}: {value}: {why}"),
                    ),
                }
            }
        }
    }

    fn name(&mut self, what: UserInput) {
        if !self.named.contains(&what) {
            self.named.push(what);
        }
    }

    fn note_unknown_options(&mut self, options: Option<&Metadata>, place: &str) {
        const KNOWN: [&str; 7] = [
            "mentions",
            "skills",
            "textElements",
            "imageDetail",
            "localPath",
            // Metadata of ours that a front may copy to any message.
            "threadId",
            "turnId",
        ];
        let all = own::merged(options);
        for name in all.keys().filter(|name| !KNOWN.contains(&name.as_str())) {
            let feature = format!("providerOptions.codex.{name}");
            self.notes.unsupported(feature, format!("{place}: no such option of a message"));
        }
    }
}
