//! What a tenant's turns reach: their own folder, and not what is put in its place, nor what a
//! project's files or the data folder would give them.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use bindery_testkit::model::{Reply, Script, Step};
use serde_json::{Value, json};

use crate::daemon::Daemon;
use crate::web::{Heard, Web};

bindery_testkit::on_both! {
    a_folder_that_became_a_link_runs_no_turn_of_any_kind,
    a_turn_is_stopped_when_its_folder_is_replaced,
    a_turn_that_waited_over_a_restart_looks_for_its_folder_again,
    a_socket_that_leads_to_another_tenants_worker_is_not_spoken_to,
    an_image_is_read_when_its_turn_begins_and_from_no_link,
    commands_have_the_home_of_their_tenant_and_no_key_of_the_model,
}

/// A tenant that may not reach past anything, and a folder that is somebody else's.
struct Acme {
    daemon: Daemon,
    web: Web,
    root: PathBuf,
    home: PathBuf,
    other: PathBuf,
}

impl Acme {
    fn new(script: impl Into<Script>) -> Self {
        Self::with(script, "")
    }

    fn with(script: impl Into<Script>, settings: &str) -> Self {
        let daemon = Daemon::with(script, settings);
        let beside = daemon.stage.codex.user_home().canonicalize().unwrap();
        let [root, home, other] = ["acme", "acme-codex", "other"].map(|name| beside.join(name));
        for folder in [&root.join("sub"), &home, &other] {
            fs::create_dir_all(folder).unwrap();
        }
        fs::copy(daemon.stage.codex.home().join("config.toml"), home.join("config.toml")).unwrap();
        let text = |path: &PathBuf| path.to_str().unwrap().to_owned();
        let (at, codex) = (text(&root), text(&home));
        let token = daemon.tenant(&["add", "acme", "--root", &at, "--codex-home", &codex]);
        let token = token.split_whitespace().find(|word| word.starts_with("bnd_")).unwrap();
        let web = daemon.web.with(token);
        Self { daemon, web, root, home, other }
    }

    async fn thread(&self, cwd: &str) -> String {
        let settings = json!({ "sandbox": "workspace-write", "approvalPolicy": "never" });
        let body = json!({ "cwd": cwd, "settings": settings });
        let (status, thread) = self.web.post("/v1/threads", body).await;
        assert_eq!(status, 201, "{thread}");
        thread["id"].as_str().unwrap().to_owned()
    }

    /// Starts a turn of a kind, and reads it to its end.
    async fn run(&self, thread: &str, kind: &str, body: Value) -> Vec<Heard> {
        let (status, turn) = self.web.post(&format!("/v1/threads/{thread}/{kind}"), body).await;
        assert_eq!(status, 201, "{turn}");
        self.web.follow(turn["id"].as_str().unwrap(), 0).await.rest().await
    }

    async fn say(&self, thread: &str, text: &str) -> Vec<Heard> {
        self.run(thread, "turns", json!({ "input": text })).await
    }

    /// Puts a link to the other's folder in the place of the thread's.
    fn relink(&self) {
        fs::rename(self.root.join("sub"), self.root.join("kept")).unwrap();
        symlink(&self.other, self.root.join("sub")).unwrap();
    }

    fn put_back(&self) {
        fs::remove_file(self.root.join("sub")).unwrap();
        fs::rename(self.root.join("kept"), self.root.join("sub")).unwrap();
    }
}

fn end(all: &[Heard]) -> (String, String) {
    let end = &all.last().unwrap().data;
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (word(&end["state"]), word(&end["error"]["code"]))
}

fn moved() -> (String, String) {
    ("failed".to_owned(), "folder_moved".to_owned())
}

