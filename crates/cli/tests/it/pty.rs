//! A terminal with nobody before it: what is shown on it can be read, and keys can be pressed.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::stage::HANG;

/// A command on a terminal of its own, and everything it has written there.
pub(crate) struct Pty {
    child: Child,
    keys: File,
    screen: File,
    chunks: Receiver<Vec<u8>>,
    text: String,
}

impl Pty {
    /// Starts a command on a terminal of so many columns.
    pub(crate) fn start(command: &Command, columns: u16) -> Self {
        let keys = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&keys).unwrap();
        unlockpt(&keys).unwrap();
        let name = ptsname(&keys, Vec::new()).unwrap();
        let screen = open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        let (keys, screen) = (File::from(keys), File::from(screen));
        resize(&screen, columns);
        let end = || Stdio::from(screen.try_clone().unwrap());
        let child = controlling(command).stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        let chunks = read(keys.try_clone().unwrap());
        Self { child, keys, screen, chunks, text: String::new() }
    }

    /// Its process.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Types.
    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Makes the window another width.
    pub(crate) fn resize(&self, columns: u16) {
        resize(&self.screen, columns);
    }

    /// Whether the terminal shows what is typed.
    pub(crate) fn echoes(&self) -> bool {
        tcgetattr(&self.screen).unwrap().local_modes.contains(LocalModes::ECHO)
    }

    /// Waits until this was written since the last time, and gives everything up to it.
    pub(crate) fn wait_for(&mut self, wanted: &str) -> String {
        let began = Instant::now();
        loop {
            if let Some(at) = self.text.find(wanted) {
                let rest = self.text.split_off(at + wanted.len());
                return std::mem::replace(&mut self.text, rest);
            }
            let left = HANG.saturating_sub(began.elapsed());
            assert!(!left.is_zero(), "{wanted:?} is not shown, but {:?}", self.text);
            self.take(left);
        }
    }

    /// What is written within a short while.
    pub(crate) fn soon(&mut self) -> String {
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(400) {
            self.take(Duration::from_millis(50));
        }
        std::mem::take(&mut self.text)
    }

    /// Waits for the end; gives what was still written and the exit code.
    pub(crate) fn finish(&mut self) -> (String, Option<i32>) {
        let began = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if began.elapsed() > HANG {
                self.child.kill().unwrap();
                panic!("it does not end; it wrote {:?}", self.text);
            }
            self.take(Duration::from_millis(20));
        };
        // What the terminal still holds is there to be read; the end of it is not told, because
        // this process holds the other side open as well.
        while !matches!(self.take(Duration::from_millis(200)), Taken::Nothing | Taken::End) {}
        (std::mem::take(&mut self.text), status.code())
    }

    fn take(&mut self, patience: Duration) -> Taken {
        match self.chunks.recv_timeout(patience) {
            Ok(bytes) => {
                // A letter is cut only where more than a buffer is written at once.
                self.text.push_str(&String::from_utf8_lossy(&bytes));
                Taken::Text
            }
            Err(RecvTimeoutError::Timeout) => Taken::Nothing,
            Err(RecvTimeoutError::Disconnected) => Taken::End,
        }
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        // It may have ended long ago.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

enum Taken {
    Text,
    Nothing,
    End,
}

fn resize(screen: &File, columns: u16) {
    let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(screen, size).unwrap();
}

/// The same command in a session whose terminal is its stdin, so that Ctrl-C reaches it.
///
/// By the program `setsid`, because a library could do it only between fork and exec.
fn controlling(command: &Command) -> Command {
    let mut setsid = Command::new("setsid");
    setsid.arg("--ctty").arg(command.get_program()).args(command.get_args());
    setsid.env_clear();
    for (name, value) in command.get_envs() {
        setsid.envs(value.map(|value| (name, value)));
    }
    setsid
        .env("TERM", "xterm")
        .env("NO_COLOR", "1")
        .current_dir(command.get_current_dir().unwrap());
    setsid
}

fn read(mut from: File) -> Receiver<Vec<u8>> {
    let (sender, chunks) = channel();
    // It ends with the terminal, or when nobody takes what it reads.
    std::thread::spawn(move || {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            if sender.send(buffer[..length].to_vec()).is_err() {
                break;
            }
        }
    });
    chunks
}
