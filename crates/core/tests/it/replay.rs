//! Every recording replays without an unlisted unknown, and its parts read right.

use std::collections::BTreeMap;

use bindery_core::content::Gather;
use bindery_core::part::Part;
use bindery_core::spec::{Spec, codex_of};
use bindery_core::transcript::Transcript;
use serde_json::Value;

use crate::recording;

#[test]
fn no_recording_holds_an_unlisted_unknown() {
    let mut strange = BTreeMap::new();
    for name in recording::names() {
        for part in recording::parts(&name).into_iter().flatten() {
            if let Part::Custom { kind, provider_metadata } = &part
                && kind == "codex.unknown"
            {
                strange.entry(name.clone()).or_insert_with(|| format!("{provider_metadata:?}"));
            }
        }
    }
    assert_eq!(strange, BTreeMap::new());
}

#[test]
fn every_stream_keeps_the_contract() {
    for name in recording::names() {
        for (index, parts) in recording::parts(&name).iter().enumerate() {
            if let Err(breach) = check(parts) {
                panic!("{name}, turn {index}: {breach}\n{}", sketch(parts));
            }
        }
    }
}

#[test]
fn a_mapper_made_again_from_what_it_told_goes_on_as_it_would_have() {
    for name in recording::names() {
        // What a sub-agent used is told at its end only, so nothing remembers it.
        let line = |line: &str| match line.starts_with("custom codex.subagent | finish") {
            true => line.split(" in=").next().unwrap().to_owned(),
            false => line.to_owned(),
        };
        let lines = |parts: &Vec<Part>| sketch(parts).lines().map(line).collect::<Vec<_>>();
        let sketches = |turns: Vec<Vec<Part>>| turns.iter().map(lines).collect::<Vec<_>>();
        let (whole, recalled) = (recording::parts(&name), recording::recalled_parts(&name));
        assert_eq!(sketches(recalled), sketches(whole), "{name}");
    }
}

#[test]
fn parts_read_right() {
    for name in recording::names() {
        let turns: Vec<String> = recording::parts(&name).iter().map(|p| sketch(p)).collect();
        insta::with_settings!({ snapshot_path => "snapshots/parts", prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!(name.clone(), turns.join("\n"));
        });
    }
}

#[test]
fn both_specifications_write_every_part() {
    for name in recording::names() {
        for part in recording::parts(&name).into_iter().flatten() {
            let v4 = part.to_json(Spec::V4).unwrap();
            assert_eq!(serde_json::from_value::<Part>(v4.clone()).unwrap(), part, "{v4}");
            let v3 = part.to_json(Spec::V3).unwrap();
            assert!(v3["type"] != "custom" && v3["finishReason"]["unified"] != "interrupted");
        }
    }
}

#[test]
fn the_transcript_says_what_the_answer_says() {
    for name in recording::names() {
        for parts in recording::parts(&name) {
            let (mut transcript, mut gather) = (Transcript::default(), Gather::new(Spec::V4));
            parts.iter().for_each(|part| {
                transcript.apply(part);
                gather.push(part);
            });
            let on_the_way = |piece: &Value| {
                piece["type"] == "reasoning"
                    && piece["providerMetadata"]["codex"]["phase"] == "commentary"
            };
            let said: Vec<Value> = (gather.finish().content.into_iter())
                .filter(|piece| piece["type"] == "text" || on_the_way(piece))
                .filter(|piece| piece["text"] != "")
                .map(|piece| piece["text"].clone())
                .collect();
            let written: Vec<Value> = (transcript.turns.iter().flat_map(|turn| &turn.items))
                .filter(|item| item.agent.is_none())
                .filter_map(|item| serde_json::to_value(item).ok())
                .filter(|item| item["kind"] == "message" && item["text"] != "")
                .map(|item| item["text"].clone())
                .collect();
            assert_eq!(said, written, "{name}");
        }
    }
}

/// The rules of the contract that hold for every stream.
pub(crate) fn check(parts: &[Part]) -> Result<(), String> {
    let mut open: Vec<String> = Vec::new();
    let mut called: Vec<String> = Vec::new();
    let mut answered: Vec<String> = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        match part {
            Part::StreamStart { .. } if index > 0 => return Err("started twice".into()),
            Part::TextStart(run) | Part::ReasoningStart(run) => open.push(run.id.to_string()),
            Part::TextDelta(delta) | Part::ReasoningDelta(delta) => {
                let is_open = open.contains(&delta.id.to_string());
                is_open.then_some(()).ok_or(format!("delta of closed {}", delta.id))?;
            }
            Part::TextEnd { id, .. } => close(&mut open, id.as_str())?,
            Part::ReasoningEnd(run) => close(&mut open, run.id.as_str())?,
            Part::ToolCall(call) => called.push(call.tool_call_id.to_string()),
            Part::ToolResult(result) => {
                let id = result.tool_call_id.to_string();
                called.contains(&id).then_some(()).ok_or(format!("result before call {id}"))?;
                (!answered.contains(&id)).then_some(()).ok_or(format!("{id} answered twice"))?;
                if !result.preliminary {
                    answered.push(id);
                }
            }
            Part::ToolApprovalRequest { tool_call_id, .. } => {
                let known = called.contains(&tool_call_id.to_string());
                known.then_some(()).ok_or(format!("approval before call {tool_call_id}"))?;
            }
            Part::Finish { .. } if index + 1 < parts.len() => {
                return Err("finish is not last".into());
            }
            _ => {}
        }
    }
    let finished = matches!(parts.last(), Some(Part::Finish { .. }));
    if finished && (!open.is_empty() || called.len() != answered.len()) {
        return Err(format!("left open: {open:?}; called {called:?}, answered {answered:?}"));
    }
    Ok(())
}

