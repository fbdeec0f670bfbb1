//! A scripted app-server, for faults a real one cannot be made to show.
//!
//! It plays over any pair of halves in memory ([`AppServer`], [`play`]), or as a process: the
//! binary `scripted-app-server` takes the path of a script and ignores all further arguments, so
//! that it can stand where `codex` would. With `--crowd` for a script it is a server of a
//! [`crowd`], for many threads at once; then `--listen unix://PATH` is heard.

mod script;

mod filling;

mod player;

mod shapes;

mod program;

pub mod crowd;

#[cfg(unix)]
mod socket;

pub use player::{AppServer, End, Outcome, play};
pub use program::program;
pub use script::{Script, Step};
pub use shapes::{Turn, initialize, plain_session, start_thread};
#[cfg(unix)]
pub use socket::listen;
