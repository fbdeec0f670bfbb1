//! Takes settings out of the merged table one by one; what is left is not ours.

use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::ConfigError;
use super::layer::{self, Layer};

/// The merged table and where it came from.
pub(super) struct Reader<'a> {
    pub(super) table: Table,
    layers: &'a [Layer],
}

impl<'a> Reader<'a> {
    pub(super) fn new(table: Table, layers: &'a [Layer]) -> Self {
        Self { table, layers }
    }

    /// Takes a setting of the top level.
    pub(super) fn take<T: DeserializeOwned>(
        &mut self,
        key: &str,
    ) -> Result<Option<T>, ConfigError> {
        let Some(value) = self.table.remove(key) else { return Ok(None) };
        let err = match value.try_into() {
            Ok(value) => return Ok(Some(value)),
            Err(err) => err,
        };
        Err(self.wrong(&[key], short(&err)))
    }

    /// Takes a setting that may be a table, as it is.
    pub(super) fn take_table(&mut self, key: &str) -> Result<Table, ConfigError> {
        Ok(self.take::<Table>(key)?.unwrap_or_default())
    }

    /// The fault of a setting, with its place.
    pub(super) fn wrong(&self, key: &[&str], why: impl Into<String>) -> ConfigError {
        let place = layer::place(self.layers, key);
        ConfigError::Value { key: key.join("."), place, why: why.into() }
    }

    /// Takes a table whose entries are each of one shape, naming the entry that is not.
    pub(super) fn take_entries<T: DeserializeOwned>(
        &mut self,
        key: &str,
    ) -> Result<Vec<(String, T)>, ConfigError> {
        let table = self.take_table(key)?;
        let entry = |(name, value): (String, Value)| match value.try_into() {
            Ok(entry) => Ok((name, entry)),
            Err(err) => Err(self.wrong(&[key, &name], short(&err))),
        };
        table.into_iter().map(entry).collect()
    }
}

fn short(err: &toml::de::Error) -> String {
    err.message().lines().collect::<Vec<_>>().join(", ")
}
