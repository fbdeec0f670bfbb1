//! A server that is a process of ours, and all that it starts.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::Signal;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::exec::{Family, lead_session};

/// How long a server may take to end by itself, and then when it is asked to.
const PATIENCE: Duration = Duration::from_secs(1);

/// Bytes of its complaints that are kept, the last ones.
const KEPT: usize = 4096;

/// A running server. Dropped, it is ended with everything it started.
pub(super) struct ServerProcess {
    child: Child,
    family: Family,
    complaints: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

/// Where one speaks with it.
pub(super) type Pipes = (ChildStdout, ChildStdin);

impl ServerProcess {
    pub(super) fn start(
        command: &str,
        args: &[String],
        env: &BTreeMap<String, String>,
        cwd: &Path,
    ) -> io::Result<(Self, Pipes)> {
        let os = |text: &String| OsString::from(text);
        let mut env = env.iter().map(|(key, value)| (os(key), os(value))).collect();
        let mut family = Family::marked(&mut env, false);
        let mut prepared = Command::new(command);
        prepared
            .args(args)
            .env_clear()
            .envs(&env)
            .current_dir(cwd)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        lead_session(&mut prepared);
        let mut child = prepared.spawn()?;
        family.led_by(child.id());
        let lost = || io::Error::other("the server has no pipes");
        let stdout = child.stdout.take().ok_or_else(lost)?;
        let stdin = child.stdin.take().ok_or_else(lost)?;
        let stderr = child.stderr.take().ok_or_else(lost)?;
        let complaints = Arc::default();
        let reader = tokio::spawn(read(stderr, Arc::clone(&complaints)));
        Ok((Self { child, family, complaints, reader }, (stdout, stdin)))
    }

    /// What it said last beside the protocol.
    pub(super) fn complaints(&self) -> String {
        let said = self.complaints.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&said).trim().to_owned()
    }

    /// Ends it: its pipes are closed already, which is the sign to go.
    pub(super) async fn end(mut self) {
        if timeout(PATIENCE, self.child.wait()).await.is_err() {
            self.family.signal(Signal::TERM);
            if timeout(PATIENCE, self.child.wait()).await.is_err() {
                self.family.signal(Signal::KILL);
                // Nothing outlives this signal for long.
                let _ = timeout(PATIENCE, self.child.wait()).await;
            }
        }
        self.family.signal_rest(Signal::KILL);
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.reader.abort();
        // One that was waited for has a number that may be another's by now.
        if self.child.id().is_some() {
            self.family.signal(Signal::KILL);
        }
    }
}

async fn read(mut stderr: ChildStderr, complaints: Arc<Mutex<Vec<u8>>>) {
    let mut buffer = [0; 1024];
    while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
        let mut kept = complaints.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(&buffer[..count]);
        let surplus = kept.len().saturating_sub(KEPT);
        kept.drain(..surplus);
    }
}
