//! Traces for a collector, where one is named: requests, turns, calls of workers, as OTLP.
//!
//! Spans are of the level `debug`, so that without a collector they cost nothing and change no line
//! of the log. What a collector does not take in time is dropped: it holds up nobody.

use std::pin::Pin;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{Request, Response};
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracerProvider, Tracer};
use reqwest::Client;
use tokio::runtime::Handle;

use crate::error::Error;

/// How long a collector may take.
const LIMIT: Duration = Duration::from_secs(5);

/// How long the last traces may take when the daemon ends.
const LAST: Duration = Duration::from_secs(2);

/// Sends traces until it is told to stop.
pub struct Traces {
    provider: SdkTracerProvider,
}

impl Traces {
    /// Sends to the collector at this address. Must be called within a runtime, which then does the
    /// sending.
    pub fn to(url: &str) -> Result<Self, Error> {
        let wrong = |why: String| Error::Config { what: format!("traces to {url}"), why };
        let endpoint = endpoint(url).map_err(wrong)?;
        let sender = Sender { client: client().map_err(wrong)?, runtime: Handle::current() };
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(sender)
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(endpoint)
            .with_timeout(LIMIT)
            .build()
            .map_err(|err| wrong(err.to_string()))?;
        let resource = Resource::builder()
            .with_service_name("bindery")
            .with_attribute(opentelemetry::KeyValue::new(
                "service.version",
                env!("CARGO_PKG_VERSION"),
            ))
            .build();
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource)
            .build();
        Ok(Self { provider })
    }

    /// Who makes spans of ours into traces.
    pub(crate) fn tracer(&self) -> Tracer {
        self.provider.tracer("bindery")
    }

    /// Sends what is left, if that does not take long.
    pub async fn end(self) {
        let ending = move || self.provider.shutdown_with_timeout(LAST);
        if let Ok(Err(err)) = tokio::task::spawn_blocking(ending).await {
            tracing::info!(%err, "the last traces were not taken");
        }
    }
}

/// Whether this can be the address of a collector.
pub fn check(url: &str) -> Result<(), Error> {
    let wrong = |why: String| Error::Config { what: format!("traces to {url}"), why };
    endpoint(url).map(drop).map_err(wrong)
}

/// The address for traces: as OTLP has it, below the one that is named unless that names it whole.
fn endpoint(url: &str) -> Result<String, String> {
    let parsed = reqwest::Url::parse(url)
        .map_err(|err| format!("{err}; name one such as `http://127.0.0.1:4318`"))?;
    if !matches!(parsed.scheme(), "http" | "https") || !parsed.has_host() {
        return Err("it must begin with `http://` or `https://`".to_owned());
    }
    let whole = parsed.path().trim_end_matches('/');
    match whole.ends_with("/v1/traces") {
        true => Ok(url.to_owned()),
        false => Ok(format!("{}/v1/traces", url.trim_end_matches('/'))),
    }
}

fn client() -> Result<Client, String> {
    // It fails only if the process has one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().timeout(LIMIT).build().map_err(|err| err.to_string())
}

/// Sends on our runtime: whoever gathers spans does so on a thread that has none.
#[derive(Debug)]
struct Sender {
    client: Client,
    runtime: Handle,
}

impl HttpClient for Sender {
    fn send_bytes<'a, 'b>(
        &'a self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        let client = self.client.clone();
        let sent = self.runtime.spawn(async move {
            let (parts, body) = request.into_parts();
            let request = client.request(parts.method, parts.uri.to_string());
            let reply = request.headers(parts.headers).body(body).send().await?;
            let status = reply.status();
            // What it says beyond that is of no use to us.
            Ok::<_, reqwest::Error>(Response::builder().status(status).body(Bytes::new()))
        });
        Box::pin(async move { Ok(sent.await???) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_be_whole_or_not() {
        for (url, expected) in [
            ("http://c:4318", "http://c:4318/v1/traces"),
            ("http://c:4318/", "http://c:4318/v1/traces"),
            ("https://c/otlp", "https://c/otlp/v1/traces"),
            ("https://c/otlp/v1/traces", "https://c/otlp/v1/traces"),
        ] {
            assert_eq!(endpoint(url).unwrap(), expected);
        }
        assert!(endpoint("c:4318").is_err() && endpoint("").is_err());
    }
}
