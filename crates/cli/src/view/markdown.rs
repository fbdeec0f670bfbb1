//! Markdown as it arrives, drawn as rows.
//!
//! Characters are taken one by one, so it does not matter how the text was cut into pieces. A
//! row is given out as soon as no later text can change it; until then it is part of
//! [`Markdown::live`].

mod line;

mod inline;

mod table;

use super::clean;
use super::row::{Paint, Row};
use super::theme::Theme;
use super::wrap::{Wrapped, wrap};
use inline::{Reading, inline};
use line::{Context, Line, Start};

/// A text that is being drawn.
#[derive(Debug)]
pub struct Markdown {
    theme: Theme,
    /// In force from the next block on.
    next_theme: Theme,
    /// Paint says what marks would.
    colour: bool,
    rows: Vec<Row>,
    block: Block,
    /// What has come of a line whose kind is not known yet.
    line: String,
    /// The rest of the line goes to the open block as it comes.
    inside: bool,
    /// A carriage return came; it is dropped if a line end follows.
    returned: bool,
    /// A blank line came since the last block.
    gap: bool,
    in_list: bool,
    drawn: bool,
}

#[derive(Debug)]
enum Block {
    None,
    Text(Paragraph),
    Fence { mark: char, length: usize, indent: usize },
    Table { lines: Vec<String> },
}

#[derive(Debug)]
struct Paragraph {
    start: Start,
    first: Row,
    rest: Row,
    paint: Paint,
    text: String,
    /// Rows given out.
    settled: usize,
    /// Length of the text when it was last looked at.
    seen: usize,
}

impl Markdown {
    /// A text of which nothing has come yet.
    pub fn new(theme: Theme, colour: bool) -> Self {
        Self {
            theme,
            next_theme: theme,
            colour,
            rows: Vec::new(),
            block: Block::None,
            line: String::new(),
            inside: false,
            returned: false,
            gap: false,
            in_list: false,
            drawn: false,
        }
    }

    /// Takes more text and gives out the rows that are now settled.
    pub fn push(&mut self, text: &str) -> Vec<Row> {
        text.chars().for_each(|ch| self.take(ch));
        self.settle();
        std::mem::take(&mut self.rows)
    }

    /// Gives out everything that is left; the next text begins anew.
    pub fn end(&mut self) -> Vec<Row> {
        if self.inside || !self.line.is_empty() {
            self.end_line();
        }
        self.close();
        let rows = std::mem::take(&mut self.rows);
        *self = Self::new(self.next_theme, self.colour);
        rows
    }

    /// Lays out what comes from now on with another theme.
    ///
    /// A paragraph of which rows were given out stays as it is: laid out anew, its words would be
    /// in other rows, and some would be shown twice or not at all.
    pub fn resize(&mut self, theme: Theme) {
        self.next_theme = theme;
        if !matches!(&self.block, Block::Text(paragraph) if paragraph.settled > 0) {
            self.theme = theme;
        }
    }

    /// The rows that may still change.
    pub fn live(&self) -> Vec<Row> {
        let partial = |indent: usize| {
            let row = Row::of(Paint::PLAIN, &" ".repeat(indent)).text(Paint::PLAIN, &self.line);
            (!self.line.is_empty()).then(|| self.theme.fit(row))
        };
        match &self.block {
            Block::Text(paragraph) => {
                let rows = self.wrapped(paragraph, false).into_iter().skip(paragraph.settled);
                rows.map(|wrapped| wrapped.row).chain(partial(0)).collect()
            }
            Block::Fence { indent, .. } => partial(indent + CODE_INDENT).into_iter().collect(),
            Block::Table { lines } => {
                let rows = table::rows(lines, self.theme, self.colour);
                let raw = || lines.iter().map(|line| Row::of(Paint::PLAIN, line)).collect();
                rows.unwrap_or_else(raw).into_iter().chain(partial(0)).collect()
            }
            Block::None => partial(0).into_iter().collect(),
        }
    }