async fn a_folder_that_became_a_link_runs_no_turn_of_any_kind() {
    let write = Reply::new([Step::exec("echo mine > written", "c1")]);
    let acme = Acme::new(vec![
        Reply::text("fine").when_output_of("c1"),
        write.when_user("write").always(),
        Reply::text("hello").always(),
    ]);
    let thread = acme.thread("sub").await;
    assert_eq!(end(&acme.say(&thread, "hi").await).0, "completed");
    acme.relink();
    let asked = acme.daemon.stage.model.count();
    assert_eq!(end(&acme.say(&thread, "write").await), moved());
    let target = json!({ "target": { "type": "uncommittedChanges" } });
    assert_eq!(end(&acme.run(&thread, "review", target).await), moved());
    assert_eq!(end(&acme.run(&thread, "compact", json!({})).await), moved());
    let fork = format!("/v1/threads/{thread}/fork");
    assert_eq!(acme.web.post(&fork, json!({})).await.0, 422);
    assert_eq!(acme.web.post("/v1/threads", json!({ "cwd": "sub" })).await.0, 422);
    assert_eq!(acme.daemon.stage.model.count(), asked, "a worker was asked");
    assert_eq!(fs::read_dir(&acme.other).unwrap().count(), 0);
    acme.put_back();
    assert_eq!(end(&acme.say(&thread, "write").await).0, "completed");
    assert_eq!(fs::read_to_string(acme.root.join("sub/written")).unwrap(), "mine\n");
}

async fn a_turn_is_stopped_when_its_folder_is_replaced() {
    let acme = Acme::new(vec![Reply::new([
        Step::begin("one"),
        Step::gate("swap"),
        Step::text("two"),
        Step::begin("three"),
        Step::gate("never"),
    ])]);
    let thread = acme.thread("sub").await;
    let path = format!("/v1/threads/{thread}/turns");
    let (_, turn) = acme.web.post(&path, json!({ "input": "go" })).await;
    let turn = turn["id"].as_str().unwrap();
    let events = acme.web.follow(turn, 0).await;
    acme.daemon.stage.reached("swap").await;
    acme.relink();
    acme.daemon.stage.model.open("swap");
    let all = events.rest().await;
    assert_eq!(end(&all), moved(), "{all:#?}");
    let hint = all.iter().find(|heard| heard.data["type"] == "error");
    let hint = hint.unwrap().data["error"]["hint"].as_str().unwrap();
    assert!(hint.contains("put the folder back"), "{hint}");
}

async fn a_turn_that_waited_over_a_restart_looks_for_its_folder_again() {
    let first = Reply::new([Step::begin("one"), Step::gate("never")]);
    let mut acme = Acme::new(vec![first, Reply::text("two").always()]);
    let thread = acme.thread("sub").await;
    let path = format!("/v1/threads/{thread}/turns");
    let (_, running) = acme.web.post(&path, json!({ "input": "go" })).await;
    let (_, waiting) = acme.web.post(&path, json!({ "input": "and on" })).await;
    acme.daemon.stage.reached("never").await;
    // It must be known to the store, or the next daemon calls it lost before it looks.
    let running = running["id"].as_str().unwrap();
    acme.web.follow(running, 0).await.until(|heard| heard.data["type"] == "text-delta").await;
    acme.daemon.kill();
    acme.relink();
    acme.daemon.again();
    let web = acme.daemon.web.with(&acme.web.token);
    let all = web.follow(running, 0).await.rest().await;
    assert_eq!(end(&all), moved(), "{all:#?}");
    let all = web.follow(waiting["id"].as_str().unwrap(), 0).await.rest().await;
    assert_eq!(end(&all), moved(), "{all:#?}");
}

