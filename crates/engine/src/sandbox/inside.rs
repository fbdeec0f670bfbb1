//! The last steps before a command: taken by our own program, started for it.
//!
//! A filter on system calls and Landlock hold for the process that asks for them and for all it
//! starts, so our program is started first, takes the limits on, and becomes the command.
//!
//! Without bubblewrap there are two processes of ours. The *supervisor* stays outside: it makes the
//! namespaces, waits, and ends all that the command started, with the command or when the engine
//! dies. It starts our program again, which takes the limits on.

use std::convert::Infallible;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::exec::keeper::{KEEP, keep};

use super::plan::{NetworkAccess, Plan};

#[cfg(target_os = "linux")]
mod handover;

#[cfg(target_os = "linux")]
mod landlock;

#[cfg(target_os = "linux")]
mod namespaces;

#[cfg(target_os = "linux")]
mod limited;

#[cfg(target_os = "linux")]
mod seccomp;

#[cfg(target_os = "linux")]
mod supervisor;

/// A program whose first argument is this has to call [`enter`] with the rest.
pub const SUBCOMMAND: &str = "sandbox-exec";

/// What our program says with when the limits cannot be taken on; the command does not run then.
const FAILED: i32 = 126;

/// What keeps the command from writing elsewhere, besides seccomp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layer {
    /// Bubblewrap has made the file system; Landlock is stacked on it.
    Bubblewrap,
    /// We make the file system; Landlock is stacked on it.
    Namespaces,
    /// Landlock alone.
    Landlock,
}

/// Which of our processes this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// The one that bubblewrap starts, with no supervisor of ours.
    Alone,
    /// The supervisor, with the number of the engine's process.
    Supervisor(i32),
    /// The one that takes the limits on, with the number of its supervisor.
    Supervised(i32),
}

/// The limits, as they are told to our program.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Limits {
    layer: Layer,
    role: Role,
    roots: Vec<PathBuf>,
    /// What stays read-only in them.
    protect: Vec<PathBuf>,
    /// What is not to be seen.
    hidden: Vec<PathBuf>,
    /// What of it is.
    shown: Vec<PathBuf>,
    network: NetworkAccess,
    /// The command gets a `/proc` of its own.
    own_proc: bool,
    /// The terminal of the standard input becomes the session's own.
    take_terminal: bool,
    argv: Vec<OsString>,
}

/// Our program and its arguments within bubblewrap, which sees to the file system.
pub(super) fn within_bubblewrap(helper: &Path, plan: &Plan) -> Vec<OsString> {
    Limits { role: Role::Alone, ..Limits::of(Layer::Bubblewrap, plan) }.arguments_for(helper)
}

/// Our program and its arguments where it makes the namespaces itself.
pub(super) fn in_namespaces(helper: &Path, plan: &Plan, own_proc: bool) -> Vec<OsString> {
    Limits { own_proc, ..Limits::of(Layer::Namespaces, plan) }.arguments_for(helper)
}

/// Our program and its arguments where there is nothing but Landlock.
pub(super) fn landlocked(helper: &Path, plan: &Plan) -> Vec<OsString> {
    Limits::of(Layer::Landlock, plan).arguments_for(helper)
}

impl Limits {
    /// For a supervisor that this process starts.
    fn of(layer: Layer, plan: &Plan) -> Self {
        Self {
            layer,
            role: Role::Supervisor(std::process::id().cast_signed()),
            roots: plan.roots.clone(),
            protect: plan.protect.clone(),
            hidden: plan.hidden.clone(),
            shown: plan.shown.clone(),
            network: plan.network.clone(),
            own_proc: false,
            take_terminal: plan.tty,
            argv: Vec::new(),
        }
    }

    fn arguments_for(self, helper: &Path) -> Vec<OsString> {
        let mut argv: Vec<OsString> = vec![helper.into(), SUBCOMMAND.into()];
        argv.extend(self.arguments());
        argv
    }

