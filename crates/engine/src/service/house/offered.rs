//! What a provider's server offers, asked for once in a while.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::model::Provider;
use crate::server_models::{Detail, list_models};

/// Whoever asks for models waits no longer for a server.
const LIMIT: Duration = Duration::from_secs(1);

/// How long a list is good for, and how long a server that gave none is left alone.
const FRESH: Duration = Duration::from_secs(60);
const ALONE: Duration = Duration::from_secs(10);

/// The last list; clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Offered(Arc<Mutex<Option<Kept>>>);

#[derive(Debug)]
struct Kept {
    of: Provider,
    until: Instant,
    names: Vec<String>,
}

impl Offered {
    /// The names of models that answer. A server that does not tell them offers none, and the log
    /// says why.
    pub(super) async fn models(&self, provider: &Provider) -> Vec<String> {
        // Held while the server is asked, so that many who ask at once ask it once.
        let mut kept = self.0.lock().await;
        let now = Instant::now();
        if let Some(kept) = &*kept
            && kept.of == *provider
            && kept.until > now
        {
            return kept.names.clone();
        }
        let (names, good_for) = match list_models(provider, Detail::List, LIMIT).await {
            Ok(found) => {
                let answer = found.models.into_iter().filter(|model| model.chat != Some(false));
                (answer.map(|model| model.id).collect(), FRESH)
            }
            Err(error) => {
                tracing::warn!(%error, "the server's models cannot be listed");
                (Vec::new(), ALONE)
            }
        };
        let until = Instant::now() + good_for;
        *kept = Some(Kept { of: provider.clone(), until, names: names.clone() });
        names
    }
}
