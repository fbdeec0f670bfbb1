//! The daemon's log, on stderr, as text or JSON.

use tracing_subscriber::EnvFilter;

use crate::config::Log;
use crate::error::Error;

/// Begins to log; a second call changes nothing.
pub fn begin(log: &Log) -> Result<(), Error> {
    let bad = |err: tracing_subscriber::filter::ParseError| Error::Config {
        what: "log.filter".to_owned(),
        why: err.to_string(),
    };
    let filter = EnvFilter::builder().parse(&log.filter).map_err(bad)?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // It fails only if there is a log already, which is what we want.
    let _ = match log.json {
        true => builder.json().try_init(),
        false => builder.with_target(false).try_init(),
    };
    Ok(())
}
