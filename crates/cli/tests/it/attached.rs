//! What goes along with a prompt: pictures, files, what is piped in; and how the engine gets there.
#![cfg(unix)]

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use bindery_testkit::codex::Options;
use bindery_testkit::model::Script;
use bindery_testkit::tls::{self, Front};
use serde_json::{Value, json};

use crate::stage::Stage;

/// A red line of 4096 by 8 pixels, as PNG, in hexadecimal.
const LINE: &str = "\
    89504e470d0a1a0a0000000d4948445200001000000000080802000000f64cade3000000874944415478daed\
    db310d000008c0b0f9370d2e0847932ad8bfa6000000000000000000000080e7240000000000000000000000\
    0003000000000000000000000000600000000000000000000000000003000000000000000000000000600000\
    00000000000000000000000c00000000000000000000000060000000000000000000000000004e2dd97f8772\
    8ceeaede0000000049454e44ae426082";

/// How a PNG begins whose sides are 2048 and 4.
const SMALL: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAACAAAAAAE";

fn bytes(hex: &str) -> Vec<u8> {
    let digits = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(digits).collect()
}

fn chat() -> Options {
    let mut options = Options::unrestricted();
    options.tables.push_str("[model_providers.house]\nname = 'House'\nwire_api = 'chat'\n");
    options
}

/// The pieces of the last message, in the words of either wire.
fn pieces(body: &Value) -> Vec<String> {
    let items = body["input"].as_array().or(body["messages"].as_array()).unwrap();
    let content = items.last().unwrap()["content"].as_array().unwrap();
    let piece = |piece: &Value| {
        let text = [&piece["text"], &piece["image_url"], &piece["image_url"]["url"]];
        text.iter().find_map(|text| text.as_str()).unwrap().to_owned()
    };
    content.iter().map(piece).collect()
}