async fn a_socket_that_leads_to_another_tenants_worker_is_not_spoken_to() {
    let mut acme = Acme::new(Script::always("ok"));
    let theirs = acme.daemon.thread(json!({})).await;
    let turn = acme.daemon.say(&theirs, "mine").await;
    acme.daemon.web.follow(&turn, 0).await.rest().await;
    let sockets = |daemon: &Daemon| {
        let workers = fs::read_dir(daemon.data().join("workers")).unwrap().flatten();
        workers.map(|worker| worker.path().join("s")).collect::<Vec<_>>()
    };
    let other = sockets(&acme.daemon).pop().unwrap();
    let thread = acme.thread("sub").await;
    assert_eq!(end(&acme.say(&thread, "go").await).0, "completed");
    let own = sockets(&acme.daemon).into_iter().find(|socket| *socket != other).unwrap();
    let sessions = |home: &Path| {
        let files = bindery::sessions::find::files(&[home.to_owned()]).unwrap();
        files.iter().map(|file| file.path.clone()).collect::<Vec<_>>()
    };
    let home = acme.daemon.stage.codex.home();
    let (before, at_first) = (sessions(&home), sessions(&acme.home).len());
    acme.daemon.kill();
    fs::remove_file(&own).unwrap();
    symlink(&other, &own).unwrap();
    acme.daemon.again();
    acme.web = acme.daemon.web.with(&acme.web.token);
    let thread = acme.thread("sub").await;
    let all = acme.say(&thread, "go").await;
    assert_eq!(end(&all).0, "completed", "{all:#?}");
    assert_eq!(sessions(&home), before, "the other's worker ran it");
    assert_eq!(sessions(&acme.home).len(), at_first + 1);
}

const PIXEL: &[u8] = &[
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44, 0x52,
    0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x06, 0x00, 0x00, 0x00, 0x1f, 0x15, 0xc4,
    0x89, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x44, 0x41, 0x54, 0x78, 0x9c, 0x63, 0xf8, 0xcf, 0xc0, 0xf0,
    0x1f, 0x00, 0x05, 0x00, 0x01, 0xff, 0x89, 0x99, 0x3d, 0x1d, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45,
    0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
];

async fn an_image_is_read_when_its_turn_begins_and_from_no_link() {
    let script = vec![
        Reply::new([Step::gate("hold"), Step::text("first")]).when_user("hold"),
        Reply::text("seen").always(),
    ];
    let acme = Acme::new(script);
    let (own, theirs) = (acme.root.join("own.png"), acme.other.join("theirs.png"));
    fs::write(&own, PIXEL).unwrap();
    fs::write(&theirs, PIXEL).unwrap();
    let thread = acme.thread("sub").await;
    let look = |path: &Path| {
        let data = format!("file://{}", path.display());
        json!({ "input": [{ "type": "text", "text": "look" },
            { "type": "file", "mediaType": "image/png", "data": data }] })
    };
    let all = acme.run(&thread, "turns", look(&own)).await;
    assert_eq!(end(&all).0, "completed", "{all:#?}");
    let asked = acme.daemon.stage.model.bodies().pop().unwrap().to_string();
    assert!(asked.contains("data:image/png;base64,iVBORw0KGgo"), "{asked}");
    // What leads elsewhere is refused when it is asked for.
    let turns = format!("/v1/threads/{thread}/turns");
    symlink(&theirs, acme.root.join("link.png")).unwrap();
    fs::hard_link(&theirs, acme.root.join("hard.png")).unwrap();
    for path in [acme.root.join("link.png"), acme.root.join("hard.png"), theirs.clone()] {
        let (status, said) = acme.web.post(&turns, look(&path)).await;
        assert_eq!((status, &said["code"]), (422, &json!("invalid")), "{said}");
    }
    // And when it came to lead elsewhere while the turn waited.
    let (_, first) = acme.web.post(&turns, json!({ "input": "hold" })).await;
    let (status, second) = acme.web.post(&turns, look(&own)).await;
    assert_eq!(status, 201);
    acme.daemon.stage.reached("hold").await;
    fs::remove_file(&own).unwrap();
    symlink(&theirs, &own).unwrap();
    acme.daemon.stage.model.open("hold");
    let first = acme.web.follow(first["id"].as_str().unwrap(), 0).await.rest().await;
    assert_eq!(end(&first).0, "completed");
    let second = acme.web.follow(second["id"].as_str().unwrap(), 0).await.rest().await;
    assert_eq!(end(&second), ("failed".to_owned(), "input_refused".to_owned()));
}

