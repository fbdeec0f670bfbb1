//! Text to hunks. The texts of the errors are what models were trained to mend.

/// A patch as it was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Patch {
    /// The environment it asks for; meaningful only where there are several.
    pub environment: Option<String>,
    /// What it does, in order.
    pub hunks: Vec<Hunk>,
}

/// What a patch does to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hunk {
    /// Writes a file, whether there was one or not.
    Add {
        /// As the patch names it.
        path: String,
        /// All of it.
        content: String,
    },
    /// Removes a file.
    Delete {
        /// As the patch names it.
        path: String,
    },
    /// Changes a file, and perhaps moves it.
    Update {
        /// As the patch names it.
        path: String,
        /// Its new place.
        to: Option<String>,
        /// The changes, from top to bottom.
        chunks: Vec<Chunk>,
    },
}

/// One change within a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// A line to be found first, above the change.
    pub context: Option<String>,
    /// Old and new lines, in order.
    pub lines: Vec<Line>,
    /// The old lines are the last of the file.
    pub at_end: bool,
}

/// A line of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// Stays as the file has it.
    Keep(String),
    /// Goes.
    Remove(String),
    /// Comes.
    Insert(String),
}

/// Why a text is no patch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misread {
    /// The frame is wrong.
    #[error("invalid patch: {0}")]
    Frame(&'static str),
    /// A line within it is.
    #[error("invalid hunk at line {line}, {text}")]
    Hunk {
        /// Counted from one at `*** Begin Patch`.
        line: usize,
        /// What is wrong with it.
        text: String,
    },
}

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const END_OF_FILE: &str = "*** End of File";
const ENVIRONMENT: &str = "*** Environment ID:";
const NO_BEGIN: Misread = Misread::Frame("The first line of the patch must be '*** Begin Patch'");
const NO_END: Misread = Misread::Frame("The last line of the patch must be '*** End Patch'");

/// Reads a patch, also one in the wrapping of a here-document.
pub fn parse(text: &str) -> Result<Patch, Misread> {
    let lines: Vec<&str> =
        text.trim().split('\n').map(|line| line.trim_end_matches('\r')).collect();
    match framed(&lines) {
        Ok(()) => Reader::new(&lines).patch(),
        Err(misread) => {
            let inner = unwrapped(&lines).ok_or(misread)?;
            framed(inner)?;
            Reader::new(inner).patch()
        }
    }
}

fn framed(lines: &[&str]) -> Result<(), Misread> {
    let (first, last) = (lines.first().unwrap_or(&""), lines.last().unwrap_or(&""));
    if first.trim() != BEGIN && lines != [""] {
        return Err(NO_BEGIN);
    }
    if last.trim() == END { Ok(()) } else { Err(NO_END) }
}

/// What stands between `<<'EOF'` and `EOF`, for models that write a shell's words into the tool.
fn unwrapped<'a, 'b>(lines: &'b [&'a str]) -> Option<&'b [&'a str]> {
    let [first, inner @ .., last] = lines else { return None };
    let opens = matches!(*first, "<<EOF" | "<<'EOF'" | "<<\"EOF\"");
    (opens && last.ends_with("EOF") && inner.len() >= 2).then_some(inner)
}

struct Reader<'a> {
    lines: &'a [&'a str],
    /// The next line.
    at: usize,
}

