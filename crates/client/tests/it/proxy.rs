//! A wire that can be cut: stands between our client and a server that listens.

use std::sync::{Arc, Mutex};

use bindery_client::transport::address::Address;
use bindery_client::transport::dial::Dial;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use crate::server::LONG;

/// Carries bytes from a loopback port to a server, until it is told not to.
pub(crate) struct Proxy {
    port: u16,
    state: Arc<State>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct State {
    wires: Mutex<JoinSet<()>>,
    /// How many were let through.
    count: watch::Sender<usize>,
    barred: watch::Sender<bool>,
}

impl Proxy {
    /// Stands before the server at this address.
    pub(crate) async fn before(address: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State::default());
        let target = address.parse().unwrap();
        Self { port, state: state.clone(), task: tokio::spawn(serve(listener, target, state)) }
    }

    /// How to reach the server through it.
    pub(crate) fn dial(&self) -> Dial {
        Dial::new(format!("ws://127.0.0.1:{}", self.port).parse().unwrap())
    }

    /// Cuts every wire there is; new ones may come.
    pub(crate) fn cut(&self) {
        self.state.wires.lock().unwrap().abort_all();
    }

    /// Cuts, and lets nobody through until [`Self::open`].
    pub(crate) fn bar(&self) {
        self.state.barred.send_replace(true);
        self.cut();
    }

    /// Lets connections through again.
    pub(crate) fn open(&self) {
        self.state.barred.send_replace(false);
    }

    /// Waits until so many connections were let through in all.
    pub(crate) async fn wait_for(&self, count: usize) {
        let mut watch = self.state.count.subscribe();
        let enough = watch.wait_for(|now| *now >= count);
        timeout(LONG, enough).await.expect("nobody comes back").unwrap();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, target: Address, state: Arc<State>) {
    loop {
        let (near, _) = listener.accept().await.unwrap();
        if *state.barred.borrow() {
            continue;
        }
        state.wires.lock().unwrap().spawn(carry(near, target.clone()));
        state.count.send_modify(|count| *count += 1);
    }
}

async fn carry(mut near: TcpStream, target: Address) {
    let _ = match target {
        Address::WebSocket(url) => {
            let Ok(mut far) = TcpStream::connect((url.host, url.port)).await else { return };
            copy_bidirectional(&mut near, &mut far).await
        }
        #[cfg(unix)]
        Address::Unix(Some(path)) => {
            let Ok(mut far) = tokio::net::UnixStream::connect(path).await else { return };
            copy_bidirectional(&mut near, &mut far).await
        }
        other => panic!("cannot stand before {other}"),
    };
}