async fn commands_have_the_home_of_their_tenant_and_no_key_of_the_model() {
    let print = "echo \"$HOME|$TMPDIR|$USER|${ACME_WORD:-none}|${ACME_API_KEY:-none}\" > told; \
                 stat -c %a told";
    let acme = Acme::with(
        vec![
            Reply::text("fine").when_output_of("c1"),
            Reply::new([Step::exec(print, "c1")]).always(),
        ],
        "[workers]\npass_env = [\"ACME_WORD\"]\n",
    );
    let settings = acme.root.join("acme.toml");
    fs::write(&settings, "[env]\nACME_API_KEY = 'sk-of-acme'\nACME_WORD = 'passed on'\n").unwrap();
    acme.daemon.tenant(&["set", "acme", "--settings", settings.to_str().unwrap()]);
    let thread = acme.thread("sub").await;
    let all = acme.say(&thread, "go").await;
    assert_eq!(end(&all).0, "completed", "{all:#?}");
    let told = fs::read_to_string(acme.root.join("sub/told")).unwrap();
    let told: Vec<&str> = told.trim().split('|').collect();
    let data = acme.daemon.data().canonicalize().unwrap();
    for (told, kind) in [(told[0], "homes"), (told[1], "temporary")] {
        let folder = Path::new(told).canonicalize().unwrap();
        assert!(folder.starts_with(data.join(kind)), "{told}");
        assert_eq!(fs::metadata(folder).unwrap().permissions().mode() & 0o777, 0o700);
    }
    assert_eq!(told[2..], ["acme", "none", "none"]);
    let mode = fs::metadata(acme.root.join("sub/told")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
}

/// An MCP server that a project declares; it leaves a file where it ran.
fn canary(project: &Path, ran: &Path) {
    fs::create_dir_all(project.join(".codex")).unwrap();
    let script = format!("touch '{}'; exec cat", ran.display());
    let script = Value::from(script).to_string();
    let server = format!("[mcp_servers.canary]\ncommand = '/bin/sh'\nargs = ['-c', {script}]\n");
    fs::write(project.join(".codex/config.toml"), server).unwrap();
}

fn git(folder: &Path, args: &[&str]) {
    let mut git = std::process::Command::new("git");
    git.args(["-c", "user.name=a", "-c", "user.email=a@b", "-C"]).arg(folder).args(args);
    assert!(git.output().unwrap().status.success(), "git {args:?}");
}

#[tokio::test]
async fn a_project_starts_no_server_of_its_own_on_any_way_to_run_in_it() {
    let mut acme = Acme::new(Script::always("ok"));
    let ran = acme.other.join("ran");
    let repository = acme.root.join("repository");
    fs::create_dir_all(repository.join("deep/nested")).unwrap();
    git(&repository, &["init", "-q"]);
    git(&repository, &["commit", "-q", "--allow-empty", "-m", "x"]);
    git(&repository, &["worktree", "add", "-q", "../tree"]);
    git(&repository.join("deep/nested"), &["init", "-q"]);
    let folders = ["repository", "repository/deep", "repository/deep/nested", "tree", "sub"];
    for folder in folders {
        canary(&acme.root.join(folder), &ran);
    }
    // As a Codex that ran here before has written it down.
    let config = acme.home.join("config.toml");
    let mut text = fs::read_to_string(&config).unwrap();
    let trusted =
        |path: &Path| format!("[projects.'{}']\ntrust_level = 'trusted'\n", path.display());
    text.push_str(&trusted(&repository));
    fs::write(&config, &text).unwrap();
    let mut threads = Vec::new();
    for folder in folders {
        let thread = acme.thread(folder).await;
        assert_eq!(end(&acme.say(&thread, "go").await).0, "completed", "{folder}");
        assert!(!ran.exists(), "started in {folder}");
        threads.push(thread);
    }
    // A repository that comes to be between two turns, and a worker that loads threads anew.
    git(&acme.root.join("sub"), &["init", "-q"]);
    assert_eq!(acme.daemon.terminate(), Some(0));
    crate::daemon::end_workers(&acme.daemon.data());
    acme.daemon.again();
    acme.web = acme.daemon.web.with(&acme.web.token);
    for thread in &threads {
        assert_eq!(end(&acme.say(thread, "again").await).0, "completed");
        let (status, fork) = acme.web.post(&format!("/v1/threads/{thread}/fork"), json!({})).await;
        assert_eq!(status, 201, "{fork}");
        let fork = fork["id"].as_str().unwrap();
        assert_eq!(end(&acme.say(fork, "aside").await).0, "completed");
        assert_eq!(end(&acme.run(thread, "compact", json!({})).await).0, "completed");
        assert!(!ran.exists());
    }
    let target = json!({ "target": { "type": "uncommittedChanges" } });
    acme.run(&acme.thread("tree").await, "review", target).await;
    assert!(!ran.exists());
    assert_eq!(fs::read_to_string(&config).unwrap(), text, "the tenant's file is its own");
    // The canary sings where it may: the first tenant may override everything.
    let project = acme.daemon.stage.codex.project();
    canary(&project, &ran);
    let thread = acme.daemon.thread(json!({ "settings": { "sandbox": "workspace-write" } })).await;
    let turn = acme.daemon.say(&thread, "go").await;
    acme.daemon.web.follow(&turn, 0).await.rest().await;
    assert!(ran.exists(), "the canary does not sing");
}

#[tokio::test]
async fn a_tenant_that_sets_nothing_works_as_in_an_unknown_folder() {
    let acme = Acme::new(Script::always("ok"));
    let (_, thread) = acme.web.post("/v1/threads", json!({ "cwd": "sub" })).await;
    acme.say(thread["id"].as_str().unwrap(), "go").await;
    let asked = acme.daemon.stage.model.bodies().pop().unwrap().to_string();
    assert!(asked.contains("read-only") && !asked.contains("workspace-write"), "{asked}");
}

#[tokio::test]
async fn no_token_and_no_secret_is_kept_in_clear() {
    let mut daemon = Daemon::new(Script::always("ok"));
    let data = daemon.data();
    let settings = daemon.stage.codex.user_home().join("secrets.toml");
    let secrets = "[env]\nOPENAI_API_KEY = 'sk-in-the-store'\n[[webhooks]]\n\
                   url = 'http://h.example'\n\
                   secret = 'whsec_aW5fdGhlX3N0b3Jl'\n";
    fs::write(&settings, secrets).unwrap();
    daemon.tenant(&["set", "default", "--settings", settings.to_str().unwrap()]);
    let first = daemon.web.token.clone();
    // What an older daemon left, and rights that somebody gave.
    daemon.kill();
    fs::write(data.join("token"), &first).unwrap();
    let open = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    open(&data, 0o755);
    open(&data.join("bindery.sqlite"), 0o644);
    daemon.again();
    assert_ne!(daemon.web.token, first, "a start tells a token of its own");
    assert_eq!(daemon.web.get("/v1/threads").await.0, 200);
    assert_eq!(daemon.web.with(&first).get("/v1/threads").await.0, 200);
    let thread = daemon.thread(json!({})).await;
    let turn = daemon.say(&thread, "go").await;
    daemon.web.follow(&turn, 0).await.rest().await;
    let second = daemon.web.token.clone();
    let mut folders = vec![data.clone()];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            let mode = fs::symlink_metadata(&path).unwrap().permissions().mode() & 0o077;
            assert!(kind.is_symlink() || mode == 0, "{} is open", path.display());
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() {
                seen += 1;
                let bytes = fs::read(&path).unwrap();
                for secret in [&first, &second, "sk-in-the-store", "whsec_aW5fdGhlX3N0b3Jl"] {
                    let found = bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
                    assert!(!found, "{} holds {secret}", path.display());
                }
            }
        }
    }
    assert!(seen > 3 && !data.join("token").exists());
    assert_eq!(fs::metadata(&data).unwrap().permissions().mode() & 0o777, 0o700);
    // The key lies elsewhere; without it nothing starts, and nothing is made in its place.
    let key = daemon.stage.codex.user_home().join(".config/bindery/store.key");
    assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    daemon.kill();
    fs::rename(&key, key.with_extension("away")).unwrap();
    let args = ["serve", "--data", data.to_str().unwrap(), "--listen", "127.0.0.1:0"];
    let output = daemon.stage.bindery(&args).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("it is not there") && said.contains("[store] key_file"), "{said}");
    assert!(!key.exists());
    fs::rename(key.with_extension("away"), &key).unwrap();
    daemon.again();
}

