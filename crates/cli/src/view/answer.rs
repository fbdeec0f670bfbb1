//! The answer: runs of Markdown, drawn on a screen or passed through to a pipe.

use bindery::core::ids::PartId;
use bindery::core::spec::{Metadata, codex_of};
use serde_json::Value;

use super::markdown::Markdown;
use super::output::{Kind, Page};
use super::row::{Paint, Row};
use super::theme::Theme;

/// The runs of text that are open.
///
/// The first is drawn as it comes; others, should there be any, wait until it has ended. A pipe
/// gets a run when it has ended, not before: what was withdrawn by a retry cannot be taken back.
#[derive(Debug)]
pub(crate) struct Answer {
    drawn: Option<Markdown>,
    runs: Vec<Run>,
    last: String,
}

#[derive(Debug)]
struct Run {
    id: PartId,
    text: String,
    /// Bytes that have been drawn.
    drawn: usize,
    ended: Option<Fate>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Whole,
    Withdrawn,
    CutOff,
}

impl Answer {
    /// An answer that is drawn on a screen, in colour or not, or passed through.
    pub(crate) fn new(theme: Theme, screen: Option<bool>) -> Self {
        let drawn = screen.map(|colour| Markdown::new(theme, colour));
        Self { drawn, runs: Vec::new(), last: String::new() }
    }

    /// Lays out what comes from now on with another theme.
    pub(crate) fn resize(&mut self, theme: Theme) {
        if let Some(markdown) = &mut self.drawn {
            markdown.resize(theme);
        }
    }

    pub(crate) fn start(&mut self, id: &PartId) {
        if self.runs.iter().all(|run| run.id != *id) {
            let run = Run { id: id.clone(), text: String::new(), drawn: 0, ended: None };
            self.runs.push(run);
        }
    }

    pub(crate) fn delta(&mut self, id: &PartId, delta: &str, page: &mut Page) {
        self.start(id);
        if let Some(run) = self.runs.iter_mut().find(|run| run.id == *id) {
            run.text.push_str(delta);
        }
        self.advance(page);
    }

    pub(crate) fn end(&mut self, id: &PartId, metadata: Option<&Metadata>, page: &mut Page) {
        let said = |key: &str| {
            codex_of(metadata).and_then(|codex| codex.get(key)) == Some(&Value::Bool(true))
        };
        let fate = match (said("discarded"), said("incomplete")) {
            (true, _) => Fate::Withdrawn,
            (_, true) => Fate::CutOff,
            _ => Fate::Whole,
        };
        if let Some(run) = self.runs.iter_mut().find(|run| run.id == *id) {
            run.ended = Some(fate);
        }
        self.advance(page);
    }

    /// Ends every run, when no more can come.
    pub(crate) fn close(&mut self, page: &mut Page) {
        self.runs.iter_mut().for_each(|run| run.ended = run.ended.or(Some(Fate::Whole)));
        self.advance(page);
    }

    /// Rows that may still change; none if no text is on its way.
    pub(crate) fn live(&self) -> Vec<Row> {
        match (&self.drawn, self.runs.first()) {
            (Some(markdown), Some(_)) => markdown.live(),
            _ => Vec::new(),
        }
    }

    /// Text is on its way and can be seen growing.
    pub(crate) fn is_growing(&self) -> bool {
        self.drawn.is_some() && self.runs.first().is_some_and(|run| !run.text.is_empty())
    }

    /// This text was the last that was said.
    pub(crate) fn was(&self, text: &str) -> bool {
        self.last.trim() == text.trim()
    }

    fn advance(&mut self, page: &mut Page) {
        while let Some(run) = self.runs.first_mut() {
            if let Some(markdown) = &mut self.drawn {
                let rows = markdown.push(&run.text[run.drawn..]);
                run.drawn = run.text.len();
                page.print(Kind::Answer, &rows);
            }
            let Some(fate) = run.ended else { return };
            let run = self.runs.remove(0);
            self.finish(run, fate, page);
        }
    }

    fn finish(&mut self, run: Run, fate: Fate, page: &mut Page) {
        match &mut self.drawn {
            Some(markdown) => page.print(Kind::Answer, &markdown.end()),
            None if fate != Fate::Withdrawn => page.pass(&run.text),
            None => {}
        }
        match fate {
            Fate::Withdrawn if !run.text.is_empty() => {
                let what = if self.drawn.is_some() { "the text above" } else { "a text" };
                note(page, &format!("({what} was withdrawn: the answer begins again)"));
            }
            Fate::CutOff => note(page, "(the answer was cut off here)"),
            _ => {}
        }
        // Two messages are two paragraphs, also when nothing came between them.
        page.break_answer();
        if fate != Fate::Withdrawn {
            self.last = run.text;
        }
    }
}

fn note(page: &mut Page, text: &str) {
    page.print(Kind::Activity, &[Row::of(Paint::DIM, text)]);
}