enum Header<'a> {
    Add(&'a str),
    Delete(&'a str),
    Update(&'a str),
}

impl<'a> Reader<'a> {
    fn new(lines: &'a [&'a str]) -> Self {
        Self { lines, at: 1 }
    }

    fn patch(mut self) -> Result<Patch, Misread> {
        let environment = self.environment()?;
        let mut hunks = Vec::new();
        while let Some(line) = self.peek().filter(|line| line.trim() != END) {
            let begun = self.at;
            let header = header(line.trim()).ok_or_else(|| self.no_header(line.trim()))?;
            self.at += 1;
            hunks.push(match header {
                Header::Add(path) => self.add(path),
                Header::Delete(path) => Hunk::Delete { path: path.to_owned() },
                Header::Update(path) => self.update(path, begun)?,
            });
        }
        let rest = self.lines.get(self.at + 1..).unwrap_or_default();
        let idle = |line: &&str| line.trim().is_empty() || line.trim() == END;
        if self.peek().is_none() || !rest.iter().all(idle) {
            return Err(NO_END);
        }
        Ok(Patch { environment, hunks })
    }

    fn environment(&mut self) -> Result<Option<String>, Misread> {
        let Some(id) = self.peek().and_then(|line| line.trim().strip_prefix(ENVIRONMENT)) else {
            return Ok(None);
        };
        self.at += 1;
        match id.trim() {
            "" => Err(Misread::Frame("apply_patch environment_id cannot be empty")),
            id => Ok(Some(id.to_owned())),
        }
    }

    fn add(&mut self, path: &str) -> Hunk {
        let mut content = String::new();
        while let Some(line) = self.peek().and_then(|line| line.strip_prefix('+')) {
            content.push_str(line);
            content.push('\n');
            self.at += 1;
        }
        Hunk::Add { path: path.to_owned(), content }
    }

    fn update(&mut self, path: &str, begun: usize) -> Result<Hunk, Misread> {
        let to = self.peek().and_then(|line| line.trim_end().strip_prefix("*** Move to: "));
        let to = to.map(str::to_owned);
        self.at += usize::from(to.is_some());
        let mut chunks: Vec<Chunk> = Vec::new();
        while let Some(line) = self.in_update() {
            if chunks.last().is_some_and(|chunk| chunk.at_end) && line.trim().is_empty() {
                self.at += 1;
                continue;
            }
            if chunks.is_empty() && line.trim_end() == END_OF_FILE {
                break;
            }
            let chunk = self.chunk(line, chunks.is_empty())?;
            chunks.push(chunk);
        }
        if chunks.is_empty() {
            let text = format!("Update file hunk for path '{path}' is empty");
            return Err(Misread::Hunk { line: begun + 1, text });
        }
        Ok(Hunk::Update { path: path.to_owned(), to, chunks })
    }

    fn chunk(&mut self, line: &str, first: bool) -> Result<Chunk, Misread> {
        let mut chunk = Chunk::default();
        match marker(line) {
            Some(context) => {
                chunk.context = context.map(str::to_owned);
                self.at += 1;
            }
            None if first => {}
            None => {
                let text = format!(
                    "Expected update hunk to start with a @@ context marker, got: '{line}'"
                );
                return Err(self.wrong(text));
            }
        }
        while let Some(line) = self.in_update() {
            if line.trim_end() == END_OF_FILE && !chunk.lines.is_empty() {
                chunk.at_end = true;
                self.at += 1;
                break;
            }
            let Some(line) = change(line) else { break };
            chunk.lines.push(line);
            self.at += 1;
        }
        if chunk.lines.is_empty() { Err(self.no_change()) } else { Ok(chunk) }
    }

    /// What is wrong with a chunk that has no lines.
    fn no_change(&self) -> Misread {
        let over = |line: &&str| matches!(line.trim_end(), END | END_OF_FILE) || self.at_last();
        let Some(line) = self.peek().filter(|line| !over(line)) else {
            return self.wrong("Update hunk does not contain any lines".to_owned());
        };
        self.wrong(format!(
            "Unexpected line found in update hunk: '{line}'. Every line should start with ' ' \
             (context line), '+' (added line), or '-' (removed line)"
        ))
    }

    fn no_header(&self, line: &str) -> Misread {
        self.wrong(format!(
            "'{line}' is not a valid hunk header. Valid hunk headers: '*** Add File: {{path}}', \
             '*** Delete File: {{path}}', '*** Update File: {{path}}'"
        ))
    }

    fn wrong(&self, text: String) -> Misread {
        Misread::Hunk { line: self.at + 1, text }
    }

    /// The next line, unless the update is over.
    fn in_update(&self) -> Option<&'a str> {
        self.peek().filter(|line| !ends_update(line) && !self.at_last())
    }

    /// The last line closes the patch even where it is indented.
    fn at_last(&self) -> bool {
        self.at + 1 >= self.lines.len()
    }

    fn peek(&self) -> Option<&'a str> {
        self.lines.get(self.at).copied()
    }
}

fn header(line: &str) -> Option<Header<'_>> {
    let add = line.strip_prefix("*** Add File: ").map(Header::Add);
    let delete = || line.strip_prefix("*** Delete File: ").map(Header::Delete);
    let update = || line.strip_prefix("*** Update File: ").map(Header::Update);
    add.or_else(delete).or_else(update)
}

/// Within an update a marker must stand at the margin: indented, it is a line of the file.
fn ends_update(line: &str) -> bool {
    let line = line.trim_end();
    line == END || header(line).is_some()
}

/// `@@` alone or with a line to find.
fn marker(line: &str) -> Option<Option<&str>> {
    if line.trim_end() == "@@" {
        return Some(None);
    }
    line.trim_end().strip_prefix("@@ ").map(Some)
}

fn change(line: &str) -> Option<Line> {
    let mut chars = line.chars();
    let kind = chars.next();
    let text = chars.as_str().to_owned();
    match kind {
        // Models leave out the space before an empty line.
        None | Some(' ') => Some(Line::Keep(text)),
        Some('-') => Some(Line::Remove(text)),
        Some('+') => Some(Line::Insert(text)),
        Some(_) => None,
    }
}
