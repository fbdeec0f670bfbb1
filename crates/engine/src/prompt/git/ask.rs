//! What only git can tell, within a time.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::Changes;
use super::recent::{self, Tip};
use crate::git::RepositoryView;

/// Gits at work, and the thread that reads what they print.
pub(super) struct Asked {
    status: Option<Running<Changes>>,
    log: Option<Running<Vec<String>>>,
    /// What git said of this head before, which stays true.
    known: Option<Vec<String>>,
    tip: Option<Tip>,
    /// What they look at, as long as they do.
    _view: Option<RepositoryView>,
    deadline: Instant,
}

/// What they said in time.
#[derive(Default)]
pub(super) struct Answer {
    pub(super) changes: Option<Changes>,
    pub(super) recent: Vec<String>,
}

/// Submodules are left out: git would look into each with its own configuration.
pub(crate) const STATUS: [&str; 5] =
    ["status", "--porcelain=v1", "-z", "--untracked-files=normal", "--ignore-submodules=all"];

/// How many commits are told, and how much of each.
const COMMITS: &str = "-5";
const SUBJECT: usize = 100;

/// Lines of git that are longer are cut.
const LINE: u64 = 64 * 1024;

impl Asked {
    pub(super) fn start(root: &Path, head: Option<&str>, limit: Duration) -> Self {
        let tip = head.map(|head| Tip { root: root.to_owned(), head: head.to_owned() });
        let known = tip.as_ref().and_then(recent::known);
        let view = RepositoryView::open(root);
        let git = |arguments: &[&str]| view.as_ref().map(|view| view.command(arguments));
        // Of that head by name: it may move before git looks.
        let log = ["log", COMMITS, "--no-show-signature", "--format=%h %s", "-z"];
        let log: Vec<&str> = log.into_iter().chain(head).collect();
        let (status, read_status) = git(&STATUS).and_then(|git| Running::start(git, count)).unzip();
        let log = git(&log).filter(|_| known.is_none());
        let log = log.and_then(|git| Running::start(git, subjects));
        let (log, read_log) = log.unzip();
        // The log first: it is short, and the other may be long in coming. Nobody waits for the
        // thread: somebody else may hold the other end of what it reads.
        std::thread::spawn(move || {
            if let Some(read) = read_log {
                read();
            }
            if let Some(read) = read_status {
                read();
            }
        });
        Self { status, log, known, tip, _view: view, deadline: Instant::now() + limit }
    }

    pub(super) fn answer(self) -> Answer {
        let deadline = self.deadline;
        let said = self.log.and_then(|running| running.finish(deadline));
        if let (Some(tip), Some(commits)) = (self.tip, &said) {
            recent::learn(tip, commits.clone());
        }
        let recent = self.known.or(said).unwrap_or_default();
        let changes = self.status.and_then(|running| running.finish(deadline));
        Answer { changes, recent }
    }
}

/// A child whose output somebody else reads.
struct Running<T> {
    child: Child,
    answer: Receiver<T>,
}

impl<T: Send + 'static> Running<T> {
    /// Starts it; reading its output is left to the caller.
    fn start(
        mut command: Command,
        read: fn(&mut dyn BufRead) -> Option<T>,
    ) -> Option<(Self, impl FnOnce() + Send)> {
        let mut child = command.spawn().ok()?;
        let out = child.stdout.take()?;
        let (sender, answer) = sync_channel(1);
        let read = move || {
            if let Some(answer) = read(&mut BufReader::new(out)) {
                // Nobody waits any more if the time is over.
                let _ = sender.send(answer);
            }
        };
        Some((Self { child, answer }, read))
    }

    /// Ends the child and whatever it started.
    fn end(&mut self) {
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.kill();
    }

    /// The answer, if it comes in time; the child is ended in any case.
    fn finish(mut self, deadline: Instant) -> Option<T> {
        let left = deadline.saturating_duration_since(Instant::now());
        let answer = self.answer.recv_timeout(left).ok();
        if answer.is_none() {
            self.end();
        }
        let good = self.child.wait().is_ok_and(|status| status.success());
        answer.filter(|_| good)
    }
}

/// Counts the entries of `status -z`. A rename has a second name, which is no entry.
fn count(out: &mut dyn BufRead) -> Option<Changes> {
    let mut changes = Changes::default();
    while let Some(entry) = next(out)? {
        match entry.get(..2)? {
            b"??" => changes.untracked += 1,
            b"!!" => {}
            code => {
                changes.dirty += 1;
                if code.iter().any(|letter| matches!(letter, b'R' | b'C')) {
                    next(out)?;
                }
            }
        }
    }
    Some(changes)
}

fn subjects(out: &mut dyn BufRead) -> Option<Vec<String>> {
    let mut subjects = Vec::new();
    while let Some(line) = next(out)? {
        let line = String::from_utf8_lossy(&line);
        subjects.push(line.chars().take(SUBJECT).collect());
    }
    Some(subjects)
}

/// The next entry up to a zero byte, cut where it is too long; `Some(None)` at the end.
fn next(out: &mut dyn BufRead) -> Option<Option<Vec<u8>>> {
    let mut entry = Vec::new();
    out.take(LINE).read_until(0, &mut entry).ok()?;
    if entry.is_empty() {
        return Some(None);
    }
    if entry.pop_if(|byte| *byte == 0).is_none() && entry.len() as u64 == LINE {
        let mut rest = Vec::new();
        while !rest.ends_with(&[0]) {
            rest.clear();
            if out.take(LINE).read_until(0, &mut rest).ok()? == 0 {
                break;
            }
        }
    }
    Some(Some(entry))
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::Stdio;

    use super::*;

    #[test]
    fn one_whose_child_holds_the_pipe_is_not_waited_for() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 1000 & echo x; wait"]).stdout(Stdio::piped()).process_group(0);
        let (running, read) = Running::start(command, count).expect("sh");
        let reader = std::thread::spawn(read);
        assert_eq!(running.finish(Instant::now()), None);
        reader.join().expect("all of its group is ended");
    }

    #[test]
    fn one_that_takes_too_long_is_ended() {
        let mut command = Command::new("sleep");
        command.arg("1000").stdout(Stdio::piped());
        let (running, read) = Running::start(command, count).expect("sleep");
        let reader = std::thread::spawn(read);
        assert_eq!(running.finish(Instant::now()), None);
        reader.join().expect("its output ends with it");
    }

    #[test]
    fn one_that_fails_says_nothing() {
        let mut command = Command::new("sh");
        command.args(["-c", "printf '?? a\\0'; exit 3"]).stdout(Stdio::piped());
        let (running, read) = Running::start(command, count).expect("sh");
        read();
        assert_eq!(running.finish(Instant::now() + Duration::from_secs(60)), None);
    }

    #[test]
    fn entries_are_counted_whatever_their_names() {
        let entries = b"?? a\0R  new\0old\0 M ?? x\0!! ignored\0UU both\0";
        let changes = count(&mut &entries[..]);
        assert_eq!(changes, Some(Changes { dirty: 3, untracked: 1 }));
        assert_eq!(count(&mut &b"?"[..]), None);
        let long = [b" M ".to_vec(), vec![b'x'; 200_000], b"\0?? y\0".to_vec()].concat();
        assert_eq!(count(&mut &long[..]), Some(Changes { dirty: 1, untracked: 1 }));
    }
}
