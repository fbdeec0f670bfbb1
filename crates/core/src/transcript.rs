//! Transcript: items grouped in turns. Live parts fold into it; every renderer draws it.

mod fold;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{ThreadId, TurnId};
use crate::item::Item;
use crate::part::Warning;
use crate::usage::{FinishReason, Usage};

/// A conversation as it stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Transcript {
    /// The thread, once it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<ThreadId>,
    /// Its turns, oldest first.
    pub turns: Vec<TurnRecord>,
}

/// One turn as it stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnRecord {
    /// The turn, once it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<TurnId>,
    /// The model that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What was said and done, in the order it began.
    pub items: Vec<Item>,
    /// What could not be carried to the model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<Value>,
    /// Why it ended; none while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<FinishReason>,
    /// Tokens, once it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}
