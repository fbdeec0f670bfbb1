//! Quiet: what is typed while a turn runs is not shown, so that it does not disturb the line that
//! moves.

/// The terminal without echo, until this is dropped.
///
/// Not raw mode: Ctrl-C still signals, Ctrl-Z still suspends, and what was typed is still there
/// for whoever reads it next.
#[derive(Debug)]
pub struct Quiet {
    #[cfg(unix)]
    before: rustix::termios::Termios,
}

#[cfg(unix)]
impl Quiet {
    /// Turns the echo off; none where stdin is no terminal, or one that others are using.
    pub fn enter() -> Option<Self> {
        use rustix::termios::{LocalModes, tcgetattr};
        let before = tcgetattr(std::io::stdin()).ok().filter(|_| is_ours())?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO);
        set(&quiet);
        Some(Self { before })
    }
}

#[cfg(unix)]
impl Drop for Quiet {
    fn drop(&mut self) {
        if is_ours() {
            set(&self.before);
        }
    }
}

#[cfg(not(unix))]
impl Quiet {
    /// Elsewhere the echo stays: turning it off would take line editing from the next program.
    pub fn enter() -> Option<Self> {
        None
    }
}

/// A job in the background that touches the terminal would be stopped by the system.
#[cfg(unix)]
fn is_ours() -> bool {
    let reading = rustix::termios::tcgetpgrp(std::io::stdin());
    reading.is_ok_and(|group| group == rustix::process::getpgrp())
}

#[cfg(unix)]
fn set(modes: &rustix::termios::Termios) {
    use rustix::termios::{OptionalActions, tcsetattr};
    // Nothing can be done about a terminal that is gone.
    let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, modes);
}
