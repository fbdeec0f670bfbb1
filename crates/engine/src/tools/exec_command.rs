//! `exec_command` and `write_stdin`: commands that may outlive the call that started them.

use std::path::PathBuf;
use std::time::Instant;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::approve::{self, CommandAsk, Verdict};
use super::command::{self, Wanted};
use super::{Call, Cx, Ended, Tool, apply_patch};
use crate::exec::{self, State, shell, text, window};
use crate::model::ToolSpec;
use crate::patch::{heredoc, report};
use crate::truncate::{self, Budget};

/// Tokens of output a call gives, where the model wishes nothing.
const OUTPUT_TOKENS: usize = 10_000;

/// Starts a command.
pub(super) struct ExecCommand;

/// Writes to a running command, or looks at it.
pub(super) struct WriteStdin;

#[derive(Deserialize)]
struct Start {
    cmd: String,
    #[serde(default)]
    workdir: Option<PathBuf>,
    #[serde(default)]
    shell: Option<String>,
    #[serde(default = "yes")]
    login: bool,
    #[serde(default)]
    tty: bool,
    #[serde(default)]
    yield_time_ms: Option<u64>,
    #[serde(default)]
    max_output_tokens: Option<usize>,
    #[serde(flatten)]
    wishes: Wishes,
}

/// What a model says of a command that it wants more for.
#[derive(Default, Deserialize)]
pub(super) struct Wishes {
    #[serde(default)]
    pub(super) sandbox_permissions: Option<String>,
    /// The older word for the same.
    #[serde(default)]
    pub(super) with_escalated_permissions: Option<bool>,
    #[serde(default)]
    pub(super) justification: Option<String>,
    #[serde(default)]
    pub(super) prefix_rule: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Write {
    session_id: exec::Session,
    #[serde(default)]
    chars: String,
    #[serde(default)]
    yield_time_ms: Option<u64>,
    #[serde(default)]
    max_output_tokens: Option<usize>,
}

fn yes() -> bool {
    true
}

impl Wishes {
    pub(super) fn escalated(&self) -> bool {
        self.sandbox_permissions.as_deref() == Some("require_escalated")
            || self.with_escalated_permissions == Some(true)
    }

    /// The properties that every form of a command has.
    pub(super) fn properties() -> Value {
        json!({
            "sandbox_permissions": {
                "type": "string",
                "enum": ["use_default", "require_escalated"],
                "description": "`require_escalated` asks the user to run it without a sandbox.",
            },
            "justification": {
                "type": "string",
                "description": "With `require_escalated`: one question to the user, saying why.",
            },
            "prefix_rule": {
                "type": "array",
                "items": { "type": "string" },
                "description": "First words of the command that the user could allow for good.",
            },
        })
    }
}

/// A schema with the shared properties added.
pub(super) fn schema(mut own: Value, shared: Value, required: &[&str]) -> Value {
    if let (Some(own), Value::Object(shared)) = (own.as_object_mut(), shared) {
        own.extend(shared);
    }
    json!({
        "type": "object",
        "properties": own,
        "required": required,
        "additionalProperties": false,
    })
}

impl Tool for ExecCommand {
    fn name(&self) -> &'static str {
        "exec_command"
    }

    fn spec(&self) -> Option<ToolSpec> {
        let own = json!({
            "cmd": { "type": "string", "description": "A script for the user's shell." },
            "workdir": { "type": "string", "description": "Where to run it." },
            "shell": { "type": "string", "description": "`bash`, `zsh` or `sh`." },
            "login": { "type": "boolean", "description": "A login shell? Usually true." },
            "tty": { "type": "boolean", "description": "A terminal? Needed for input." },
            "yield_time_ms": {
                "type": "number",
                "description": "How long to wait for its end before you get what it wrote so far.",
            },
            "max_output_tokens": {
                "type": "number",
                "description": "Output beyond this loses its middle.",
            },
        });
        Some(ToolSpec::Function {
            name: self.name().to_owned(),
            description: "Runs a command. If it has not ended in time you get a session ID, with \
                which `write_stdin` reaches it."
                .to_owned(),
            parameters: schema(own, Wishes::properties(), &["cmd"]),
        })
    }

    fn parallel(&self) -> bool {
        true
    }

    fn call<'a>(&'a self, call: Call, cx: &'a Cx) -> BoxFuture<'a, Ended> {
        async move {
            match call.arguments() {
                Ok(start) => run(start, &call.id, cx).await.unwrap_or_else(|ended| ended),
                Err(ended) => ended,
            }
        }
        .boxed()
    }
}

async fn run(start: Start, id: &str, cx: &Cx) -> Result<Ended, Ended> {
    let cwd = command::folder(start.workdir.as_deref(), cx);
    match heredoc::Script::read(&start.cmd) {
        heredoc::Script::Patch { folder, text } => {
            let cwd = heredoc::Script::cwd(folder.as_deref(), &cwd);
            let begun = Instant::now();
            let output = apply_patch::apply(id, text, cwd, cx).await?;
            return Ok(Ended::text(report::shell_output(begun.elapsed(), &output)));
        }
        heredoc::Script::Bare => return Ok(Ended::text(heredoc::BARE)),
        heredoc::Script::Other => {}
    }
    let budget = budget(start.max_output_tokens, cx);
    let window = window::start(start.yield_time_ms);
    let started = command::start(start.wanted(cwd)?, id, cx).await?;
    let session = started.process.session();
    let chunk = cx.session.processes.collect(session, window, &CancellationToken::new()).await;
    let chunk = chunk.map_err(|error| Ended::text(format!("exec_command failed: {error}")))?;
    if let State::Exited(_) = chunk.state {
        started.told().await;
    }
    Ok(Ended::text(text::chunk(&chunk, budget)))
}

