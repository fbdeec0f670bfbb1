//! `shell` and `shell_command`: the older forms, which wait for the command's end.

use std::path::PathBuf;
use std::time::Instant;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::command::{self, Wanted};
use super::exec_command::{Wishes, budget, schema, shortened};
use super::{Call, Cx, Ended, Tool, apply_patch};
use crate::exec::{Ran, shell, text, window};
use crate::model::ToolSpec;
use crate::patch::{heredoc, report};

/// Takes a program and its arguments.
pub(super) struct Shell;

/// Takes a line for the shell.
pub(super) struct ShellCommand;

#[derive(Deserialize)]
struct Words {
    command: Vec<String>,
    #[serde(flatten)]
    rest: Rest,
}

#[derive(Deserialize)]
struct Line {
    command: String,
    #[serde(default = "yes")]
    login: bool,
    #[serde(flatten)]
    rest: Rest,
}

#[derive(Deserialize)]
struct Rest {
    #[serde(default)]
    workdir: Option<PathBuf>,
    #[serde(default, alias = "timeout")]
    timeout_ms: Option<u64>,
    #[serde(flatten)]
    wishes: Wishes,
}

fn yes() -> bool {
    true
}

impl Tool for Shell {
    fn name(&self) -> &'static str {
        "shell"
    }

    fn spec(&self) -> Option<ToolSpec> {
        let own = json!({
            "command": {
                "type": "array",
                "items": { "type": "string" },
                "description": "The program and its arguments.",
            },
            "workdir": { "type": "string", "description": "Where to run it." },
            "timeout_ms": { "type": "number", "description": "It is ended after this long." },
        });
        Some(ToolSpec::Function {
            name: self.name().to_owned(),
            description: "Runs a program and waits for its end. For a script give \
                `[\"bash\", \"-lc\", script]`."
                .to_owned(),
            parameters: schema(own, Wishes::properties(), &["command"]),
        })
    }

    fn parallel(&self) -> bool {
        true
    }

    fn call<'a>(&'a self, call: Call, cx: &'a Cx) -> BoxFuture<'a, Ended> {
        async move {
            let Words { mut command, rest } = match call.arguments() {
                Ok(words) => words,
                Err(ended) => return ended,
            };
            // A shell is the system's own, whatever a search path would lead to.
            if let Some(program) = command.first_mut().filter(|program| !program.contains('/'))
                && let Some(shell) = shell::named(program)
            {
                *program = shell.to_string_lossy().into_owned();
            }
            let script = script_of(&command).unwrap_or_else(|| command::shown(&command));
            let ran = run(command, script, rest, &call.id, cx).await;
            ran.map(|ran| Ended::text(ran.text(cx, text::shell))).unwrap_or_else(|ended| ended)
        }
        .boxed()
    }
}

impl Tool for ShellCommand {
    fn name(&self) -> &'static str {
        "shell_command"
    }

    fn spec(&self) -> Option<ToolSpec> {
        let own = json!({
            "command": { "type": "string", "description": "A script for the user's shell." },
            "workdir": { "type": "string", "description": "Where to run it." },
            "login": { "type": "boolean", "description": "A login shell? Usually true." },
            "timeout_ms": { "type": "number", "description": "It is ended after this long." },
        });
        Some(ToolSpec::Function {
            name: self.name().to_owned(),
            description: "Runs a script in the user's shell and waits for its end.".to_owned(),
            parameters: schema(own, Wishes::properties(), &["command"]),
        })
    }

    fn parallel(&self) -> bool {
        true
    }

    fn call<'a>(&'a self, call: Call, cx: &'a Cx) -> BoxFuture<'a, Ended> {
        async move {
            let Line { command, login, rest } = match call.arguments() {
                Ok(line) => line,
                Err(ended) => return ended,
            };
            let shell = shell::of_user(std::env::var_os("SHELL").as_deref());
            let argv = shell::argv(&shell, login, &command);
            let argv = argv.iter().map(|word| word.to_string_lossy().into_owned()).collect();
            let ran = run(argv, command, rest, &call.id, cx).await;
            ran.map(|ran| Ended::text(ran.text(cx, text::command))).unwrap_or_else(|ended| ended)
        }
        .boxed()
    }
}

/// What came of it.
enum Came {
    /// A command that ran.
    Ran(Ran, std::time::Duration),
    /// A patch that was given as a command.
    Patched(String),
}

async fn run(
    argv: Vec<String>,
    script: String,
    rest: Rest,
    id: &str,
    cx: &Cx,
) -> Result<Came, Ended> {
    let cwd = command::folder(rest.workdir.as_deref(), cx);
    if let Some(patch) = patch_in(&argv, &script) {
        return patched(patch, cwd, id, cx).await.map(Came::Patched);
    }
    let wanted = Wanted {
        argv,
        script,
        cwd,
        tty: false,
        escalated: rest.wishes.escalated(),
        justification: rest.wishes.justification,
        prefix_rule: rest.wishes.prefix_rule.filter(|rule| !rule.is_empty()),
    };
    let limit = window::limit(rest.timeout_ms);
    let started = command::start(wanted, id, cx).await?;
    let never = CancellationToken::new();
    let ran = cx.session.processes.finish(&started.process, limit, &never).await;
    started.told().await;
    Ok(Came::Ran(ran, limit))
}

/// `["apply_patch", patch]` is one too.
fn patch_in(argv: &[String], script: &str) -> Option<heredoc::Script> {
    match argv {
        [program, text] if program == "apply_patch" || program == "applypatch" => {
            Some(heredoc::Script::Patch { folder: None, text: text.clone() })
        }
        _ => Some(heredoc::Script::read(script)).filter(|read| *read != heredoc::Script::Other),
    }
}

async fn patched(
    script: heredoc::Script,
    cwd: PathBuf,
    id: &str,
    cx: &Cx,
) -> Result<String, Ended> {
    let heredoc::Script::Patch { folder, text } = script else {
        return Err(Ended::text(heredoc::BARE));
    };
    let begun = Instant::now();
    let cwd = heredoc::Script::cwd(folder.as_deref(), &cwd);
    let output = apply_patch::apply(id, text, cwd, cx).await?;
    Ok(report::shell_output(begun.elapsed(), &output))
}

/// The script in `bash -lc script`.
fn script_of(argv: &[String]) -> Option<String> {
    match argv {
        [shell, flag, script] if flag == "-lc" || flag == "-c" => {
            let name = std::path::Path::new(shell).file_name()?;
            ["bash", "sh", "zsh"].iter().any(|known| name == *known).then(|| script.clone())
        }
        _ => None,
    }
}

impl Came {
    fn text(self, cx: &Cx, form: fn(&crate::exec::Ending, Option<&str>) -> String) -> String {
        let (mut ran, limit) = match self {
            Self::Ran(ran, limit) => (ran, limit),
            Self::Patched(output) => return output,
        };
        if ran.timed_out {
            ran.ending.output.insert_str(0, &text::timed_out(limit));
        }
        let cut = shortened(&ran.ending.output, budget(None, cx));
        form(&ran.ending, cut.as_deref())
    }
}
