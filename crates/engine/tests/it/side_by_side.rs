//! Our blocks beside those of the real Codex 0.166, byte for byte.
//!
//! Both read the same home and the same project, for one turn each. Equal are the block of
//! instructions and the block of the environment. What differs, and why:
//!
//! - the base prompt and the permissions are in our own words;
//! - Codex lists its skills in a part of the developer's message; we have none;
//! - we tell of the repository in a part of its own after the environment, which Codex does not;
//! - the sentence that changed instructions replace older ones is in our own words;
//! - the time zone: Codex names the machine's and ignores `TZ`; we follow `TZ`, as the date does.
//!   The tests set none;
//! - a global file longer than 1 MiB is cut; Codex reads any length.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bindery_engine::config::{Config, Home, parse_override};
use bindery_engine::prompt::{Context, SectionKind, ThreadScene};
use bindery_testkit::codex::{Options, RealCodex};
use bindery_testkit::model::{Model, Script};
use serde_json::Value;

/// What one of the two tells a model.
#[derive(Debug, PartialEq, Eq)]
struct Told {
    instructions: Option<String>,
    environment: Option<String>,
}

/// A home and a project, as both see them.
struct Pair {
    codex: RealCodex,
    model: Model,
}

impl Pair {
    fn with(options: &Options) -> Self {
        let model = Model::start(Script::always("done"));
        Self { codex: RealCodex::with(&model, options), model }
    }

    fn new() -> Self {
        Self::with(&Options::default())
    }

