//! CPU time of a process, read from `/proc` (Linux only).

use std::time::Duration;

use anyhow::Context;

/// The kernel's unit in `/proc/<pid>/stat`: 100 a second for every program, whatever its own tick.
const TICKS_A_SECOND: u64 = 100;

/// CPU time, user and system together, in steps of 10 ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// Of the process, threads that ended included.
    pub own: Duration,
    /// Of its children that ended and were waited for.
    pub ended_children: Duration,
}

impl CpuTime {
    /// Of this process up to now.
    pub fn of_self() -> anyhow::Result<Self> {
        Self::read("self")
    }

    /// Of another process up to now.
    pub fn of(pid: u32) -> anyhow::Result<Self> {
        Self::read(&pid.to_string())
    }

    /// What was used since `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            own: self.own.saturating_sub(earlier.own),
            ended_children: self.ended_children.saturating_sub(earlier.ended_children),
        }
    }

    fn read(process: &str) -> anyhow::Result<Self> {
        let path = format!("/proc/{process}/stat");
        let stat = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read CPU time from `{path}`"))?;
        parse(&stat).with_context(|| format!("`{path}` has an unknown form"))
    }
}

/// CPU time of the threads of a process that are alive, to the nanosecond.
///
/// Finer than [`CpuTime`], but a thread that ends takes its time with it: good for short
/// stretches of a process whose threads stay.
pub fn live_threads(pid: u32) -> anyhow::Result<Duration> {
    let path = format!("/proc/{pid}/task");
    let tasks =
        std::fs::read_dir(&path).with_context(|| format!("cannot read threads from `{path}`"))?;
    let mut total = Duration::ZERO;
    for task in tasks {
        // A thread may end between the listing and the reading.
        let text = std::fs::read_to_string(task?.path().join("schedstat")).unwrap_or_default();
        let nanos = text.split_whitespace().next().and_then(|word| word.parse().ok());
        total += Duration::from_nanos(nanos.unwrap_or(0));
    }
    Ok(total)
}

/// CPU time of this process to the nanosecond, all its threads, without a file to read.
#[cfg(unix)]
pub fn precise() -> anyhow::Result<Duration> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(time).context("the clock of this process is before its beginning")
}

/// CPU time of this process, as fine as there is.
#[cfg(not(unix))]
pub fn precise() -> anyhow::Result<Duration> {
    CpuTime::of_self().map(|time| time.own)
}

/// Reads utime, stime, cutime and cstime: fields 14 to 17, counted from 1.
fn parse(stat: &str) -> Option<CpuTime> {
    // The second field is the program's name in brackets, and may itself hold blanks and brackets.
    let (_, after_name) = stat.rsplit_once(')')?;
    let fields: Vec<_> = after_name.split_whitespace().collect();
    let ticks = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    let time = |ticks: u64| Duration::from_millis(ticks * 1000 / TICKS_A_SECOND);
    Some(CpuTime {
        own: time(ticks(14)? + ticks(15)?),
        ended_children: time(ticks(16)? + ticks(17)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_with_a_strange_name_is_read() {
        let line = "42 (a) (b c) S 1 42 42 0 -1 4194560 9 8 7 6 150 50 20 10 20 0 1 0 5 6 7\n";
        let expected = CpuTime {
            own: Duration::from_millis(2000),
            ended_children: Duration::from_millis(300),
        };
        assert_eq!(parse(line), Some(expected));
        assert_eq!(parse("42 (short) S 1"), None);
        assert_eq!(parse(""), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn busy_work_shows() {
        let before = (CpuTime::of_self().unwrap(), live_threads(std::process::id()).unwrap());
        let mut sum = 0_u64;
        while CpuTime::of_self().unwrap().since(before.0).own < Duration::from_millis(30) {
            sum = (0..100_000).fold(sum, |sum, value| std::hint::black_box(sum ^ value));
        }
        assert!(live_threads(std::process::id()).unwrap() > before.1);
        assert!(precise().unwrap() >= Duration::from_millis(30));
        let other = CpuTime::of(std::process::id()).unwrap();
        assert!(other.own >= Duration::from_millis(30));
    }
}
