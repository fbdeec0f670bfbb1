//! A screen that understands just the sequences that the view may write, and refuses all others.

/// What stands on a screen after `text` was written to it.
pub(crate) fn seen(text: &str) -> String {
    let mut screen = Screen::default();
    let mut rest = text;
    while let Some(ch) = rest.chars().next() {
        rest = &rest[ch.len_utf8()..];
        match ch {
            '\x1b' => rest = screen.sequence(rest),
            '\n' => screen.down(),
            '\r' => screen.column = 0,
            ch if ch.is_control() => panic!("control character {ch:?} in {text:?}"),
            ch => screen.put(ch),
        }
    }
    let lines: Vec<String> = screen.lines.iter().map(|line| line.iter().collect()).collect();
    lines.join("\n")
}

#[derive(Default)]
struct Screen {
    lines: Vec<Vec<char>>,
    line: usize,
    column: usize,
}

impl Screen {
    fn put(&mut self, ch: char) {
        self.reach();
        let line = &mut self.lines[self.line];
        line.resize(line.len().max(self.column + 1), ' ');
        line[self.column] = ch;
        self.column += 1;
    }

    fn down(&mut self) {
        self.line += 1;
        self.column = 0;
        self.reach();
    }

    fn reach(&mut self) {
        self.lines.resize(self.lines.len().max(self.line + 1), Vec::new());
    }

    fn sequence<'a>(&mut self, rest: &'a str) -> &'a str {
        let rest = rest.strip_prefix('[').expect("only control sequences");
        let end = rest.find(|ch: char| ch.is_ascii_alphabetic()).expect("a whole sequence");
        let number = rest[..end].parse::<usize>();
        match &rest[..=end] {
            "J" => {
                self.reach();
                self.lines.truncate(self.line + 1);
                self.lines[self.line].truncate(self.column);
            }
            "?7l" | "?7h" => {}
            up if up.ends_with('A') => {
                self.line =
                    self.line.checked_sub(number.expect("a number")).expect("stays on the screen");
            }
            paint if paint.ends_with('m') => {}
            other => panic!("sequence {other:?}"),
        }
        &rest[end + 1..]
    }
}
