//! The way out of a command's own network: an HTTP proxy that does not lead back to this machine.
//!
//! A command with network access could otherwise speak with whatever listens on this machine, such
//! as the engine that runs it, and ask that for more. So it gets a network of its own with nothing
//! in it but a listener, made by our helper and handed to this process over a unix socket. What the
//! command sends there is connected from here, after the name was resolved and the address checked.

mod address;

mod request;

use std::ffi::OsString;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};

use self::address::may_be_reached;
use self::request::Request;

/// Commands started meanwhile do not get the listener.
#[cfg(target_os = "linux")]
const NOT_INHERITED: RecvFlags = RecvFlags::CMSG_CLOEXEC;
/// Only Linux has a helper that sends one.
#[cfg(not(target_os = "linux"))]
const NOT_INHERITED: RecvFlags = RecvFlags::empty();

/// Says whether an address may be connected to.
type Rule = fn(IpAddr) -> bool;

/// Where the listener is in the command's own network, in which every port is free.
pub(super) const LISTENER: &str = "127.0.0.1:3128";

/// What programs call the proxy, in both spellings.
const VARIABLES: [&str; 3] = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];

/// Servers that the command runs itself.
const DIRECT: &str = "localhost,127.0.0.1,::1";

const MAX_CONNECTIONS: usize = 256;
const MAX_HEAD_BYTES: usize = 32 * 1024;
const HEAD_TIMEOUT: Duration = Duration::from_secs(60);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(60);

/// The proxy of one command. It ends with the last clone.
#[derive(Clone, Debug)]
pub struct Egress(Arc<Running>);

#[derive(Debug)]
struct Running {
    folder: PathBuf,
    task: JoinHandle<()>,
}

impl Egress {
    /// Waits for the helper to hand the listener over. Needs tokio's runtime.
    pub(super) fn start() -> io::Result<Self> {
        Self::start_with(may_be_reached)
    }

    fn start_with(rule: Rule) -> io::Result<Self> {
        let runtime = tokio::runtime::Handle::try_current().map_err(io::Error::other)?;
        let folder = socket_folder(&std::env::temp_dir())?;
        std::fs::DirBuilder::new().mode(0o700).create(&folder)?;
        let _entered = runtime.enter();
        let socket = match UnixListener::bind(folder.join("s")) {
            Ok(socket) => socket,
            Err(error) => {
                let _ = std::fs::remove_dir(&folder);
                return Err(error);
            }
        };
        let away = folder.clone();
        let task = runtime.spawn(async move {
            if let Err(err) = serve(socket, &away, rule).await {
                tracing::warn!(%err, "a command has no way out to the network");
            }
        });
        Ok(Self(Arc::new(Running { folder, task })))
    }

    /// Where the helper hands the listener over.
    pub(super) fn socket(&self) -> PathBuf {
        self.0.folder.join("s")
    }

    /// What tells programs of the proxy.
    pub(super) fn variables() -> Vec<(OsString, OsString)> {
        let both = |name: &str, value: &str| {
            [name.to_owned(), name.to_lowercase()].map(|name| (name.into(), value.into()))
        };
        let url = format!("http://{LISTENER}");
        let mut all: Vec<_> = VARIABLES.iter().flat_map(|name| both(name, &url)).collect();
        all.extend(both("NO_PROXY", DIRECT));
        // Node asks for a word of its own.
        all.push(("NODE_USE_ENV_PROXY".into(), "1".into()));
        all
    }
}

impl PartialEq for Egress {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Egress {}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
        remove(&self.folder);
    }
}

fn remove(folder: &Path) {
    // Whoever came first has removed it.
    let _ = std::fs::remove_file(folder.join("s"));
    let _ = std::fs::remove_dir(folder);
}

async fn serve(socket: UnixListener, folder: &Path, rule: Rule) -> io::Result<()> {
    let (helper, _) = socket.accept().await?;
    let listener = received(&helper).await?;
    // One helper, one listener: nobody else is to find the way.
    drop(socket);
    remove(folder);
    drop(helper);
    let listener = std::net::TcpListener::from(listener);
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    // Dropped with this future, and all connections with it.
    let mut connections = JoinSet::new();
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return Ok(()) };
        let (stream, _) = listener.accept().await?;
        connections.spawn(async move {
            if let Err(err) = pass_on(stream, rule).await {
                tracing::debug!(%err, "a connection of a command broke");
            }
            drop(place);
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn received(helper: &UnixStream) -> io::Result<OwnedFd> {
    helper.async_io(Interest::READABLE, || received_now(helper)).await
}

fn received_now(helper: &UnixStream) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    recvmsg(helper, &mut [IoSliceMut::new(&mut byte)], &mut control, NOT_INHERITED)?;
    let files = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    });
    files.ok_or_else(|| io::Error::other("the helper sent no listener"))
}

