//! Webhooks: signed, kept until they are taken, tried again with pauses.
//!
//! A receiver is told one thing at a time, in order; what it does not take holds up nobody else's.

mod call;

mod line;

use std::sync::Arc;
use std::time::Duration;

use bindery_client::tools::ToolSet;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use self::call::Caller;
pub(super) use self::call::Letter;
use self::line::{AT_ONCE, Busy, OF_TENANT, Receiver};
use super::tool;
use crate::clock::{self, Millis};
use crate::config::WebhookConfig;
use crate::error::Error;
use crate::store::{
    Change, Delivery, InterruptRow, Store, StoreError, TurnEnd, TurnRow, TurnState,
};
use crate::tenant::{HookEvent, Tenant, Webhook};

/// How long the store is left alone when it fails.
const STORE: Duration = Duration::from_secs(2);

/// The longest pause between two tries.
const LONGEST: Duration = Duration::from_secs(3600);

/// The webhooks of all tenants; clones share them.
#[derive(Clone)]
pub struct Hooks {
    inner: Arc<Inner>,
}

struct Inner {
    store: Arc<dyn Store>,
    caller: Caller,
    wake: Notify,
    attempts: u32,
    /// The first of the pauses.
    pause: Duration,
    /// How long a receiver may take.
    limit: Duration,
}

impl Hooks {
    /// Webhooks whose deliveries are kept in this store.
    pub fn new(store: Arc<dyn Store>, config: &WebhookConfig) -> Self {
        let seconds = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or(LONGEST);
        let inner = Inner {
            store,
            caller: Caller::default(),
            wake: Notify::new(),
            attempts: config.attempts.get(),
            pause: seconds(config.pause_seconds).min(LONGEST),
            limit: seconds(config.answer_seconds).min(LONGEST),
        };
        Self { inner: Arc::new(inner) }
    }

    /// The changes that tell a tenant's webhooks of a question, and of the turn that waits for it.
    pub fn opened(&self, tenant: &Tenant, row: &InterruptRow) -> Result<Vec<Change>, Error> {
        let interrupt = super::view(row);
        let turn = json!({ "id": row.turn, "threadId": row.thread, "state": "waiting" });
        let told = json!({ "turn": turn, "interrupt": interrupt });
        let mut changes = deliveries(tenant, HookEvent::InterruptOpened, row.opened, &told);
        changes.extend(deliveries(tenant, HookEvent::TurnWaiting, row.opened, &told));
        Ok(changes)
    }

    /// The changes that tell a tenant's webhooks of a turn's end.
    pub fn ended(&self, tenant: &Tenant, turn: &TurnRow, end: &TurnEnd) -> Vec<Change> {
        let event = match end.state {
            TurnState::Completed => HookEvent::TurnCompleted,
            TurnState::Interrupted => HookEvent::TurnInterrupted,
            TurnState::Failed => HookEvent::TurnFailed,
            TurnState::Queued | TurnState::Running => return Vec::new(),
        };
        let told = json!({ "turn": {
            "id": turn.id,
            "threadId": turn.thread,
            "kind": turn.kind,
            "state": end.state,
            "error": end.error,
            "resumable": end.resumable,
            "usage": end.usage,
            "createdAt": turn.created,
            "endedAt": end.at,
        } });
        deliveries(tenant, event, end.at, &told)
    }

    /// There is something to deliver.
    pub fn wake(&self) {
        self.inner.wake.notify_one();
    }

    /// The tools of a tenant that webhooks serve.
    pub fn tools(&self, tenant: &Tenant) -> ToolSet {
        tool::set(self, tenant)
    }

    /// Calls an address, signed; gives the body of the reply if that says it was taken.
    pub(super) async fn call(&self, letter: Letter<'_>) -> Result<Vec<u8>, String> {
        self.inner.caller.ask(letter).await
    }

