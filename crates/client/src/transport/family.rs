//! The processes a process has started, and those they have started.
//!
//! Codex 0.166 gives every command a session of its own, so a signal to Codex's group does not
//! reach it; and when Codex goes, only the command's own process goes with it, not what that has
//! started. So the family is looked up while its parents still live, and what is left is ended
//! afterwards.

/// One process, told apart from a later one with the same number by when it was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Member {
    process: u32,
    started: u64,
}

#[cfg(target_os = "linux")]
mod system {
    //! Linux: `/proc`.

    use std::fs;

    use rustix::process::{Pid, Signal, kill_process, kill_process_group};

    use super::Member;

    /// More than this is no family but a runaway, which the group's signal has to deal with.
    const MOST: usize = 4096;

    pub(in super::super) fn of(leader: u32) -> Vec<Member> {
        let mut members = Vec::new();
        let mut open = vec![leader];
        while let Some(parent) = open.pop() {
            for child in children(parent) {
                if let (Some(stat), true) = (stat(child), members.len() < MOST) {
                    members.push(Member { process: child, started: stat.started });
                    open.push(child);
                }
            }
        }
        members
    }

    pub(in super::super) fn kill(member: Member) {
        let Some(stat) = stat(member.process).filter(|stat| stat.started == member.started) else {
            return;
        };
        let Some(pid) = i32::try_from(member.process).ok().and_then(Pid::from_raw) else { return };
        tracing::debug!(process = member.process, "ending what was left behind");
        // Each may be gone by now, which is what we want.
        let _ = kill_process(pid, Signal::KILL);
        if stat.group == member.process {
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }

    /// Every thread has its own list.
    fn children(parent: u32) -> Vec<u32> {
        let Ok(threads) = fs::read_dir(format!("/proc/{parent}/task")) else { return Vec::new() };
        threads
            .filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("children")).ok())
            .flat_map(|list| list.split_whitespace().map(str::parse).collect::<Vec<_>>())
            .filter_map(Result::ok)
            .collect()
    }

    struct Stat {
        group: u32,
        started: u64,
    }

    /// The name, in brackets, may hold anything; the numbers start behind it.
    fn stat(process: u32) -> Option<Stat> {
        let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        let mut fields = text.rsplit_once(')')?.1.split_whitespace();
        let group = fields.nth(2)?.parse().ok()?;
        let started = fields.nth(16)?.parse().ok()?;
        Some(Stat { group, started })
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    //! Elsewhere there is no cheap way to look; Windows ends the whole tree anyway.

    use super::Member;

    pub(in super::super) fn of(_: u32) -> Vec<Member> {
        Vec::new()
    }

    pub(in super::super) fn kill(member: Member) {
        tracing::trace!(?member, "not ended");
    }
}

pub(super) use system::{kill, of};