    fn write(&self, path: &str, text: impl AsRef<[u8]>) -> &Self {
        let root = self.codex.project().parent().unwrap().to_owned();
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    /// Runs both in a folder of the project and compares.
    fn agree(&self, folder: &str, flags: &[&str]) -> Told {
        let cwd = self.codex.project().join(folder);
        std::fs::create_dir_all(&cwd).unwrap();
        // Midnight may pass between the two.
        let (ours, theirs) = loop {
            let before = jiff::Zoned::now().date();
            let pair = (self.ours(&cwd, flags), self.theirs(&cwd, flags));
            if jiff::Zoned::now().date() == before {
                break pair;
            }
        };
        assert_eq!(ours, theirs, "in `{folder}` with {flags:?}");
        ours
    }

    fn theirs(&self, cwd: &Path, flags: &[&str]) -> Told {
        let before = self.model.count();
        let mut args = vec!["exec", "--skip-git-repo-check"];
        args.extend(flags.iter().flat_map(|flag| ["-c", flag]));
        args.push("go");
        let mut command = self.codex.command(&args);
        let output = command.current_dir(cwd).stdin(std::process::Stdio::null()).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{told}");
        let bodies = self.model.bodies();
        let body = bodies.get(before).unwrap_or_else(|| panic!("no request: {told}"));
        let texts: Vec<String> = body["input"].as_array().unwrap().iter().flat_map(parts).collect();
        let find = |beginning: &str| texts.iter().find(|text| text.starts_with(beginning)).cloned();
        Told {
            instructions: find("# AGENTS.md instructions"),
            environment: find("<environment_context>"),
        }
    }

    fn ours(&self, cwd: &Path, flags: &[&str]) -> Told {
        let home = Home::of(self.codex.env().into_iter().collect()).unwrap();
        let flags: Vec<_> = flags.iter().map(|flag| parse_override(flag).unwrap()).collect();
        let config = Config::load(&home, cwd, &flags).unwrap();
        let scene = ThreadScene { git_limit: Some(Duration::ZERO), ..ThreadScene::here(&config) };
        let context = Context::gather(&config, &scene);
        let text = |kind| context.section(kind).map(|section| section.text.clone());
        Told {
            instructions: text(SectionKind::ProjectInstructions),
            environment: text(SectionKind::Environment),
        }
    }
}

/// The texts of a user's message.
fn parts(item: &Value) -> Vec<String> {
    let parts = item["content"].as_array().filter(|_| item["role"] == "user");
    let texts = parts.into_iter().flatten().filter_map(|part| part["text"].as_str());
    texts.map(str::to_owned).collect()
}

#[test]
fn none_at_all() {
    assert_eq!(Pair::new().agree("", &[]).instructions, None);
}

#[test]
fn nested_with_a_global_file() {
    let pair = Pair::new();
    pair.write("home/.codex/AGENTS.md", "\n global rules \n\n")
        .write("project/AGENTS.md", "root rules\n")
        .write("project/a/AGENTS.md", "a rules\r\n\r\n")
        .write("project/a/b/AGENTS.md", "  b rules");
    for folder in ["", "a", "a/b", "a/b/c", "other"] {
        assert!(pair.agree(folder, &[]).instructions.is_some());
    }
}

#[test]
fn global_alone_and_its_override() {
    let pair = Pair::new();
    pair.write("home/.codex/AGENTS.md", "plain");
    pair.agree("", &[]);
    pair.write("home/.codex/AGENTS.override.md", "override");
    pair.agree("", &[]);
    pair.write("home/.codex/AGENTS.override.md", " \n");
    pair.agree("", &[]);
}

#[test]
fn overrides_and_fallbacks() {
    let pair = Pair::new();
    pair.write("project/AGENTS.md", "plain")
        .write("project/AGENTS.override.md", "override")
        .write("project/a/AGENTS.md", "hidden")
        .write("project/a/AGENTS.override.md", "")
        .write("project/a/b/CLAUDE.md", "fallback")
        .write("project/a/b/docs/X.md", "a path");
    pair.agree("a/b", &[]);
    let told = pair.agree("a/b", &[r#"project_doc_fallback_filenames=["", "CLAUDE.md"]"#]);
    assert!(told.instructions.unwrap().contains("override\n\nfallback"));
    pair.agree("a/b", &[r#"project_doc_fallback_filenames=["docs/X.md", " CLAUDE.md "]"#]);
}

#[test]
fn over_the_budget() {
    let pair = Pair::new();
    pair.write("home/.codex/AGENTS.md", "global")
        .write("project/AGENTS.md", "12345")
        .write("project/a/AGENTS.md", "67é9")
        .write("project/a/b/AGENTS.md", "gone");
    for most in ["0", "3", "5", "7", "8", "9", "100"] {
        pair.agree("a/b", &[&format!("project_doc_max_bytes={most}")]);
    }
    pair.write("project/AGENTS.md", "ab€\n".repeat(8_000));
    pair.agree("a", &[]);
}

#[test]
fn blank_and_broken_documents() {
    let pair = Pair::new();
    pair.write("project/AGENTS.md", " \n \n")
        .write("project/a/AGENTS.md", b"na\xefve\0 <x> & ]]>\n")
        .write("project/a/b/AGENTS.override.md/file", "a folder");
    pair.agree("a/b", &["project_doc_max_bytes=10"]);
    pair.agree("a/b", &[]);
}

#[test]
fn root_markers() {
    let pair = Pair::new();
    pair.write("project/AGENTS.md", "root")
        .write("project/a/BUILD", "")
        .write("project/a/AGENTS.md", "a")
        .write("project/a/b/AGENTS.md", "b");
    for flag in ["[]", r#"["BUILD"]"#, r#"["nowhere"]"#, r#"[".git", "BUILD"]"#] {
        pair.agree("a/b", &[&format!("project_root_markers={flag}")]);
    }
}

#[test]
fn an_untrusted_project() {
    let pair = Pair::with(&Options { trusted: false, ..Options::default() });
    pair.write("project/AGENTS.md", "root");
    assert_eq!(pair.agree("", &[]).instructions, None);
    pair.write("home/.codex/AGENTS.md", "global");
    pair.agree("src", &[]);
}

#[test]
fn sandboxes() {
    let pair = Pair::new();
    pair.agree("", &[r#"sandbox_mode="read-only""#]);
    pair.agree("src", &[r#"sandbox_mode="danger-full-access""#]);
    let writable = r#"sandbox_mode="workspace-write""#;
    pair.agree("", &[writable, "sandbox_workspace_write.exclude_slash_tmp=true"]);
    pair.agree(
        "",
        &[
            writable,
            "sandbox_workspace_write.exclude_tmpdir_env_var=true",
            "sandbox_workspace_write.network_access=true",
            r#"sandbox_workspace_write.writable_roots=["/opt/x & 'y'", "/opt/<z>", "/opt/<z>"]"#,
        ],
    );
}

#[cfg(unix)]
#[test]
fn a_folder_that_is_a_link() {
    let pair = Pair::new();
    pair.write("project/AGENTS.md", "root").write("project/a/AGENTS.md", "a");
    let link = pair.codex.project().parent().unwrap().join("link");
    std::os::unix::fs::symlink(pair.codex.project().join("a"), &link).unwrap();
    // A process never sees the link it came through, so ours is given the folder behind it.
    let real: PathBuf = link.canonicalize().unwrap();
    assert_eq!(pair.ours(&real, &[]), pair.theirs(&link, &[]));
}
