//! Laws: planning is total, nothing is lost, and both specifications mean the same.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// A conversation with all that a prompt can hold, in the words of V3 or of V4.
fn rich(v4: bool) -> Value {
    let bytes = |data: &str| match v4 {
        true => json!({ "type": "data", "data": data }),
        false => json!(data),
    };
    let shot = match v4 {
        true => json!({ "type": "file", "data": bytes(PNG), "mediaType": "image/png" }),
        false => json!({ "type": "image-data", "data": PNG, "mediaType": "image/png" }),
    };
    json!({
        "prompt": [
            { "role": "system", "content": "Be brief." },
            { "role": "system", "content": "Speak Latin." },
            { "role": "user", "content": [
                { "type": "text", "text": "What is this?" },
                { "type": "file", "data": bytes(PNG), "mediaType": "image/*" },
                { "type": "file", "data": bytes("YSxi"), "mediaType": "text/csv",
                  "filename": "a.csv" },
                { "type": "file", "data": bytes("aGk="), "mediaType": "application/pdf",
                  "filename": "a.pdf" }] },
            { "role": "assistant", "content": [
                { "type": "reasoning", "text": "Looking." },
                { "type": "text", "text": "Let me see." },
                { "type": "tool-call", "toolCallId": "c1", "toolName": "look",
                  "input": { "at": 1 } }] },
            { "role": "tool", "content": [
                { "type": "tool-result", "toolCallId": "c1", "toolName": "look", "output": {
                    "type": "content", "value": [{ "type": "text", "text": "seen" }, shot] } }] },
            { "role": "assistant", "content": [{ "type": "text", "text": "Ecce." }] },
            { "role": "user", "content": [
                { "type": "text", "text": "Now @src/a.rs" },
                { "type": "file", "data": bytes(PNG), "mediaType": "image/png" }] },
        ],
        "tools": [{ "type": "function", "name": "look", "inputSchema": { "type": "object" } }],
        "responseFormat": { "type": "json", "schema": { "type": "object" } },
        "temperature": 1,
        "providerOptions": { "codex": { "effort": "high", "model": "m", "parseMentions": true } },
    })
}

#[test]
fn both_specifications_give_the_same_plan() {
    let plan = planned(rich(true));
    assert_eq!(plan, planned(rich(false)));
    insta::assert_json_snapshot!(plan);
}

/// A part of a random kind that says `token` once.
fn part(kind: u8, token: &str) -> Value {
    match kind {
        0 => json!({ "type": "text", "text": token }),
        1 => json!({ "type": "file", "data": { "type": "text", "text": token },
                     "mediaType": "text/plain" }),
        2 => json!({ "type": "file", "data": token, "mediaType": "application/pdf" }),
        3 => json!({ "type": "file", "data": "data:,x", "mediaType": "image/*" }),
        4 => json!({ "type": "file", "data": format!("https://a/{token}"),
                     "mediaType": "image/png" }),
        5 => json!({ "type": "file", "data": format!("file:///{token}.png"),
                     "mediaType": "image/png" }),
        6 => json!({ "type": "reasoning", "text": token }),
        7 => json!({ "type": "tool-call", "toolCallId": format!("c{}", token.len() % 3),
                     "toolName": token, "input": {} }),
        8 => json!({ "type": "tool-result", "toolCallId": format!("c{}", token.len() % 3),
                     "toolName": "n", "output": { "type": "text", "value": token } }),
        9 => json!({ "type": "tool-approval-response", "approvalId": token, "approved": true }),
        10 => json!({ "type": "custom", "kind": token }),
        11 => json!({ "type": "reasoning-file", "data": token, "mediaType": "image/png" }),
        _ => json!({ "type": token }),
    }
}

fn role(kind: u8) -> &'static str {
    ["user", "assistant", "tool", "narrator"][usize::from(kind % 4)]
}

/// The parts of each message with the token of each.
fn tokens(messages: &[(u8, Vec<u8>)]) -> Vec<(usize, usize, String, u8)> {
    let all = messages.iter().enumerate().flat_map(|(at, (_, kinds))| {
        let of = move |(index, kind): (usize, &u8)| (at, index, format!("tok{at}x{index}y"), *kind);
        kinds.iter().enumerate().map(of)
    });
    all.collect()
}

