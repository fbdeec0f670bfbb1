//! A crowd's server on a unix socket, as a daemon finds it: a message is a WebSocket's text.

use std::path::Path;

use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, duplex};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio_tungstenite::accept_async;
use tokio_tungstenite::tungstenite::Message;

use super::crowd::Crowd;

/// Bytes between a connection and the crowd.
const PIPE: usize = 64 * 1024;

/// Serves all who come, until a turn crashes the server.
///
/// # Errors
/// If it cannot listen there.
pub async fn listen(crowd: &Crowd, path: &Path) -> std::io::Result<()> {
    let listener = UnixListener::bind(path)?;
    let mut clients = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                clients.spawn(serve(crowd.clone(), accepted?.0));
            }
            Some(Ok(true)) = clients.join_next() => return Ok(()),
        }
    }
}

/// Serves one of them; true if a turn crashed the server.
async fn serve(crowd: Crowd, stream: UnixStream) -> bool {
    // Whoever only looks whether somebody listens says nothing.
    let Ok(socket) = accept_async(stream).await else { return false };
    let (mut sink, mut source) = socket.split();
    let (mut said, from) = duplex(PIPE);
    let (to, told) = duplex(PIPE);
    let inward = async {
        while let Some(Ok(message)) = source.next().await {
            let Message::Text(text) = message else { continue };
            let line = format!("{}\n", text.as_str());
            if said.write_all(line.as_bytes()).await.is_err() {
                break;
            }
        }
    };
    let outward = async {
        let mut lines = BufReader::new(told).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            if sink.send(Message::text(line)).await.is_err() {
                break;
            }
        }
    };
    tokio::select! {
        crashed = crowd.serve(from, to) => crashed,
        () = inward => false,
        () = outward => false,
    }
}
