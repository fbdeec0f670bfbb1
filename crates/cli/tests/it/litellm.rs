//! The engine behind LiteLLM's proxy: the real proxy, on both wires, before the scripted model.
//!
//! One proxy serves all cases, because it takes seconds to start.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;

use bindery_testkit::model::{Reply, Step};
use bindery_testkit::skipped::report_skipped;
use serde_json::{Value, json};

use crate::stage::{HANG, Ran, Stage};

/// The environment variable that names the program.
const VARIABLE: &str = "BINDERY_TEST_LITELLM";

/// The key that the proxy asks for.
const KEY: &str = "sk-proxy-1234";

/// A proxy that runs. Dropping it ends it.
struct Proxy {
    child: Child,
    base_url: String,
}

impl Proxy {
    /// Starts it before this server. `same` is passed on as it comes, `bridged` to the server's
    /// Chat Completions alone, whichever wire it is asked on.
    fn start(program: &Path, folder: &Path, upstream: &str) -> Self {
        let model = |name: &str, kind: &str| {
            json!({
                "model_name": name,
                "litellm_params": {
                    "model": format!("{kind}/{name}"), "api_base": upstream, "api_key": "sk-up",
                },
            })
        };
        let config = json!({
            "model_list": [model("same", "openai"), model("bridged", "deepseek")],
            "general_settings": { "master_key": KEY },
        });
        // JSON is YAML, too.
        let path = folder.join("litellm.yaml");
        std::fs::write(&path, config.to_string()).unwrap();
        let mut command = Command::new(program);
        command
            .args(["--host", "127.0.0.1", "--port", "0", "--telemetry", "False", "--config"])
            .arg(&path)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", folder)
            .env("LITELLM_LOCAL_MODEL_COST_MAP", "True")
            // Whatever it wants of the wide world fails at once.
            .envs(["HTTP_PROXY", "HTTPS_PROXY"].map(|name| (name, "http://127.0.0.1:9")))
            .env("NO_PROXY", "127.0.0.1")
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (sender, addresses) = mpsc::channel();
        let (told, log) = mpsc::channel();
        // Reads on to the end, or the proxy would be stopped by a full pipe.
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                if let Some((_, rest)) = line.split_once("running on ") {
                    let _ = sender.send(rest.split(' ').next().unwrap_or_default().to_owned());
                }
                let _ = told.send(line);
            }
        });
        let Ok(address) = addresses.recv_timeout(HANG) else {
            let _ = child.kill();
            panic!("the proxy does not start:\n{}", log.iter().collect::<Vec<_>>().join("\n"));
        };
        Self { child, base_url: format!("{address}/v1") }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One way through the proxy.
struct Case<'a> {
    stage: &'a Stage,
    proxy: &'a Proxy,
    wire: &'a str,
    model: &'a str,
}

