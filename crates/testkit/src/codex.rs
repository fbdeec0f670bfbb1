//! A real Codex with a home, a provider and a project of its own.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::backend::Server;
use crate::model::Model;

/// The environment variable that names the Codex binary to test against.
pub const CODEX_VARIABLE: &str = "BINDERY_TEST_CODEX";

/// The environment variable that names the older Codex binary to test against.
pub const OLDER_CODEX_VARIABLE: &str = "BINDERY_TEST_CODEX_OLDER";

/// The name of the scripted provider in `config.toml`.
pub const PROVIDER: &str = "scripted";

/// An installed Codex and the temporary folders it works in.
#[derive(Debug)]
pub struct RealCodex {
    program: PathBuf,
    folders: TempDir,
    environment: Vec<(String, String)>,
}

/// What a test may want to be different.
#[derive(Clone, Debug)]
pub struct Options {
    /// The model in `config.toml`.
    pub model: String,
    /// Whether the project is trusted; else Codex works read-only in it.
    pub trusted: bool,
    /// No sandbox and no approvals: commands run at once.
    pub unrestricted: bool,
    /// Top-level lines of TOML.
    pub settings: String,
    /// Tables of TOML, with their headers.
    pub tables: String,
    /// A provider address other than that of the scripted model.
    pub base_url: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            model: "gpt-5.5".to_owned(),
            trusted: true,
            unrestricted: false,
            settings: String::new(),
            tables: String::new(),
            base_url: None,
        }
    }
}

impl Options {
    /// No sandbox, no approvals.
    pub fn unrestricted() -> Self {
        Self { unrestricted: true, ..Self::default() }
    }

    /// Adds a stdio MCP server.
    pub fn mcp_server(mut self, name: &str, command: &str, args: &[&str]) -> Self {
        let args = args.iter().map(|arg| quoted(arg)).collect::<Vec<_>>().join(", ");
        let command = quoted(command);
        self.tables
            .push_str(&format!("[mcp_servers.{name}]\ncommand = {command}\nargs = [{args}]\n"));
        self
    }

    /// Turns a feature of Codex on or off.
    pub fn feature(mut self, name: &str, on: bool) -> Self {
        self.settings.push_str(&format!("features.{name} = {on}\n"));
        self
    }
}

impl RealCodex {
    /// A Codex whose provider is this scripted model.
    ///
    /// # Panics
    /// If Codex is not installed for tests, or the folders cannot be made.
    pub fn new(model: &Model) -> Self {
        Self::with(model, &Options::default())
    }

    /// The same, with options.
    ///
    /// # Panics
    /// As [`Self::new`].
    pub fn with(model: &Model, options: &Options) -> Self {
        Self::on(&model.base_url(), options)
    }

    /// The same, with a provider at this address, unless the options name another.
    ///
    /// # Panics
    /// As [`Self::new`].
    pub fn on(base_url: &str, options: &Options) -> Self {
        let folders = TempDir::with_prefix("bindery-codex-").expect("a temporary folder");
        let program = Server::current().program();
        let mut codex = Self { program, folders, environment: Vec::new() };
        std::fs::create_dir_all(codex.home()).expect("a Codex home");
        let base_url = options.base_url.as_deref().unwrap_or(base_url);
        let config = config(options, base_url, &codex.project());
        std::fs::write(codex.home().join("config.toml"), config).expect("config.toml");
        make_project(&codex.project());
        codex.environment = codex.new_environment();
        codex
    }

    /// The same home, project and settings, with another program in Codex's place.
    #[must_use]
    pub fn served_by(mut self, program: &Path) -> Self {
        program.clone_into(&mut self.program);
        self
    }

    /// The native binary.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Arguments that make it an app-server on stdio.
    pub fn args(&self) -> Vec<String> {
        vec!["app-server".to_owned()]
    }

    /// Its whole environment: clear the inherited one first.
    pub fn env(&self) -> Vec<(String, String)> {
        self.environment.clone()
    }

    /// `CODEX_HOME`.
    pub fn home(&self) -> PathBuf {
        self.user_home().join(".codex")
    }

    /// `HOME`.
    pub fn user_home(&self) -> PathBuf {
        self.root().join("home")
    }

    /// A git repository with one commit: `README.md` and `src/main.rs`.
    pub fn project(&self) -> PathBuf {
        self.root().join("project")
    }

