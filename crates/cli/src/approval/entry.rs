//! Entry: one line typed at a question.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_width::UnicodeWidthChar;

use crate::view::clean;

/// A line that is being typed.
#[derive(Debug, Default)]
pub(crate) struct Entry {
    text: String,
    secret: bool,
}

/// What a key did to the line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    /// It changed: this is to be written to the terminal.
    Echo(String),
    /// It is complete.
    Line(String),
    /// Ctrl-C.
    Stop,
    /// Nothing.
    Nothing,
}

/// Longer answers are not typed.
const LIMIT: usize = 4096;

impl Entry {
    /// An empty line; a secret one is not shown.
    pub(crate) fn new(secret: bool) -> Self {
        Self { text: String::new(), secret }
    }

    /// Takes a key.
    pub(crate) fn key(&mut self, key: KeyEvent) -> Typed {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c' | 'd') if control => Typed::Stop,
            KeyCode::Char('u') if control => {
                let text = std::mem::take(&mut self.text);
                Typed::Echo(text.chars().rev().map(|ch| self.rub_out(ch)).collect())
            }
            KeyCode::Enter => Typed::Line(std::mem::take(&mut self.text)),
            KeyCode::Backspace => {
                let gone = self.text.pop();
                gone.map_or(Typed::Nothing, |ch| Typed::Echo(self.rub_out(ch)))
            }
            KeyCode::Char(ch) if !control && !ch.is_control() && self.text.len() < LIMIT => {
                self.text.push(ch);
                Typed::Echo(self.shown(ch))
            }
            _ => Typed::Nothing,
        }
    }

    fn shown(&self, ch: char) -> String {
        if self.secret {
            "*".to_owned()
        } else {
            clean::visible(ch.encode_utf8(&mut [0; 4])).into_owned()
        }
    }

    fn rub_out(&self, ch: char) -> String {
        let width: usize = self.shown(ch).chars().filter_map(UnicodeWidthChar::width).sum();
        "\x08 \x08".repeat(width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(entry: &mut Entry, code: KeyCode) -> Typed {
        entry.key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    #[test]
    fn a_line_is_typed_corrected_and_entered() {
        let mut entry = Entry::new(false);
        assert_eq!(press(&mut entry, KeyCode::Char('日')), Typed::Echo("日".to_owned()));
        assert_eq!(press(&mut entry, KeyCode::Backspace), Typed::Echo("\x08 \x08".repeat(2)));
        assert_eq!(press(&mut entry, KeyCode::Backspace), Typed::Nothing);
        press(&mut entry, KeyCode::Char('o'));
        press(&mut entry, KeyCode::Char('k'));
        assert_eq!(press(&mut entry, KeyCode::Enter), Typed::Line("ok".to_owned()));
    }

    #[test]
    fn secrets_are_not_shown_and_ctrl_c_stops() {
        let mut entry = Entry::new(true);
        assert_eq!(press(&mut entry, KeyCode::Char('x')), Typed::Echo("*".to_owned()));
        let ctrl_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(entry.key(ctrl_c), Typed::Stop);
    }
}
