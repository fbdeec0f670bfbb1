//! Turns begin, are steered and interrupted; histories grow and shrink without them.

use bindery_core::open::Open;
use bindery_core::wire::app_server::input::UserInput;
use serde_json::json;

use super::params::{Inject, OfThread, ReviewStart, TurnInterrupt, TurnStart, TurnSteer, checked};
use super::{Cx, Reply, Served, done};
use crate::service::line::now_ms;
use crate::service::refused::Refused;
use crate::service::threads::Loaded;
use crate::thread::{ThreadError, TurnInput, fresh_turn};

/// Letters of a thread's first words that lists show.
const PREVIEW: usize = 500;

/// `turn/start`.
pub(super) async fn start(cx: &Cx, mut params: TurnStart) -> Served {
    let loaded = cx.loaded(&params.thread_id)?;
    checked(&params.input)?;
    let overrides = params.overrides();
    cx.check_overrides(&overrides)?;
    loaded.touch(&params.input);
    let input = TurnInput {
        input: params.input,
        client_id: params.client_user_message_id,
        overrides,
        output_schema: params.output_schema,
    };
    let ticket = loaded.thread.prepare_turn(input).await.map_err(refused)?;
    let result = json!({ "turn": fresh_turn(&ticket.turn_id) });
    Ok(Reply::then(result, move || drop(ticket)))
}

/// `turn/steer`.
pub(super) async fn steer(cx: &Cx, params: TurnSteer) -> Served {
    let loaded = cx.loaded(&params.thread_id)?;
    checked(&params.input)?;
    let input = TurnInput {
        input: params.input,
        client_id: params.client_user_message_id,
        ..TurnInput::default()
    };
    let turn_id = loaded.thread.steer(&params.expected_turn_id, input).await.map_err(refused)?;
    Ok(json!({ "turnId": turn_id }).into())
}

/// `turn/interrupt`.
pub(super) async fn interrupt(cx: &Cx, params: &TurnInterrupt) -> Served {
    let loaded = cx.loaded(&params.thread_id)?;
    loaded.thread.interrupt(&params.turn_id).await.map_err(refused)?;
    Ok(done().into())
}

/// `thread/compact/start`.
pub(super) async fn compact(cx: &Cx, params: &OfThread) -> Served {
    let loaded = cx.loaded(&params.thread_id)?;
    let ticket = loaded.thread.compact().await.map_err(refused)?;
    Ok(Reply::then(done(), move || drop(ticket)))
}

/// `review/start`.
pub(super) async fn review(cx: &Cx, params: ReviewStart) -> Served {
    let loaded = cx.loaded(&params.thread_id)?;
    let words = UserInput::text(params.target.words());
    let ticket = loaded.thread.review(params.target).await.map_err(refused)?;
    let content = vec![Open::Known(words)];
    loaded.touch(&content);
    let mut turn = fresh_turn(&ticket.turn_id);
    let item = json!({ "type": "userMessage", "id": ticket.turn_id, "clientId": null,
        "content": content, "startedAtMs": null, "completedAtMs": null });
    turn["items"] = json!([item]);
    let result = json!({ "turn": turn, "reviewThreadId": params.thread_id });
    Ok(Reply::then(result, move || drop(ticket)))
}

/// `thread/inject_items`.
pub(super) async fn inject(cx: &Cx, params: Inject) -> Served {
    let loaded = cx.loaded(&params.thread_id)?;
    loaded.thread.inject(params.items).await.map_err(refused)?;
    Ok(done().into())
}

fn refused(err: ThreadError) -> Refused {
    match err {
        ThreadError::Journal(err) => Refused::internal(err),
        err => Refused::invalid(err.to_string()),
    }
}

impl Loaded {
    /// Remembers when it was used last, and its first words.
    fn touch(&self, input: &[Open<UserInput>]) {
        let mut about = self.about();
        about.updated_at = now_ms().div_euclid(1000);
        if about.preview.is_empty() {
            let text = input.iter().find_map(|input| match input {
                Open::Known(UserInput::Text { text, .. }) => Some(text.as_str()),
                _ => None,
            });
            about.preview = text.unwrap_or_default().chars().take(PREVIEW).collect();
        }
    }
}
