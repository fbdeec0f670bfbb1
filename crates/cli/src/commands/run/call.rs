//! The command line → a call of the language model.

use std::io::{IsTerminal, Read};
use std::path::Path;

use anyhow::Context;
use bindery::CallOptions;
use bindery::core::ids::ThreadId;
use bindery::core::spec::PROVIDER_KEY;
use bindery::core::wire::app_server::params::ThreadSettings;
use serde_json::{Map, Value, json};

use super::Run;
use crate::failure::Hinted;

/// The longest prompt read from stdin; a model's window is smaller by far.
const PROMPT_LIMIT: u64 = 16 * 1024 * 1024;

/// The prompt: the argument, or stdin for `-` or for a pipe.
pub(in crate::commands) fn prompt_text(argument: Option<&str>) -> anyhow::Result<String> {
    let text = match argument {
        Some("-") => stdin()?,
        Some(text) => text.to_owned(),
        None if !std::io::stdin().is_terminal() => stdin()?,
        None => return Err(no_prompt()),
    };
    if text.trim().is_empty() {
        return Err(no_prompt());
    }
    Ok(text)
}

fn no_prompt() -> anyhow::Error {
    Hinted::misuse(
        "there is no prompt",
        "bindery run \"what to do\", or pipe it: … | bindery run -",
    )
}

fn stdin() -> anyhow::Result<String> {
    let mut text = String::new();
    std::io::stdin()
        .lock()
        .take(PROMPT_LIMIT + 1)
        .read_to_string(&mut text)
        .context("cannot read the prompt from stdin")?;
    anyhow::ensure!(text.len() as u64 <= PROMPT_LIMIT, "the prompt is longer than 16 MiB");
    Ok(text)
}

/// The call: text, images, effort, schema.
pub(super) fn options(run: &Run, text: &str) -> anyhow::Result<CallOptions> {
    let mut content = Vec::new();
    for image in &run.image {
        content.push(image_part(image)?);
    }
    for file in &run.file {
        content.push(json!({ "type": "text", "text": attached(file)? }));
    }
    content.push(json!({ "type": "text", "text": text }));
    let mut codex = Map::new();
    if let Some(effort) = &run.effort {
        codex.insert("effort".to_owned(), json!(effort));
    }
    if run.ephemeral {
        codex.insert("ephemeral".to_owned(), json!(true));
    }
    let mut options = json!({
        "prompt": [{ "role": "user", "content": content }],
        "providerOptions": { PROVIDER_KEY: codex },
    });
    if let Some(path) = &run.output_schema {
        options["responseFormat"] = json!({ "type": "json", "schema": schema(path)? });
    }
    serde_json::from_value(options).context("the call cannot be built")
}

/// Goes on with a thread, or with a copy of it.
pub(super) fn resume(options: &mut CallOptions, thread: &ThreadId, fork: bool) {
    let codex = own(options);
    codex["threadId"] = json!(thread);
    if fork {
        codex["fork"] = json!(true);
    }
}

/// Runs the turn in this sandbox.
pub(super) fn keep_policy(options: &mut CallOptions, policy: Value) {
    own(options)["sandboxPolicy"] = policy;
}

/// The call's options of our own.
fn own(options: &mut CallOptions) -> &mut Value {
    let providers = options.provider_options.get_or_insert_default();
    providers.entry(PROVIDER_KEY).or_insert_with(|| json!({}))
}

/// What the thread is opened with.
pub(super) fn thread_settings(run: &Run, cwd: &Path) -> ThreadSettings {
    ThreadSettings {
        model: run.model.clone(),
        cwd: Some(cwd.display().to_string()),
        approval_policy: run.approve.policy().map(Value::from),
        sandbox: run.sandbox.map(|sandbox| sandbox.name().to_owned()),
        ..ThreadSettings::default()
    }
}

/// Codex reads the file itself, so it goes as an address and not as bytes.
fn image_part(path: &Path) -> anyhow::Result<Value> {
    let path = path.canonicalize().with_context(|| format!("no image `{}`", path.display()))?;
    Ok(json!({
        "type": "file",
        "mediaType": "image/*",
        "data": { "type": "url", "url": format!("file://{}", path.display()) },
    }))
}

/// A text file as the model is shown it, whatever runs the turn.
pub(in crate::commands) fn attached(path: &Path) -> anyhow::Result<String> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    Ok(bindery::engine::prompt::attach::text_file(&path)?)
}

fn schema(path: &Path) -> anyhow::Result<Value> {
    let name = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("no schema `{name}`"))?;
    let schema: Value =
        serde_json::from_str(&text).with_context(|| format!("`{name}` is not JSON"))?;
    anyhow::ensure!(schema.is_object(), "`{name}` is not a JSON Schema: it must be an object");
    Ok(schema)
}
