//! What it costs here to make a file, which a new thread has to do twice.
//!
//! ext4 without a journal gives out no inode that was removed within the last minute (six minutes,
//! while that has not reached the disk), and looks at each one again whenever a file is made. After
//! a test suite or a bench that removed its homes, a file costs up to forty times what it should.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use tempfile::TempDir;

use super::cpu;
use super::samples::Samples;

/// Milliseconds of CPU time that a file may take on a file system at rest.
const AT_REST: f64 = 0.05;

/// How long the rest is waited for.
const PATIENCE: Duration = Duration::from_mins(3);

const PAUSE: Duration = Duration::from_secs(5);

/// Folders that are tried: where one lies on the disk decides what its files cost.
const FOLDERS: usize = 5;

const FILES: usize = 20;

/// A file system that was waited for.
pub(super) struct Quiet {
    /// Milliseconds of CPU time that a file took in the worst folder, at the end of the wait.
    pub(super) cost: f64,
    /// Removed only at the end of the bench: that would be where it all begins again.
    _tried: Vec<TempDir>,
}

impl Quiet {
    /// Waits until files are cheap in the folder for temporary ones, but not for ever.
    pub(super) fn wait() -> anyhow::Result<Self> {
        let begin = Instant::now();
        let mut tried = Vec::new();
        loop {
            let mut cost: f64 = 0.0;
            for _ in 0..FOLDERS {
                let folder = TempDir::new().context("cannot make a folder for files to try")?;
                cost = cost.max(cost_of_a_file(folder.path())?);
                tried.push(folder);
            }
            if cost <= AT_REST || begin.elapsed() >= PATIENCE {
                return Ok(Self { cost, _tried: tried });
            }
            std::thread::sleep(PAUSE);
        }
    }
}

/// The median of some, in milliseconds of CPU time.
fn cost_of_a_file(folder: &Path) -> anyhow::Result<f64> {
    let mut costs = Vec::new();
    for number in 0..FILES {
        let before = cpu::precise()?;
        std::fs::File::create_new(folder.join(number.to_string()))?;
        costs.push(cpu::precise()?.saturating_sub(before));
    }
    Samples::from_times(&costs).map(|costs| costs.median())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_made_and_counted() {
        let folder = TempDir::new().unwrap();
        let cost = cost_of_a_file(folder.path()).unwrap();
        assert!(cost > 0.0, "{cost}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), FILES);
        assert!(cost_of_a_file(folder.path()).is_err(), "a file of that name is there already");
    }
}
