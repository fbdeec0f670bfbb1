//! A home and a project in a folder of their own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bindery_engine::config::{Config, ConfigError, Home, parse_override};
use tempfile::TempDir;

/// Two folders that are gone after the test.
pub(crate) struct Place {
    folder: TempDir,
    /// Variables besides the homes.
    pub(crate) variables: Vec<(&'static str, &'static str)>,
}

impl Place {
    /// A home without settings and a project that is the root of a repository.
    pub(crate) fn new() -> Self {
        let place = Self { folder: TempDir::new().unwrap(), variables: Vec::new() };
        for folder in ["codex", "bindery", "project/.git"] {
            std::fs::create_dir_all(place.root().join(folder)).unwrap();
        }
        place
    }

    /// The same, with Codex's own settings.
    pub(crate) fn with(settings: &str) -> Self {
        let place = Self::new();
        place.write("codex/config.toml", settings);
        place
    }

    /// The folder around all, without symbolic links.
    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    /// The project.
    pub(crate) fn project(&self) -> PathBuf {
        self.root().join("project")
    }

    /// Writes a file, with the folders it needs.
    pub(crate) fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// The homes.
    pub(crate) fn home(&self) -> Home {
        let path = |name: &str| self.root().join(name).to_string_lossy().into_owned();
        let mut environment = BTreeMap::from([
            ("CODEX_HOME".to_owned(), path("codex")),
            ("BINDERY_HOME".to_owned(), path("bindery")),
        ]);
        let others = self.variables.iter();
        environment.extend(others.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        Home::of(environment).unwrap()
    }

    /// The settings for a folder, with `-c` flags.
    pub(crate) fn load_in(&self, cwd: &Path, flags: &[&str]) -> Result<Config, ConfigError> {
        let flags = flags.iter().map(|flag| parse_override(flag));
        let flags = flags.collect::<Result<Vec<_>, _>>()?;
        Config::load(&self.home(), cwd, &flags)
    }

    /// The settings for the project.
    pub(crate) fn load(&self, flags: &[&str]) -> Result<Config, ConfigError> {
        self.load_in(&self.project(), flags)
    }

    /// The failure of the settings in words, with the folder left out.
    pub(crate) fn failure(&self, flags: &[&str]) -> String {
        let err = self.load(flags).map(|_| ()).expect_err("a failure");
        let hint = err.hint().map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
        self.stable(&format!("{err}{hint}"))
    }

    /// A text with the folder left out.
    pub(crate) fn stable(&self, text: &str) -> String {
        text.replace(&*self.root().to_string_lossy(), "~")
    }
}
