//! An app-server on a WebSocket: one message a text frame.
//!
//! The library's frames are used and its handshake is not: that one writes the whole request, the
//! token in it, to the trace log.

mod frames;

mod handshake;

mod tls;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use super::Transport;
use super::address::WebSocketUrl;
use super::dial::{Dial, failed, refused};
use crate::error::Error;
use handshake::Refusal;

/// A byte stream of any kind.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> Stream for T {}

/// Connects over TCP, and TLS if the address says so.
pub(super) async fn connect(dial: &Dial, url: &WebSocketUrl) -> Result<Transport, Error> {
    if dial.token.is_some() && !url.secure && !url.is_loopback() {
        return Err(refused(
            dial,
            "a token must not travel in the clear; use `wss://`, or a tunnel",
        ));
    }
    let tls = match url.secure {
        true => Some(tls::connector(dial).await?),
        false => None,
    };
    let tcp = TcpStream::connect((url.host.as_str(), url.port));
    let tcp = tcp.await.map_err(|err| failed(dial, err))?;
    // Messages are small and each is waited for.
    tcp.set_nodelay(true).map_err(|err| failed(dial, err))?;
    let stream: Box<dyn Stream> = match tls {
        Some(tls) => Box::new(tls::secure(dial, &tls, &url.host, tcp).await?),
        None => Box::new(tcp),
    };
    over(dial, stream, &url.authority(), &url.target).await
}

/// Shakes hands over a stream and speaks messages from then on.
pub(super) async fn over(
    dial: &Dial,
    mut stream: Box<dyn Stream>,
    host: &str,
    target: &str,
) -> Result<Transport, Error> {
    let shaken = handshake::shake(&mut stream, host, target, dial.token.as_ref()).await;
    let rest = shaken.map_err(|refusal| told(dial, refusal))?;
    let config = WebSocketConfig::default()
        .max_message_size(Some(dial.message_limit))
        .max_frame_size(Some(dial.message_limit));
    let (role, config) = (Role::Client, Some(config));
    let socket = WebSocketStream::from_partially_read(stream, rest, role, config).await;
    tracing::debug!(address = %dial.address, "connected");
    Ok(frames::start(socket, dial.message_limit, dial.keepalive))
}

fn told(dial: &Dial, refusal: Refusal) -> Error {
    match refusal {
        Refusal::Status { status: status @ (401 | 403), body } => {
            Error::Unauthorized { address: dial.address.to_string(), status, message: body }
        }
        Refusal::Status { status, body } => {
            failed(dial, format!("the server answered {status}: {body}"))
        }
        Refusal::Other(why) => failed(dial, why),
    }
}