/// What a thread already has, with a call that waits.
fn thread_of_before() -> Vec<Value> {
    let mut answer = answer("before", "t1");
    let call = json!({ "type": "tool-call", "toolCallId": "c1", "toolName": "n", "input": {} });
    answer["content"].as_array_mut().unwrap().push(call);
    vec![user("before"), answer]
}

fn said(messages: &[(u8, Vec<u8>)]) -> Vec<Value> {
    let message = |(at, (kind, parts)): (usize, &(u8, Vec<u8>))| {
        let part_at = |(index, kind): (usize, &u8)| part(*kind, &format!("tok{at}x{index}y"));
        let content: Vec<Value> = parts.iter().enumerate().map(part_at).collect();
        json!({ "role": role(*kind), "content": content })
    };
    messages.iter().enumerate().map(message).collect()
}

fn any_json() -> impl Strategy<Value = Value> {
    let words = prop::sample::select(vec![
        "role",
        "user",
        "assistant",
        "tool",
        "system",
        "content",
        "type",
        "text",
        "file",
        "data",
        "mediaType",
        "image/png",
        "tool-call",
        "tool-result",
        "toolCallId",
        "toolName",
        "output",
        "value",
        "providerOptions",
        "codex",
        "threadId",
        "mentions",
        "textElements",
        "byteRange",
        "start",
        "end",
        "@\"é",
        "$x @é.",
        "data:;base64,é",
        "file:///%é",
        "https://é",
    ]);
    let word = words.prop_map(str::to_owned);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        word.clone().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(word.clone(), inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn planning_never_panics(
        messages in prop::collection::vec((0u8..4, any_json(), any_json()), 0..5),
        options in any_json(),
        can_inject: bool,
    ) {
        let message = |(kind, content, options): (u8, Value, Value)| {
            json!({ "role": role(kind), "content": content,
                    "providerOptions": { "codex": options } })
        };
        let prompt: Vec<Value> = messages.into_iter().map(message).collect();
        let call = json!({ "prompt": prompt, "providerOptions": { "codex": options } });
        let context = PlanContext { can_inject, parse_mentions: true, ..PlanContext::default() };
        let _ = try_plan(call, &context);
    }

    #[test]
    fn mentions_never_panic_and_stay_in_bounds(text in "[@$\"'é日 a./()]{0,40}") {
        let context = PlanContext { parse_mentions: true, ..PlanContext::default() };
        let Ok(plan) = try_plan(json!({ "prompt": [user(&text)] }), &context) else {
            return Ok(());
        };
        for element in input(&plan)[0]["text_elements"].as_array().into_iter().flatten() {
            let at = |end: &str| element["byteRange"][end].as_u64().unwrap() as usize;
            prop_assert!(text[at("start")..at("end")].starts_with('@'));
        }
    }

    #[test]
    fn every_part_is_carried_or_named(
        messages in prop::collection::vec((0u8..8, prop::collection::vec(0u8..13, 0..4)), 1..6),
        can_inject: bool,
        resumed: bool,
    ) {
        let context = PlanContext { can_inject, ..PlanContext::default() };
        let mut prompt = if resumed { thread_of_before() } else { Vec::new() };
        let before = prompt.len();
        prompt.extend(said(&messages));
        let (carried, warnings) = match try_plan(json!({ "prompt": prompt }), &context) {
            Ok(plan) => (json!([plan.inject, plan.input, plan.answers]).to_string(), plan.warnings),
            // The call fails as a whole, so nothing is lost in silence.
            Err(_) => return Ok(()),
        };
        let warned = serde_json::to_string(&warnings).unwrap();
        for (message, index, token, kind) in tokens(&messages) {
            let at = message + before;
            let place = format!("prompt[{at}].content[{index}]");
            let reasoning = kind == 6 && warned.contains(r#""feature":"reasoning parts""#);
            let named = warned.contains(&place) || warned.contains(&format!("prompt[{at}]:"));
            prop_assert!(
                carried.contains(&token) || named || reasoning,
                "{place} of kind {kind} is lost: {carried} {warned}"
            );
        }
    }
}