/// Reads what is asked for, connects, and passes bytes on both ways.
async fn pass_on(mut stream: TcpStream, rule: Rule) -> io::Result<()> {
    let head = tokio::time::timeout(HEAD_TIMEOUT, head(&mut stream)).await??;
    let Some(request) = Request::parse(&head) else {
        return refuse(
            &mut stream,
            "400 Bad Request",
            "This proxy takes CONNECT and http:// only.",
        )
        .await;
    };
    let mut server = match connected(&request, rule).await {
        Ok(server) => server,
        Err(Unreachable::Forbidden) => {
            let why = "This address is on this machine or next to it, which sandboxed commands \
                       do not reach. To allow it set `loopback = true` in \
                       `[sandbox_workspace_write]`.";
            return refuse(&mut stream, "403 Forbidden", why).await;
        }
        Err(Unreachable::Failed(err)) => {
            return refuse(&mut stream, "502 Bad Gateway", &err.to_string()).await;
        }
    };
    match &request.first {
        Some(first) => server.write_all(first).await?,
        None => stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?,
    }
    server.write_all(&head[request.head_bytes..]).await?;
    copy_bidirectional(&mut stream, &mut server).await?;
    Ok(())
}

/// Everything up to the empty line, and what came with it.
async fn head(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    while !bytes.windows(4).any(|four| four == b"\r\n\r\n") {
        if bytes.len() > MAX_HEAD_BYTES || stream.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
    Ok(bytes)
}

async fn refuse(stream: &mut TcpStream, status: &str, why: &str) -> io::Result<()> {
    let length = why.len() + 1;
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{why}\n"
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}

enum Unreachable {
    Forbidden,
    Failed(io::Error),
}

/// Names are resolved here, and what was checked is what is connected to.
async fn connected(request: &Request, rule: Rule) -> Result<TcpStream, Unreachable> {
    let looked_up = tokio::net::lookup_host((request.host.as_str(), request.port)).await;
    let addresses: Vec<SocketAddr> = looked_up.map_err(Unreachable::Failed)?.collect();
    let mut error = Unreachable::Forbidden;
    for address in addresses.into_iter().filter(|address| rule(address.ip())) {
        match tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(why)) => error = Unreachable::Failed(why),
            Err(_) => error = Unreachable::Failed(io::ErrorKind::TimedOut.into()),
        }
    }
    Err(error)
}

/// The longest path that fits into the address of a unix socket.
const MAX_SOCKET_PATH: usize = 107;

/// A new name for a folder with a socket in it: in the temporary folder, or in `/tmp` where the
/// path of that one is too long for a socket.
fn socket_folder(temporary: &Path) -> io::Result<PathBuf> {
    let name = format!("bindery-{}", uuid::Uuid::now_v7().simple());
    let folder = temporary.canonicalize()?.join(&name);
    let fits = folder.join("s").as_os_str().len() <= MAX_SOCKET_PATH;
    Ok(if fits { folder } else { Path::new("/tmp").join(name) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that answers one request with what it was sent.
    async fn echo() -> (SocketAddr, JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let served = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut bytes = vec![0; 4096];
            let count = stream.read(&mut bytes).await.unwrap();
            stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
            String::from_utf8(bytes[..count].to_vec()).unwrap()
        });
        (address, served)
    }

    /// Sends text through a proxy with this rule, and reads to the end.
    async fn asked(rule: Rule, text: &str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let proxy = tokio::spawn(pass_on(stream, rule));
        client.write_all(text.as_bytes()).await.unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        drop(client);
        proxy.await.unwrap().unwrap();
        answer
    }

    #[tokio::test]
    async fn plain_requests_and_tunnels_are_passed_on() {
        let (address, served) = echo().await;
        let text = format!("GET http://{address}/a?b HTTP/1.1\r\nHost: {address}\r\n\r\n");
        assert_eq!(asked(|_| true, &text).await, "HTTP/1.1 204 No Content\r\n\r\n");
        assert!(served.await.unwrap().starts_with("GET /a?b HTTP/1.1\r\n"));
        let (address, served) = echo().await;
        let text = format!("CONNECT {address} HTTP/1.1\r\n\r\nhello");
        let answer = asked(|_| true, &text).await;
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("No Content\r\n\r\n"));
        assert_eq!(served.await.unwrap(), "hello");
    }

    #[tokio::test]
    async fn this_machine_is_refused_by_whatever_name() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        for host in ["127.0.0.1", "localhost", "0.0.0.0", "127.1", "2130706433", "0x7f.1", "[::1]"]
        {
            for text in [
                format!("CONNECT {host}:{port} HTTP/1.1\r\n\r\n"),
                format!("GET http://{host}:{port}/ HTTP/1.1\r\n\r\n"),
            ] {
                let answer = asked(may_be_reached, &text).await;
                assert!(!answer.starts_with("HTTP/1.1 2"), "{host}: {answer}");
            }
        }
        assert!(listener.accept().is_err(), "something came through");
    }

    #[tokio::test]
    async fn nothing_is_left_of_a_proxy_that_nobody_used() {
        let egress = Egress::start_with(|_| true).unwrap();
        let folder = egress.0.folder.clone();
        assert!(egress.socket().exists());
        drop(egress);
        assert!(!folder.exists());
    }

    #[test]
    fn a_long_temporary_folder_does_not_make_the_path_of_a_socket_too_long() {
        let place = tempfile::tempdir().unwrap();
        let long = place.path().join("x".repeat(90));
        std::fs::create_dir(&long).unwrap();
        let real = place.path().canonicalize().unwrap();
        assert!(socket_folder(place.path()).unwrap().starts_with(real));
        let folder = socket_folder(&long).unwrap();
        assert!(folder.join("s").as_os_str().len() <= MAX_SOCKET_PATH, "{}", folder.display());
    }
}
