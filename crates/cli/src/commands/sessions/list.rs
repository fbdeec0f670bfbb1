//! `bindery sessions list`.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::process::ExitCode;

use bindery::core::ids::ThreadId;
use bindery::sessions::catalogue::Catalogue;
use bindery::sessions::find::Unreadable;
use bindery::sessions::render;
use bindery::sessions::summary::{Relation, SessionStatus, Summary};

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::{Context, Roots};
use crate::view::clean::visible;

/// List sessions, newest first, forks and sub-agents below what they came from
#[derive(Debug, clap::Args)]
pub(super) struct List {
    /// Folders or files to list instead of the Codex home
    paths: Vec<PathBuf>,

    #[command(flatten)]
    roots: Roots,

    /// Only sessions whose folder contains this
    #[arg(long, value_name = "TEXT")]
    cwd: Option<String>,

    /// Only sessions whose title contains this
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,

    /// Only sessions of this model
    #[arg(long)]
    model: Option<String>,

    /// Only sessions written to in the last so many days
    #[arg(long, value_name = "DAYS")]
    days: Option<i64>,

    /// Leave archived sessions out
    #[arg(long)]
    no_archived: bool,

    /// What to sort by
    #[arg(long, value_enum, default_value_t)]
    sort: Sort,

    /// How many to list; 0 lists all
    #[arg(long, default_value_t = 20)]
    limit: usize,

    /// Count the turns of very long sessions, too
    #[arg(long)]
    exact: bool,

    /// One flat list, without the tree
    #[arg(long)]
    flat: bool,

    /// Write JSON, one session a line
    #[arg(long)]
    json: bool,
}

/// Turns of what is listed are counted, unless the file is longer than this.
const COUNTED: u64 = 256 << 20;

#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
enum Sort {
    /// Written to last
    #[default]
    Updated,
    /// Begun last
    Created,
    /// Largest
    Size,
    /// Most tokens
    Tokens,
    /// Most turns
    Turns,
}

impl List {
    pub(super) fn run(self, cx: Context<'_>) -> anyhow::Result<ExitCode> {
        let roots = if self.paths.is_empty() { self.roots.paths() } else { self.paths.clone() };
        let mut catalogue = cx.cache.as_deref().map(Catalogue::open).unwrap_or_default();
        let all = catalogue.list(&roots, self.exact)?;
        let (total, size) = (all.len(), all.iter().map(|summary| summary.size).sum::<u64>());
        let mut rows: Vec<Summary> = all.into_iter().filter(|s| self.fits(s, cx.now)).collect();
        if matches!(self.sort, Sort::Turns) {
            catalogue.count(&mut rows, COUNTED);
        }
        rows.sort_by_key(|summary| std::cmp::Reverse(self.sort.key(summary)));
        let rows = if self.flat { rows.into_iter().map(|s| (0, s)).collect() } else { tree(rows) };
        let limit = if self.limit == 0 { usize::MAX } else { self.limit };
        let (depths, mut shown): (Vec<usize>, Vec<Summary>) = rows.into_iter().take(limit).unzip();
        catalogue.count(&mut shown, COUNTED);
        if let Some(path) = &cx.cache
            && let Err(error) = catalogue.save(path)
        {
            writeln!(cx.err, "note: summaries are not kept: {error}")?;
        }
        for Unreadable { path, why } in catalogue.unreadable() {
            let path = path.to_string_lossy();
            writeln!(cx.err, "note: cannot read `{}`: {}", visible(&path), visible(why))?;
        }
        let shown: Vec<_> = depths.into_iter().zip(shown).collect();
        if self.json {
            for (_, summary) in &shown {
                writeln!(cx.out, "{}", serde_json::to_string(summary)?)?;
            }
            return Ok(ExitCode::SUCCESS);
        }
        print(cx, &shown, total, size)?;
        Ok(ExitCode::SUCCESS)
    }

    fn fits(&self, summary: &Summary, now: i64) -> bool {
        let holds = |text: &Option<String>, part: &Option<String>| match part {
            Some(part) => {
                text.as_ref().is_some_and(|t| t.to_lowercase().contains(&part.to_lowercase()))
            }
            None => true,
        };
        let is_new = self.days.is_none_or(|days| {
            summary.updated_ms.is_some_and(|time| now - time <= days.saturating_mul(86_400_000))
        });
        holds(&summary.cwd, &self.cwd)
            && holds(&summary.title, &self.title)
            && holds(&summary.model, &self.model)
            && is_new
            && !(self.no_archived && summary.archived)
    }
}

impl Sort {
    fn key(self, summary: &Summary) -> i64 {
        let number = |number: Option<u64>| i64::try_from(number.unwrap_or(0)).unwrap_or(i64::MAX);
        match self {
            Self::Updated => summary.updated_ms.unwrap_or(0),
            Self::Created => summary.created_ms.unwrap_or(0),
            Self::Size => number(Some(summary.size)),
            Self::Tokens => number(summary.tokens),
            Self::Turns => number(summary.turns),
        }
    }
}

