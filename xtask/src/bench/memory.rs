//! Memory of a process, read from `/proc` (Linux only).

use anyhow::Context;

/// Megabytes that a process has resident now.
pub fn resident(pid: u32) -> anyhow::Result<f64> {
    field(pid, "VmRSS:")
}

/// The most megabytes that a process ever had resident.
pub fn peak(pid: u32) -> anyhow::Result<f64> {
    field(pid, "VmHWM:")
}

fn field(pid: u32, name: &str) -> anyhow::Result<f64> {
    let path = format!("/proc/{pid}/status");
    let status = std::fs::read_to_string(&path).with_context(|| format!("cannot read `{path}`"))?;
    megabytes(&status, name).with_context(|| format!("`{path}` has no `{name}`"))
}

fn megabytes(status: &str, name: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_fields_are_read() {
        let status = "Name:\tx\nVmHWM:\t    6144 kB\nVmRSS:\t 2048 kB\n";
        assert_eq!(megabytes(status, "VmHWM:"), Some(6.0));
        assert_eq!(megabytes(status, "VmRSS:"), Some(2.0));
        assert_eq!(megabytes("Name:\tx\n", "VmRSS:"), None);
    }
}