#[tokio::test]
async fn pictures_go_small_and_labelled_and_files_with_their_names() {
    for (name, verb, wire) in [
        ("run", &["run", "--backend", "engine"][..], "responses"),
        ("exec", &["exec", "--json"][..], "responses"),
        ("exec on the chat wire", &["exec", "--json"][..], "chat"),
    ] {
        let stage = Stage::with(Script::always("ok"), &chat());
        let project = stage.codex.project();
        std::fs::write(project.join("line.png"), bytes(LINE)).unwrap();
        stage.file("notes.txt", "one\ntwo");
        let house = format!("model_providers.house.base_url=\"{}\"", stage.model.base_url());
        let mut args = verb.to_vec();
        if wire == "chat" {
            args.extend(["-c", &house, "-c", "model_provider=house"]);
        }
        args.extend(["--file", "notes.txt", "what is this?", "-i", "line.png"]);
        let ran = stage.run(&args).await;
        assert_eq!(ran.code, Some(0), "{name}: {}", ran.err);
        let body = stage.model.bodies().pop().unwrap();
        assert_eq!(body.get("messages").is_some(), wire == "chat", "{name}");
        let pieces = pieces(&body);
        let at = |file: &str| project.join(file).display().to_string();
        let label = format!("<image name=[Image #1] path=\"{}\">", at("line.png"));
        assert_eq!((pieces.len(), &pieces[0]), (5, &label), "{name}: {pieces:?}");
        assert!(pieces[1].starts_with(SMALL), "{name}: {}", &pieces[1][..80]);
        assert_eq!(pieces[2], "</image>", "{name}");
        let file = format!("<file path=\"{}\">\none\ntwo\n</file>", at("notes.txt"));
        assert_eq!((&pieces[3], pieces[4].as_str()), (&file, "what is this?"), "{name}");
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_sent_ends_it_before_a_turn() {
    let stage = Stage::free(Script::always("ok"));
    std::fs::write(stage.codex.project().join("raw"), b"caf\xe9").unwrap();
    for verb in [&["run", "--backend", "engine"][..], &["run", "--backend", "codex"], &["exec"]] {
        for file in ["raw", "nowhere.txt"] {
            let ran = stage.run(&[verb, &["--file", file, "go"]].concat()).await;
            assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{verb:?} {file}: {}", ran.err);
            assert!(ran.err.contains(file), "{verb:?}: {}", ran.err);
        }
    }
    assert_eq!(stage.model.count(), 0);
}

#[tokio::test]
async fn a_file_goes_to_every_backend() {
    let stage = Stage::free(Script::always("ok"));
    stage.file("notes.txt", "one");
    for backend in ["engine", "codex", "exec"] {
        let args = ["run", "--backend", backend, "--file", "notes.txt", "go"];
        let ran = stage.run(&args).await;
        assert_eq!(ran.code, Some(0), "{backend}: {}", ran.err);
        let heard = stage.heard().pop().unwrap().pop().unwrap();
        assert!(heard.contains("notes.txt\">\none\n</file>"), "{backend}: {heard}");
        assert!(heard.ends_with("go"), "{backend}: {heard}");
    }
}

#[tokio::test]
async fn what_is_piped_in_is_the_prompt_of_a_run() {
    let stage = Stage::free(Script::always("ok"));
    let ran = stage.run_reading(&["run", "--backend", "engine", "-"], "from a pipe\n").await;
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(stage.heard()[0].last().unwrap(), "user: from a pipe\n");
}

#[tokio::test]
async fn prompts_are_called_in_words_on_every_front() {
    let stage = Stage::free(Script::always("ok"));
    let prompts = stage.codex.home().join("prompts");
    std::fs::create_dir_all(&prompts).unwrap();
    std::fs::write(prompts.join("ask.md"), "Ask $WHO.").unwrap();
    for (at, verb) in
        [&["run", "--backend", "engine"][..], &["run", "--backend", "codex"], &["exec"]]
            .into_iter()
            .enumerate()
    {
        let ran = stage.run(&[verb, &["/prompts:ask WHO='the two'"]].concat()).await;
        assert_eq!(ran.code, Some(0), "{verb:?}: {}", ran.err);
        assert_eq!(stage.heard()[at].last().unwrap(), "user: Ask the two.", "{verb:?}");
        let ran = stage.run(&[verb, &["/prompts:ask them"]].concat()).await;
        assert_eq!(ran.code, Some(1), "{verb:?}: {}", ran.err);
        assert!(ran.err.contains("expected key=value but found 'them'"), "{}", ran.err);
    }
    let ran = stage.run_reading(&["exec", "/prompts:ask WHO=me"], "it's a log").await;
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let want = "user: Ask me.\n\n<stdin>\nit's a log\n</stdin>";
    assert_eq!(stage.heard()[3].last().unwrap(), want);
    let ran = stage.run(&["exec", "/prompts:nobody x"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(stage.heard()[4].last().unwrap(), "user: /prompts:nobody x");
}

/// `exec` on a server behind TLS, with something in the environment.
fn secure(stage: &Stage, variables: &[(&str, &str)], base_url: &str) -> (Option<i32>, String) {
    let url = format!("model_providers.safe.base_url=\"{base_url}\"");
    let name = "model_providers.safe.name=Safe";
    let args = ["exec", "-c", &url, "-c", name, "-c", "model_provider=safe", "hi"];
    let mut command = stage.bindery(&args);
    command.env_remove("SSL_CERT_FILE").envs(variables.iter().copied());
    let output = command.stdin(std::process::Stdio::null()).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn authorities_of_the_environment_are_trusted() {
    let stage = Stage::free(Script::always("ok"));
    let front = Front::before(&stage.model.base_url());
    let authority = tls::file("ca.pem").display().to_string();
    for name in ["CODEX_CA_CERTIFICATE", "SSL_CERT_FILE"] {
        let (code, err) = secure(&stage, &[(name, &authority)], &front.base_url());
        assert_eq!(code, Some(0), "{name}: {err}");
    }
    assert_eq!((stage.model.count(), front.connections()), (2, 2));
    let (code, err) = secure(&stage, &[], &front.base_url());
    assert_eq!(code, Some(1), "{err}");
    assert!(
        err.contains("no safe connection to the model's server at `https://localhost:"),
        "{err}"
    );
    assert!(!err.contains("Reconnecting"), "{err}");
    assert_eq!((stage.model.count(), front.connections()), (2, 3));
}

#[test]
fn a_proxy_of_the_environment_is_used_unless_the_server_is_here() {
    let stage = Stage::free(Script::always("ok"));
    let proxy = stage.model.base_url().replace("/v1", "");
    let far = "http://models.invalid/v1";
    let (code, err) = secure(&stage, &[("HTTP_PROXY", &proxy)], far);
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(stage.model.requests()[0].path, format!("{far}/responses"));
    let nowhere = ("HTTP_PROXY", "http://127.0.0.1:1");
    let (code, err) = secure(&stage, &[nowhere], &stage.model.base_url());
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(stage.model.requests()[1].path, "/v1/responses");
}

/// A proxy that leads everything asked of it by `CONNECT` to one place, and keeps who was asked for.
fn tunnels(to: SocketAddr) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&asked);
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let mut client = client.unwrap();
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && client.read(&mut byte).unwrap() == 1 {
                head.push(byte[0]);
            }
            let head = String::from_utf8(head).unwrap();
            kept.lock().unwrap().push(head.lines().next().unwrap_or_default().to_owned());
            client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").unwrap();
            let server = TcpStream::connect(to).unwrap();
            for (mut from, mut to) in
                [(client.try_clone().unwrap(), server.try_clone().unwrap()), (server, client)]
            {
                std::thread::spawn(move || {
                    // Either side may leave in the middle.
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Write);
                });
            }
        }
    });
    (address, asked)
}

