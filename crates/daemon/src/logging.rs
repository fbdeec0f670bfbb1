//! The daemon's log, on stderr, as text or JSON.

use std::io::{self, Write};

use tracing_subscriber::filter::{LevelFilter, filter_fn};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

use crate::config::Log;
use crate::error::Error;
use crate::secret;
use crate::traces::Traces;

/// Begins to log, and to trace if somebody takes that; a second call changes nothing.
pub fn begin(log: &Log, traces: Option<&Traces>) -> Result<(), Error> {
    let filter = filter(log)?;
    if let Some(traces) = traces {
        with_traces(log, filter, traces);
        return Ok(());
    }
    let builder =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(|| Masked(std::io::stderr()));
    // It fails only if there is a log already, which is what we want.
    let _ = match log.json {
        true => builder.json().try_init(),
        false => builder.with_target(false).try_init(),
    };
    Ok(())
}

fn with_traces(log: &Log, filter: EnvFilter, traces: &Traces) {
    let ours = filter_fn(|meta| meta.is_span() && meta.target().starts_with("bindery_daemon"))
        .with_max_level_hint(LevelFilter::DEBUG);
    let spans = tracing_opentelemetry::layer().with_tracer(traces.tracer()).with_filter(ours);
    let registry = tracing_subscriber::registry().with(spans);
    let lines = tracing_subscriber::fmt::layer().with_writer(|| Masked(std::io::stderr()));
    // It fails only if there is a log already, which is what we want.
    let _ = match log.json {
        true => registry.with(lines.json().with_filter(filter)).try_init(),
        false => registry.with(lines.with_target(false).with_filter(filter)).try_init(),
    };
}

/// Whether what is to be logged is said in a way that is understood.
pub fn check(log: &Log) -> Result<(), Error> {
    filter(log).map(drop)
}

fn filter(log: &Log) -> Result<EnvFilter, Error> {
    let bad = |err: tracing_subscriber::filter::ParseError| Error::Config {
        what: "log.filter".to_owned(),
        why: err.to_string(),
    };
    EnvFilter::builder().parse(&log.filter).map_err(bad)
}

/// Lines on their way out, without the secrets that got into them.
struct Masked<W>(W);

impl<W: Write> Write for Masked<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        // A subscriber writes whole lines, and they are text.
        self.0.write_all(secret::masked(&String::from_utf8_lossy(line)).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
