//! The engine as an app-server, over memory and over sockets.

mod crowd;

mod kept;

pub(crate) mod peer;

mod protocol;

#[cfg(unix)]
mod sockets;

mod supply;
