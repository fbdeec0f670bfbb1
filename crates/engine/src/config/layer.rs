//! Files and flags, laid over each other.

use std::path::PathBuf;

use toml::{Table, Value};

use super::{ConfigError, WireApi};
use crate::plain_file::{PlainFileError, PlainFileReader};

/// One file, or what the command line said.
#[derive(Debug)]
pub(super) struct Layer {
    /// The file; none for the command line.
    pub(super) path: Option<PathBuf>,
    text: String,
    pub(super) table: Table,
}

/// A settings file longer than this is something else.
const MOST: u64 = 4 << 20;

impl Layer {
    /// Reads a file; one that is not there says nothing.
    pub(super) fn read(path: PathBuf) -> Result<Option<Self>, ConfigError> {
        let unreadable = |source| ConfigError::Unreadable { path: path.clone(), source };
        let text = match PlainFileReader::default().read_text(&path, MOST) {
            Ok(text) => text,
            Err(PlainFileError::Io(err)) if err.kind() == std::io::ErrorKind::NotFound => {
                return Ok(None);
            }
            Err(err) => return Err(unreadable(err.into())),
        };
        let table = parse(&text, &path.to_string_lossy())?;
        Ok(Some(Self { path: Some(path), text, table }))
    }

    /// What the command line said.
    pub(super) fn of(overrides: &[(String, Value)]) -> Self {
        let mut table = Table::new();
        for (key, value) in overrides {
            set(&mut table, &key.split('.').map(str::trim).collect::<Vec<_>>(), value.clone());
        }
        Self { path: None, text: String::new(), table }
    }

    /// Where a setting stands: file and line, or the flag.
    fn place(&self, key: &[&str]) -> String {
        let Some(path) = &self.path else { return "`-c`".to_owned() };
        match line_of(&self.text, key) {
            Some(line) => format!("`{}`, line {line}", path.display()),
            None => format!("`{}`", path.display()),
        }
    }
}

/// Where a setting stands in the topmost layer that has it.
pub(super) fn place(layers: &[Layer], key: &[&str]) -> String {
    let has = |layer: &&Layer| get(&layer.table, key).is_some();
    layers.iter().rev().find(has).map_or_else(|| "the settings".to_owned(), |l| l.place(key))
}

/// Parses a file, naming the line where it is none.
pub(super) fn parse(text: &str, origin: &str) -> Result<Table, ConfigError> {
    text.parse::<Table>().map_err(|err| {
        let start = err.span().map_or(0, |span| span.start).min(text.len());
        let line = text.as_bytes()[..start].iter().filter(|&&b| b == b'\n').count() + 1;
        let why = err.message().lines().collect::<Vec<_>>().join(", ");
        ConfigError::Syntax { origin: origin.to_owned(), line, why }
    })
}

/// Reads `key=value` as the flag `-c` has it: TOML, and what is not TOML is a string.
pub fn parse_override(text: &str) -> Result<(String, Value), ConfigError> {
    let wrong = |why: &str| ConfigError::Value {
        key: text.to_owned(),
        place: "`-c`".to_owned(),
        why: why.to_owned(),
    };
    let (key, value) = text.split_once('=').ok_or_else(|| wrong("give `key=value`"))?;
    let key = key.trim();
    if key.is_empty() || key.split('.').any(|part| part.trim().is_empty()) {
        return Err(wrong("give a name before `=`"));
    }
    let parsed = format!("v = {value}").parse::<Table>().ok().filter(|table| table.len() == 1);
    let value = parsed.and_then(|mut table| table.remove("v"));
    let text = || Value::String(text.split_once('=').map_or("", |(_, v)| v).trim().to_owned());
    Ok((key.to_owned(), value.unwrap_or_else(text)))
}

/// The settings behind `--base-url` and `--wire`: a provider of its own for this run.
pub fn endpoint(base_url: &str, wire: WireApi) -> Vec<(String, Value)> {
    let wire = match wire {
        WireApi::Responses => "responses",
        WireApi::Chat => "chat",
        WireApi::Demo => "demo",
    };
    let mut table = Table::new();
    table.insert("name".to_owned(), "the given address".into());
    table.insert("base_url".to_owned(), base_url.into());
    table.insert("wire_api".to_owned(), wire.into());
    vec![
        ("model_provider".to_owned(), "endpoint".into()),
        ("model_providers.endpoint".to_owned(), Value::Table(table)),
    ]
}

/// Lays one table over another; tables in it likewise, all else as a whole.
pub(super) fn merge(base: &mut Table, over: &Table) {
    for (key, value) in over {
        match (base.get_mut(key), value) {
            (Some(Value::Table(base)), Value::Table(over)) => merge(base, over),
            _ => {
                base.insert(key.clone(), value.clone());
            }
        }
    }
}

/// The value at a path.
pub(super) fn get<'a>(table: &'a Table, key: &[&str]) -> Option<&'a Value> {
    let (first, rest) = key.split_first()?;
    let value = table.get(*first)?;
    if rest.is_empty() { Some(value) } else { get(value.as_table()?, rest) }
}

fn set(table: &mut Table, key: &[&str], value: Value) {
    let Some((first, rest)) = key.split_first() else { return };
    if rest.is_empty() {
        match (table.get_mut(*first), &value) {
            (Some(Value::Table(base)), Value::Table(over)) => merge(base, over),
            _ => drop(table.insert((*first).to_owned(), value)),
        }
        return;
    }
    let below = table.entry((*first).to_owned()).or_insert_with(|| Value::Table(Table::new()));
    if !below.is_table() {
        *below = Value::Table(Table::new());
    }
    if let Value::Table(below) = below {
        set(below, rest, value);
    }
}

/// The line of a setting. Only a fault asks for it, so the file is read again.
fn line_of(text: &str, key: &[&str]) -> Option<usize> {
    let document = toml_edit::Document::parse(text).ok()?;
    let mut item = document.as_item();
    for part in key {
        item = item.get(part)?;
    }
    let start = item.span()?.start;
    Some(text.as_bytes()[..start].iter().filter(|&&b| b == b'\n').count() + 1)
}
