//! What tools keep for as long as the thread lives.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use tokio_util::task::TaskTracker;

use super::command::Wanted;
use crate::diff::TurnDiff;
use crate::exec::{self, Process, Processes};
use crate::guard::policy;
use crate::patch::{Done, Plan};
use crate::safety::{ProgramIdentity, ProgramSearch, script};
use crate::sandbox::KnownRoots;
use crate::sandbox::environment::EnvironmentPolicy;
use crate::thread::Standing;

/// Files that are remembered as being worked on, the newest.
const FILES: usize = 200;

/// Shared by the turns of a thread.
#[derive(Default)]
pub(crate) struct Session {
    /// Which variables commands get.
    pub(crate) environment: EnvironmentPolicy,
    /// What the thread's writable folders led to when it named them.
    known_roots: KnownRoots,
    pub(super) processes: Processes,
    /// Watchers of commands.
    watchers: TaskTracker,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    plan: Vec<Step>,
    files: Vec<String>,
    diff: Option<Touched>,
    watched: HashMap<exec::Session, Watched>,
    /// With whether they run behind the fence: a yes to that is none to running without.
    commands: HashMap<(Key, bool), Option<ProgramIdentity>>,
    prefixes: Vec<(Vec<String>, bool)>,
    places: HashSet<PathBuf>,
}

/// What a turn changed.
struct Touched {
    turn_id: String,
    diff: TurnDiff,
    /// It changed since it was told.
    news: bool,
}

/// A command that was started.
#[derive(Clone)]
pub(super) struct Watched {
    pub(super) process: Arc<Process>,
    /// The turn that started it.
    pub(super) turn_id: String,
    /// Its item.
    pub(super) item_id: String,
    /// Whether it runs behind the fence.
    pub(super) fenced: bool,
    /// True once its end was told.
    pub(super) done: watch::Receiver<bool>,
}

/// A step of the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) step: String,
    /// `pending`, `in_progress`, `completed`.
    pub(crate) status: String,
}

impl Session {
    pub(crate) fn new(environment: EnvironmentPolicy) -> Self {
        Self { environment, ..Self::default() }
    }

    /// Says which writable folder of the thread is not the one any more that it was when the
    /// thread named it. One that is named for the first time is remembered.
    pub(crate) fn verify_roots(&self, standing: &Standing) -> Result<(), String> {
        let verified = self.known_roots.verify(&policy(&standing.sandbox), &standing.cwd);
        verified.map_err(|error| error.to_string())
    }

    /// What the thread had when it was in another process.
    pub(crate) fn restore(&self, plan: Vec<Step>, files: Vec<String>) {
        let mut state = self.lock();
        state.plan = plan;
        let surplus = files.len().saturating_sub(FILES);
        state.files = files.into_iter().skip(surplus).collect();
    }

    pub(crate) fn plan(&self) -> Vec<Step> {
        self.lock().plan.clone()
    }

    pub(crate) fn set_plan(&self, plan: Vec<Step>) {
        self.lock().plan = plan;
    }

    /// Files the thread changed, the newest last.
    pub(crate) fn files(&self) -> Vec<String> {
        self.lock().files.clone()
    }

    /// A patch was written, if only in part.
    pub(super) fn note(&self, turn_id: &str, cwd: &Path, plan: &Plan, done: &Done) {
        let mut state = self.lock();
        for name in done.added.iter().chain(&done.changed).chain(&done.removed) {
            state.files.retain(|known| known != name);
            state.files.push(name.clone());
        }
        let surplus = state.files.len().saturating_sub(FILES);
        state.files.drain(..surplus);
        if state.diff.as_ref().is_none_or(|touched| touched.turn_id != turn_id) {
            let (turn_id, diff) = (turn_id.to_owned(), TurnDiff::new(cwd));
            state.diff = Some(Touched { turn_id, diff, news: false });
        }
        if let Some(touched) = &mut state.diff {
            touched.diff.note(plan, done);
            touched.news = true;
        }
    }

    /// The turn's diff, if it changed since it was told.
    pub(crate) fn new_diff(&self, turn_id: &str) -> Option<String> {
        let mut state = self.lock();
        let touched = state.diff.as_mut().filter(|touched| touched.turn_id == turn_id)?;
        std::mem::take(&mut touched.news).then(|| touched.diff.text())
    }

    /// A person said yes to this command for the whole thread, with what it ran when they were
    /// asked.
    pub(super) fn allow(&self, wanted: &Wanted, fenced: bool, runs: Option<ProgramIdentity>) {
        self.lock().commands.insert((key(wanted), fenced), runs);
    }

