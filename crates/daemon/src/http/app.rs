//! What handlers share.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::body_budget::BodyBudget;
use super::connections::Connections;
use super::idempotency::Keys;
use super::limits::Used;
use super::metrics::Metrics;
use super::security::Doors;
use super::token_watch::TokenWatch;
use super::wrong_tokens::WrongTokens;
use crate::config::Config;
use crate::front::Fronts;
use crate::interrupts::Desk;
use crate::store::{Store, WriteProbe};
use crate::tenant::Tenants;
use crate::turns::Runner;

/// Everything behind the API; clones share it.
#[derive(Clone)]
pub struct App {
    /// Settings.
    pub config: Arc<Config>,
    /// What is kept.
    pub store: Arc<dyn Store>,
    /// Whether that can be written.
    pub write_probe: WriteProbe,
    /// Who may speak.
    pub tenants: Tenants,
    /// Who runs turns.
    pub runner: Runner,
    /// Where questions are answered.
    pub desk: Desk,
    /// Who runs the AI SDK's calls.
    pub fronts: Fronts,
    /// Which requests may come in.
    pub doors: Doors,
    /// What tenants have used.
    pub used: Used,
    /// Requests under way that are to be made once.
    pub keys: Keys,
    /// Who is connected.
    pub connections: Connections,
    /// Wrong tokens, by address.
    pub wrong_tokens: WrongTokens,
    /// Bytes of requests in memory.
    pub body_budget: BodyBudget,
    /// What is counted.
    pub metrics: Metrics,
    /// Ends streams whose token is void.
    pub token_watch: TokenWatch,
    /// Set when the server stops: streams end then.
    pub stop: CancellationToken,
}
