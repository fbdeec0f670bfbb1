//! Settings of a call → settings of thread and turn; what Codex does not have is noted.

use serde_json::{Map, Value};

use super::ThreadChoice;
use super::instructions::Instructions;
use super::notes::Notes;
use super::own::Own;
use crate::call::{CallOptions, ResponseFormat, ToolChoice};
use crate::open::Open;
use crate::settings::{THREAD_KEYS, TURN_KEYS};
use crate::wire::app_server::params::{ThreadSettings, TurnSettings};

/// Reads the settings of a call.
pub(super) fn read(
    options: &CallOptions,
    own: &Own,
    instructions: Instructions,
    thread: &ThreadChoice,
    notes: &mut Notes<'_>,
) -> (ThreadSettings, TurnSettings) {
    note_rest(&options.rest, notes);
    note_headers(options, notes);
    note_tool_choice(options.tool_choice.as_ref(), notes);
    let turn = TurnSettings {
        effort: own.effort.clone().or_else(|| effort(options, notes)),
        summary: own.summary.clone(),
        sandbox_policy: own.sandbox_policy.clone(),
        output_schema: output_schema(options.response_format.as_ref(), notes),
        extra: extra(&own.turn_extra, "turnExtra", TURN_KEYS, notes),
        ..shared(own, thread)
    };
    (thread_settings(own, instructions, notes), turn)
}

fn thread_settings(own: &Own, instructions: Instructions, notes: &mut Notes<'_>) -> ThreadSettings {
    ThreadSettings {
        model: own.model.clone(),
        model_provider: own.model_provider.clone(),
        cwd: own.cwd.clone(),
        approval_policy: own.approval_policy.clone(),
        approvals_reviewer: own.approvals_reviewer.clone(),
        sandbox: own.sandbox.clone(),
        base_instructions: instructions.base,
        developer_instructions: instructions.developer,
        config: own.config.clone(),
        extra: extra(&own.thread_extra, "threadExtra", THREAD_KEYS, notes),
    }
}

/// What a thread that is still open can only be told with the turn; a new one has it already.
fn shared(own: &Own, thread: &ThreadChoice) -> TurnSettings {
    if !matches!(thread, ThreadChoice::Resume(_)) {
        return TurnSettings::default();
    }
    TurnSettings {
        model: own.model.clone(),
        cwd: own.cwd.clone(),
        approval_policy: own.approval_policy.clone(),
        approvals_reviewer: own.approvals_reviewer.clone(),
        ..TurnSettings::default()
    }
}

/// Parameters that have a place of their own are left out; a second one would double a JSON key.
fn extra(
    given: &Map<String, Value>,
    name: &str,
    taken: &[&str],
    notes: &mut Notes<'_>,
) -> Map<String, Value> {
    let mut extra = given.clone();
    for key in taken {
        if extra.remove(*key).is_some() {
            let feature = format!("providerOptions.codex.{name}.{key}");
            notes.unsupported(feature, "it has an option of its own or is ours to set; left out");
        }
    }
    extra
}

fn effort(options: &CallOptions, notes: &mut Notes<'_>) -> Option<String> {
    let word = options.reasoning.as_deref()?;
    match word {
        "provider-default" => None,
        "none" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max" => Some(word.to_owned()),
        _ => {
            let details = format!("no effort is called `{word}`; `effort` takes any word");
            notes.unsupported("reasoning", details);
            None
        }
    }
}

fn output_schema(format: Option<&Open<ResponseFormat>>, notes: &mut Notes<'_>) -> Option<Value> {
    match format? {
        Open::Known(ResponseFormat::Text) => None,
        Open::Known(ResponseFormat::Json { schema, name, description }) => {
            if schema.is_none() {
                notes.unsupported("responseFormat", "Codex takes JSON only with a schema");
            }
            if name.is_some() || description.is_some() {
                notes.unsupported(
                    "responseFormat.name, responseFormat.description",
                    "Codex names the schema itself; the schema's own `title` and `description` \
                     reach the model",
                );
            }
            schema.clone()
        }
        Open::Unknown { why, .. } => {
            notes.unsupported("responseFormat", why);
            None
        }
    }
}

fn note_tool_choice(choice: Option<&Open<ToolChoice>>, notes: &mut Notes<'_>) {
    let name = match choice {
        None | Some(Open::Known(ToolChoice::Auto)) => return,
        Some(Open::Known(ToolChoice::None)) => "none",
        Some(Open::Known(ToolChoice::Required)) => "required",
        Some(Open::Known(ToolChoice::Tool { tool_name })) => tool_name,
        Some(Open::Unknown { why, .. }) => why,
    };
    let details = format!("`{name}` left out: in Codex the model always chooses");
    notes.unsupported("toolChoice", details);
}

/// Header values can be secret, so only names are told. The SDK itself always sets `user-agent`.
fn note_headers(options: &CallOptions, notes: &mut Notes<'_>) {
    let headers = options.headers.iter().flatten().filter(|(_, value)| !value.is_null());
    let names: Vec<&str> = headers
        .map(|(name, _)| name.as_str())
        .filter(|name| !name.eq_ignore_ascii_case("user-agent"))
        .collect();
    if !names.is_empty() {
        let details = format!("Codex makes the requests; left out: {}", names.join(", "));
        notes.unsupported("headers", details);
    }
}

fn note_rest(rest: &Map<String, Value>, notes: &mut Notes<'_>) {
    // The front that took the call watches the signal; as JSON it is an empty object.
    for (name, _) in rest.iter().filter(|(name, v)| !v.is_null() && *name != "abortSignal") {
        let details = match name.as_str() {
            "temperature" | "topP" | "topK" | "seed" | "presencePenalty" | "frequencyPenalty" => {
                "Codex leaves sampling to the model"
            }
            "stopSequences" => "Codex turns end when the model is done",
            "maxOutputTokens" => "Codex has no limit per call",
            _ => "no such setting is known",
        };
        notes.unsupported(name, details);
    }
}
