//! A tenant's key for the model: the one in its settings reaches the model, on both backends, and
//! lies in clear nowhere.

use std::fs;
use std::path::PathBuf;

use bindery_testkit::codex::PROVIDER;
use bindery_testkit::model::Script;
use serde_json::{Value, json};

use crate::daemon::Daemon;
use crate::web::{Web, text};

bindery_testkit::on_both! {
    the_key_in_a_tenants_settings_reaches_the_model,
    a_key_that_is_changed_counts_from_the_next_turn_on,
}

/// A tenant whose provider wants a login with OpenAI, with this in its settings.
struct Keyed {
    web: Web,
    home: PathBuf,
}

impl Keyed {
    fn new(daemon: &Daemon, name: &str, settings: &str) -> Self {
        let home = daemon.stage.codex.user_home().join(format!("{name}-codex"));
        fs::create_dir_all(&home).unwrap();
        let config = fs::read_to_string(daemon.stage.codex.home().join("config.toml")).unwrap();
        let provider = format!("[model_providers.{PROVIDER}]\n");
        let wants_login = format!("{provider}requires_openai_auth = true\n");
        fs::write(home.join("config.toml"), config.replace(&provider, &wants_login)).unwrap();
        let file = daemon.stage.file(&format!("{name}.toml"), settings);
        let (at, file) = (home.to_str().unwrap(), file.to_str().unwrap());
        let args = ["add", name, "--codex-home", at, "--settings", file, "--json"];
        let added: Value = serde_json::from_str(&daemon.tenant(&args)).unwrap();
        Self { web: daemon.web.with(added["token"].as_str().unwrap()), home }
    }

    async fn thread(&self) -> String {
        let (status, thread) = self.web.post("/v1/threads", json!({})).await;
        assert_eq!(status, 201, "{thread}");
        thread["id"].as_str().unwrap().to_owned()
    }

    async fn say(&self, thread: &str) {
        let path = format!("/v1/threads/{thread}/turns");
        let (_, turn) = self.web.post(&path, json!({ "input": "go" })).await;
        let all = self.web.follow(turn["id"].as_str().unwrap(), 0).await.rest().await;
        assert_eq!(text(&all), "ok", "{all:#?}");
    }

    async fn call(&self) {
        let prompt = json!([{ "role": "user", "content": [{ "type": "text", "text": "go" }] }]);
        let body = json!({ "specification": "v3", "options": { "prompt": prompt } });
        let mut stream = self.web.call("/v1/language-model/stream", body).await;
        let all = stream.until(|heard| heard.data["type"] == "finish").await;
        assert_eq!(text(&all), "ok", "{all:#?}");
    }
}

/// Who asked the model last, by the key.
fn asked(daemon: &Daemon) -> String {
    let request = daemon.stage.model.requests().pop().unwrap();
    request.headers.get("authorization").cloned().unwrap_or_default()
}

async fn the_key_in_a_tenants_settings_reaches_the_model() {
    let mut daemon = Daemon::new(Script::always("ok"));
    let acme = Keyed::new(&daemon, "acme", "[env]\nOPENAI_API_KEY = 'sk-acme'\n");
    let other = Keyed::new(&daemon, "other", "[env]\nOPENAI_API_KEY = 'sk-other'\n");
    let login = r#"{"auth_mode":"apikey","OPENAI_API_KEY":"sk-login"}"#;
    fs::write(other.home.join("auth.json"), login).unwrap();
    let (first, second) = (acme.thread().await, other.thread().await);
    acme.say(&first).await;
    assert_eq!(asked(&daemon), "Bearer sk-acme");
    other.say(&second).await;
    assert_eq!(asked(&daemon), "Bearer sk-other", "the settings are stronger than a login");
    acme.call().await;
    assert_eq!(asked(&daemon), "Bearer sk-acme", "by the AI SDK's front");
    // The worker is found again by the next daemon.
    daemon.kill();
    daemon.again();
    let acme = Keyed { web: daemon.web.with(&acme.web.token), ..acme };
    acme.say(&first).await;
    assert_eq!(asked(&daemon), "Bearer sk-acme", "after a restart");
    assert!(!acme.home.join("auth.json").exists(), "the key is written down in clear");
    assert_eq!(fs::read_to_string(other.home.join("auth.json")).unwrap(), login);
}

async fn a_key_that_is_changed_counts_from_the_next_turn_on() {
    let daemon = Daemon::new(Script::always("ok"));
    let acme = Keyed::new(&daemon, "acme", "[env]\nOPENAI_API_KEY = 'sk-old'\n");
    let thread = acme.thread().await;
    acme.say(&thread).await;
    let file = daemon.stage.file("acme.toml", "[env]\nOPENAI_API_KEY = 'sk-new'\n");
    daemon.tenant(&["set", "acme", "--settings", file.to_str().unwrap()]);
    acme.say(&thread).await;
    assert_eq!(asked(&daemon), "Bearer sk-new");
    acme.call().await;
    assert_eq!(asked(&daemon), "Bearer sk-new");
}

#[tokio::test]
async fn a_login_of_the_home_counts_where_the_settings_have_no_key() {
    let daemon = Daemon::with(Script::always("ok"), "[workers]\npass_env = ['OPENAI_API_KEY']\n");
    let acme = Keyed::new(&daemon, "acme", "");
    let login = r#"{"auth_mode":"apikey","OPENAI_API_KEY":"sk-login"}"#;
    fs::write(acme.home.join("auth.json"), login).unwrap();
    acme.say(&acme.thread().await).await;
    assert_eq!(asked(&daemon), "Bearer sk-login");
}
