//! MCP servers of `config.toml`, from the command line to the server's process and back.
#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use bindery_testkit::codex::Options;
use bindery_testkit::lines::Lines;
use bindery_testkit::model::{Reply, Step};
use bindery_testkit::skipped::report_skipped;
use serde_json::{Value, json};

use crate::interrupt::assert_gone;
use crate::pty::Pty;
use crate::stage::Stage;

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../engine/tests/it/mcp_server.py");

/// Whether the small server can run here at all; a test that needs it says so where it cannot.
pub(crate) fn no_python() -> bool {
    let missing = Command::new("python3").arg("--version").output().is_err();
    if missing {
        report_skipped("there is no Python here to run the MCP server with");
    }
    missing
}

/// A home with the small server, in one of its modes.
pub(crate) fn with_toy(options: Options, args: &[&str]) -> Options {
    let mut options = options.mcp_server("toy", "python3", &[&[SERVER], args].concat());
    // A machine that tests is busy, and Codex waits only for what is required.
    options.tables.push_str("startup_timeout_sec = 120\nrequired = true\n");
    options
}

/// The model calls one of its tools, then says a word.
pub(crate) fn calling(tool: &str) -> Vec<Reply> {
    let call = Step::call_in("mcp__toy", tool, json!({ "a": 2, "b": 3 }), "c1");
    vec![Reply::new([call]), Reply::text("Done.").when_output_of("c1")]
}