#[test]
fn a_secure_server_is_reached_through_a_proxy_that_reads_nothing() {
    let stage = Stage::free(Script::always("ok"));
    let front = Front::before(&stage.model.base_url());
    let port: u16 = front.base_url().rsplit([':', '/']).nth(1).unwrap().parse().unwrap();
    let (proxy, asked) = tunnels(SocketAddr::from(([127, 0, 0, 1], port)));
    let authority = tls::file("ca.pem").display().to_string();
    let far = "https://model.example/v1";
    let trusted = [("HTTPS_PROXY", proxy.as_str()), ("CODEX_CA_CERTIFICATE", &authority)];
    let (code, err) = secure(&stage, &trusted, far);
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(*asked.lock().unwrap(), ["CONNECT model.example:443 HTTP/1.1"]);
    assert_eq!(stage.model.requests()[0].path, "/v1/responses");
    // The proxy vouches for nobody.
    let (code, err) = secure(&stage, &[("HTTPS_PROXY", &proxy)], far);
    assert_eq!(code, Some(1), "{err}");
    let words = "no safe connection to the model's server at `https://model.example`";
    assert!(err.contains(words), "{err}");
    // Servers on this machine are asked without it.
    let here = front.base_url();
    let (code, err) = secure(&stage, &trusted, &here);
    assert_eq!(code, Some(0), "{err}");
    assert_eq!((stage.model.count(), asked.lock().unwrap().len()), (2, 2));
}

#[tokio::test]
async fn a_thread_that_goes_on_says_only_what_is_new() {
    let mut options = Options::unrestricted();
    options.settings.push_str("project_doc_max_bytes = 1000\n");
    let stage = Stage::with(Script::always("ok"), &options);
    stage.file("AGENTS.md", "Be kind.");
    let first = stage.run(&["exec", "one"]).await;
    assert_eq!(first.code, Some(0), "{}", first.err);
    for words in ["two", "three"] {
        let ran = stage.run(&["exec", "resume", "--last", words]).await;
        assert_eq!(ran.code, Some(0), "{}", ran.err);
    }
    stage.file("AGENTS.md", "Be brief.");
    let changed = stage.run(&["exec", "resume", "--last", "four"]).await;
    assert_eq!(changed.code, Some(0), "{}", changed.err);
    let bodies = stage.model.bodies();
    let input = |at: usize| bodies[at]["input"].as_array().unwrap().clone();
    let texts = |items: &[Value]| -> Vec<String> {
        let text = |item: &Value| item["content"][0]["text"].as_str().unwrap_or("?").to_owned();
        items.iter().map(text).collect()
    };
    for (at, new) in [(1, "two"), (2, "three")] {
        let (before, after) = (input(at - 1), input(at));
        assert_eq!(after[..before.len()], before[..], "nothing is written anew");
        assert_eq!(texts(&after[before.len()..]), ["ok", new]);
    }
    let (before, after) = (input(2), input(3));
    assert_eq!(after[..before.len()], before[..]);
    let new = texts(&after[before.len()..]);
    assert_eq!((new.len(), new[0].as_str(), new[2].as_str()), (3, "ok", "four"), "{new:?}");
    assert!(new[1].contains("Be brief.") && !new[1].contains("<environment_context>"), "{new:?}");
    let tools = (&bodies[0]["tools"], &bodies[0]["prompt_cache_key"]);
    assert_eq!(tools, (&bodies[3]["tools"], &bodies[3]["prompt_cache_key"]));
}

#[tokio::test]
async fn sessions_say_where_they_come_from() {
    for (args, source, who) in [
        (&["exec", "hi"][..], "exec", "bindery_exec"),
        (&["run", "--backend", "engine", "hi"], "vscode", "bindery"),
    ] {
        let stage = Stage::free(Script::always("ok"));
        let ran = stage.run(args).await;
        assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.err);
        let listed = stage.run(&["sessions", "list", "--json"]).await;
        assert_eq!(listed.code, Some(0), "{}", listed.err);
        let listed: Value = serde_json::from_str(listed.out.lines().next().unwrap()).unwrap();
        let listed = listed.get(0).unwrap_or(&listed);
        assert_eq!(listed["source"], json!(source), "{args:?}: {listed}");
        let mut folder = stage.codex.home().join("sessions");
        while folder.is_dir() {
            folder = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
        }
        let text = std::fs::read_to_string(&folder).unwrap();
        let meta: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        let told = (&meta["payload"]["source"], &meta["payload"]["originator"]);
        assert_eq!(told, (&json!(source), &json!(who)), "{args:?}");
        // What goes on by another way keeps what it says of its beginning.
        let id = meta["payload"]["id"].as_str().unwrap();
        let on = ["run", "--backend", "engine", "--resume", id, "more"];
        assert_eq!(stage.run(&on).await.code, Some(0), "{args:?}");
        let last = stage.run(&["exec", "resume", "--last", "and more"]).await;
        assert_eq!(last.code, Some(0), "{args:?}: {}", last.err);
        assert!(stage.heard()[2].iter().any(|line| line == "user: hi"), "{args:?}");
    }
}
