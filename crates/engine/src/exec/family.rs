//! A command and all it started, signalled together.
//!
//! The command leads a process group. What leaves the group is found by who started it, and what
//! was left by its parents too by [`MARK`] in its environment.

use std::collections::BTreeMap;
use std::ffi::OsString;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::keeper;

/// The variable whose value every process of a command carries.
pub(super) const MARK: &str = "BINDERY_COMMAND";

/// The processes of one command.
#[derive(Debug)]
pub(crate) struct Family {
    leader: Option<Pid>,
    /// False once the leader was reaped and its group is empty: the number may be another's.
    ours: bool,
    /// A leader that is not to be signalled, because all else would die with it, unasked.
    enclosed: bool,
    mark: String,
}

impl Family {
    /// Marks the environment of a command that is about to start.
    pub(crate) fn marked(env: &mut BTreeMap<OsString, OsString>, enclosed: bool) -> Self {
        let own = uuid::Uuid::now_v7().simple();
        let mark = match keeper::name() {
            Some(keeper) => format!("{keeper}.{own}"),
            None => own.to_string(),
        };
        env.insert(MARK.into(), mark.clone().into());
        Self { leader: None, ours: false, enclosed, mark: format!("{MARK}={mark}") }
    }

    /// Tells who leads it.
    pub(crate) fn led_by(&mut self, leader: Option<u32>) {
        self.leader = leader.and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        self.ours = self.leader.is_some();
    }

    /// Asks all of them.
    pub(crate) fn signal(&self, signal: Signal) {
        self.send(signal, self.enclosed && signal != Signal::KILL);
    }

    /// Asks what is left once the leader was reaped. True if there was anyone.
    pub(crate) fn signal_rest(&mut self, signal: Signal) -> bool {
        let (in_group, anyone) = self.send(signal, false);
        // Nobody in the group: from now on its number may be given to others.
        self.ours = self.ours && in_group;
        anyone
    }

    /// Whether there was anyone in the group, and anyone alive at all. They differ where the dead
    /// wait to be reaped by somebody who takes their time.
    fn send(&self, signal: Signal, pass_leader_by: bool) -> (bool, bool) {
        let leader = self.leader.filter(|_| self.ours);
        // Looked up before the signal: afterwards the parents may be gone.
        let members = system::members(leader, &self.mark);
        let group = leader.filter(|_| !pass_leader_by);
        let in_group = group.is_some_and(|group| kill_process_group(group, signal).is_ok());
        let Some(members) = members else { return (in_group, in_group) };
        for member in members.iter().filter(|member| Some(**member) != leader) {
            // It may be gone by now, which is what we want.
            let _ = kill_process(*member, signal);
        }
        (in_group, !members.is_empty())
    }
}

/// Ends everyone who carries this mark, and all that descend from them. False if there was nobody.
pub(super) fn end_marked(mark: &str) -> bool {
    let members = system::members(None, mark).unwrap_or_default();
    for member in &members {
        // It may be gone by now, which is what we want.
        let _ = kill_process(*member, Signal::KILL);
    }
    !members.is_empty()
}

#[cfg(target_os = "linux")]
mod system {
    //! Linux: `/proc`.

    use std::collections::{HashMap, HashSet};
    use std::fs::{self, File};
    use std::io::Read;

    use memchr::memmem;
    use rustix::process::Pid;

    /// More of an environment is not read.
    const ENVIRONMENT: u64 = 256 * 1024;

    /// All that are led by the leader, descend from it or carry the mark, but for those that only
    /// wait to be reaped.
    pub(crate) fn members(leader: Option<Pid>, mark: &str) -> Option<Vec<Pid>> {
        let living: Vec<Living> = everyone().filter_map(living).collect();
        let children = living.iter().fold(HashMap::<i32, Vec<i32>>::new(), |mut map, one| {
            map.entry(one.parent).or_default().push(one.process);
            map
        });
        let leader = leader.map(|leader| leader.as_raw_nonzero().get());
        let ours = |one: &&Living| Some(one.group) == leader || carries(one.process, mark);
        let ours = living.iter().filter(ours).map(|one| one.process);
        let mut open: Vec<i32> = ours.chain(leader).collect();
        let mut found = HashSet::new();
        while let Some(process) = open.pop() {
            if found.insert(process) {
                open.extend(children.get(&process).into_iter().flatten());
            }
        }
        let alive = living.iter().filter(|one| found.contains(&one.process) && !one.ended);
        Some(alive.filter_map(|one| Pid::from_raw(one.process)).collect())
    }

    pub(crate) fn children(parent: i32) -> Vec<i32> {
        let living = everyone().filter_map(living);
        let children = living.filter(|one| one.parent == parent && !one.ended);
        children.map(|one| one.process).collect()
    }

    fn everyone() -> impl Iterator<Item = i32> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
    }

    struct Living {
        process: i32,
        parent: i32,
        group: i32,
        ended: bool,
    }

    /// The name, in brackets, may hold anything; the state, the parent and the group stand
    /// behind it.
    fn living(process: i32) -> Option<Living> {
        let text = fs::read(format!("/proc/{process}/stat")).ok()?;
        let text = String::from_utf8_lossy(&text);
        let mut fields = text.rsplit_once(')')?.1.split_whitespace();
        let ended = matches!(fields.next()?, "Z" | "X");
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        Some(Living { process, parent, group, ended })
    }

    /// Those of other people cannot be read, and are not ours.
    fn carries(process: i32, mark: &str) -> bool {
        let Ok(file) = File::open(format!("/proc/{process}/environ")) else { return false };
        let mut bytes = Vec::new();
        let read = file.take(ENVIRONMENT).read_to_end(&mut bytes);
        read.is_ok() && memmem::find(&bytes, mark.as_bytes()).is_some()
    }
}

/// The living children of a process.
#[cfg(target_os = "linux")]
pub(crate) fn children_of(parent: i32) -> Vec<i32> {
    system::children(parent)
}

#[cfg(not(target_os = "linux"))]
mod system {
    //! Elsewhere there is no cheap way to look; the group has to do.

    use rustix::process::Pid;

    pub(crate) fn members(_: Option<Pid>, _: &str) -> Option<Vec<Pid>> {
        None
    }
}
