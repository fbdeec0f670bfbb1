//! Counts for Prometheus.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, LabelSetEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use tracing::Instrument as _;

use super::app::App;
use crate::error::Error;
use crate::tenant::{Caller, Role};

/// What is counted; clones share it.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Registry>,
    requests: Family<Labels, Counter>,
    seconds: Histogram,
    workers: Gauge<u64, AtomicU64>,
    turns: Gauge<u64, AtomicU64>,
    queue: Gauge<u64, AtomicU64>,
    restarts: Gauge<u64, AtomicU64>,
    webhooks: Gauge<u64, AtomicU64>,
    webhooks_lost: Gauge<u64, AtomicU64>,
    refused: Family<Refusal, Counter>,
    silent: Gauge<u64, AtomicU64>,
    busy: Gauge<u64, AtomicU64>,
    evicted: Gauge<u64, AtomicU64>,
}

/// Why requests were refused.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
struct Refusal {
    why: &'static str,
}

impl EncodeLabelSet for Refusal {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), std::fmt::Error> {
        use prometheus_client::encoding::EncodeLabel;
        ("why", self.why).encode(encoder.encode_label())
    }
}

/// Which requests are counted together.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
struct Labels {
    method: &'static str,
    route: String,
    status: u16,
}

impl EncodeLabelSet for Labels {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), std::fmt::Error> {
        use prometheus_client::encoding::EncodeLabel;
        ("method", self.method).encode(encoder.encode_label())?;
        ("route", self.route.as_str()).encode(encoder.encode_label())?;
        ("status", u64::from(self.status)).encode(encoder.encode_label())
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("bindery");
        let requests = Family::<Labels, Counter>::default();
        let seconds = Histogram::new(exponential_buckets(0.0005, 4.0, 9));
        let gauge = Gauge::<u64, AtomicU64>::default;
        let (workers, turns, queue, restarts) = (gauge(), gauge(), gauge(), gauge());
        registry.register("http_requests", "Requests", requests.clone());
        registry.register("http_head_seconds", "Time to a response's head", seconds.clone());
        registry.register("workers", "Codex processes", workers.clone());
        registry.register("turns_running", "Turns that run", turns.clone());
        registry.register("calls_waiting", "Calls that wait for a worker", queue.clone());
        registry.register("worker_failures", "Workers that ended by themselves", restarts.clone());
        let (webhooks, webhooks_lost) = (gauge(), gauge());
        let waiting = "Webhook deliveries that wait to be taken";
        registry.register("webhooks_waiting", waiting, webhooks.clone());
        let lost = "Webhook deliveries given up, and not forgotten yet";
        registry.register("webhooks_given_up", lost, webhooks_lost.clone());
        let refused = Family::<Refusal, Counter>::default();
        registry.register("refused", "Requests refused for a limit", refused.clone());
        let (silent, busy, evicted) = (gauge(), gauge(), gauge());
        registry.register("connections_silent", "Connections without a request", silent.clone());
        registry.register("connections_busy", "Requests under way", busy.clone());
        let closed = "Silent connections closed to make room, since the start";
        registry.register("connections_closed_for_room", closed, evicted.clone());
        let registry = Arc::new(registry);
        Self {
            registry,
            requests,
            seconds,
            workers,
            turns,
            queue,
            restarts,
            webhooks,
            webhooks_lost,
            refused,
            silent,
            busy,
            evicted,
        }
    }
}

impl Metrics {
    /// Counts a request that a limit refuses.
    pub fn refuse(&self, why: &'static str) {
        self.refused.get_or_create(&Refusal { why }).inc();
    }
}

/// Counts a request and says so in the log.
pub async fn count(State(app): State<App>, request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let route = request.extensions().get::<MatchedPath>();
    // Paths that nobody knows are one: there is no end of them.
    let route = route.map_or("none", MatchedPath::as_str).to_owned();
    let method = known(request.method().as_str());
    let span = tracing::debug_span!(
        "request",
        otel.kind = "server",
        otel.name = format!("{method} {route}"),
        http.request.method = method,
        http.route = route,
        http.response.status_code = tracing::field::Empty,
    );
    let response = next.run(request).instrument(span.clone()).await;
    let status = response.status().as_u16();
    span.record("http.response.status_code", status);
    let took = begun.elapsed();
    tracing::debug!(method, route, status, ms = took.as_secs_f64() * 1000.0, "request");
    app.metrics.seconds.observe(took.as_secs_f64());
    app.metrics.requests.get_or_create(&Labels { method, route, status }).inc();
    response
}

fn known(method: &str) -> &'static str {
    let known = ["GET", "POST", "PATCH", "HEAD", "OPTIONS", "PUT", "DELETE"];
    known.into_iter().find(|known| *known == method).unwrap_or("other")
}

/// All counts, for an administrator.
#[utoipa::path(get, path = "/metrics", tag = "server",
    operation_id = "get_metrics",
    responses((status = 200, body = String, content_type = "application/openmetrics-text")))]
pub async fn show(State(app): State<App>, caller: Caller) -> Result<Response, Error> {
    caller.must_have(Role::Admin)?;
    let metrics = &app.metrics;
    let all = app.fronts.stats().chain([app.runner.workers().stats()]);
    let (mut workers, mut turns, mut queue, mut restarts) = (0, 0, 0, 0);
    for stats in all {
        workers += stats.workers as u64;
        turns += stats.turns as u64;
        queue += stats.queue as u64;
        restarts += stats.restarts;
    }
    metrics.workers.set(workers);
    metrics.turns.set(turns);
    metrics.queue.set(queue);
    metrics.restarts.set(restarts);
    let (silent, busy) = app.connections.count();
    metrics.silent.set(silent as u64);
    metrics.busy.set(busy as u64);
    metrics.evicted.set(app.connections.evicted());
    let webhooks = app.store.delivery_counts().await?;
    metrics.webhooks.set(webhooks.waiting.into());
    metrics.webhooks_lost.set(webhooks.given_up.into());
    let mut text = String::new();
    encode(&mut text, &metrics.registry).map_err(|err| Error::Internal(err.to_string()))?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok((StatusCode::OK, [(CONTENT_TYPE, kind)], text).into_response())
}
