//! A real Codex that listens: an app-server that others connect to.

use std::io::{BufRead, BufReader};
#[cfg(unix)]
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::time::Duration;
#[cfg(unix)]
use std::time::Instant;

use crate::codex::RealCodex;

/// How long it may take to listen: long, because machines that test are busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running app-server on a WebSocket or a unix socket. Dropping it kills it.
#[derive(Debug)]
pub struct Listening {
    child: Child,
    address: String,
}

impl Listening {
    /// Listens on a free loopback port, with these further arguments.
    ///
    /// # Panics
    /// If it does not start.
    pub fn ws(codex: &RealCodex, args: &[&str]) -> Self {
        let mut child = spawn(codex, "ws://127.0.0.1:0", args);
        let stderr = BufReader::new(child.stderr.take().expect("it was piped"));
        let (sender, lines) = mpsc::channel();
        // Reads on to the end, or the server would be stopped by a full pipe.
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                if let Some((_, address)) = line.split_once("listening on: ") {
                    let _ = sender.send(address.trim().to_owned());
                }
            }
        });
        let address = lines.recv_timeout(PATIENCE).expect("Codex says where it listens");
        Self { child, address }
    }

    /// Listens on a unix socket in the folders of this Codex; a socket left there is taken over.
    ///
    /// # Panics
    /// If it does not start.
    #[cfg(unix)]
    pub fn unix(codex: &RealCodex) -> Self {
        let path = codex.user_home().join("app.sock");
        let _ = std::fs::remove_file(&path);
        let address = format!("unix://{}", path.display());
        Self::on_socket(codex, &address, &path)
    }

    /// Listens where Codex's daemon does, in the home of this Codex.
    ///
    /// # Panics
    /// If it does not start.
    #[cfg(unix)]
    pub fn control(codex: &RealCodex) -> Self {
        let path = codex.home().join("app-server-control/app-server-control.sock");
        Self::on_socket(codex, "unix://", &path)
    }

    #[cfg(unix)]
    fn on_socket(codex: &RealCodex, address: &str, path: &Path) -> Self {
        let mut child = spawn(codex, address, &[]);
        let stderr = BufReader::new(child.stderr.take().expect("it was piped"));
        std::thread::spawn(move || stderr.lines().map_while(Result::ok).for_each(drop));
        let begin = Instant::now();
        // It says nothing when it is ready.
        while std::os::unix::net::UnixStream::connect(path).is_err() {
            assert!(begin.elapsed() < PATIENCE, "Codex does not listen on {}", path.display());
            std::thread::sleep(Duration::from_millis(10));
        }
        Self { child, address: address.to_owned() }
    }

    /// Where it listens, as Codex writes addresses.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The id of the process.
    pub fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// Ends it without warning.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Whether it still runs.
    pub fn runs(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.kill();
    }
}

fn spawn(codex: &RealCodex, address: &str, args: &[&str]) -> Child {
    let mut command = codex.command(&["app-server", "--listen", address]);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().expect("Codex starts")
}
