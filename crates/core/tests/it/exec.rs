//! Every recording of `codex exec --json`, of every version, through the mappers.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use bindery_core::map::exec_to_ndjson::{Baseline, ExecMapper, Exit, Options};
use bindery_core::map::exec_to_part::ExecParts;
use bindery_core::ndjson::{Dialect, Tokens};
use bindery_core::part::Part;
use bindery_core::transcript::Transcript;
use bindery_core::usage::Unified;
use serde_json::Value;

/// The sizes of chunks in which each stream is fed.
const SIZES: [usize; 5] = [1, 3, 7, 64, usize::MAX];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/exec")
}

/// `version/name` of every recording, with its bytes.
fn recordings() -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for version in fs::read_dir(folder()).unwrap() {
        let version = version.unwrap();
        for file in fs::read_dir(version.path()).unwrap() {
            let path = file.unwrap().path();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let version = version.file_name().to_string_lossy().into_owned();
            found.insert(format!("{version}/{name}"), fs::read(&path).unwrap());
        }
    }
    assert!(found.len() > 500, "{} recordings", found.len());
    found
}

fn recording(name: &str) -> Vec<u8> {
    fs::read(folder().join(format!("{name}.jsonl"))).unwrap()
}

/// What the run that was recorded must have come to: by what it was about, not by its lines.
fn is_failure(name: &str) -> bool {
    let (version, scenario) = name.split_once('/').unwrap();
    let scenario = scenario.trim_start_matches("session_");
    let is_old = |minor: u32| version.split('.').nth(1).unwrap().parse::<u32>().unwrap() < minor;
    match scenario {
        "failed"
        | "http400"
        | "http401"
        | "http429"
        | "http500"
        | "drop_stream"
        | "incomplete"
        | "missing_key"
        | "resp_failed"
        | "config_error"
        | "resume_missing"
        | "ctxlen"
        | "interrupted_sigint"
        | "interrupted_sigterm"
        | "sigintslow"
        | "sigkill" => true,
        // 0.72 gave the signal to the command alone, and the turn went on to its end.
        "sigint" => version != "0.72.0",
        // 0.25 and older end before the turn when they are given an image.
        "image" => is_old(36),
        _ => false,
    }
}

/// The exit code of the recorded run; 0.42 and older exit with 0 whatever happens.
fn exit(name: &str) -> Exit {
    if is_failure(name) { Exit::code(1) } else { Exit::code(0) }
}

fn map(bytes: &[u8], size: usize, options: Options, exit: &Exit) -> Vec<u8> {
    let mut mapper = ExecMapper::new(options);
    let mut out = Vec::new();
    bytes.chunks(size).for_each(|chunk| mapper.push_into(chunk, &mut out));
    mapper.flush_into(exit, &mut out);
    out
}

fn events(out: &[u8]) -> Vec<Value> {
    let lines = out.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
}

fn of<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

#[test]
fn every_recording_maps_the_same_at_any_chunk_size() {
    for (name, bytes) in recordings() {
        let whole = map(&bytes, usize::MAX, Options::default(), &exit(&name));
        for size in SIZES {
            let got = map(&bytes, size, Options::default(), &exit(&name));
            assert!(got == whole, "{name} in chunks of {size}");
        }
    }
}

