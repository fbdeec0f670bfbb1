//! What a model's server says that it offers: which models, and how much fits into each.
//!
//! Every server has `GET {base_url}/models`; what that leaves out, some tell at addresses of their
//! own, which are asked only where something is missing.

mod detail;

mod fetch;

mod fields;

use std::time::Duration;

use crate::model::{Provider, Wire};

/// A model as its server describes it; what the server does not say is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerModel {
    /// Its name on the wire.
    pub id: String,
    /// Tokens that the server lets it read and write together.
    pub context_window: Option<u64>,
    /// Tokens that it could be started with.
    pub max_context_window: Option<u64>,
    /// Whether it sees pictures.
    pub images: Option<bool>,
    /// Whether it calls tools.
    pub tools: Option<bool>,
    /// Whether it answers at all: there are models that only embed.
    pub chat: Option<bool>,
    /// Whether it is in memory.
    pub loaded: Option<bool>,
}

/// What a server offers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerModels {
    /// In the server's order, each name once.
    pub models: Vec<ServerModel>,
    /// What could not be learned, and why.
    pub notes: Vec<String>,
}

/// How much is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// One request: the list.
    List,
    /// Whatever can be learned of each model.
    Everything,
}

/// Why there is no list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ListError {
    /// By what one does about it.
    pub fault: ListFault,
    /// What happened; no secret is in it.
    pub message: String,
}

/// Kinds of fault, by what one does about them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListFault {
    /// The address cannot be one.
    Address,
    /// Nobody is there.
    Unreachable,
    /// Nothing came in time.
    Slow,
    /// The key is missing or wrong.
    Unauthorized,
    /// There is no such list.
    NotServed,
    /// The server says no.
    Refused,
    /// What came is no list.
    Garbage,
}

impl ListError {
    fn new(fault: ListFault, message: impl Into<String>) -> Self {
        Self { fault, message: message.into() }
    }
}

/// Asks a server what it offers. It takes no longer than `limit`.
pub async fn list_models(
    provider: &Provider,
    detail: Detail,
    limit: Duration,
) -> Result<ServerModels, ListError> {
    if provider.wire == Wire::Demo {
        return Err(ListError::new(ListFault::NotServed, "the demo model has no server"));
    }
    let fetcher = fetch::Fetcher::new(provider, limit).await?;
    let mut found = match fetcher.get(fetcher.listed(&["models"])).await {
        Ok(list) => fields::models(&list).ok_or_else(|| fetcher.no_list()),
        Err(error) if error.fault == ListFault::NotServed => {
            detail::other_list(&fetcher).await.ok_or(error)
        }
        Err(error) => Err(error),
    }?;
    if detail == Detail::Everything {
        detail::complete(&fetcher, &mut found).await;
    }
    Ok(found.into_models())
}