    /// A command that runs it in the project with these arguments.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(args).current_dir(self.project()).env_clear().envs(self.env());
        command
    }

    /// Codex reports paths without symbolic links, so the folders are named without them too.
    fn root(&self) -> PathBuf {
        let path = self.folders.path();
        path.canonicalize().unwrap_or_else(|_| path.to_owned())
    }

    fn new_environment(&self) -> Vec<(String, String)> {
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        let mut environment = vec![
            ("CODEX_HOME".to_owned(), text(self.home())),
            ("HOME".to_owned(), text(self.user_home())),
            ("LANG".to_owned(), "C.UTF-8".to_owned()),
            // A proxy of the machine must not stand between Codex and a loopback server.
            ("NO_PROXY".to_owned(), "127.0.0.1,localhost".to_owned()),
        ];
        for name in ["PATH", "TMPDIR", "SystemRoot", "TEMP", "TMP"] {
            environment.extend(std::env::var(name).ok().map(|value| (name.to_owned(), value)));
        }
        environment
    }
}

/// Finds the binary: the one the environment names, else the one `cargo xtask test` installed.
///
/// # Panics
/// If there is none.
pub fn locate() -> PathBuf {
    locate_in(CODEX_VARIABLE, "codex")
}

/// Finds the older Codex that is still supported, in the same way.
///
/// # Panics
/// If there is none.
pub fn locate_older() -> PathBuf {
    locate_in(OLDER_CODEX_VARIABLE, "codex-older")
}

fn locate_in(variable: &str, folder: &str) -> PathBuf {
    if let Some(path) = std::env::var_os(variable) {
        let path = PathBuf::from(path);
        assert!(path.is_file(), "{variable} names no file: {}", path.display());
        return path;
    }
    let installed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/bindery-test");
    let package = installed.join(folder).join("node_modules/@openai").join(format!(
        "codex-{}-{}",
        npm_os(),
        npm_arch()
    ));
    let name = format!("codex{}", std::env::consts::EXE_SUFFIX);
    let triples = std::fs::read_dir(package.join("vendor")).into_iter().flatten().flatten();
    triples
        .map(|triple| triple.path().join("bin").join(&name))
        .find(|path| path.is_file())
        .unwrap_or_else(|| {
            panic!(
                "no Codex under {}: run `cargo xtask test`, which installs it",
                package.display()
            )
        })
}

fn npm_os() -> &'static str {
    match std::env::consts::OS {
        "macos" => "darwin",
        "windows" => "win32",
        os => os,
    }
}

fn npm_arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        arch => arch,
    }
}

fn config(options: &Options, base_url: &str, project: &Path) -> String {
    let mut toml = format!(
        "model = {}\nmodel_provider = \"{PROVIDER}\"\ncheck_for_update_on_startup = false\n",
        quoted(&options.model),
    );
    if options.unrestricted {
        toml.push_str("sandbox_mode = \"danger-full-access\"\napproval_policy = \"never\"\n");
    }
    // With plugins on, Codex 0.166 fetches a list of them from the network at every start.
    if !options.settings.contains("features.plugins") {
        toml.push_str("features.plugins = false\n");
    }
    let trust = if options.trusted { "trusted" } else { "untrusted" };
    let _ = write!(
        toml,
        "{settings}\n\
         [analytics]\nenabled = false\n\n\
         [model_providers.{PROVIDER}]\nname = \"Scripted\"\nbase_url = {base_url}\n\
         wire_api = \"responses\"\nrequest_max_retries = 1\nstream_max_retries = 2\n\n\
         [projects.{project}]\ntrust_level = \"{trust}\"\n\n{tables}",
        settings = options.settings,
        base_url = quoted(base_url),
        project = quoted(&project.to_string_lossy()),
        tables = options.tables,
    );
    toml
}

/// A TOML basic string; its escapes are those of JSON.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn make_project(project: &Path) {
    std::fs::create_dir_all(project.join("src")).expect("a project folder");
    std::fs::write(project.join("README.md"), "# Project\n\nA small project.\n").expect("a file");
    std::fs::write(project.join("src/main.rs"), "fn main() {}\n").expect("a file");
    git(project, &["init", "--quiet", "--initial-branch=main"]);
    git(project, &["add", "."]);
    git(project, &["commit", "--quiet", "--message=Begin"]);
}

/// Runs git as nobody in particular, untouched by the settings of the machine.
fn git(project: &Path, args: &[&str]) {
    let status = Command::new("git")
        .args(["-c", "maintenance.auto=false"])
        .args(args)
        .current_dir(project)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env("GIT_AUTHOR_NAME", "Test")
        .env("GIT_AUTHOR_EMAIL", "test@example.com")
        .env("GIT_COMMITTER_NAME", "Test")
        .env("GIT_COMMITTER_EMAIL", "test@example.com")
        .env("GIT_AUTHOR_DATE", "2026-01-01T00:00:00Z")
        .env("GIT_COMMITTER_DATE", "2026-01-01T00:00:00Z")
        .env_remove("GIT_DIR")
        .env_remove("GIT_INDEX_FILE")
        .env_remove("GIT_WORK_TREE")
        .status()
        .expect("git must be installed");
    assert!(status.success(), "git {args:?} failed: {status}");
}