    fn arguments(self) -> Vec<OsString> {
        let layer = match self.layer {
            Layer::Bubblewrap => "--bubblewrap",
            Layer::Namespaces => "--namespaces",
            Layer::Landlock => "--landlock",
        };
        let mut argv = vec![OsString::from(layer)];
        match self.role {
            Role::Alone => {}
            Role::Supervisor(engine) => {
                argv.extend(["--supervise-for".into(), engine.to_string().into()]);
            }
            Role::Supervised(by) => argv.extend(["--supervised-by".into(), by.to_string().into()]),
        }
        match self.network {
            NetworkAccess::Closed => {}
            NetworkAccess::Bridged(socket) => argv.extend(["--egress".into(), socket.into()]),
            NetworkAccess::Host => argv.push("--network".into()),
        }
        let flags = [("--own-proc", self.own_proc), ("--take-terminal", self.take_terminal)];
        argv.extend(flags.iter().filter(|(_, set)| *set).map(|(flag, _)| OsString::from(flag)));
        let named = |flag: &'static str, paths: Vec<PathBuf>| {
            paths.into_iter().flat_map(move |path| [flag.into(), path.into_os_string()])
        };
        argv.extend(named("--root", self.roots));
        argv.extend(named("--protect", self.protect));
        argv.extend(named("--hide", self.hidden));
        argv.extend(named("--show", self.shown));
        argv.push("--".into());
        argv.extend(self.argv);
        argv
    }

    fn read(arguments: impl Iterator<Item = OsString>) -> Result<Self, String> {
        let mut arguments = arguments;
        let layer = match arguments.next().as_deref().and_then(|first| first.to_str()) {
            Some("--bubblewrap") => Layer::Bubblewrap,
            Some("--namespaces") => Layer::Namespaces,
            Some("--landlock") => Layer::Landlock,
            _ => return Err("the first argument names no mechanism".to_owned()),
        };
        let mut limits = Self {
            layer,
            role: Role::Alone,
            roots: Vec::new(),
            protect: Vec::new(),
            hidden: Vec::new(),
            shown: Vec::new(),
            network: NetworkAccess::Closed,
            own_proc: false,
            take_terminal: false,
            argv: Vec::new(),
        };
        while let Some(argument) = arguments.next() {
            let mut path = || arguments.next().map(PathBuf::from).ok_or("a path is missing");
            match argument.to_str() {
                Some("--supervise-for") => limits.role = Role::Supervisor(number(path()?)?),
                Some("--supervised-by") => limits.role = Role::Supervised(number(path()?)?),
                Some("--network") => limits.network = NetworkAccess::Host,
                Some("--egress") => limits.network = NetworkAccess::Bridged(path()?),
                Some("--own-proc") => limits.own_proc = true,
                Some("--take-terminal") => limits.take_terminal = true,
                Some("--root") => limits.roots.push(path()?),
                Some("--protect") => limits.protect.push(path()?),
                Some("--hide") => limits.hidden.push(path()?),
                Some("--show") => limits.shown.push(path()?),
                Some("--") => {
                    limits.argv = arguments.collect();
                    return Ok(limits);
                }
                _ => return Err(format!("`{}` is no limit", argument.display())),
            }
        }
        Err("there is no command".to_owned())
    }
}

fn number(text: PathBuf) -> Result<i32, String> {
    let parsed = text.to_str().and_then(|text| text.parse().ok()).filter(|number| *number > 0);
    parsed.ok_or_else(|| format!("`{}` is no number of a process", text.display()))
}

/// Takes the limits on and becomes the command. Never comes back; if anything fails the command
/// does not run.
pub fn enter(arguments: impl Iterator<Item = OsString>) -> ! {
    let mut arguments = arguments.peekable();
    if arguments.next_if(|first| *first == KEEP).is_some() {
        keep(&arguments.next().unwrap_or_default().to_string_lossy());
    }
    let Err(why) = entered(arguments);
    #[expect(clippy::print_stderr, reason = "all that is left to do in a process of its own")]
    {
        eprintln!("cannot limit the command: {why}");
    }
    std::process::exit(FAILED)
}

#[cfg(target_os = "linux")]
fn entered(arguments: impl Iterator<Item = OsString>) -> Result<Infallible, String> {
    let limits = Limits::read(arguments)?;
    match (limits.role, limits.layer) {
        (Role::Supervisor(engine), Layer::Namespaces | Layer::Landlock) => {
            supervisor::run(limits, engine)
        }
        (Role::Supervised(by), Layer::Namespaces | Layer::Landlock) => limited::run(&limits, by),
        (Role::Alone, Layer::Bubblewrap) => limited::run_alone(&limits),
        _ => Err("these limits do not go together".to_owned()),
    }
}

#[cfg(not(target_os = "linux"))]
fn entered(arguments: impl Iterator<Item = OsString>) -> Result<Infallible, String> {
    Limits::read(arguments)?;
    Err("this system offers no sandbox".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_survive_being_told() {
        let limits = Limits {
            layer: Layer::Namespaces,
            role: Role::Supervisor(7),
            roots: vec!["/a b".into(), "--network".into()],
            protect: vec!["/a b/.git".into()],
            hidden: vec!["/--".into()],
            shown: vec!["/--/own".into()],
            network: NetworkAccess::Bridged("/s".into()),
            own_proc: true,
            take_terminal: true,
            argv: vec!["echo".into(), "--".into(), "--network".into()],
        };
        let argv = limits.clone().arguments_for(Path::new("/bin/helper"));
        assert_eq!(Limits::read(argv.into_iter().skip(2)).unwrap(), limits);
    }

    #[test]
    fn what_is_not_understood_is_no_limit() {
        let read = |arguments: &[&str]| Limits::read(arguments.iter().map(OsString::from));
        let wrong = |arguments: &[&str]| read(arguments).unwrap_err();
        assert_eq!(wrong(&["--lanlock", "--", "x"]), "the first argument names no mechanism");
        assert_eq!(wrong(&["--landlock", "--lan", "--", "x"]), "`--lan` is no limit");
        assert_eq!(wrong(&["--landlock", "--root"]), "a path is missing");
        assert_eq!(wrong(&["--landlock"]), "there is no command");
        let zero = ["--landlock", "--supervised-by", "0", "--", "x"];
        assert_eq!(wrong(&zero), "`0` is no number of a process");
    }
}
