//! An app-server on a unix socket. Codex speaks WebSocket there too, not lines.

use std::path::{Path, PathBuf};

use tokio::net::UnixStream;

use super::Transport;
use super::dial::{Dial, Peer, failed, refused};
use super::ws;
use crate::error::Error;

/// The socket of Codex's own daemon: what `unix://` means without a path.
pub fn control_socket() -> Option<PathBuf> {
    let named = std::env::var_os("CODEX_HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    let home = named.or_else(|| Some(std::env::home_dir()?.join(".codex")))?;
    Some(home.join("app-server-control/app-server-control.sock"))
}

pub(super) async fn connect(dial: &Dial, path: Option<&Path>) -> Result<Transport, Error> {
    let path = path.map(Path::to_owned).or_else(control_socket);
    let path = path.ok_or_else(|| refused(dial, "there is no home folder to find it in"))?;
    let stream = UnixStream::connect(&path)
        .await
        .map_err(|err| failed(dial, format!("`{}`: {err}", path.display())))?;
    if let Some(peer) = dial.peer {
        check(&stream, peer).map_err(|why| refused(dial, &why))?;
    }
    // The host is never looked at, but a request without one is no request.
    ws::over(dial, Box::new(stream), "localhost", "/").await
}

/// Whether the process that listens is the one that is meant: a path says only where it was.
fn check(stream: &UnixStream, wanted: Peer) -> Result<(), String> {
    let told = stream.peer_cred().map_err(|err| format!("who listens there is not told: {err}"))?;
    let pid = told.pid().and_then(rustix::process::Pid::from_raw);
    let group = pid.and_then(|pid| rustix::process::getpgid(Some(pid)).ok());
    let group = group.map(|group| group.as_raw_nonzero().get());
    let is_meant = told.uid() == wanted.user && group == Some(wanted.group);
    is_meant.then_some(()).ok_or_else(|| "another process listens there".to_owned())
}