/// Children below their parents, where these are in the list, too.
fn tree(rows: Vec<Summary>) -> Vec<(usize, Summary)> {
    let ids: HashSet<ThreadId> = rows.iter().filter_map(|row| row.id.clone()).collect();
    let is_child = |row: &Summary| {
        row.parent
            .as_ref()
            .is_some_and(|parent| ids.contains(parent) && Some(parent) != row.id.as_ref())
    };
    let mut below: HashMap<ThreadId, Vec<Summary>> = HashMap::new();
    let mut stack = Vec::new();
    for row in rows.into_iter().rev() {
        match row.parent.clone() {
            Some(parent) if is_child(&row) => below.entry(parent).or_default().push(row),
            _ => stack.push((0, row)),
        }
    }
    let mut order = Vec::new();
    while let Some((depth, row)) = stack.pop() {
        let children = row.id.as_ref().and_then(|id| below.remove(id)).unwrap_or_default();
        stack.extend(children.into_iter().map(|child| (depth + 1, child)));
        order.push((depth, row));
    }
    // Threads that are each other's parents: no root leads to them.
    order.extend(below.into_values().flatten().map(|row| (0, row)));
    order
}

fn print(
    cx: Context<'_>,
    rows: &[(usize, Summary)],
    total: usize,
    size: u64,
) -> anyhow::Result<()> {
    if rows.is_empty() {
        writeln!(cx.err, "no sessions ({total} looked at)")?;
        return Ok(());
    }
    let (room, place_room) = columns(cx.style.width);
    let head = format!(
        "  {:<10} {:>6} {:>7} {:>7}  {:<8}  {}  {}",
        "updated",
        "turns",
        "tokens",
        "size",
        "id",
        padded("title", room),
        if place_room > 0 { "where" } else { "" }
    );
    writeln!(cx.out, "{}", head.trim_end())?;
    for (depth, row) in rows {
        let updated = if *depth == 0 { age(row.updated_ms, cx.now) } else { String::new() };
        let turns = row.turns.map_or("–".to_owned(), |turns| turns.to_string());
        let tokens = row.tokens.map_or("–".to_owned(), render::quantity);
        let id = row.id.as_ref().map(|id| short(id.as_str())).unwrap_or_default();
        let line = format!(
            "  {updated:<10} {turns:>6} {tokens:>7} {:>7}  {id:<8}  {}  {}",
            render::quantity(row.size),
            padded(&cut(&title(*depth, row), room), room),
            cut(&place(row), place_room)
        );
        writeln!(cx.out, "{}", line.trim_end())?;
    }
    let example = rows[0].1.id.as_ref().map(|id| short(id.as_str())).unwrap_or_default();
    writeln!(
        cx.err,
        "{} of {total} sessions · {} · bindery sessions show {example}",
        rows.len(),
        render::bytes(size)
    )?;
    Ok(())
}

/// The beginning of an id says when it was made, its end which one it is.
fn short(id: &str) -> String {
    let from = id.len().saturating_sub(8);
    id.get(from..).unwrap_or(id).to_owned()
}

fn title(depth: usize, row: &Summary) -> String {
    let title = visible(row.title.as_deref().unwrap_or("(no words)")).into_owned();
    let mark = match row.status {
        SessionStatus::Open => "● ",
        SessionStatus::Failed => "✗ ",
        SessionStatus::Aborted => "■ ",
        SessionStatus::Done | SessionStatus::Unknown => "",
    };
    let kin = match (depth, row.relation) {
        (0, _) | (_, None) => String::new(),
        (_, Some(Relation::Fork)) => "fork: ".to_owned(),
        (_, Some(Relation::Review)) => "review: ".to_owned(),
        (_, Some(Relation::SubAgent)) => match &row.nickname {
            Some(name) => format!("sub-agent “{}”: ", visible(name)),
            None => "sub-agent: ".to_owned(),
        },
    };
    let branch = if depth > 0 { format!("{}└ ", "  ".repeat(depth - 1)) } else { String::new() };
    format!("{branch}{mark}{kin}{title}")
}

fn place(row: &Summary) -> String {
    let folder = row.cwd.as_deref().and_then(|cwd| cwd.rsplit(['/', '\\']).next());
    let folder = visible(folder.unwrap_or_default()).into_owned();
    let branch = row.branch.as_deref().map(|b| format!(" ({})", visible(b))).unwrap_or_default();
    let archived = if row.archived { " archived" } else { "" };
    format!("{folder}{branch}{archived}")
}

/// Columns for the title and for the place; a narrow screen has none for the place.
fn columns(width: usize) -> (usize, usize) {
    // What stands before the title.
    let rest = width.saturating_sub(48);
    match rest {
        0..30 => (rest.max(8), 0),
        _ => {
            let place = (rest / 3).min(28);
            (rest - place - 2, place)
        }
    }
}

fn padded(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}

fn cut(text: &str, width: usize) -> String {
    let text = text.replace(['\n', '\t'], " ");
    if text.width() <= width {
        return text;
    }
    let mut kept = String::new();
    for letter in text.chars() {
        if kept.width() + letter.width().unwrap_or(0) >= width {
            break;
        }
        kept.push(letter);
    }
    if width > 0 {
        kept.push('…');
    }
    kept
}

/// How long ago, in the largest unit.
fn age(time: Option<i64>, now: i64) -> String {
    let Some(time) = time else { return "–".to_owned() };
    let minutes = now.saturating_sub(time).max(0) / 60_000;
    match minutes {
        0 => "now".to_owned(),
        1..60 => format!("{minutes} min"),
        60..1_440 => format!("{} h", minutes / 60),
        1_440..2_880 => "yesterday".to_owned(),
        2_880..86_400 => format!("{} days", minutes / 1_440),
        _ => bindery::sessions::clock::rfc3339(time)[..10].to_owned(),
    }
}
