//! Children that cannot reach the terminal this process was started from.
//!
//! A process can open `/dev/tty` and take the foreground of any terminal that controls its session:
//! it could read what a person types, or draw a false question. So every child of the engine leads
//! a session of its own, which no terminal controls.

use process_wrap::{std as blocking, tokio as runtime};

/// Makes a child lead a new session, and with it a new process group.
pub(crate) fn lead_session(command: &mut tokio::process::Command) {
    use runtime::CommandWrapper;
    let unused = runtime::CommandWrap::from(tokio::process::Command::new(""));
    // It only adds a step between fork and exec; the child stays a plain one of tokio's.
    let added = runtime::ProcessSession.pre_spawn(command, &unused);
    debug_assert!(added.is_ok(), "adding a step cannot fail");
}

/// The same for a child that is waited for on a thread.
pub(crate) fn lead_session_blocking(command: &mut std::process::Command) {
    use blocking::CommandWrapper;
    let unused = blocking::CommandWrap::from(std::process::Command::new(""));
    let added = blocking::ProcessSession.pre_spawn(command, &unused);
    debug_assert!(added.is_ok(), "adding a step cannot fail");
}