    /// A person said yes to everything that begins with these words.
    pub(super) fn allow_prefix(&self, prefix: Vec<String>, fenced: bool) {
        self.lock().prefixes.push((prefix, fenced));
    }

    /// Whether a person said yes to it before. Without a fence it must run the same files as then;
    /// where that is not known, it was no yes to what it runs now.
    pub(super) fn is_allowed(
        &self,
        wanted: &Wanted,
        fenced: bool,
        search: &ProgramSearch,
        runs: Option<&ProgramIdentity>,
    ) -> bool {
        let state = self.lock();
        let covers = |given: bool| fenced || !given;
        let same =
            |known: &Option<ProgramIdentity>| fenced || (known.is_some() && known.as_ref() == runs);
        let given = [true, false].into_iter().filter(|given| covers(*given));
        let mut known = given.filter_map(|given| state.commands.get(&(key(wanted), given)));
        if known.any(same) {
            return true;
        }
        let commands = script::commands(&wanted.argv);
        let [words] = commands.as_slice() else { return false };
        // Without a fence the words must mean the program that the person knows by them.
        let programs = words.first().into_iter().chain(wanted.argv.first());
        if !fenced && !programs.into_iter().all(|program| search.trusts(program)) {
            return false;
        }
        let mut fitting = state.prefixes.iter().filter(|(_, given)| covers(*given));
        fitting.any(|(prefix, _)| words.starts_with(prefix))
    }

    pub(super) fn allow_write(&self, place: PathBuf) {
        self.lock().places.insert(place);
    }

    pub(super) fn may_write(&self, place: &Path) -> bool {
        self.lock().places.contains(place)
    }

    /// Keeps a command's watcher, so that the turn or the thread can wait for it.
    pub(super) fn watch(&self, running: Watched, task: impl Future<Output = ()> + Send + 'static) {
        let mut state = self.lock();
        state.watched.retain(|_, watched| !*watched.done.borrow());
        state.watched.insert(running.process.session(), running);
        self.watchers.spawn(task);
    }

    /// A command that may still run.
    pub(super) fn find(&self, session: exec::Session) -> Option<Watched> {
        self.lock().watched.get(&session).cloned()
    }

    /// Waits until a command's end was told.
    pub(super) async fn told(&self, session: exec::Session) {
        let done = self.lock().watched.get(&session).map(|watched| watched.done.clone());
        if let Some(mut done) = done {
            // An error means that the watcher is gone, and with it everything to wait for.
            let _ = done.wait_for(|done| *done).await;
        }
    }

    /// A turn ended before its time: what it started ends with it.
    pub(crate) async fn end_turn(&self, turn_id: &str) {
        let started: Vec<exec::Session> = {
            let state = self.lock();
            let mine = state.watched.iter().filter(|(_, watched)| watched.turn_id == turn_id);
            mine.map(|(session, watched)| {
                watched.process.end();
                *session
            })
            .collect()
        };
        for session in started {
            self.told(session).await;
        }
    }

    /// The thread ends: so does everything it started.
    pub(crate) async fn end(&self) {
        self.processes.end_all().await;
        self.watchers.close();
        self.watchers.wait().await;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The program with its arguments, where, and whether on a terminal.
type Key = (Vec<String>, PathBuf, bool);

fn key(wanted: &Wanted) -> Key {
    (wanted.argv.clone(), wanted.cwd.clone(), wanted.tty)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_allows_plain_commands_only() {
        let session = Session::default();
        session.allow_prefix(vec!["cargo".to_owned(), "test".to_owned()], true);
        let wanted = |script: &str| Wanted {
            argv: ["/bin/sh", "-c", script].map(str::to_owned).to_vec(),
            script: script.to_owned(),
            cwd: PathBuf::new(),
            tty: false,
            escalated: false,
            justification: None,
            prefix_rule: None,
        };
        let search = ProgramSearch::default();
        let allowed = |wanted: &Wanted, fenced| session.is_allowed(wanted, fenced, &search, None);
        assert!(allowed(&wanted("cargo test -p x"), true));
        assert!(!allowed(&wanted("cargo test -p x"), false), "not without a fence");
        for script in [
            "cargo",
            "cargo build",
            "cargo test; rm x",
            "cargo test $(rm x)",
            "cargo test\nrm",
            "cargo\u{b}test",
            "cargo test\u{c}",
            "cargo\r test",
            "cargo test\\\n-x",
            "cargo\u{a0}test",
            "cargo\u{2003}test",
            "PATH=. cargo test",
        ] {
            assert!(!allowed(&wanted(script), true), "{script}");
        }
        let mut other = wanted("cargo test");
        other.argv[0] = "/project/sh".to_owned();
        assert!(!allowed(&other, true), "another program than the shell");
    }
}