impl Case<'_> {
    async fn bindery(&self, before: &[&str], after: &[&str]) -> Ran {
        let provider = format!(
            "model_providers.proxy={{name=\"LiteLLM\",base_url=\"{}\",wire_api=\"{}\",\
             env_key=\"LITELLM_KEY\",request_max_retries=0,stream_max_retries=0}}",
            self.proxy.base_url, self.wire
        );
        let settings = ["-c", &provider, "-c", "model_provider=\"proxy\""];
        let mut command = self.stage.bindery(&[&settings, before, after].concat());
        command.env("LITELLM_KEY", KEY).stdin(Stdio::null());
        let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Ran { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    async fn run(&self, args: &[&str]) -> Ran {
        self.bindery(&["run", "--backend", "engine", "--model", self.model], args).await
    }
}

/// What the model was told last, on whichever wire.
fn last_history(stage: &Stage) -> String {
    let body = stage.model.bodies().pop().unwrap();
    body.get("input").unwrap_or(&body["messages"]).to_string()
}

/// The server was asked by the proxy, and where.
fn asked_by_proxy(stage: &Stage, path: &str, name: &str) {
    let request = stage.model.requests().pop().unwrap();
    assert_eq!(request.path, path, "{name}");
    assert_eq!(request.headers["authorization"], "Bearer sk-up", "{name}");
}

/// A turn with two calls at once, and one that knows of it.
async fn turns_go_through(case: &Case<'_>, path: &str) {
    let name = format!("{} on {}", case.model, case.wire);
    let ids = [format!("call_a{}", name.len()), format!("call_b{}", name.len())];
    case.stage.model.push([
        Reply::new([
            Step::exec("echo one-and-only", &ids[0]),
            Step::exec("echo second-to-none", &ids[1]),
        ])
        .when_user("look around")
        .when_after_tool(false),
        Reply::new([Step::chunked("I saw äll of it.", 3)]).when_after_tool(true),
        Reply::text("As I said.").when_user("what did you see"),
    ]);
    let first = case.run(&["look around"]).await;
    assert_eq!(
        (first.code, first.out.as_str()),
        (Some(0), "I saw äll of it.\n"),
        "{name}: {first}"
    );
    let told = last_history(case.stage);
    for output in ["one-and-only\\n", "second-to-none\\n"] {
        assert!(told.contains(output), "{name}: {told}");
    }
    // What turns cost is told through the proxy, too.
    assert!(first.err.contains("200 in (20 cached) · 40 out"), "{name}: {first}");
    let second = case.run(&["--resume", "last", "what did you see"]).await;
    assert_eq!((second.code, second.out.as_str()), (Some(0), "As I said.\n"), "{name}: {second}");
    let told = last_history(case.stage);
    for said in ["look around", "one-and-only\\n", "second-to-none\\n", "I saw äll of it."] {
        assert!(told.contains(said), "{name}: {told}");
    }
    asked_by_proxy(case.stage, path, &name);
    assert_eq!(case.stage.model.unanswered(), vec![], "{name}");
}

#[tokio::test]
async fn turns_go_through_the_proxy_on_both_wires() {
    let Some(program) = std::env::var_os(VARIABLE) else {
        panic!("{VARIABLE} is not set; run `cargo xtask test`, which installs it");
    };
    if program == "none" {
        report_skipped("there is no Python here to run LiteLLM's proxy with");
        return;
    }
    let stage = Stage::free(vec![]);
    let folder = tempfile::tempdir().unwrap();
    let proxy = Proxy::start(Path::new(&program), folder.path(), &stage.model.base_url());
    let chat = "/v1/chat/completions";
    for (wire, model, path) in [
        ("chat", "same", chat),
        ("responses", "same", "/v1/responses"),
        ("chat", "bridged", chat),
        ("responses", "bridged", chat),
    ] {
        let case = Case { stage: &stage, proxy: &proxy, wire, model };
        turns_go_through(&case, path).await;
    }
    let case = Case { stage: &stage, proxy: &proxy, wire: "chat", model: "same" };
    let listed = case.bindery(&["models", "--json"], &[]).await;
    let listed: Value = serde_json::from_str(&listed.out).unwrap_or_else(|_| panic!("{listed}"));
    let ids: Vec<&Value> =
        listed["models"].as_array().unwrap().iter().map(|row| &row["id"]).collect();
    assert_eq!(ids, ["same", "bridged"]);
    refusals_are_told(&stage, &proxy).await;
}

/// The proxy's words about a key and about the server behind it, and nothing of the key.
async fn refusals_are_told(stage: &Stage, proxy: &Proxy) {
    for wire in ["chat", "responses"] {
        let case = Case { stage, proxy, wire, model: "same" };
        stage.model.push([Reply::new([Step::status(400, "invalid", "no such word")]).times(9)]);
        let refused = case.run(&["go"]).await;
        assert_eq!(refused.code, Some(1), "{wire}: {refused}");
        assert!(refused.err.contains("no such word"), "{wire}: {refused}");
        assert!(!refused.to_string().contains(KEY), "{wire}: {refused}");
    }
}