impl Start {
    fn wanted(self, cwd: PathBuf) -> Result<Wanted, Ended> {
        let shell = match &self.shell {
            None => shell::of_user(std::env::var_os("SHELL").as_deref()),
            Some(wish) => shell::named(wish).map(PathBuf::into_os_string).ok_or_else(|| {
                let why = "it is not one of this system's shells; leave `shell` out, or name \
                           `bash`, `zsh` or `sh`";
                Ended::text(format!("exec_command failed: cannot run in `{wish}`: {why}"))
            })?,
        };
        let argv = shell::argv(&shell, self.login, &self.cmd);
        let argv = argv.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        Ok(Wanted {
            argv,
            script: self.cmd,
            cwd,
            tty: self.tty,
            escalated: self.wishes.escalated(),
            justification: self.wishes.justification,
            prefix_rule: self.wishes.prefix_rule.filter(|rule| !rule.is_empty()),
        })
    }
}

/// What the model is sent of a call's output: as much as it wishes, and no more than it may get.
pub(super) fn budget(wish: Option<usize>, cx: &Cx) -> Budget {
    let wish = Budget::Tokens(wish.unwrap_or(OUTPUT_TOKENS));
    let most = cx.profile.truncation;
    if wish.bytes() < most.bytes() { wish } else { most }
}

/// An output that is too long, made shorter.
pub(super) fn shortened(output: &str, budget: Budget) -> Option<String> {
    (output.len() > budget.bytes()).then(|| truncate::cut(output, budget))
}

impl Tool for WriteStdin {
    fn name(&self) -> &'static str {
        "write_stdin"
    }

    fn spec(&self) -> Option<ToolSpec> {
        let own = json!({
            "session_id": { "type": "number", "description": "The command's session ID." },
            "chars": {
                "type": "string",
                "description": "What to type; nothing only waits, \\u0003 interrupts.",
            },
            "yield_time_ms": { "type": "number", "description": "How long to wait for output." },
            "max_output_tokens": {
                "type": "number",
                "description": "Output beyond this loses its middle.",
            },
        });
        Some(ToolSpec::Function {
            name: self.name().to_owned(),
            description: "Types into a running command and gives what it wrote since.".to_owned(),
            parameters: schema(own, json!({}), &["session_id"]),
        })
    }

    fn call<'a>(&'a self, call: Call, cx: &'a Cx) -> BoxFuture<'a, Ended> {
        async move {
            match call.arguments() {
                Ok(write) => reach(write, cx).await.unwrap_or_else(|ended| ended),
                Err(ended) => ended,
            }
        }
        .boxed()
    }
}

async fn reach(write: Write, cx: &Cx) -> Result<Ended, Ended> {
    let Write { session_id, chars, yield_time_ms, max_output_tokens } = write;
    let failed = |error| Ended::text(format!("write_stdin failed: {error}"));
    cx.session.processes.find(session_id).map_err(failed)?;
    let running = cx.session.find(session_id);
    let item_id = running.as_ref().map(|running| running.item_id.clone()).unwrap_or_default();
    if !chars.is_empty() {
        let fenced = running.is_some_and(|running| running.fenced);
        may_type(&chars, &item_id, fenced, cx).await?;
        let typed = json!({
            "itemId": item_id,
            "processId": session_id.to_string(),
            "stdin": chars,
        });
        cx.voice.tell("item/commandExecution/terminalInteraction", typed);
    }
    let window = window::write(&chars, yield_time_ms);
    let never = CancellationToken::new();
    let chunk = cx.session.processes.write(session_id, &chars, window, &never).await;
    let chunk = chunk.map_err(failed)?;
    if let State::Exited(_) = chunk.state {
        cx.session.told(session_id).await;
    }
    Ok(Ended::text(text::chunk(&chunk, budget(max_output_tokens, cx))))
}

/// Words typed into a shell are commands as well, so without a fence they are asked for like
/// commands. Interrupts are not: they can only end what runs.
async fn may_type(chars: &str, item_id: &str, fenced: bool, cx: &Cx) -> Result<(), Ended> {
    let harmless = chars.chars().all(|char| matches!(char, '\u{3}' | '\u{4}'));
    if harmless || fenced || cx.standing.sandbox.is_full_access() {
        return Ok(());
    }
    if !cx.standing.approval.asks_about_sandbox() {
        let why = "commands are not sandboxed here, and nobody may be asked";
        return Err(Ended::text(text::rejected(chars, why)));
    }
    let cwd = cx.standing.cwd.to_string_lossy();
    let ask = CommandAsk {
        item_id,
        kind: "writeStdin",
        command: chars,
        cwd: &cwd,
        reason: None,
        rule: None,
    };
    match approve::command(ask, cx).await {
        Verdict::Yes => Ok(()),
        Verdict::Cancel => Err(Ended::Cancelled),
        Verdict::No(why) => Err(Ended::text(text::rejected(chars, &why))),
        // Neither was offered: what is typed next is another thing altogether.
        Verdict::ForSession | Verdict::Always(_) => Ok(()),
    }
}
