//! An app-server on a unix socket. Codex speaks WebSocket there too, not lines.

use std::path::{Path, PathBuf};

use tokio::net::UnixStream;

use super::Transport;
use super::dial::{Dial, failed, refused};
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
    // The host is never looked at, but a request without one is no request.
    ws::over(dial, Box::new(stream), "localhost", "/").await
}
