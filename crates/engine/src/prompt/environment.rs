//! Where the model works: the `<environment_context>` block of Codex 0.166.

use std::path::Path;
use std::sync::LazyLock;

use super::context::ThreadScene;
use crate::config::{Home, SandboxMode};

/// How the block begins.
pub(super) const OPENING: &str = "<environment_context>";

/// Folders inside a writable root that stay closed, as both Codex's sandbox and ours keep them.
const CLOSED: [&str; 4] = [".git", ".agents", ".codex", ".aws"];

/// The block.
pub fn text(scene: &ThreadScene) -> String {
    let mut lines = vec![OPENING.to_owned()];
    let mut tag = |name: &str, value: Option<&str>| {
        lines.extend(value.map(|value| format!("  <{name}>{}</{name}>", escape(value))));
    };
    tag("cwd", Some(&scene.cwd.to_string_lossy()));
    tag("shell", scene.shell.as_deref());
    tag("current_date", Some(&scene.date));
    tag("timezone", scene.timezone.as_deref());
    lines.push(format!("  <filesystem>{}{}</filesystem>", roots(scene), profile(scene)));
    lines.push("</environment_context>".to_owned());
    lines.join("\n")
}

fn roots(scene: &ThreadScene) -> String {
    let root = |path: &std::path::PathBuf| format!("<root>{}</root>", shown(path));
    let roots: String = scene.roots().iter().map(root).collect();
    format!("<workspace_roots>{roots}</workspace_roots>")
}

fn profile(scene: &ThreadScene) -> String {
    match scene.sandbox.mode {
        SandboxMode::DangerFullAccess => "<permission_profile type=\"disabled\">\
            <file_system type=\"unrestricted\" /></permission_profile>"
            .to_owned(),
        SandboxMode::ReadOnly => managed(&special("read", ":root")),
        SandboxMode::WorkspaceWrite => managed(&writable(scene)),
    }
}

fn managed(entries: &str) -> String {
    format!(
        "<permission_profile type=\"managed\"><file_system type=\"restricted\">{entries}\
         </file_system></permission_profile>"
    )
}

/// What is read, what is written, and what stays closed in it, in Codex's order.
fn writable(scene: &ThreadScene) -> String {
    let roots = scene.roots();
    let mut entries = vec![special("read", ":root")];
    entries.extend(roots.iter().map(|root| path("write", root)));
    if !scene.sandbox.exclude_slash_tmp {
        entries.push(special("write", ":slash_tmp"));
    }
    if !scene.sandbox.exclude_tmpdir_env_var {
        entries.push(special("write", ":tmpdir"));
    }
    for name in CLOSED {
        entries.extend(roots.iter().map(|root| path("read", &root.join(name))));
    }
    entries.concat()
}

fn special(access: &str, name: &str) -> String {
    format!("<entry access=\"{access}\"><special>{name}</special></entry>")
}

fn path(access: &str, path: &Path) -> String {
    format!("<entry access=\"{access}\"><path>{}</path></entry>", shown(path))
}

fn shown(path: &Path) -> String {
    escape(&path.to_string_lossy())
}

/// Keeps a value inside its tag.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// The name of the user's shell: the login shell where it is one we know, else bash, as Codex
/// has it. `$SHELL` speaks for users whom the machine's own list does not name.
pub fn shell(home: &Home) -> String {
    let path = login_shell().or_else(|| home.variable("SHELL"));
    let name = path.and_then(|path| Path::new(path).file_stem()?.to_str());
    match name {
        Some(name @ ("bash" | "zsh" | "sh" | "fish" | "pwsh" | "powershell")) => name.to_owned(),
        _ if cfg!(windows) => "powershell".to_owned(),
        _ => "bash".to_owned(),
    }
}

/// Read once: nobody moves to another shell while a thread runs.
fn login_shell() -> Option<&'static str> {
    static LOGIN: LazyLock<Option<String>> = LazyLock::new(listed_shell);
    LOGIN.as_deref()
}

#[cfg(unix)]
fn listed_shell() -> Option<String> {
    let user = rustix::process::getuid().as_raw().to_string();
    let list = std::fs::read_to_string("/etc/passwd").ok()?;
    let mut fields = list.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let line = fields.find(|fields| fields.get(2) == Some(&user.as_str()))?;
    line.get(6).filter(|shell| !shell.is_empty()).map(|shell| (*shell).to_owned())
}

#[cfg(not(unix))]
fn listed_shell() -> Option<String> {
    None
}
