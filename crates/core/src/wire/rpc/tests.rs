//! What lines read as, what is written, and that no bytes break it.

use proptest::prelude::*;

use super::*;

/// The only test code that knows the fields.
fn sketch(message: &Message) -> String {
    match message {
        Message::Request { id, method, params } => format!("? {id:?} {method} {params}"),
        Message::Notification { method, params, emitted_at_ms } => {
            format!("! {method} {params} {emitted_at_ms:?}")
        }
        Message::Response { id, result } => format!("= {id:?} {result}"),
        Message::Error { id, error } => {
            let data = error.data.as_ref().map_or("-", |data| data.get());
            format!("x {id:?} {} {} {data}", error.code, error.message)
        }
        Message::Unknown { why, .. } => format!("unknown: {why}"),
    }
}

#[test]
fn lines_read_as() {
    #[rustfmt::skip]
    let table = [
        (r#"{"id":7,"method":"item/tool/call","params":{"a":[1]}}"#, r#"? Number(7) item/tool/call {"a":[1]}"#),
        (r#"{"id":"a\"b","method":"m"}"#, r#"? Text("a\"b") m null"#),
        (r#"{"id":0,"method":"m","params":null}"#, "? Number(0) m null"),
        (r#"{"method":"turn/started","params":{},"emittedAtMs":17}"#, "! turn/started {} Some(17)"),
        (r#"{"method":"m","emittedAtMs":"soon","new":{"x":1}}"#, "! m null None"),
        (r#"{"method":"tief\u00e9"}"#, "! tiefé null None"),
        (r#"{"id":1,"result":{"ok":true}}"#, r#"= Number(1) {"ok":true}"#),
        (r#"{"jsonrpc":"2.0","id":-3,"result":null}"#, "= Number(-3) null"),
        (r#"{"id":1,"result":5,"error":null}"#, "= Number(1) 5"),
        (r#"{"error":{"code":-32600,"message":"no","data":{"t":1}},"id":4}"#, r#"x Number(4) -32600 no {"t":1}"#),
        (r#"{"error":{"message":"no code"},"id":4}"#, r#"x Number(4) 0 {"message":"no code"} -"#),
        (r#"{"error":"plain","id":"s"}"#, r#"x Text("s") 0 "plain" -"#),
        (r#" {"id": 1 , "result" : [ 1 ] } "#, "= Number(1) [ 1 ]"),
        ("", "unknown: not a JSON object"),
        ("[1,\"m\",{},null]", "unknown: not a JSON object"),
        ("null", "unknown: not a JSON object"),
        ("{", "unknown: EOF while parsing an object at line 1 column 1"),
        ("{}", "unknown: neither `id` nor `method`"),
        (r#"{"id":1}"#, "unknown: neither `method`, `result` nor `error`"),
        (r#"{"id":1,"error":null}"#, "unknown: neither `method`, `result` nor `error`"),
        (r#"{"id":null,"result":1}"#, "unknown: `id` is neither an integer nor a string: null"),
        (r#"{"id":1.5,"result":1}"#, "unknown: `id` is neither an integer nor a string: 1.5"),
        (r#"{"id":1e3,"result":1}"#, "unknown: `id` is neither an integer nor a string: 1e3"),
        (r#"{"id":[[1]],"method":"m"}"#, "unknown: `id` is neither an integer nor a string: [[1]]"),
        (r#"{"id":18446744073709551615,"result":1}"#, "unknown: `id` is neither an integer nor a string: 18446744073709551615"),
        (r#"{"method":7}"#, "unknown: invalid type: integer `7`, expected a string at line 1 column 11"),
        (r#"{"id":1,"id":2,"result":1}"#, "unknown: duplicate field `id` at line 1 column 12"),
        (r#"{"id":1,"result":1} x"#, "unknown: trailing characters at line 1 column 21"),
    ];
    for (line, want) in table {
        assert_eq!(sketch(&decode(line.as_bytes())), want, "line: {line}");
    }
}

#[test]
fn invalid_utf8_is_kept_readable() {
    let Message::Unknown { raw, bytes, why } = decode(b"{\"method\":\"\xff\"}") else {
        panic!("read as something");
    };
    assert_eq!((raw.as_str(), bytes), ("{\"method\":\"\u{fffd}\"}", 14));
    assert_eq!(why, "invalid utf-8 sequence of 1 bytes from index 11");
}

#[test]
fn an_unknown_line_keeps_a_bounded_head() {
    for text in [vec![0xff; 3 * HEAD], "é".repeat(2 * HEAD).into_bytes()] {
        let Message::Unknown { raw, bytes, .. } = decode(&text) else { panic!("read") };
        assert!(raw.len() <= HEAD && raw.len() > HEAD - 4, "{}", raw.len());
        assert_eq!(bytes, text.len() as u64);
    }
}

#[test]
fn deep_nesting_neither_overflows_nor_fails() {
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    let line = format!(r#"{{"id":1,"result":{deep},"extra":{deep}}}"#);
    let Message::Response { result, .. } = decode(line.as_bytes()) else { panic!("lost") };
    assert_eq!(result.get().len(), deep.len());
    for key in ["id", "error", "method", "emittedAtMs"] {
        decode(format!(r#"{{"id":1,"{key}":{deep}}}"#).as_bytes());
        decode(format!(r#"{{"method":"m","{key}":{deep}}}"#).as_bytes());
        decode_head(format!(r#"{{"{key}":{deep}}}"#).as_bytes());
    }
}

#[test]
fn heads_show_what_the_line_was() {
    let reply = Head::Reply(RequestId::Number(7));
    #[rustfmt::skip]
    let table = [
        (r#"{"id":7,"result":{"data":["#, reply.clone()),
        (r#"{"error":{"code":1,"message":""},"id":7,"#, reply.clone()),
        (r#"{"id":7,"error":"aaa"#, reply),
        (r#"{"id":"x","method":"item/tool/call","params":{"a":"#, Head::Request("x".into())),
        (r#"{"method":"item/completed","params":{"id":7,"result":"#, Head::Other),
        (r#"{"result":{"id":7,"#, Head::Other),
        (r#"{"id":7,"#, Head::Other),
        (r#"{"id":7.5,"result":"#, Head::Other),
        ("[{\"id\":7,\"result\":", Head::Other),
        ("", Head::Other),
    ];
    for (head, want) in table {
        assert_eq!(decode_head(head.as_bytes()), want, "head: {head}");
    }
}

#[test]
fn what_is_written() {
    let text = |line: serde_json::Result<Vec<u8>>| String::from_utf8(line.unwrap()).unwrap();
    let raw: Box<RawValue> = serde_json::from_str("{\"a\":\r\n \"x\\ny\"}").unwrap();
    let refusal = RpcError { code: -32601, message: "no\n".into(), data: None };
    let lines = [
        text(request(&1.into(), "initialize", &serde_json::json!({"a": 1}))),
        text(request(&"s".into(), "m\"", &raw)),
        text(notification("initialized", &())),
        text(notification("note", &[1, 2])),
        text(response(&0.into(), &())),
        text(error(&0.into(), &refusal)),
    ];
    assert_eq!(
        lines,
        [
            r#"{"id":1,"method":"initialize","params":{"a":1}}"#,
            r#"{"id":"s","method":"m\"","params":{"a":   "x\ny"}}"#,
            r#"{"method":"initialized"}"#,
            r#"{"method":"note","params":[1,2]}"#,
            r#"{"id":0,"result":null}"#,
            r#"{"id":0,"error":{"code":-32601,"message":"no\n"}}"#,
        ]
    );
}

/// Lines as Codex 0.166 sends them, to be mutated.
const SEEDS: [&str; 5] = [
    r#"{"id":1,"result":{"userAgent":"probe/0.166.0 (Debian)","platformOs":"linux"}}"#,
    r#"{"error":{"code":-32600,"message":"Not initialized"},"id":2}"#,
    r#"{"method":"item/agentMessage/delta","params":{"delta":"é\ud83d\ude00"},"emittedAtMs":1794773355311}"#,
    r#"{"id":0,"method":"item/commandExecution/requestApproval","params":{"command":"ls"}}"#,
    r#"{"id":"three","result":null}"#,
];

proptest! {
    #[test]
    fn no_bytes_break_it(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        decode(&bytes);
        decode_head(&bytes);
    }

    #[test]
    fn no_mutation_breaks_it(
        seed in prop::sample::select(&SEEDS[..]),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        end in any::<prop::sample::Index>(),
    ) {
        let mut line = seed.as_bytes().to_vec();
        for (at, byte) in edits {
            let at = at.index(line.len());
            line[at] = byte;
        }
        decode(&line);
        decode_head(&line[..end.index(line.len())]);
    }

    #[test]
    fn what_is_written_reads_back(id in any::<i64>(), method in ".*", text in ".*") {
        let line = request(&id.into(), &method, &text).unwrap();
        prop_assert!(!line.contains(&b'\n'));
        let want = format!("? Number({id}) {method} {}", serde_json::to_string(&text).unwrap());
        prop_assert_eq!(sketch(&decode(&line)), want);
    }
}

#[test]
fn half_a_surrogate_pair_costs_a_character_and_not_the_message() {
    let line = br#"{"method":"m","params":{"delta":"a\ud83d"}}"#;
    assert_eq!(sketch(&decode(line)), r#"! m {"delta":"a\ufffd"} None"#);
}
