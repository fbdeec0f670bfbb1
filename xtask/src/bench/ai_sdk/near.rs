//! The one comparison that comes near its target, on its own and often enough to tell: a call on a
//! warm thread beside the bare loop's new one.
//!
//! A turn of Codex's differs by a tenth from the next, so that a ratio of twenty rounds is known to
//! some four hundredths, and one of two hundred to little more than one; the target is near.

use std::time::Duration;

use super::node::Node;
use super::{Raw, call};
use crate::bench::report::Table;
use crate::bench::samples::{Plan, Ratio, Samples, interleave};

const WARM_UP: usize = 15;

const ROUNDS: usize = 200;

const VARIANTS: [(&str, &str); 3] = [
    ("raw-new", "raw JSON-RPC, new thread"),
    ("raw-warm", "raw JSON-RPC, new thread that was started ahead"),
    ("ours-warm", "ours, new thread that was kept warm"),
];

/// Times of each of [`VARIANTS`].
pub(super) struct Near(Vec<Samples>);

impl Near {
    pub(super) fn measure(mut raw: Raw, mut node: Node) -> anyhow::Result<Self> {
        let plan = Plan { warm_up: WARM_UP, rounds: ROUNDS };
        let times = interleave(plan, VARIANTS.len(), |index| {
            let answer = call(VARIANTS[index].0, false, &mut raw, &mut node)?;
            Ok(Duration::from_secs_f64(answer.finish / 1000.0))
        })?;
        node.end()?;
        Ok(Self(times))
    }

    /// Ours, measured by the bare loop's new thread.
    pub(super) fn ratio(&self) -> anyhow::Result<f64> {
        Ok(Ratio::paired(&self.0[2], &self.0[0])?.median)
    }

    pub(super) fn table(&self) -> anyhow::Result<Table> {
        let mut table =
            Table::new(&["a warm thread, often", "finish ms", "p95", "÷ raw", "middle half"]);
        for ((_, words), times) in VARIANTS.iter().zip(&self.0) {
            let Ratio { median, low, high } = Ratio::paired(times, &self.0[0])?;
            table.rows.push(vec![
                (*words).to_owned(),
                format!("{:.1}", times.median()),
                format!("{:.1}", times.p95()),
                format!("{median:.3}"),
                format!("{low:.2}–{high:.2}"),
            ]);
        }
        Ok(table)
    }
}