    /// Delivers what is due until it is told to stop.
    ///
    /// What is cut short is still in the store, and delivered by the next daemon.
    pub async fn run(self, stop: CancellationToken) {
        let (mut calls, mut busy) = (FuturesUnordered::new(), Busy::default());
        loop {
            let found = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                found = self.look(&busy) => found,
            };
            let (due, pause) = found.unwrap_or_else(|err| {
                tracing::error!(%err, "webhooks cannot be looked up");
                (Vec::new(), STORE)
            });
            for delivery in due {
                busy.begin(&delivery);
                calls.push(self.deliver(delivery));
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                Some(receiver) = calls.next() => busy.end(&receiver),
                () = self.inner.wake.notified() => {}
                () = sleep(pause) => {}
            }
        }
    }

    /// What is to be delivered now, and how long nothing else will be unless a call ends.
    async fn look(&self, busy: &Busy) -> Result<(Vec<Delivery>, Duration), StoreError> {
        let (store, now) = (&self.inner.store, clock::now());
        // Enough to find one that can be called: at most so many are busy, and as many are those
        // of tenants who have to wait.
        let due = store.due(now, 3 * AT_ONCE, 2 * OF_TENANT).await?;
        let next = store.next_due(now).await?;
        Ok((busy.choose(due), next.map_or(LONGEST, clock::until)))
    }

    async fn deliver(&self, delivery: Delivery) -> Receiver {
        let receiver = Receiver::of(&delivery);
        let kept = async {
            let change = self.attempt(delivery).await?;
            self.inner.store.commit(vec![change]).await
        };
        if let Err(err) = kept.await {
            tracing::error!(%err, "a webhook's outcome is not kept");
            // It is found as it was; not at once, or a store that fails would have it called
            // without an end.
            sleep(STORE).await;
        }
        receiver
    }

    /// Calls it; gives what has become of it.
    async fn attempt(&self, delivery: Delivery) -> Result<Change, StoreError> {
        let Delivery { id, url, body, attempts, .. } = &delivery;
        let (id, attempt, at) = (id.clone(), attempts + 1, clock::now());
        let Some(secret) = self.secret_of(&delivery).await? else {
            let why = "the webhook was taken away".to_owned();
            tracing::info!(id, why, "a webhook is given up");
            return Ok(Change::GiveUpDelivery { id, why, at, tried: false });
        };
        let (secret, body, limit) = (&secret, body.clone(), self.inner.limit);
        let told = self.inner.caller.tell(Letter { url, secret, id: &id, body, limit }).await;
        let at = clock::now();
        Ok(match told {
            Ok(()) => Change::RemoveDelivery { id },
            Err(why) if attempt >= self.inner.attempts => {
                tracing::warn!(id, why, attempt, "a webhook is given up");
                Change::GiveUpDelivery { id, why, at, tried: true }
            }
            Err(why) => {
                tracing::info!(id, why, attempt, "a webhook failed");
                let due = clock::after(at, pause(self.inner.pause, *attempts));
                Change::RetryDelivery { id, due, why }
            }
        })
    }

    async fn secret_of(&self, delivery: &Delivery) -> Result<Option<String>, StoreError> {
        let Some(tenant) = self.inner.store.tenant(&delivery.tenant).await? else {
            return Ok(None);
        };
        let mut hooks = tenant.settings.webhooks.into_iter();
        Ok(hooks.find(|hook| hook.url == delivery.url).map(|hook| hook.secret))
    }
}

/// One delivery for each webhook that is told of such things.
fn deliveries(tenant: &Tenant, event: HookEvent, at: Millis, data: &Value) -> Vec<Change> {
    let hooks = tenant.settings.webhooks.iter().filter(|hook| hook.events.contains(&event));
    let deliver = |hook: &Webhook| {
        let id = format!("evt_{}", Uuid::now_v7().simple());
        let mut body = json!({
            "id": id,
            "type": event.name(),
            "timestamp": clock::rfc3339(at),
            "tenant": tenant.name,
            "data": data,
        });
        if event == HookEvent::InterruptOpened {
            // As versions before had it.
            body["event"] = json!(event.name());
            body["interrupt"] = data["interrupt"].clone();
        }
        Change::AddDelivery(Delivery {
            id,
            tenant: tenant.id.clone(),
            url: hook.url.clone(),
            event: event.name().to_owned(),
            body: body.to_string(),
            attempts: 0,
            due: at,
            why: None,
            given_up: None,
        })
    };
    hooks.map(deliver).collect()
}

/// The pause after so many tries before: each twice the one before.
fn pause(first: Duration, before: u32) -> Duration {
    first.saturating_mul(1 << before.min(20)).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_an_hour() {
        let first = Duration::from_secs(2);
        let all: Vec<u64> = (0..12).map(|before| pause(first, before).as_secs()).collect();
        assert_eq!(all, [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600]);
        assert_eq!(pause(first, u32::MAX), LONGEST);
    }
}
