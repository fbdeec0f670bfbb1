//! One client on standard input and output; when it hangs up, the server is done.

use tokio::io::{AsyncRead, AsyncWrite};

use crate::service::Service;

use super::carry;

/// Serves whoever started us, until standard input ends or the service is stopped.
pub async fn stdio(service: &Service) {
    let wire = service.connect();
    carry(input(), output(), wire, service.stopping()).await;
}

/// Standard input. Any kind of it can be read on a thread that waits; a pipe needs none, and every
/// message is spared two changes of threads.
fn input() -> Box<dyn AsyncRead + Unpin + Send> {
    #[cfg(unix)]
    if let Some(pipe) = pipes::input() {
        return Box::new(pipe);
    }
    Box::new(tokio::io::stdin())
}

fn output() -> Box<dyn AsyncWrite + Unpin + Send> {
    #[cfg(unix)]
    if let Some(pipe) = pipes::output() {
        return Box::new(pipe);
    }
    Box::new(tokio::io::stdout())
}

#[cfg(unix)]
mod pipes {
    use std::os::fd::{AsFd, OwnedFd};

    use rustix::fs::fstat;
    use tokio::net::unix::pipe::{Receiver, Sender};

    pub(super) fn input() -> Option<Receiver> {
        let stdin = own(std::io::stdin())?;
        Receiver::from_owned_fd(stdin).ok()
    }

    /// A pipe does not block any more for whoever else has it, which must not be those who write
    /// errors.
    pub(super) fn output() -> Option<Sender> {
        let stdout = own(std::io::stdout())?;
        let (ours, errors) = (fstat(&stdout).ok()?, fstat(std::io::stderr()));
        let is_shared = errors.is_ok_and(|errors| errors.st_ino == ours.st_ino);
        if is_shared { None } else { Sender::from_owned_fd(stdout).ok() }
    }

    fn own(stream: impl AsFd) -> Option<OwnedFd> {
        stream.as_fd().try_clone_to_owned().ok()
    }
}
