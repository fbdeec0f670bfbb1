//! The demo model: shows what an agent does, on a machine without any model.
//!
//! It is a pure function from a request to the next answer: no clock, no chance, no file, no state
//! between requests. What it knows of the folder it learns as a model does, through the tools it is
//! offered. Every answer says that it is a demo.

mod scene;

mod tour;

mod other;

use futures_util::future::BoxFuture;
use tokio::sync::mpsc;

use super::wire::tell;
use super::{Answered, Model, ModelError, ModelEvent, ModelRequest};
use crate::item::{CustomCall, HistoryItem, Item, Message, Role};
use crate::tokens::TokenCount;

/// Begins everything that the demo model says.
pub const LABEL: &str = "[demo]";

/// The demo model's name, where a server would say its model's.
pub const NAME: &str = "bindery-demo";

/// The demo model.
pub(super) struct Demo;

impl Model for Demo {
    fn answer(
        &self,
        request: ModelRequest,
        events: mpsc::Sender<ModelEvent>,
    ) -> BoxFuture<'_, Result<Answered, ModelError>> {
        Box::pin(async move {
            for event in answer(&request).iter().flat_map(spoken) {
                tell(&events, event).await;
            }
            Ok(Answered {
                // It cost nothing.
                usage: Some(TokenCount::default()),
                model: Some(NAME.to_owned()),
                ..Answered::default()
            })
        })
    }
}

/// The whole of the model.
fn answer(request: &ModelRequest) -> Vec<Item> {
    other::answer(request).unwrap_or_else(|| tour::answer(request))
}

/// Something said, with the label before it.
fn say(text: &str) -> Item {
    Item::Message(Message::text(Role::Assistant, format!("{LABEL} {text}")))
}

/// An item as it would come over a wire.
fn spoken(item: &Item) -> Vec<ModelEvent> {
    let done = ModelEvent::ItemDone(item.clone().into());
    match item {
        Item::Message(message) => {
            let begun = Message { content: Vec::new(), ..message.clone() };
            let mut events = vec![ModelEvent::ItemBegun(begun.into())];
            let text = scene::text_of(&message.content);
            events.extend(pieces(&text).map(ModelEvent::Text));
            events.push(done);
            events
        }
        Item::CustomToolCall(call) => {
            let begun = CustomCall { input: String::new(), ..call.clone() };
            let begun: HistoryItem = Item::CustomToolCall(begun).into();
            let mut events = vec![ModelEvent::ItemBegun(begun)];
            let call_id = &call.call_id;
            events.extend(
                pieces(&call.input)
                    .map(|text| ModelEvent::ToolInput { call_id: call_id.clone(), text }),
            );
            events.push(done);
            events
        }
        _ => vec![done],
    }
}

/// A few words each.
fn pieces(text: &str) -> impl Iterator<Item = String> {
    let words: Vec<&str> = text.split_inclusive(' ').collect();
    words.chunks(3).map(<[&str]>::concat).collect::<Vec<_>>().into_iter()
}

#[cfg(test)]
mod tests;
