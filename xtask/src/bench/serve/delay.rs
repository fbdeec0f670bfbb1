//! How late a piece of text is: from the moment the worker says it to the moment a reader has it.
//!
//! The stand-in writes the time into each piece. The same measure with turns that have many
//! readers, and with workers that die, is printed by the daemon's load test:
//! `cargo test --release -p bindery-daemon load -- --nocapture`.

use std::path::Path;
use std::time::Duration;

use anyhow::ensure;
use bindery_testkit::app_server::crowd::Part;
use serde_json::Value;

use super::web::Web;
use crate::bench::report::Table;
use crate::bench::samples::Samples;

/// Calls at a time; a tenant may have so many.
const CALLS: usize = 16;

/// Pieces of text of each.
const PIECES: usize = 500;

/// Milliseconds between them: about as fast as a model speaks.
const PAUSE: u64 = 5;

/// The time that each piece took, of all calls.
pub(super) fn measure(url: &str, token: &str, folder: &Path) -> anyhow::Result<Samples> {
    let call = |number: usize| {
        let (tag, stamp) = (format!("call{number}"), true);
        let part = Part { tag, say: PIECES, pause: PAUSE, stamp, ..Part::default() };
        let mut ages = Vec::new();
        Web::connect(url, token)?.follow(&super::asking(&part, folder), |line| {
            let data: Value = serde_json::from_str(line).unwrap_or_default();
            ages.extend(Part::unstamped(data["delta"].as_str().unwrap_or_default()).0);
        })?;
        ensure!(ages.len() == PIECES, "{} of {PIECES} pieces came", ages.len());
        anyhow::Ok(ages)
    };
    let all: Vec<anyhow::Result<Vec<Duration>>> = std::thread::scope(|scope| {
        let calls = (0..CALLS).map(|number| scope.spawn(move || call(number)));
        let calls: Vec<_> = calls.collect();
        let lost = || Err(anyhow::anyhow!("a reader panicked"));
        calls.into_iter().map(|call| call.join().unwrap_or_else(|_| lost())).collect()
    });
    let all: Vec<Vec<Duration>> = all.into_iter().collect::<anyhow::Result<_>>()?;
    Samples::from_times(&all.concat())
}

/// The measure as a table.
pub(super) fn table(delays: &Samples) -> Table {
    let mut table = Table::new(&["part delay", "median ms", "p99 ms", "most ms", "parts"]);
    let at = |percent| format!("{:.2}", delays.percentile(percent));
    table.rows.push(vec![
        format!("worker to reader, {CALLS} calls at a time"),
        at(50.0),
        at(99.0),
        at(100.0),
        delays.values().len().to_string(),
    ]);
    table
}