fn close(open: &mut Vec<String>, id: &str) -> Result<(), String> {
    let at = open.iter().position(|known| known == id).ok_or(format!("{id} is not open"))?;
    open.remove(at);
    Ok(())
}

/// One line a part; names that differ from run to run are left out.
pub(crate) fn sketch(parts: &[Part]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        let line = line(part);
        match (lines.last_mut(), part) {
            (Some(last), Part::TextDelta(_) | Part::ReasoningDelta(_))
                if last.starts_with("  +") =>
            {
                last.push_str(&line[3..]);
            }
            _ => lines.push(line),
        }
    }
    lines.join("\n") + "\n"
}

fn line(part: &Part) -> String {
    match part {
        Part::StreamStart { .. } => "stream-start".into(),
        Part::ResponseMetadata { .. } => "response-metadata".into(),
        Part::TextStart(run) => format!("text-start {}", short(run.id.as_str())),
        Part::ReasoningStart(run) => format!("reasoning-start {}", run.id),
        Part::TextDelta(delta) | Part::ReasoningDelta(delta) => format!("  +{:?}", delta.delta),
        Part::TextEnd { id, provider_metadata, .. } => {
            let details =
                details(provider_metadata.as_ref(), &["phase", "discarded", "incomplete", "text"]);
            format!("text-end {}{details}", short(id.as_str()))
        }
        Part::ReasoningEnd(run) => format!("reasoning-end {}", run.id),
        Part::ToolInputStart(start) => {
            let flags = format!("executed={} dynamic={}", start.provider_executed, start.dynamic);
            format!("tool-input-start {} {flags}", start.tool_name)
        }
        Part::ToolInputDelta(_) => "tool-input-delta".into(),
        Part::ToolInputEnd(_) => "tool-input-end".into(),
        Part::ToolCall(call) => format!("tool-call {} {}", call.tool_name, cut(&call.input)),
        Part::ToolResult(result) => {
            let result_text = outcome(&result.result);
            let mark = if result.preliminary { " preliminary" } else { "" };
            let error = if result.is_error { " error" } else { "" };
            format!("tool-result {}{mark}{error} {result_text}", result.tool_name)
        }
        Part::ToolApprovalRequest { approval_id, provider_metadata, .. } => {
            let kind = details(provider_metadata.as_ref(), &["kind", "reason"]);
            format!("tool-approval-request {approval_id}{kind}")
        }
        Part::Custom { kind, provider_metadata } => {
            let keys = [
                "topic", "text", "message", "kind", "phase", "review", "activity", "steering",
                "content",
            ];
            let mut line = format!("custom {kind}{}", details(provider_metadata.as_ref(), &keys));
            let nested = codex_of(provider_metadata.as_ref()).and_then(|d| d.get("part"));
            if let Some(part) = nested.and_then(|p| serde_json::from_value(p.clone()).ok()) {
                line = format!("{line} | {}", self::line(&part).trim_start());
            }
            line
        }
        Part::Error { error } => format!("error {error}"),
        Part::Finish { usage, finish_reason, .. } => {
            let reason = serde_json::to_string(finish_reason).unwrap();
            let (input, output) = (usage.input_tokens.total, usage.output_tokens.total);
            format!("finish {reason} in={input:?} out={output:?}")
        }
        other => cut(&serde_json::to_string(other).unwrap()),
    }
}

fn details(metadata: Option<&bindery_core::spec::Metadata>, keys: &[&str]) -> String {
    let details = codex_of(metadata);
    let shown = keys.iter().filter_map(|key| Some((key, details?.get(*key)?)));
    shown.map(|(key, value)| format!(" {key}={}", cut(&value.to_string()))).collect()
}

fn outcome(result: &Value) -> String {
    let keys =
        ["status", "exitCode", "delta", "aggregatedOutput", "success", "plan", "query", "result"];
    let shown = keys.iter().filter_map(|key| Some((key, result.get(*key)?)));
    let shown = shown.filter(|(_, value)| !value.is_null());
    shown
        .map(|(key, value)| format!("{key}={}", cut(&value.to_string())))
        .collect::<Vec<_>>()
        .join(" ")
}

/// UUIDs differ from run to run.
fn short(id: &str) -> String {
    if id.len() == 36 { "<uuid>".into() } else { id.into() }
}

fn cut(text: &str) -> String {
    let cut: String = text.chars().take(160).collect();
    if cut.len() < text.len() { format!("{cut}…") } else { cut }
}
