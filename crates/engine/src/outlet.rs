//! How a thread speaks to whoever listens: the seam between the loop and the service.
//!
//! The loop says what happens in the app-server protocol's own words; who hears it, over which
//! transport and how often a question is put again is the service's affair.

use futures_util::future::BoxFuture;
use serde_json::Value;

/// Listeners of one thread.
pub trait Outlet: Send + Sync {
    /// Tells them. `params` carries `threadId` (and `turnId`, `itemId`) already.
    fn tell(&self, method: &'static str, params: Value);

    /// Asks them; the first answer counts. A question stays open while nobody listens, and is put
    /// again to everyone who comes. Dropping the future withdraws it.
    fn ask(&self, method: &'static str, params: Value) -> BoxFuture<'_, Result<Value, Refusal>>;
}

/// A question that got no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Refusal {
    /// The client's words, or ours.
    pub why: String,
}
