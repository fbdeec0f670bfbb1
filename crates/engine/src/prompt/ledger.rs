//! What would be sent, block by block: who says it, where it is from, how long it is.

use std::path::PathBuf;

use serde::Serialize;

use super::base::Base;
use super::context::Context;
use super::section::{SectionKind, estimate};
use crate::config::{Placement, WireApi};
use crate::item::{Content, Message, Role};

/// One block as it would be sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Block {
    /// Where it goes: `instructions`, or the role of a message.
    pub role: &'static str,
    /// What it is.
    pub name: String,
    /// The files it is made of.
    pub sources: Vec<PathBuf>,
    /// Its length.
    pub bytes: usize,
    /// Its length in tokens, at four bytes each.
    pub tokens: u64,
    /// The text; a picture is told in words.
    pub text: String,
}

impl Block {
    fn new(role: &'static str, name: &str, sources: Vec<PathBuf>, text: String) -> Self {
        let (bytes, name) = (text.len(), name.to_owned());
        Self { role, name, sources, bytes, tokens: estimate(bytes), text }
    }
}

/// All blocks of a first request, in order.
pub fn blocks(base: &Base, at: Placement, context: &Context, said: Option<&Message>) -> Vec<Block> {
    let role = match at {
        Placement::Instructions => "instructions",
        Placement::Developer => "developer",
        Placement::System => "system",
    };
    let first =
        Block::new(role, "base prompt", base.source.iter().cloned().collect(), base.text.clone());
    // The order of the messages, which is that of the roles.
    let sections = SectionKind::ALL.into_iter().filter_map(|kind| context.section(kind));
    let sections = sections.map(|section| {
        let role = match section.kind.role() {
            Role::Developer => "developer",
            _ => "user",
        };
        Block::new(role, section.kind.name(), section.sources.clone(), section.text.clone())
    });
    let said = said.map(|message| Block::new("user", "your prompt", Vec::new(), spoken(message)));
    std::iter::once(first).chain(sections).chain(said).collect()
}

/// The words of a message.
fn spoken(message: &Message) -> String {
    let part = |content: &Content| match content {
        Content::InputText { text } | Content::OutputText { text } => text.clone(),
        Content::InputImage { image_url, .. } => match image_url.starts_with("data:") {
            true => format!("(a picture of {} bytes)", image_url.len()),
            false => image_url.clone(),
        },
    };
    message.content.iter().filter_map(|c| c.known().map(part)).collect::<Vec<_>>().join("\n")
}

/// Where the base prompt stands in a request on a wire.
pub fn place(at: Placement, wire: WireApi) -> &'static str {
    match (at, wire) {
        (_, WireApi::Demo) => "read by the demo model",
        (Placement::Instructions, _) => "the request's `instructions`",
        (Placement::Developer, _) => "the first item, from the developer",
        (Placement::System, _) => "the first message, from the system",
    }
}
