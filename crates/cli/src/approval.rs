//! Approvals: a question to the person at the terminal, and the keys that answer it.
//!
//! [`ask_text`] and [`key`] are pure; [`ask`] puts them on the terminal. What is shown is what is
//! asked, whole and with nothing hidden in it; Enter alone is no answer, and neither is anything
//! that was typed before the question could be read.

mod more;

mod text;

mod keys;

mod questions;

mod entry;

mod prompt;

pub use keys::{Choice, KeyAction, choices, key};
pub use prompt::{Outcome, ask};
pub use text::{Asker, ask_text, more_text};
