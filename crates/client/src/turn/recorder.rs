//! Who writes down that a turn is about to be asked for.

use bindery_core::ids::ThreadId;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use bindery_core::wire::app_server::params::TurnSettings;

use crate::error::Error;

/// Writes down, before a turn is asked for, where it will be and how it can be told from others:
/// whoever comes after a crash looks for it there.
pub trait StartRecorder: Send + Sync + 'static {
    /// The mark that the turn's first message carries, unless the caller has given it one.
    fn mark(&self) -> String;

    /// A turn of this thread is about to be asked for, and carries this mark. If it fails, the turn
    /// is not asked for.
    fn record(&self, thread: ThreadId, mark: String) -> BoxFuture<'static, Result<(), Error>>;
}

/// The field of `turn/start` that Codex keeps with the user's message, as its `clientId`.
const MARK: &str = "clientUserMessageId";

/// Marks a turn with what its caller or its recorder says; gives the mark.
pub(super) fn mark(settings: &mut TurnSettings, recorder: &dyn StartRecorder) -> String {
    let given = settings.extra.get(MARK).and_then(Value::as_str);
    let mark = given.map_or_else(|| recorder.mark(), str::to_owned);
    settings.extra.insert(MARK.to_owned(), json!(mark));
    mark
}
