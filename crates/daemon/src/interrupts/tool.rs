//! Tools that a webhook serves instead of a waiting client.

use std::time::Duration;

use bindery_client::tools::{Call, Output, Tool, ToolSet};
use bindery_core::surrogates::mended_bytes;
use serde_json::{Value, json};

use super::Hooks;
use super::hooks::Letter;
use crate::tenant::{HookTool, Tenant};

/// A tenant's tools.
pub(super) fn set(hooks: &Hooks, tenant: &Tenant) -> ToolSet {
    tenant.settings.tools.iter().fold(ToolSet::default(), |set, hook| {
        set.with(hook.name.clone(), tool(hooks, &tenant.name, hook))
    })
}

fn tool(hooks: &Hooks, tenant: &str, hook: &HookTool) -> Tool {
    let limit = Duration::from_secs(hook.timeout_seconds.clamp(1, 600));
    let (hooks, tenant, called) = (hooks.clone(), tenant.to_owned(), hook.clone());
    let execute = move |call: Call| {
        let (hooks, tenant, hook) = (hooks.clone(), tenant.clone(), called.clone());
        async move { run(&hooks, &tenant, &hook, call, limit).await }
    };
    // A moment more than the call itself, so that the better reason is told.
    Tool::new(hook.description.clone(), hook.input_schema.clone(), execute)
        .within(limit + Duration::from_secs(1))
}

async fn run(
    hooks: &Hooks,
    tenant: &str,
    hook: &HookTool,
    call: Call,
    limit: Duration,
) -> Result<Output, String> {
    let body = json!({
        "event": "tool.call",
        "tenant": tenant,
        "tool": hook.name,
        "callId": call.call_id,
        "input": call.input,
    });
    // A turn that is taken over may call again; the receiver tells it by the call's name.
    let id = call.call_id.to_string();
    let (url, secret, body) = (&hook.url, &hook.secret, body.to_string());
    let reply = hooks.call(Letter { url, secret, id: &id, body, limit }).await?;
    output(&reply)
}

/// `{"output": …}`: text as it is, anything else as JSON; `{"error": "…"}` fails the call.
fn output(reply: &[u8]) -> Result<Output, String> {
    let reply: Value = serde_json::from_slice(&mended_bytes(reply).0)
        .map_err(|err| format!("the tool's answer cannot be read: {err}"))?;
    if let Some(error) = reply.get("error") {
        return Err(error.as_str().map_or_else(|| error.to_string(), str::to_owned));
    }
    match reply.get("output") {
        Some(Value::String(text)) => Ok(Output::text(text.clone())),
        Some(value) => Ok(Output::json(value)),
        None => Err("the tool's answer has no `output`".to_owned()),
    }
}
