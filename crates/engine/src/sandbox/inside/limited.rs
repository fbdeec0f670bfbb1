//! The process that takes the limits on and becomes the command, or its init.

use std::convert::Infallible;
use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{
    Pid, Signal, WaitOptions, getppid, ioctl_tiocsctty, set_parent_process_death_signal, setsid,
    wait,
};
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

use super::landlock::Stacked;
use super::{Layer, Limits, handover, landlock, namespaces, seccomp, supervisor};
use crate::sandbox::plan::NetworkAccess;

/// Within bubblewrap.
pub(super) fn run_alone(limits: &Limits) -> Result<Infallible, String> {
    die_with_parent()?;
    if limits.take_terminal {
        // Bubblewrap made a session, but its first process leads it, and not this one.
        take_terminal()?;
    }
    if let NetworkAccess::Bridged(socket) = &limits.network {
        handover::hand_over(socket)?;
    }
    restrict(limits)?;
    become_command(limits)
}

/// Started by our supervisor.
pub(super) fn run(limits: &Limits, supervisor: i32) -> Result<Infallible, String> {
    die_with_parent()?;
    // Asked afterwards: if it died before, no signal comes.
    if parent(limits.layer) != Some(supervisor) {
        return Err("the supervisor is gone".to_owned());
    }
    setsid().map_err(words)?;
    if limits.take_terminal {
        ioctl_tiocsctty(rustix::stdio::stdin()).map_err(words)?;
    }
    if limits.layer == Layer::Landlock {
        restrict(limits)?;
        return become_command(limits);
    }
    if limits.own_proc {
        namespaces::mount_proc()?;
    }
    drop_capabilities()?;
    restrict(limits)?;
    be_init(limits)
}

fn words(error: rustix::io::Errno) -> String {
    error.to_string()
}

fn die_with_parent() -> Result<(), String> {
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(words)
}

fn take_terminal() -> Result<(), String> {
    setsid().map_err(words)?;
    ioctl_tiocsctty(rustix::stdio::stdin()).map_err(words)
}

/// Our parent's number as it is outside: in a namespace of processes a parent outside has none,
/// but `/proc` is still that of the outside.
fn parent(layer: Layer) -> Option<i32> {
    if layer == Layer::Landlock {
        return getppid().map(Pid::as_raw_nonzero).map(std::num::NonZero::get);
    }
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    text.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

fn restrict(limits: &Limits) -> Result<(), String> {
    set_no_new_privs(true).map_err(words)?;
    match limits.layer {
        Layer::Landlock => landlock::restrict(limits)?,
        Layer::Bubblewrap | Layer::Namespaces => match landlock::stack(&limits.roots)? {
            Stacked::InForce | Stacked::Unknown => {}
        },
    }
    seccomp::restrict(seccomp::Calls {
        network: limits.network != NetworkAccess::Closed,
        shared_processes: limits.layer == Layer::Landlock,
        unlimited_modes: limits.layer == Layer::Landlock && limits.roots.is_empty(),
    })
}

/// With an empty bounding set no program gives any back.
fn drop_capabilities() -> Result<(), String> {
    clear_ambient_capability_set().map_err(words)?;
    for bit in 0..u64::BITS {
        match remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << bit)) {
            // The kernel knows no more.
            Err(rustix::io::Errno::INVAL) => break,
            other => other.map_err(words)?,
        }
    }
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
        .map_err(words)
}

fn become_command(limits: &Limits) -> Result<Infallible, String> {
    let (program, mut command) = command(limits)?;
    let error = command.exec();
    Err(format!("cannot start `{program}`: {error}"))
}

/// The first process of a namespace gets no signal that it does not ask for, and has to reap what
/// others leave, so it is not the command's own. When it ends, the kernel ends all others.
fn be_init(limits: &Limits) -> Result<Infallible, String> {
    let (program, mut command) = command(limits)?;
    let child = command.spawn().map_err(|error| format!("cannot start `{program}`: {error}"))?;
    let child = Pid::from_raw(child.id().cast_signed());
    loop {
        match wait(WaitOptions::empty()).map_err(words)? {
            Some((process, status)) if Some(process) == child => {
                std::process::exit(supervisor::exit_code(status))
            }
            _ => {}
        }
    }
}

fn command(limits: &Limits) -> Result<(String, Command), String> {
    let [program, arguments @ ..] = limits.argv.as_slice() else {
        return Err("there is no command".to_owned());
    };
    let mut command = Command::new(program);
    command.args(arguments);
    Ok((program.display().to_string(), command))
}
