//! What the command shows, as a person would see it.

mod screen;

mod turn;

mod markdown;

mod view;

mod approval;

mod stable;

mod stage;

mod help;

mod run;

mod parts;

mod options;

mod thread;

mod failure;

mod doctor;

#[cfg(target_os = "linux")]
mod interrupt;

#[cfg(target_os = "linux")]
mod pty;

#[cfg(target_os = "linux")]
mod interactive;