/// Also what is made after the worker was started, and also by the engine's own tools.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_tenant_of_the_engine_reads_neither_the_data_folder_nor_sockets_of_others() {
    let user = rustix::process::getuid().as_raw();
    let sockets = PathBuf::from(format!("/tmp/codex-daemon-{user}"));
    fs::create_dir_all(&sockets).unwrap();
    fs::set_permissions(&sockets, PermissionsExt::from_mode(0o700)).unwrap();
    let file = tempfile::Builder::new().prefix("test-").tempfile_in(&sockets).unwrap();
    fs::write(file.path(), "hunter2").unwrap();
    let acme = Acme::new(vec![
        Reply::text("hello").when_user("hi"),
        Reply::text("done").when_output_of("c3"),
        Reply::new([Step::exec("cat ../targets | xargs cat; cat seen", "c1")]).when_user("go"),
        Reply::new([Step::call("view_image", json!({ "path": "../dot.png" }), "c2")])
            .when_output_of("c1"),
        Reply::new([Step::call("view_image", json!({ "path": "own.png" }), "c3")])
            .when_output_of("c2"),
    ]);
    let settings = json!({ "sandbox": "workspace-write", "approvalPolicy": "never" });
    let body = json!({ "cwd": "sub", "backend": "engine", "settings": settings });
    let (status, thread) = acme.web.post("/v1/threads", body).await;
    assert_eq!(status, 201, "{thread}");
    let thread = thread["id"].as_str().unwrap();
    assert_eq!(end(&acme.say(thread, "hi").await).0, "completed");
    let data = acme.daemon.data();
    fs::create_dir_all(data.join("homes/later")).unwrap();
    let late = [data.join("late-wal"), data.join("homes/later/key")];
    late.iter().for_each(|file| fs::write(file, "hunter2").unwrap());
    fs::write(data.join("dot.png"), PIXEL).unwrap();
    fs::write(acme.root.join("sub/own.png"), PIXEL).unwrap();
    fs::write(acme.root.join("sub/seen"), "seen").unwrap();
    symlink(data.join("dot.png"), acme.root.join("dot.png")).unwrap();
    let files = late.iter().map(PathBuf::as_path).chain([file.path()]);
    let files: Vec<_> = files.map(|file| file.display().to_string()).collect();
    fs::write(acme.root.join("targets"), files.join("\n")).unwrap();
    let all = acme.say(thread, "go").await;
    assert_eq!(end(&all).0, "completed", "{all:#?}");
    let heard = acme.daemon.stage.model.bodies().pop().unwrap().to_string();
    assert!(heard.contains("seen") && !heard.contains("hunter2"), "{heard}");
    assert!(heard.contains("is hidden"), "{heard}");
    assert_eq!(heard.matches("data:image/png;base64,").count(), 1, "{heard}");
}