/// What the model was given back.
fn output(stage: &Stage) -> String {
    let bodies = stage.model.bodies();
    let items = bodies[1]["input"].as_array().unwrap().iter();
    let mut outputs = items.filter(|item| item["type"] == "function_call_output");
    outputs.next().unwrap()["output"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_tool_is_asked_for_called_and_nothing_is_left() {
    if no_python() {
        return;
    }
    for (key, works) in [("y", true), ("n", false)] {
        let pids = tempfile::NamedTempFile::new().unwrap();
        let family = ["family", pids.path().to_str().unwrap()];
        let stage = Stage::with(calling("add"), &with_toy(Options::default(), &family));
        let mut pty = Pty::start(&stage.bindery(&["run", "--backend", "engine", "go"]), 80);
        let asked = pty.wait_for("› ");
        assert!(asked.contains("toy"), "{asked}");
        assert_eq!(stage.model.count(), 1, "it was called before it was asked for");
        pty.press(key);
        pty.wait_for("resume with");
        assert_eq!(pty.finish().1, Some(0));
        assert_eq!(output(&stage).ends_with("\nOutput:\n5"), works, "{}", output(&stage));
        let pids = std::fs::read_to_string(pids.path()).unwrap();
        let pids: Vec<u32> = pids.split(' ').map(|pid| pid.parse().unwrap()).collect();
        assert_eq!(pids.len(), 2);
        for pid in pids {
            assert_gone(pid).await;
        }
    }
}

#[tokio::test]
async fn nobody_there_to_ask_is_a_no() {
    if no_python() {
        return;
    }
    let options = with_toy(Options::default(), &[]);
    for command in [&["run", "--backend", "engine", "go"][..], &["exec", "go"]] {
        let stage = Stage::with(calling("add"), &options);
        let ran = stage.run(command).await;
        assert_eq!(ran.code, Some(0), "{ran}");
        assert!(!output(&stage).contains("Output:"), "{}", output(&stage));
    }
}

/// The small server over HTTP; ends with the test.
struct Http(Child, String);

impl Http {
    fn start() -> Self {
        let mut command = Command::new("python3");
        let mut child = command.args([SERVER, "http"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Self(child, format!("http://127.0.0.1:{}/mcp", port.trim()))
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn a_server_over_http_is_called_with_its_key() {
    if no_python() {
        return;
    }
    let http = Http::start();
    let url = &http.1;
    let table = format!("[mcp_servers.toy]\nurl = '{url}'\nbearer_token_env_var = 'TOY_WORD'\n");
    let options = Options { tables: table, ..Options::default() };
    let stage = Stage::with(calling("look"), &options);
    let mut command = stage.bindery(&["exec", "--json", "go"]);
    // A server on this machine is reached without the proxy, of which nothing could come.
    command.env("TOY_WORD", "token").env("HTTP_PROXY", "http://127.0.0.1:1").env_remove("NO_PROXY");
    let output_of = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    assert_eq!(output_of.status.code(), Some(0), "{output_of:?}");
    assert!(output(&stage).ends_with("\nOutput:\nover HTTP"), "{}", output(&stage));
}

/// What an app-server says of the servers of one home.
async fn told(command: Command) -> Vec<Value> {
    let mut lines = Lines::spawn(command).unwrap();
    lines.initialize().await;
    let mut all = vec![lines.request("mcpServerStatus/list", json!({})).await];
    let thread = lines.start_thread(json!({})).await;
    let read = json!({ "threadId": thread, "server": "toy", "uri": "toy://a" });
    let add = json!({ "a": 2, "b": 3 });
    let call = json!({ "threadId": thread, "server": "toy", "tool": "add", "arguments": add });
    let asked = [
        ("mcpServerStatus/list", json!({ "threadId": thread })),
        ("mcpServerStatus/list", json!({ "threadId": thread, "detail": "toolsAndAuthOnly" })),
        ("mcpServerStatus/list", json!({ "threadId": thread, "serverName": "toy" })),
        ("mcpServerStatus/list", json!({ "serverName": "nobody" })),
        ("mcpServerStatus/list", json!({ "limit": 1 })),
        ("mcpServerStatus/list", json!({ "limit": 1, "cursor": "1" })),
        ("mcpServer/resource/read", read),
        ("mcpServer/tool/call", call),
    ];
    for (method, params) in asked {
        let mut answer = lines.request(method, params.clone()).await;
        // Codex starts them beside the thread, and tells of them meanwhile.
        while answer["result"]["data"].to_string().contains("\"starting\"") {
            lines.until_method("mcpServer/startupStatus/updated").await;
            answer = lines.request(method, params.clone()).await;
        }
        all.push(answer);
    }
    lines.close().await;
    all.into_iter().map(comparable).collect()
}

/// An answer without what is in the words of each.
fn comparable(mut reply: Value) -> Value {
    let mut result = reply["result"].take();
    assert!(!result.is_null(), "{reply}");
    let fields = result.as_object_mut().unwrap();
    fields.remove("backwardsCursor");
    // Nothing said and nothing there are the same to a client.
    fields.retain(|key, value| key == "nextCursor" || !value.is_null());
    for row in result["data"].as_array_mut().into_iter().flatten() {
        let why = &mut row["toolsError"];
        *why = json!(why.is_string());
    }
    result
}

#[tokio::test]
async fn servers_are_told_as_codex_tells_them() {
    if no_python() {
        return;
    }
    let tables = "[mcp_servers.bad]\ncommand = '/nowhere/at/all'\n\
                  [mcp_servers.off]\ncommand = '/nowhere'\nenabled = false\n\
                  [mcp_servers.web]\nurl = 'http://127.0.0.1:9/mcp?secret=1'\n\
                  http_headers = { Authorization = 'Bearer x' }\n";
    let options = Options { tables: tables.to_owned(), ..Options::default() };
    let stage = Stage::with(vec![], &with_toy(options, &[]));
    let ours = told(stage.bindery(&["app-server"])).await;
    let theirs = told(stage.codex.command(&["app-server"])).await;
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours, theirs);
    }
    let row = &ours[3]["data"][0];
    assert_eq!((&row["name"], &row["runtimeStatus"]), (&json!("toy"), &json!("connected")));
    assert_eq!(row["resources"][0]["uri"], "toy://a");
}
