//! A WebSocket listener on a socket in the file system, for the user who started it.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixStream};

use super::door::{self, Door};
use super::gate::Gate;
use super::{ListenError, Token};
use crate::service::Service;

/// A socket that is listened on; it is removed when the door is dropped.
#[derive(Debug)]
pub struct UnixDoor {
    listener: UnixListener,
    path: PathBuf,
    token: Option<Token>,
}

impl UnixDoor {
    /// Listens. A socket that nobody listens on any more is taken over. Other users are never let
    /// in; with a token, neither are programs of our own user that do not bring it.
    pub async fn open(path: &Path, token: Option<Token>) -> Result<Self, ListenError> {
        let address = || format!("unix://{}", path.display());
        let failed = |source| ListenError::Bind { address: address(), source };
        if is_socket(path) {
            if UnixStream::connect(path).await.is_ok() {
                return Err(ListenError::Taken(address()));
            }
            std::fs::remove_file(path).map_err(failed)?;
        }
        let listener = UnixListener::bind(path).map_err(failed)?;
        let door = Self { listener, path: path.to_owned(), token };
        std::fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(failed)?;
        Ok(door)
    }

    /// Where it listens.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Lets clients in until the service is stopped, and waits for them to be gone.
    pub async fn serve(self, service: &Service) {
        door::serve(&self, service).await;
    }
}

impl Door for UnixDoor {
    type Stream = UnixStream;

    async fn accept(&self) -> io::Result<Option<UnixStream>> {
        let (stream, _) = self.listener.accept().await?;
        if is_ours(&stream) {
            return Ok(Some(stream));
        }
        tracing::warn!("a connection of another user was refused");
        Ok(None)
    }

    fn gate(&self) -> Gate {
        Gate { token: self.token.clone(), ..Gate::default() }
    }
}

impl Drop for UnixDoor {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn is_socket(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    std::fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket())
}

/// The file's mode says so too, but only once it is set.
fn is_ours(stream: &UnixStream) -> bool {
    let (ours, root) = (rustix::process::geteuid().as_raw(), 0);
    stream.peer_cred().is_ok_and(|peer| peer.uid() == ours || peer.uid() == root)
}
