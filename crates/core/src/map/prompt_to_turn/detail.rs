//! How closely the model looks at an image.

use super::notes::{Notes, Place};
use super::own::{self, Own};
use crate::spec::Metadata;

/// The words Codex has.
pub(super) const WORDS: [&str; 4] = ["auto", "low", "high", "original"];

/// The detail of an image: as its part says, else the message, else the call.
pub(super) fn choose(
    part: Option<&Metadata>,
    message: Option<&Metadata>,
    own: &Own,
    place: Place,
    notes: &mut Notes<'_>,
) -> Option<String> {
    let nearest = [part, message].into_iter().find_map(|options| {
        let word = own_word(options, place, notes);
        word.or_else(|| openai(options))
    });
    let word = nearest.or_else(|| own.image_detail.clone())?;
    // Codex 0.166 puts a text in the place of an image whose detail is low, and says nothing.
    if word == "low" {
        notes.compatibility(
            "imageDetail",
            "Codex leaves out images of detail `low`; sent as `auto`",
        );
        return Some("auto".to_owned());
    }
    Some(word)
}

/// The detail in the words of the SDK's own provider, which callers have in place already.
pub(super) fn openai(options: Option<&Metadata>) -> Option<String> {
    let word = options?.get("openai")?.get("imageDetail")?.as_str()?;
    WORDS.contains(&word).then(|| word.to_owned())
}

fn own_word(options: Option<&Metadata>, place: Place, notes: &mut Notes<'_>) -> Option<String> {
    let value = own::find(options, "imageDetail")?;
    let word = value.as_str().filter(|word| WORDS.contains(word));
    if word.is_none() {
        let details = format!("{place}: it must be one of {}; left out", WORDS.join(", "));
        notes.unsupported("providerOptions.codex.imageDetail", details);
    }
    word.map(str::to_owned)
}