    fn take(&mut self, ch: char) {
        let returned = std::mem::take(&mut self.returned);
        match ch {
            '\n' => self.end_line(),
            '\r' => {
                if returned {
                    self.keep('\r');
                }
                self.returned = true;
            }
            ch => {
                if returned {
                    self.keep('\r');
                }
                self.keep(ch);
            }
        }
    }

    fn keep(&mut self, ch: char) {
        if let (true, Block::Text(paragraph)) = (self.inside, &mut self.block) {
            return clean::push_visible(&mut paragraph.text, ch);
        }
        clean::push_visible(&mut self.line, ch);
        if matches!(self.block, Block::Fence { .. }) {
            return;
        }
        if let Line::Text(start) = line::read(&self.line, self.context(false)) {
            let line = std::mem::take(&mut self.line);
            self.begin(start, &line);
        }
    }

    fn context(&self, complete: bool) -> Context {
        let text = match &self.block {
            Block::Text(paragraph) => Some(paragraph),
            _ => None,
        };
        let in_paragraph = text.is_some_and(|text| text.start.marker.is_none()) && !self.in_list;
        Context { in_paragraph, in_list: self.in_list, complete }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.inside) {
            return self.end_text_line();
        }
        if let Block::Fence { mark, length, indent } = self.block {
            return self.code_line(&line, mark, length, indent);
        }
        match line::read(&line, self.context(true)) {
            Line::Blank | Line::Undecided => {
                self.close();
                self.gap = true;
            }
            Line::Text(start) => {
                self.begin(start, &line);
                self.inside = false;
                self.end_text_line();
            }
            Line::Fence { mark, length, indent, info } => {
                self.open();
                if !info.is_empty() {
                    self.emit(
                        Row::of(Paint::DIM, &" ".repeat(indent + CODE_INDENT))
                            .text(Paint::DIM, info),
                    );
                }
                self.block = Block::Fence { mark, length, indent };
            }
            Line::Cells => match &mut self.block {
                Block::Table { lines } => lines.push(line),
                _ => {
                    self.open();
                    self.block = Block::Table { lines: vec![line] };
                }
            },
            Line::Rule => {
                self.open();
                self.in_list = false;
                self.emit(Row::of(
                    Paint::DIM,
                    &self.theme.glyphs.rule.repeat(self.theme.cols.min(40)),
                ));
            }
            Line::Code => {
                self.open();
                self.emit(Row::of(Paint::CYAN, &line));
            }
        }
    }

    fn end_text_line(&mut self) {
        let Block::Text(paragraph) = &mut self.block else { return };
        let text = &mut paragraph.text;
        let broken = text.ends_with("  ") || text.ends_with('\\');
        if broken {
            let kept = text.strip_suffix('\\').unwrap_or(text.trim_end_matches(' ')).len();
            text.truncate(kept);
        }
        text.push(if broken { '\n' } else { ' ' });
        if paragraph.start.heading.is_some() {
            self.close();
        }
    }

    /// A line of text begins: it goes on with the open paragraph or opens another.
    fn begin(&mut self, start: Start, line: &str) {
        let text = &line[start.used..];
        self.inside = true;
        if let Block::Text(open) = &mut self.block {
            let same = start.marker.is_none() && start.heading.is_none();
            if same && open.start.quote == start.quote {
                return open.text.push_str(text);
            }
        }
        self.gap |= start.heading.is_some();
        self.open();
        self.in_list = match &start {
            Start { marker: Some(_), .. } => true,
            start => self.in_list && start.indent >= 2 && start.heading.is_none(),
        };
        let paragraph = self.paragraph(start, text);
        self.block = Block::Text(paragraph);
    }

    fn paragraph(&self, start: Start, text: &str) -> Paragraph {
        let indent = if self.in_list { start.indent.min(MAX_INDENT) } else { 0 };
        let quote = format!("{} ", self.theme.glyphs.bar).repeat(start.quote.min(4));
        let lead = Row::of(Paint::DIM, &quote).text(Paint::PLAIN, &" ".repeat(indent));
        let paint = Paint {
            bold: start.heading.is_some(),
            underline: start.heading == Some(1),
            dim: start.quote > 0,
            ..Paint::PLAIN
        };
        let mark = match (&start.marker, start.heading) {
            (Some(marker), _) if marker.len() > 1 => format!("{marker} "),
            (Some(_), _) => format!("{} ", self.theme.glyphs.bullet),
            (None, Some(level)) if !self.colour => format!("{} ", "#".repeat(level)),
            _ => String::new(),
        };
        let hang = " ".repeat(Row::of(Paint::PLAIN, &mark).width());
        Paragraph {
            first: lead.clone().text(paint, &mark),
            rest: lead.text(Paint::PLAIN, &hang),
            start,
            paint,
            text: text.to_owned(),
            settled: 0,
            seen: 0,
        }
    }

    fn code_line(&mut self, line: &str, mark: char, length: usize, indent: usize) {
        let text = line.trim();
        if text.len() >= length && text.chars().all(|ch| ch == mark) {
            self.block = Block::None;
            return;
        }
        let spaces = line.len() - line.trim_start_matches(' ').len();
        let lead = " ".repeat(indent + CODE_INDENT);
        self.emit(Row::of(Paint::CYAN, &lead).text(Paint::CYAN, &line[spaces.min(indent)..]));
    }

    /// Closes the open block and leaves the gap that stands before the next.
    fn open(&mut self) {
        self.close();
        if std::mem::take(&mut self.gap) && self.drawn {
            self.rows.push(Row::new());
        }
    }

    fn close(&mut self) {
        match std::mem::replace(&mut self.block, Block::None) {
            Block::Text(paragraph) => {
                let rows = self.wrapped(&paragraph, true).into_iter().skip(paragraph.settled);
                rows.for_each(|wrapped| self.emit(wrapped.row));
            }
            Block::Table { lines } => self.close_table(&lines),
            Block::None | Block::Fence { .. } => {}
        }
        self.theme = self.next_theme;
    }

    fn close_table(&mut self, lines: &[String]) {
        let rows = table::rows(lines, self.theme, self.colour).unwrap_or_else(|| {
            let paragraph = self.paragraph(Start::default(), &lines.join("\n"));
            self.wrapped(&paragraph, true).into_iter().map(|wrapped| wrapped.row).collect()
        });
        rows.into_iter().for_each(|row| self.emit(row));
    }

    fn emit(&mut self, row: Row) {
        self.drawn = true;
        self.rows.push(row);
    }

    fn wrapped(&self, paragraph: &Paragraph, ended: bool) -> Vec<Wrapped> {
        let inked = inline(&paragraph.text, self.reading(paragraph, ended));
        let rows = wrap(&inked.ink, &paragraph.first, &paragraph.rest, self.theme.cols);
        if rows.is_empty() && ended {
            let bare = Wrapped { row: paragraph.first.clone(), first_end: 0 };
            return Vec::from_iter((!paragraph.first.is_blank()).then_some(bare));
        }
        rows
    }

    fn reading(&self, paragraph: &Paragraph, ended: bool) -> Reading {
        Reading { base: paragraph.paint, marks_hidden: self.colour, ended }
    }

    /// Gives out the rows of the open paragraph that no later text can change.
    fn settle(&mut self) {
        let Block::Text(paragraph) = &self.block else { return };
        // A long paragraph is not laid out anew for every few letters.
        if paragraph.text.len() - paragraph.seen.min(paragraph.text.len())
            <= paragraph.text.len() / 256
        {
            return;
        }
        let stable = inline(&paragraph.text, self.reading(paragraph, false)).stable;
        let rows = self.wrapped(paragraph, false);
        // A row is settled when the word that did not fit into it is.
        let settled = rows.iter().skip(1).take_while(|next| next.first_end <= stable).count();
        let ready: Vec<Row> =
            rows.into_iter().take(settled).skip(paragraph.settled).map(|row| row.row).collect();
        if let Block::Text(paragraph) = &mut self.block {
            paragraph.seen = paragraph.text.len();
            paragraph.settled = paragraph.settled.max(settled);
        }
        ready.into_iter().for_each(|row| self.emit(row));
    }
}

/// Code stands this far in.
const CODE_INDENT: usize = 4;

/// Lists are nested no further to the right than this.
const MAX_INDENT: usize = 16;
