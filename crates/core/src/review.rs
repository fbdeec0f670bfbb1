//! A review: what a model finds wrong with a change, read from its JSON and told as text.
//!
//! A reviewer is asked for JSON and gives what it likes; people, histories and clients of Codex
//! get the text. [`Review::read_text`] reads that text again, so that findings can be had from
//! anybody who tells a review as Codex does.

use serde::Serialize;
use serde_json::Value;

/// What is said of a review that says nothing.
const NOTHING: &str = "The reviewer gave no answer.";

const ONE: &str = "Review comment:";
const SEVERAL: &str = "Full review comments:";

/// Between a finding's title and its place.
const DASH: &str = " — ";

/// What a reviewer said.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Review {
    /// What is wrong, in the reviewer's order.
    pub findings: Vec<Finding>,
    /// The reviewer's words about the whole.
    pub explanation: String,
    /// `patch is correct` or `patch is incorrect`.
    pub correctness: Option<String>,
    /// How sure the reviewer is of that, from 0 to 1.
    pub confidence: Option<f64>,
}

/// One thing that is wrong.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Finding {
    /// In a line, with its priority in front: `[P1] …`.
    pub title: String,
    /// Why it is wrong.
    pub body: String,
    /// 0 (drop everything) to 3 (would be nice).
    pub priority: Option<u8>,
    /// How sure the reviewer is, from 0 to 1.
    pub confidence: Option<f64>,
    /// Where.
    pub location: Option<Location>,
}

/// Lines of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Location {
    /// The file.
    pub path: String,
    /// The first line.
    pub start: u64,
    /// The last line.
    pub end: u64,
}

impl Review {
    /// Reads a reviewer's answer: JSON, or JSON with words around it. Anything else is an
    /// explanation; nothing that was said is lost.
    pub fn read_answer(text: &str) -> Self {
        let whole = || read_json(text);
        let within = || read_json(text.get(text.find('{')?..=text.rfind('}')?)?);
        whole()
            .or_else(within)
            .unwrap_or_else(|| Self { explanation: text.trim().to_owned(), ..Self::default() })
    }

    /// Reads what [`Review::text`] gives.
    pub fn read_text(text: &str) -> Self {
        let lines: Vec<&str> = text.lines().collect();
        // Bodies are indented, so the last heading is the one of the findings.
        let heading = lines.iter().rposition(|line| *line == ONE || *line == SEVERAL);
        let (before, after) = match heading {
            Some(at) => (&lines[..at], &lines[at + 1..]),
            None => (lines.as_slice(), [].as_slice()),
        };
        let explanation = before.join("\n").trim().to_owned();
        Self { findings: read_findings(after), explanation, ..Self::default() }
    }

    /// For people, as Codex words it.
    pub fn text(&self) -> String {
        let mut blocks = Vec::new();
        let explanation = self.explanation.trim();
        if !explanation.is_empty() {
            blocks.push(explanation.to_owned());
        }
        if !self.findings.is_empty() {
            blocks.push(if self.findings.len() == 1 { ONE } else { SEVERAL }.to_owned());
        }
        blocks.extend(self.findings.iter().map(Finding::text));
        if blocks.is_empty() { NOTHING.to_owned() } else { blocks.join("\n\n") }
    }
}

impl Finding {
    fn text(&self) -> String {
        let title = self.title.split_whitespace().collect::<Vec<_>>().join(" ");
        let place = self.location.as_ref().map(|place| format!("{DASH}{}", place.text()));
        let mut text = format!("- {title}{}", place.unwrap_or_default());
        for line in self.body.trim_end().lines() {
            text.push_str("\n  ");
            text.push_str(line);
        }
        text
    }
}

impl Location {
    fn text(&self) -> String {
        format!("{}:{}-{}", self.path, self.start, self.end)
    }

    fn read(text: &str) -> Option<Self> {
        let (path, lines) = text.rsplit_once(':')?;
        let (start, end) = lines.split_once('-')?;
        let (start, end) = (start.parse().ok()?, end.parse().ok()?);
        (!path.is_empty()).then(|| Self { path: path.to_owned(), start, end })
    }
}

/// An object that has something of a review.
fn read_json(text: &str) -> Option<Review> {
    let value: Value = serde_json::from_str(text).ok()?;
    let findings = value.get("findings").and_then(Value::as_array);
    let explanation = word(&value, "overall_explanation");
    if findings.is_none() && explanation.is_none() {
        return None;
    }
    Some(Review {
        findings: findings.into_iter().flatten().map(read_finding).collect(),
        explanation: explanation.unwrap_or_default(),
        correctness: word(&value, "overall_correctness"),
        confidence: value["overall_confidence_score"].as_f64(),
    })
}

/// A finding whose shape is none that was asked for is shown as it came.
fn read_finding(value: &Value) -> Finding {
    let body = word(value, "body").unwrap_or_default();
    let title = word(value, "title").unwrap_or_else(|| {
        let first = body.lines().next().unwrap_or_default().to_owned();
        if first.is_empty() { value.to_string() } else { first }
    });
    let told = value["priority"].as_u64().and_then(|number| u8::try_from(number).ok());
    let told = told.filter(|priority| *priority <= 3);
    let shown = priority_of(&title);
    let title = match (told, shown) {
        (Some(priority), None) => format!("[P{priority}] {title}"),
        _ => title,
    };
    let location = read_location(&value["code_location"]);
    let confidence = value["confidence_score"].as_f64();
    Finding { title, body, priority: told.or(shown), confidence, location }
}

fn read_location(value: &Value) -> Option<Location> {
    let path = word(value, "absolute_file_path").filter(|path| !path.is_empty())?;
    let range = &value["line_range"];
    let start = range["start"].as_u64().unwrap_or_default();
    let end = range["end"].as_u64().unwrap_or(start).max(start);
    // A break in a name would look like a finding of its own.
    Some(Location { path: path.replace(['\n', '\r'], " "), start, end })
}

fn word(value: &Value, key: &str) -> Option<String> {
    value.get(key).and_then(Value::as_str).map(str::to_owned)
}

/// `[P2] …` → 2.
fn priority_of(title: &str) -> Option<u8> {
    let digit = title.trim_start().strip_prefix("[P")?.strip_prefix(['0', '1', '2', '3'])?;
    let number = title.trim_start().as_bytes().get(2)?.checked_sub(b'0')?;
    digit.starts_with(']').then_some(number)
}

fn read_findings(lines: &[&str]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for line in lines {
        if let Some(head) = line.strip_prefix("- ") {
            findings.push(read_head(head));
        } else if let (Some(finding), Some(body)) = (findings.last_mut(), line.strip_prefix("  ")) {
            if !finding.body.is_empty() {
                finding.body.push('\n');
            }
            finding.body.push_str(body);
        }
    }
    findings
}

fn read_head(head: &str) -> Finding {
    let placed = head.rsplit_once(DASH);
    let placed = placed.and_then(|(title, place)| Some((title, Location::read(place)?)));
    let (title, location) = match placed {
        Some((title, location)) => (title, Some(location)),
        None => (head, None),
    };
    let priority = priority_of(title);
    Finding { title: title.to_owned(), priority, location, ..Finding::default() }
}

#[cfg(test)]
mod tests;
