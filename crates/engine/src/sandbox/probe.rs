//! Which mechanisms work here: each is tried once, and the outcome remembered.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::bubblewrap::Outer;
use super::plan::Plan;
use super::{Mechanism, inside};
use crate::exec::lead_session_blocking;

/// Names bubblewrap's program, where it is not on `PATH`.
const VARIABLE: &str = "BINDERY_BWRAP";

/// A mechanism that takes longer does not work.
const LIMIT: Duration = Duration::from_secs(10);

static KNOWN: Mutex<BTreeMap<PathBuf, Vec<Mechanism>>> = Mutex::new(BTreeMap::new());

pub(super) fn best(helper: &Path) -> Mechanism {
    all(helper).into_iter().next().unwrap_or(Mechanism::None)
}

pub(super) fn all(helper: &Path) -> Vec<Mechanism> {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.entry(helper.to_owned()).or_insert_with(|| find(helper)).clone()
}

fn find(helper: &Path) -> Vec<Mechanism> {
    let found = bubblewrap(helper).into_iter().chain(namespaces(helper)).chain(landlock(helper));
    let found = found.collect();
    tracing::debug!(?found, "sandboxes that work here");
    found
}

fn bubblewrap(helper: &Path) -> Option<Mechanism> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let program = program()?;
    let works = |own_proc: &bool| {
        let outer = Outer { program: &program, own_proc: *own_proc };
        let mut argv = outer.arguments(false);
        argv.push("--".into());
        argv.extend(inside::within_bubblewrap(helper, &Plan::nothing()));
        succeeds(argv)
    };
    let own_proc = [true, false].into_iter().find(works)?;
    Some(Mechanism::Bubblewrap { program, own_proc })
}

fn namespaces(helper: &Path) -> Option<Mechanism> {
    let works = |own_proc: &bool| {
        cfg!(target_os = "linux")
            && succeeds(inside::in_namespaces(helper, &Plan::nothing(), *own_proc))
    };
    let own_proc = [true, false].into_iter().find(works)?;
    Some(Mechanism::Namespaces { own_proc })
}

fn landlock(helper: &Path) -> Option<Mechanism> {
    let works = cfg!(target_os = "linux") && succeeds(inside::landlocked(helper, &Plan::nothing()));
    works.then_some(Mechanism::Landlock)
}

/// Where bubblewrap is. A relative entry of `PATH` could be a folder that a command has written.
fn program() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os(VARIABLE) {
        return Some(PathBuf::from(named)).filter(|path| path.is_absolute() && path.is_file());
    }
    let path = std::env::var_os("PATH")?;
    let mut folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    folders.find_map(|folder| Some(folder.join("bwrap")).filter(|program| program.is_file()))
}

fn succeeds(mut argv: Vec<OsString>) -> bool {
    argv.extend(["/bin/sh", "-c", "exit 0"].map(OsString::from));
    let mut command = Command::new(&argv[0]);
    command.args(&argv[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    lead_session_blocking(&mut command);
    let Ok(mut child) = command.spawn() else { return false };
    let begun = Instant::now();
    while begun.elapsed() < LIMIT {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) => std::thread::sleep(Duration::from_millis(1)),
            Err(_) => return false,
        }
    }
    let _ = child.kill();
    let _ = child.wait();
    false
}