#[test]
fn every_recording_ends_with_one_result_of_the_right_status() {
    let mut wrong = Vec::new();
    for (name, bytes) in recordings() {
        let events = events(&map(&bytes, usize::MAX, Options::default(), &exit(&name)));
        assert_eq!(of(&events, "result").len(), 1, "{name}");
        let last = events.last().unwrap();
        assert_eq!(last["type"], "result", "{name}");
        let want = if is_failure(&name) { "error" } else { "success" };
        if last["status"] != want {
            wrong.push(format!("{name}: {last}"));
        }
        let told = of(&events, "error").iter().filter(|event| event["fatal"] == true).count();
        if told != usize::from(last["status"] == "error") {
            wrong.push(format!("{name}: {told} fatal errors"));
        }
    }
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn every_tool_call_of_every_recording_is_paired() {
    for (name, bytes) in recordings() {
        let events = events(&map(&bytes, usize::MAX, Options::default(), &exit(&name)));
        let mut open = BTreeSet::new();
        let mut seen = BTreeSet::new();
        for event in &events {
            let id = event["tool_id"].to_string();
            match event["type"].as_str().unwrap() {
                "tool_use" => {
                    assert!(seen.insert(id.clone()), "{name}: {id} twice");
                    open.insert(id);
                }
                "tool_result" => assert!(open.remove(&id), "{name}: {id} has no call"),
                _ => {}
            }
        }
        assert!(open.is_empty(), "{name}: {open:?} without result");
    }
}

#[test]
fn no_recording_holds_a_line_unknown_to_us() {
    let mut unknown = Vec::new();
    for (name, bytes) in recordings() {
        let events = events(&map(&bytes, usize::MAX, Options::default(), &exit(&name)));
        unknown.extend(of(&events, "unknown").iter().map(|event| format!("{name}: {event}")));
    }
    assert_eq!(unknown, [""; 0]);
}

#[test]
fn compat_uses_only_the_original_words() {
    const KNOWN: [&str; 6] = ["init", "message", "tool_use", "tool_result", "stderr", "artifact"];
    for (name, bytes) in recordings() {
        let options = Options { dialect: Dialect::Compat, ..Options::default() };
        let events = events(&map(&bytes, usize::MAX, options, &exit(&name)));
        for event in events {
            assert!(KNOWN.contains(&event["type"].as_str().unwrap()), "{name}: {event}");
        }
    }
}

#[test]
fn the_tokens_of_a_resumed_turn_are_its_own() {
    let before = Tokens {
        input_tokens: 200,
        cached_input_tokens: 20,
        output_tokens: 40,
        reasoning_output_tokens: 10,
        ..Tokens::default()
    };
    let options = Options { baseline: Baseline::Known(before), ..Options::default() };
    let bytes = recording("0.166.0/resume");
    let events = events(&map(&bytes, usize::MAX, options, &Exit::code(0)));
    let usage = of(&events, "usage")[0];
    let turn = (&usage["turn"]["input_tokens"], &usage["turn"]["output_tokens"]);
    assert_eq!(turn, (&100.into(), &20.into()));
    assert_eq!(usage["total"]["input_tokens"], 300);
}

fn parts(bytes: &[u8], size: usize, exit: &Exit) -> Vec<Part> {
    let mut mapper = ExecParts::new(Options::default());
    let mut parts: Vec<Part> = bytes.chunks(size).flat_map(|chunk| mapper.push(chunk)).collect();
    parts.extend(mapper.flush(exit));
    parts
}

#[test]
fn every_recording_gives_well_formed_parts() {
    for (name, bytes) in recordings() {
        let whole = parts(&bytes, usize::MAX, &exit(&name));
        for size in [7, 64] {
            assert!(parts(&bytes, size, &exit(&name)) == whole, "{name} in chunks of {size}");
        }
        assert!(matches!(whole[0], Part::StreamStart { .. }), "{name}");
        let Some(Part::Finish { finish_reason, .. }) = whole.last() else { panic!("{name}") };
        let stopped = finish_reason.unified == Unified::Stop;
        assert_eq!(stopped, !is_failure(&name), "{name}");
        let finishes = whole.iter().filter(|part| matches!(part, Part::Finish { .. }));
        assert_eq!(finishes.count(), 1, "{name}");
        pairs(&name, &whole);
    }
}

/// Starts and ends, calls and results go together.
fn pairs(name: &str, parts: &[Part]) {
    let mut open = BTreeSet::new();
    for part in parts {
        match part {
            Part::TextStart(run) | Part::ReasoningStart(run) => {
                assert!(open.insert(run.id.to_string()), "{name}: {part:?}");
            }
            Part::TextEnd { id, .. } => assert!(open.remove(id.as_str()), "{name}: {part:?}"),
            Part::ReasoningEnd(run) => assert!(open.remove(run.id.as_str()), "{name}: {part:?}"),
            Part::ToolCall(call) => {
                assert!(open.insert(format!("tool {}", call.tool_call_id)), "{name}: {part:?}");
                serde_json::from_str::<Value>(&call.input).unwrap();
            }
            Part::ToolResult(result) => {
                let id = format!("tool {}", result.tool_call_id);
                assert!(open.remove(&id), "{name}: {part:?}");
            }
            _ => {}
        }
    }
    assert!(open.is_empty(), "{name}: {open:?}");
}

#[test]
fn a_few_streams_in_full() {
    const NAMES: [&str; 14] = [
        "0.166.0/command_fail",
        "0.166.0/file_change",
        "0.166.0/mcp_fail",
        "0.166.0/plan",
        "0.166.0/web_search",
        "0.166.0/collab",
        "0.166.0/retry_ok",
        "0.166.0/http400",
        "0.166.0/interrupted_sigint",
        "0.98.0/session_websearch",
        "0.42.0/session_resume",
        "0.20.0/session_patchdel",
        "0.36.0/session_mcp",
        "0.42.0/session_sigint",
    ];
    for name in NAMES {
        let bytes = recording(name);
        let file = name.replace('/', "-");
        let out = map(&bytes, usize::MAX, Options::default(), &exit(name));
        snapshot(&format!("{file}.ndjson"), &String::from_utf8(out).unwrap());
        let mut transcript = Transcript::default();
        let mut text = String::new();
        for part in parts(&bytes, usize::MAX, &exit(name)) {
            transcript.apply(&part);
            text.push_str(&serde_json::to_string(&part).unwrap());
            text.push('\n');
        }
        text.push_str(&serde_json::to_string_pretty(&transcript).unwrap());
        snapshot(&format!("{file}.parts"), &text);
    }
}

fn snapshot(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("snapshots/exec");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}
