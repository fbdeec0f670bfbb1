//! The last steps before a command: taken by our own program, started for it.
//!
//! A filter on system calls and Landlock hold for the process that asks for them and for all it
//! starts, so our program is started first, takes the limits on, and becomes the command.

use std::convert::Infallible;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::exec::Command;
use crate::exec::keeper::{KEEP, keep};

use super::roots::WritableRoots;
use super::{Policy, prefixed};

#[cfg(target_os = "linux")]
mod landlock;

#[cfg(target_os = "linux")]
mod seccomp;

/// A program whose first argument is this has to call [`enter`] with the rest.
pub const SUBCOMMAND: &str = "sandbox-exec";

/// What our program says with when the limits cannot be taken on; the command does not run then.
const FAILED: i32 = 126;

/// The limits, as they are told to our program.
#[derive(Debug, Default, PartialEq, Eq)]
struct Limits {
    landlock: bool,
    /// Folders for Landlock.
    roots: Vec<PathBuf>,
    /// What stays read-only in them.
    protect: Vec<PathBuf>,
    network: bool,
    /// The terminal of the standard input becomes the session's own.
    take_terminal: bool,
    argv: Vec<OsString>,
}

/// Our program and its arguments within bubblewrap, which sees to the file system.
pub(super) fn within_bubblewrap(helper: &Path, policy: &Policy, tty: bool) -> Vec<OsString> {
    let limits = Limits { network: policy.network(), take_terminal: tty, ..Limits::default() };
    limits.told_to(helper)
}

/// Our program and its arguments where it has to do it all, without roots.
pub(super) fn landlocked(helper: &Path, policy: &Policy) -> Vec<OsString> {
    let network = policy.network();
    Limits { landlock: true, network, ..Limits::default() }.told_to(helper)
}

/// Limits a command by Landlock.
pub(super) fn wrap(
    command: Command,
    policy: &Policy,
    roots: &WritableRoots,
    helper: &Path,
) -> Command {
    let limits = Limits {
        landlock: true,
        roots: roots.roots().iter().map(|root| root.path.clone()).collect(),
        protect: roots.protected().into_iter().filter(|path| path.exists()).collect(),
        network: policy.network(),
        ..Limits::default()
    };
    prefixed(command, limits.told_to(helper))
}

impl Limits {
    fn told_to(self, helper: &Path) -> Vec<OsString> {
        let mut argv: Vec<OsString> = vec![helper.into(), SUBCOMMAND.into()];
        let flags = [
            ("--landlock", self.landlock),
            ("--network", self.network),
            ("--take-terminal", self.take_terminal),
        ];
        argv.extend(flags.iter().filter(|(_, set)| *set).map(|(flag, _)| OsString::from(flag)));
        let named = |flag: &'static str, paths: Vec<PathBuf>| {
            paths.into_iter().flat_map(move |path| [flag.into(), path.into_os_string()])
        };
        argv.extend(named("--root", self.roots));
        argv.extend(named("--protect", self.protect));
        argv.push("--".into());
        argv
    }

    fn read(arguments: impl Iterator<Item = OsString>) -> Result<Self, String> {
        let mut limits = Self::default();
        let mut arguments = arguments;
        while let Some(argument) = arguments.next() {
            let mut path = || arguments.next().map(PathBuf::from).ok_or("a path is missing");
            match argument.to_str() {
                Some("--landlock") => limits.landlock = true,
                Some("--network") => limits.network = true,
                Some("--take-terminal") => limits.take_terminal = true,
                Some("--root") => limits.roots.push(path()?),
                Some("--protect") => limits.protect.push(path()?),
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
    use std::os::unix::process::CommandExt;

    use rustix::process::{Signal, ioctl_tiocsctty, set_parent_process_death_signal, setsid};

    let limits = Limits::read(arguments)?;
    let words = |error: rustix::io::Errno| error.to_string();
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(words)?;
    if limits.take_terminal {
        // Bubblewrap made a session, but its first process leads it, and not this one.
        setsid().map_err(words)?;
        ioctl_tiocsctty(rustix::stdio::stdin()).map_err(words)?;
    }
    if limits.landlock {
        landlock::restrict(&limits.roots, &limits.protect)?;
    }
    seccomp::restrict(limits.network)?;
    let [program, arguments @ ..] = limits.argv.as_slice() else {
        return Err("there is no command".to_owned());
    };
    let error = std::process::Command::new(program).args(arguments).exec();
    Err(format!("cannot start `{}`: {error}", program.display()))
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
        let limits = || Limits {
            landlock: true,
            roots: vec!["/a b".into(), "--network".into()],
            protect: vec!["/a b/.git".into()],
            ..Limits::default()
        };
        let mut argv = limits().told_to(Path::new("/bin/helper"));
        argv.extend(["echo", "--", "--network"].map(OsString::from));
        let read = Limits::read(argv.into_iter().skip(2)).unwrap();
        let command = vec!["echo".into(), "--".into(), "--network".into()];
        assert_eq!(read, Limits { argv: command, ..limits() });
    }

    #[test]
    fn what_is_not_understood_is_no_limit() {
        let read = |arguments: &[&str]| Limits::read(arguments.iter().map(OsString::from));
        assert_eq!(read(&["--lanlock", "--", "x"]).unwrap_err(), "`--lanlock` is no limit");
        assert_eq!(read(&["--root"]).unwrap_err(), "a path is missing");
        assert_eq!(read(&["--landlock"]).unwrap_err(), "there is no command");
    }
}
