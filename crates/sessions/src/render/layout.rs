//! Layout: what a front brings to draw turns on a screen of its own.

use crate::clock;

/// How text is broken into rows, and how a time is written.
///
/// The front that knows the screen implements it; [`PlainLayout`] is for files and pipes.
pub trait TextLayout {
    /// A text as it is (a prompt, an output, a notice), in rows of at most `columns`.
    fn rows(&self, text: &str, columns: usize) -> Vec<String>;

    /// An answer in Markdown, drawn.
    fn markdown(&self, text: &str) -> Vec<String>;

    /// A time in milliseconds since 1970.
    fn time(&self, millis: i64) -> String;
}

/// Every line as it is, times in UTC: the same wherever it is written.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlainLayout;

impl TextLayout for PlainLayout {
    fn rows(&self, text: &str, _columns: usize) -> Vec<String> {
        text.split('\n').map(str::to_owned).collect()
    }

    fn markdown(&self, text: &str) -> Vec<String> {
        self.rows(text, usize::MAX)
    }

    fn time(&self, millis: i64) -> String {
        clock::rfc3339(millis).replace('T', " ")
    }
}
