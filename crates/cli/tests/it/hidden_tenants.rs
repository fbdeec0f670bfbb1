//! What commands of the engine see of other tenants: nothing, also of those that come later.

use std::fs;
use std::path::{Path, PathBuf};

use bindery_testkit::backend::Server;
use bindery_testkit::model::{Reply, Step};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::daemon::Daemon;
use crate::stage::HANG;
use crate::web::Web;

/// Adds a tenant whose root and home lie outside of the data folder and hold a secret each.
fn add(daemon: &Daemon, name: &str) -> (Web, PathBuf) {
    let beside = daemon.stage.codex.user_home().canonicalize().unwrap();
    let (root, home) = (beside.join(name), beside.join(format!("{name}-codex")));
    for folder in [&root, &home] {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join("secret"), format!("secret of {name}\n")).unwrap();
    }
    fs::copy(daemon.stage.codex.home().join("config.toml"), home.join("config.toml")).unwrap();
    let (at, codex) = (root.to_str().unwrap(), home.to_str().unwrap());
    let args = ["add", name, "--root", at, "--codex-home", codex, "--json"];
    let added: Value = serde_json::from_str(&daemon.tenant(&args)).unwrap();
    (daemon.web.with(added["token"].as_str().unwrap()), root)
}

/// What a command of the tenant's reads when it tries all secrets, by a turn or by a call.
async fn read(daemon: &Daemon, web: &Web, thread: Option<&str>, root: &Path) -> String {
    let told = root.join("told");
    let _ = fs::remove_file(&told);
    match thread {
        Some(thread) => {
            let path = format!("/v1/threads/{thread}/turns");
            let (_, turn) = web.post(&path, json!({ "input": "look" })).await;
            web.follow(turn["id"].as_str().unwrap(), 0).await.rest().await;
        }
        None => {
            let content = json!([{ "type": "text", "text": "look" }]);
            let body = json!({ "specification": "v3", "options": {
                "prompt": [{ "role": "user", "content": content }],
                "providerOptions": { "codex": writes() } } });
            assert_eq!(web.post("/v1/language-model/stream", body).await.0, 200);
        }
    }
    fs::read_to_string(told).unwrap_or_else(|err| {
        let asked = daemon.stage.model.bodies().pop().map(|body| body["input"].to_string());
        format!("no command ran ({err}); the model was told {asked:?}")
    })
}

fn writes() -> Value {
    json!({ "sandbox": "workspace-write", "approvalPolicy": "never" })
}

#[tokio::test]
async fn folders_of_other_tenants_are_hidden_also_of_those_that_come_later() {
    Server::Engine.run(hides()).await;
}

async fn hides() {
    let mut daemon = Daemon::new(bindery_testkit::model::Script::new([]));
    let beside = daemon.stage.codex.user_home().canonicalize().unwrap();
    let look = format!("cat {}/*/secret > told 2>/dev/null; echo looked >> told", beside.display());
    daemon.stage.model.push([
        Reply::text("done").when_after_tool(true).always(),
        Reply::new([Step::exec(&look, "call_in")]).always(),
    ]);
    let (acme, root) = add(&daemon, "acme");
    add(&daemon, "other");
    let (_, thread) = acme.post("/v1/threads", json!({ "settings": writes() })).await;
    let thread = Some(thread["id"].as_str().unwrap());
    let own = "secret of acme\nsecret of acme\nlooked\n";
    assert_eq!(read(&daemon, &acme, thread, &root).await, own, "a turn");
    assert_eq!(read(&daemon, &acme, None, &root).await, own, "a call");
    // Workers run that know nothing of a tenant who comes now; they are replaced before long.
    add(&daemon, "later");
    let hidden = async {
        while read(&daemon, &acme, thread, &root).await != own
            || read(&daemon, &acme, None, &root).await != own
        {}
    };
    timeout(HANG, hidden).await.expect("a later tenant stays readable");
    // And so is one that the next daemon finds, when tenants came in between.
    let before = daemon.workers();
    daemon.kill();
    add(&daemon, "last");
    daemon.again();
    let acme = daemon.web.with(&acme.token);
    let hidden = async { while read(&daemon, &acme, thread, &root).await != own {} };
    timeout(HANG, hidden).await.expect("a tenant that came meanwhile stays readable");
    assert_ne!(daemon.workers(), before);
}
