//! Profiles: settings under a name, laid over the others when it is called.

use toml::{Table, Value};

use super::layer::{self, Layer};
use super::{ConfigError, Home};

/// A profile: a file of its own in the Codex home, as Codex has them now, or the table
/// `[profiles.NAME]`, as it used to.
pub(super) fn read(home: &Home, layers: &[Layer], name: &str) -> Result<Layer, ConfigError> {
    let missing = || ConfigError::NoProfile { name: name.to_owned() };
    // A name with a separator would read a file somewhere else.
    if name.is_empty() || name.contains(['/', '\\']) {
        return Err(missing());
    }
    let mut merged = Table::new();
    for layer in layers {
        if let Some(Value::Table(table)) = layer::get(&layer.table, &["profiles", name]) {
            layer::merge(&mut merged, table);
        }
    }
    match Layer::read(home.codex.join(format!("{name}.config.toml")))? {
        Some(file) => Ok(file),
        None if merged.is_empty() => Err(missing()),
        None => Ok(Layer::of(&merged.into_iter().collect::<Vec<_>>())),
    }
}

/// What a profile sets, as the `key=value` of `-c`: for a program that takes these and knows no
/// profiles.
pub fn profile_overrides(home: &Home, name: &str) -> Result<Vec<String>, ConfigError> {
    let base = Layer::read(home.codex.join("config.toml"))?;
    let base: Vec<Layer> = base.into_iter().collect();
    let profile = read(home, &base, name)?;
    let mut said = Vec::new();
    flatten(&profile.table, &mut Vec::new(), &mut said)?;
    Ok(said)
}

/// Every value with the whole path of its key: a table given at once would replace the settings
/// beside it.
fn flatten<'a>(
    table: &'a Table,
    path: &mut Vec<&'a str>,
    said: &mut Vec<String>,
) -> Result<(), ConfigError> {
    for (key, value) in table {
        path.push(key);
        if key.contains(['.', '=']) {
            return Err(ConfigError::Value {
                key: path.join("."),
                place: "the profile".to_owned(),
                why: "this key cannot be given on a command line; put it into `config.toml`"
                    .to_owned(),
            });
        }
        match value {
            Value::Table(inner) => flatten(inner, path, said)?,
            value => said.push(format!("{}={}", path.join("."), inline(value))),
        }
        path.pop();
    }
    Ok(())
}

/// A value on one line. The strings of TOML escape as those of JSON do.
fn inline(value: &Value) -> String {
    let string = |text: &str| serde_json::Value::from(text).to_string();
    match value {
        Value::String(text) => string(text),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => format!("{number:?}"),
        Value::Boolean(on) => on.to_string(),
        Value::Datetime(time) => time.to_string(),
        Value::Array(list) => {
            format!("[{}]", list.iter().map(inline).collect::<Vec<_>>().join(", "))
        }
        Value::Table(table) => {
            let pair =
                |(key, value): (&String, &Value)| format!("{} = {}", string(key), inline(value));
            format!("{{ {} }}", table.iter().map(pair).collect::<Vec<_>>().join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_become_keys_with_dots_and_read_back_the_same() {
        let table: Table =
            "model = \"a \\\"b\\\"\"\n[x.y]\nn = 1\nlist = [\"p\", { q = true }]".parse().unwrap();
        let mut said = Vec::new();
        flatten(&table, &mut Vec::new(), &mut said).unwrap();
        let read: Vec<_> = said.iter().map(|text| layer::parse_override(text).unwrap()).collect();
        assert_eq!(Layer::of(&read).table, table);
    }

    #[test]
    fn a_key_that_cannot_be_given_is_named() {
        let table: Table = "[projects.\"/a.b\"]\ntrust_level = \"trusted\"".parse().unwrap();
        let err = flatten(&table, &mut Vec::new(), &mut Vec::new()).unwrap_err();
        assert!(err.to_string().contains("projects./a.b"), "{err}");
    }
}
