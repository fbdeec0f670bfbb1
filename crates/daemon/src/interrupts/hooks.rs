//! Webhooks: signed, kept until they are taken, tried again with pauses.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bindery_client::tools::ToolSet;
use reqwest::Client;
use serde_json::json;
use tokio::sync::Notify;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::tool;
use crate::clock;
use crate::error::Error;
use crate::secret;
use crate::store::{Change, Delivery, InterruptRow, Store};
use crate::tenant::Tenant;

/// How long a receiver may take.
const LIMIT: Duration = Duration::from_secs(10);

/// How often a delivery is tried.
const ATTEMPTS: u32 = 10;

/// The first pause; each is twice the one before, up to an hour.
const PAUSE: Duration = Duration::from_secs(2);

/// Calls made at a time.
const AT_ONCE: usize = 16;

/// The webhooks of all tenants; clones share them.
#[derive(Clone)]
pub struct Hooks {
    inner: Arc<Inner>,
}

struct Inner {
    store: Arc<dyn Store>,
    /// Made when first used: most daemons call nobody.
    client: OnceLock<Client>,
    wake: Notify,
}

impl Hooks {
    /// Webhooks whose deliveries are kept in this store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        let inner = Inner { store, client: OnceLock::new(), wake: Notify::new() };
        Self { inner: Arc::new(inner) }
    }

    /// The changes that tell a tenant's webhooks of a question.
    pub fn opened(&self, tenant: &Tenant, row: &InterruptRow) -> Result<Vec<Change>, Error> {
        let deliveries = tenant.settings.webhooks.iter().map(|hook| {
            let id = format!("evt_{}", Uuid::now_v7().simple());
            let event = "interrupt.opened";
            let body = json!({
                "id": id, "event": event, "tenant": tenant.name, "interrupt": super::view(row),
            });
            Change::AddDelivery(Delivery {
                id,
                tenant: tenant.id.clone(),
                url: hook.url.clone(),
                event: event.to_owned(),
                body: body.to_string(),
                attempts: 0,
                due: row.opened,
            })
        });
        Ok(deliveries.collect())
    }

    /// There may be something to deliver.
    pub fn wake(&self) {
        self.inner.wake.notify_one();
    }

    /// The tools of a tenant that webhooks serve.
    pub fn tools(&self, tenant: &Tenant) -> ToolSet {
        tool::set(self, tenant)
    }

    /// Calls an address, signed; gives the body of the reply if that says it was taken.
    pub(super) async fn call(
        &self,
        url: &str,
        secret: &str,
        id: &str,
        body: String,
        limit: Duration,
    ) -> Result<Vec<u8>, String> {
        let time = clock::now() / 1000;
        let signature = secret::sign(secret, time, body.as_bytes());
        let request = self
            .client()?
            .post(url)
            .timeout(limit)
            .header("content-type", "application/json")
            .header("bindery-delivery", id)
            .header("bindery-signature", format!("t={time},v1={signature}"))
            .body(body);
        let reply = request.send().await.map_err(|err| in_words(&err))?;
        let status = reply.status();
        let body = bounded(reply).await?;
        if status.is_success() { Ok(body) } else { Err(format!("it answered {status}")) }
    }

    /// Delivers what is due until it is told to stop.
    pub async fn run(self, stop: CancellationToken) {
        loop {
            // What is cut short here is still in the store, and delivered by the next daemon.
            let round = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                round = self.round() => round,
            };
            let pause = match round {
                Ok(pause) => pause,
                Err(err) => {
                    tracing::error!(%err, "webhooks cannot be looked up");
                    PAUSE
                }
            };
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = self.inner.wake.notified() => {}
                () = sleep(pause) => {}
            }
        }
    }

    /// Delivers what is due; gives how long nothing will be.
    async fn round(&self) -> Result<Duration, Error> {
        let due = self.inner.store.due(clock::now(), AT_ONCE).await?;
        let full = due.len() == AT_ONCE;
        futures_util::future::join_all(due.into_iter().map(|due| self.deliver(due))).await;
        if full {
            return Ok(Duration::ZERO);
        }
        let next = self.inner.store.next_due().await?;
        Ok(next.map_or(Duration::from_secs(3600), clock::until))
    }

    async fn deliver(&self, delivery: Delivery) {
        let hook = self.secret_of(&delivery).await;
        let outcome = match hook {
            Some(secret) => {
                let (url, id) = (&delivery.url, &delivery.id);
                self.call(url, &secret, id, delivery.body.clone(), LIMIT).await.map(drop)
            }
            // The webhook was taken away meanwhile.
            None => Ok(()),
        };
        let id = delivery.id.clone();
        let change = match outcome {
            Ok(()) => Change::RemoveDelivery { id },
            Err(why) if delivery.attempts + 1 >= ATTEMPTS => {
                tracing::warn!(id, why, "a webhook is given up");
                Change::RemoveDelivery { id }
            }
            Err(why) => {
                tracing::info!(id, why, attempt = delivery.attempts + 1, "a webhook failed");
                let pause = PAUSE.saturating_mul(1 << delivery.attempts.min(11));
                let pause = pause.min(Duration::from_secs(3600));
                Change::RetryDelivery { id, due: clock::after(clock::now(), pause) }
            }
        };
        if let Err(err) = self.inner.store.commit(vec![change]).await {
            tracing::error!(%err, "a webhook's outcome is not kept");
        }
    }

    async fn secret_of(&self, delivery: &Delivery) -> Option<String> {
        let tenant = self.inner.store.tenant(&delivery.tenant).await.ok().flatten()?;
        let hooks = tenant.settings.webhooks.into_iter();
        hooks.filter(|hook| hook.url == delivery.url).map(|hook| hook.secret).next()
    }

    fn client(&self) -> Result<&Client, String> {
        if let Some(client) = self.inner.client.get() {
            return Ok(client);
        }
        // It fails only if the process has one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // An address is called as it was set; it leads nowhere else.
        let builder = Client::builder().redirect(reqwest::redirect::Policy::none());
        let client = builder.build().map_err(|err| in_words(&err))?;
        Ok(self.inner.client.get_or_init(|| client))
    }
}

/// The longest reply read.
const REPLY: usize = 8 << 20;

async fn bounded(mut reply: reqwest::Response) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    while let Some(piece) = reply.chunk().await.map_err(|err| in_words(&err))? {
        body.extend_from_slice(&piece);
        if body.len() > REPLY {
            return Err("its answer is too long".to_owned());
        }
    }
    Ok(body)
}

/// Without the address, which may hold a secret.
fn in_words(err: &reqwest::Error) -> String {
    let mut words = String::new();
    let mut cause: Option<&dyn std::error::Error> = std::error::Error::source(err);
    while let Some(err) = cause {
        words = err.to_string();
        cause = err.source();
    }
    match (err.is_timeout(), words.is_empty()) {
        (true, _) => "it did not answer in time".to_owned(),
        (false, true) => "it cannot be called".to_owned(),
        (false, false) => words,
    }
}
