//! Numbers from repeated measuring: median, percentiles, and ratios of interleaved variants.

use std::time::Duration;

use anyhow::{Context, ensure};

/// Measurements of one variant, in the order they were made; never empty, all finite.
#[derive(Clone, Debug, PartialEq)]
pub struct Samples(Vec<f64>);

impl Samples {
    /// Takes measurements in any unit.
    pub fn new(values: Vec<f64>) -> anyhow::Result<Self> {
        ensure!(!values.is_empty(), "a variant has no measurements");
        ensure!(values.iter().all(|value| value.is_finite()), "a measurement is not a number");
        Ok(Self(values))
    }

    /// Takes times, as milliseconds.
    pub fn from_times(times: &[Duration]) -> anyhow::Result<Self> {
        Self::new(times.iter().map(|time| time.as_secs_f64() * 1000.0).collect())
    }

    /// The measurements in the order they were made.
    pub fn values(&self) -> &[f64] {
        &self.0
    }

    /// The middle value.
    pub fn median(&self) -> f64 {
        self.percentile(50.0)
    }

    /// The value that 95 of 100 do not exceed.
    pub fn p95(&self) -> f64 {
        self.percentile(95.0)
    }

    /// The mean.
    pub fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }

    /// The value at `percent`, between neighbours by straight line.
    pub fn percentile(&self, percent: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let place = (sorted.len() - 1) as f64 * percent.clamp(0.0, 100.0) / 100.0;
        let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
        below + (above - below) * place.fract()
    }
}

/// How one variant compares with another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The median of the ratios of each round.
    pub median: f64,
    /// A quarter of the rounds is below.
    pub low: f64,
    /// A quarter of the rounds is above.
    pub high: f64,
}

impl Ratio {
    /// Compares round by round, so that what slows a whole round cancels out.
    pub fn paired(ours: &Samples, floor: &Samples) -> anyhow::Result<Self> {
        ensure!(ours.0.len() == floor.0.len(), "variants were not measured equally often");
        let ratios = ours.0.iter().zip(&floor.0).map(|(ours, floor)| ours / floor);
        let ratios = Samples::new(ratios.collect()).context("a ratio to a floor of zero")?;
        Ok(Self {
            median: ratios.median(),
            low: ratios.percentile(25.0),
            high: ratios.percentile(75.0),
        })
    }
}

/// How often to measure.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Rounds thrown away at the start.
    pub warm_up: usize,
    /// Rounds kept.
    pub rounds: usize,
}

/// Measures `variants` variants in turns, each once a round; every round begins with the next
/// one, so that none always goes first.
pub fn interleave(
    plan: Plan,
    variants: usize,
    mut measure: impl FnMut(usize) -> anyhow::Result<Duration>,
) -> anyhow::Result<Vec<Samples>> {
    let mut times = vec![Vec::with_capacity(plan.rounds); variants];
    for round in 0..plan.warm_up + plan.rounds {
        for step in 0..variants {
            let variant = (round + step) % variants;
            let time = measure(variant)?;
            if round >= plan.warm_up {
                times[variant].push(time);
            }
        }
    }
    times.iter().map(|times| Samples::from_times(times)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(values: &[f64]) -> Samples {
        Samples::new(values.to_vec()).unwrap()
    }

    #[test]
    fn median_and_percentiles_do_not_depend_on_order() {
        let odd = samples(&[5.0, 1.0, 3.0]);
        assert_eq!((odd.median(), odd.mean()), (3.0, 3.0));
        assert_eq!(samples(&[4.0, 1.0, 2.0, 3.0]).median(), 2.5);
        let hundred = samples(&(0..=100).rev().map(f64::from).collect::<Vec<_>>());
        assert_eq!(hundred.p95(), 95.0);
        assert_eq!((hundred.percentile(0.0), hundred.percentile(100.0)), (0.0, 100.0));
        assert_eq!((samples(&[7.0]).median(), samples(&[7.0]).p95()), (7.0, 7.0));
    }

    #[test]
    fn no_measurements_and_no_numbers_are_refused() {
        assert!(Samples::new(vec![]).is_err());
        assert!(Samples::new(vec![f64::NAN]).is_err());
    }

    #[test]
    fn a_paired_ratio_ignores_slow_rounds() {
        let floor = samples(&[10.0, 100.0, 10.0, 20.0]);
        let ours = samples(&[11.0, 110.0, 11.0, 22.0]);
        let ratio = Ratio::paired(&ours, &floor).unwrap();
        for value in [ratio.median, ratio.low, ratio.high] {
            assert!((value - 1.1).abs() < 1e-9, "{ratio:?}");
        }
        assert!(Ratio::paired(&ours, &samples(&[1.0])).is_err());
        assert!(Ratio::paired(&ours, &samples(&[0.0; 4])).is_err());
    }

    #[test]
    fn variants_take_turns_and_warm_up_is_dropped() {
        let mut order = Vec::new();
        let measured = interleave(Plan { warm_up: 1, rounds: 2 }, 2, |variant| {
            order.push(variant);
            Ok(Duration::from_millis(order.len() as u64))
        });
        assert_eq!(order, [0, 1, 1, 0, 0, 1]);
        assert_eq!(measured.unwrap(), [samples(&[4.0, 5.0]), samples(&[3.0, 6.0])]);
    }

    #[test]
    fn a_failed_measurement_ends_the_bench() {
        let plan = Plan { warm_up: 0, rounds: 1 };
        assert!(interleave(plan, 1, |_| anyhow::bail!("broken")).is_err());
    }
}
