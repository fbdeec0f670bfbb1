//! The daemon's log, on stderr, as text or JSON.

use std::io::{self, Write};

use tracing_subscriber::EnvFilter;

use crate::config::Log;
use crate::error::Error;
use crate::secret;

/// Begins to log; a second call changes nothing.
pub fn begin(log: &Log) -> Result<(), Error> {
    let filter = filter(log)?;
    let builder =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(|| Masked(std::io::stderr()));
    // It fails only if there is a log already, which is what we want.
    let _ = match log.json {
        true => builder.json().try_init(),
        false => builder.with_target(false).try_init(),
    };
    Ok(())
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
