//! Roles, settings and answers on every route.

use bindery_core::interrupt::{Ask, Interrupt};
use bindery_daemon::config::{Backend, Config};
use bindery_daemon::http::access::{Access, access};
use bindery_daemon::http::{openapi, routes};
use bindery_daemon::store::{Change, InterruptRow, InterruptState, TurnKind, TurnRow, TurnState};
use bindery_daemon::tenant::{Escalation, Role, Roles};
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::stage::{Stage, value};

/// A server without any Codex, whose tenant has no full access.
async fn stage(escalation: Option<Escalation>) -> (Stage, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let (root, home) = (folder.path().join("root"), folder.path().join("home"));
    std::fs::create_dir_all(&root).unwrap();
    std::fs::create_dir_all(&home).unwrap();
    let mut config = Config { codex_home: Some(home), ..Config::default() };
    config.workers.backend = Backend::Engine;
    let stage = Stage::with(config, root).await;
    let mut tenant = stage.app.tenants.find("default").await.unwrap();
    let policy = &mut tenant.settings.policy;
    (policy.full_access, policy.escalation) = (false, escalation);
    stage.app.tenants.set(&tenant).await.unwrap();
    (stage, folder)
}

impl Stage {
    async fn token_of(&self, name: &str, roles: &[Role]) -> String {
        let tenant = self.app.tenants.find("default").await.unwrap();
        let roles = Roles::new(roles.iter().copied());
        self.app.tenants.token(&tenant, name, roles).await.unwrap()
    }

    /// The status and the problem.
    async fn ask_as(&self, token: &str, method: &Method, path: &str, body: &str) -> (u16, Value) {
        let request = self.client.request(method.clone(), format!("{}{path}", self.url));
        let request = request.bearer_auth(token);
        let request = match *method == Method::POST || *method == Method::PATCH {
            true => request.header("content-type", "application/json").body(body.to_owned()),
            false => request,
        };
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let is_json = |kind: &str| kind.ends_with("json");
        let kind = response.headers().get("content-type").map(|kind| kind.to_str().unwrap());
        let problem = if kind.is_some_and(is_json) { value(response).await } else { Value::Null };
        (status, problem)
    }

    async fn post_as(&self, token: &str, path: &str, body: Value) -> (u16, Value) {
        self.ask_as(token, &Method::POST, path, &body.to_string()).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_of_the_document_needs_its_role_and_no_other_is_enough() {
    let (stage, _folder) = stage(None).await;
    let mut tokens = Vec::new();
    for role in Role::ALL {
        tokens.push((Roles::new([role]), stage.token_of(role.word(), &[role]).await));
    }
    tokens.push((Roles::new([]), stage.token_of("none", &[]).await));
    let document = openapi::document();
    let mut seen = 0;
    for route in routes() {
        for method in route.methods {
            let needed = access(method, route.path);
            let needed = needed.unwrap_or_else(|| panic!("{method} {} is unlisted", route.path));
            seen += 1;
            let path = route.path.replace(['{', '}'], "");
            for (roles, token) in tokens.iter().filter(|_| needed != Access::Open) {
                let method: Method = method.parse().unwrap();
                let (status, told) = stage.ask_as(token, &method, &path, "{}").await;
                let refused = status == 403
                    && ["role_missing", "forbidden"]
                        .contains(&told["code"].as_str().unwrap_or_default());
                assert_eq!(refused, !needed.admits(roles), "{method} {path} {roles}: {told}");
            }
        }
    }
    let described = document["paths"].as_object().unwrap().values();
    let described: usize = described.map(|path| path.as_object().unwrap().len()).sum();
    assert!(seen >= described, "{seen} routes, {described} described");
    assert_eq!(access("DELETE", "/v1/threads"), None);
    let overall = "/v1/interrupts?all=true";
    let (status, _) = stage.ask_as(&tokens[0].1, &Method::GET, overall, "").await;
    assert_eq!(status, 403, "only an administrator sees all tenants");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_setting_that_is_mistyped_is_named_on_every_route() {
    let (stage, _folder) = stage(None).await;
    let token = &stage.token;
    let (_, thread) = stage.post_as(token, "/v1/threads", json!({})).await;
    let turns = format!("/v1/threads/{}/turns", thread["id"].as_str().unwrap());
    let prompt = json!([{ "role": "user", "content": [{ "type": "text", "text": "hi" }] }]);
    #[rustfmt::skip]
    let table = [
        (json!({ "sandbox": "readonly" }),                    "sandbox"),
        (json!({ "sandbox": "readOnly" }),                    "sandbox"),
        (json!({ "sandbox": null }),                          "sandbox"),
        (json!({ "sandbox": 1 }),                             "sandbox"),
        (json!({ "sandbox_mode": "read-only" }),              "sandbox_mode"),
        (json!({ "approvalPolicy": "always" }),               "approvalPolicy"),
        (json!({ "approvalPolicy": null }),                   "approvalPolicy"),
        (json!({ "sandboxPolicy": { "type": "readonly" } }),  "sandboxPolicy.type"),
        (json!({ "sandboxPolicy": { "type": "readOnly", "netwrok": false } }),
            "sandboxPolicy.netwrok"),
        (json!({ "config": { "sandbox_mode": "readonly" } }), "config.sandbox_mode"),
        (json!({ "aproval": "never" }),                       "aproval"),
    ];
    for (settings, name) in table {
        let call = |options: Value, provider: Value| {
            json!({ "specification": "v3", "settings": { "thread": provider },
                "options": { "prompt": prompt, "providerOptions": { "codex": options } } })
        };
        for (path, body, prefix) in [
            ("/v1/threads", json!({ "settings": settings }), "settings"),
            (&*turns, json!({ "input": "hi", "settings": settings }), "settings"),
            (
                "/v1/language-model/stream",
                call(settings.clone(), json!({})),
                "providerOptions.codex",
            ),
            ("/v1/language-model/stream", call(json!({}), settings.clone()), "settings.thread"),
            (
                "/v1/language-model/prepare",
                call(settings.clone(), json!({})),
                "providerOptions.codex",
            ),
        ] {
            let (status, told) = stage.post_as(token, path, body).await;
            let detail = told["detail"].as_str().unwrap_or_default().to_owned();
            assert_eq!(status, 422, "{path} {settings}: {told}");
            assert!(detail.starts_with(&format!("{prefix}.{name}: ")), "{path}: {detail}");
        }
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_setting_in_a_wrong_place_or_given_twice_is_refused() {
    let (stage, _folder) = stage(None).await;
    let token = &stage.token;
    let prompt = json!([{ "role": "user", "content": [{ "type": "text", "text": "hi" }] }]);
    for body in [
        json!({ "specification": "v3", "options": { "prompt": prompt, "sandbox": "read-only" } }),
        json!({ "specification": "v3", "options": { "prompt": prompt },
            "settings": { "sandbox": "read-only" } }),
        json!({ "specification": "v3", "options": { "prompt": prompt }, "sandbox": "read-only" }),
    ] {
        let (status, told) = stage.post_as(token, "/v1/language-model/stream", body.clone()).await;
        assert_eq!(status, 422, "{body}");
        assert!(told["detail"].as_str().unwrap().contains("sandbox"), "{told}");
    }
    let twice = r#"{"settings":{"sandbox":"read-only","sandb\u006fx":"danger-full-access"}}"#;
    let (status, told) = stage.ask_as(token, &Method::POST, "/v1/threads", twice).await;
    assert_eq!(status, 422);
    assert!(told["detail"].as_str().unwrap().contains("`sandbox` is there twice"), "{told}");
    stage.end().await;
}

/// An open question of a turn in this thread.
async fn question(stage: &Stage, thread: &str, number: u32) -> String {
    let tenant = stage.app.tenants.find("default").await.unwrap().id;
    let token = format!("ask_{number}");
    let interrupt = Interrupt {
        id: token.as_str().into(),
        thread_id: "s".into(),
        turn_id: "u".into(),
        call_id: "c".into(),
        ask: Ask::Permissions {
            permissions: json!({ "network": { "enabled": true } }),
            reason: None,
            cwd: None,
        },
    };
    let turn = TurnRow {
        id: format!("turn_{number}"),
        thread: thread.to_owned(),
        tenant: tenant.clone(),
        kind: TurnKind::Prompt,
        state: TurnState::Queued,
        request: json!({}),
        key: None,
        digest: None,
        mark: None,
        backend_turn: None,
        error: None,
        resumable: false,
        usage: None,
        result: None,
        last: 0,
        created: 1,
        started: None,
        ended: None,
    };
    let row = InterruptRow {
        token: token.clone(),
        tenant,
        thread: thread.to_owned(),
        turn: turn.id.clone(),
        request: json!(0),
        interrupt,
        state: InterruptState::Open,
        answer: None,
        answered_by: None,
        why: None,
        opened: 1,
        deadline: i64::MAX,
        closed: None,
    };
    let changes = vec![Change::AddTurn(Box::new(turn)), Change::OpenInterrupt(Box::new(row))];
    stage.app.store.commit(changes).await.unwrap();
    token
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_made_forked_or_ran_a_thread_does_not_approve_for_it() {
    let (stage, _folder) = stage(Some(Escalation::Approver)).await;
    let both = [Role::Run, Role::Answer];
    let maker = stage.token_of("maker", &both).await;
    let runner = stage.token_of("runner", &both).await;
    let forker = stage.token_of("forker", &both).await;
    let namesake = stage.token_of(" Runner ", &both).await;
    let ann = stage.token_of("ann", &[Role::Answer]).await;
    let (_, thread) = stage.post_as(&maker, "/v1/threads", json!({})).await;
    let thread = thread["id"].as_str().unwrap().to_owned();
    let turns = format!("/v1/threads/{thread}/turns");
    assert_eq!(stage.post_as(&runner, &turns, json!({ "input": "hi" })).await.0, 201);
    let bind = Change::BindThread { thread: thread.clone(), session: "s".into(), at: 1 };
    stage.app.store.commit(vec![bind]).await.unwrap();
    let (status, fork) =
        stage.post_as(&forker, &format!("/v1/threads/{thread}/fork"), json!({})).await;
    assert_eq!(status, 201, "{fork}");
    let fork = fork["id"].as_str().unwrap().to_owned();
    let yes = json!({ "kind": "permissions", "granted": { "network": { "enabled": true } },
        "forSession": false });
    let no = json!({ "kind": "permissions", "granted": {}, "forSession": false });
    let refused = |token: &str, who: &str| {
        let path = format!("/v1/interrupts/{token}/answer");
        let (stage, who, yes) = (&stage, who.to_owned(), yes.clone());
        async move { stage.post_as(&who, &path, yes).await.1["code"] == "approver_needed" }
    };
    let first = question(&stage, &thread, 1).await;
    for (who, part) in [(&maker, true), (&runner, true), (&namesake, true), (&forker, false)] {
        if part {
            assert!(refused(&first, who).await);
        }
    }
    let second = question(&stage, &fork, 2).await;
    for who in [&maker, &runner, &namesake, &forker] {
        assert!(refused(&second, who).await);
    }
    assert!(!refused(&second, &ann).await, "somebody else may");
    // A no is for everybody.
    let third = question(&stage, &thread, 3).await;
    let (_, told) = stage.post_as(&runner, &format!("/v1/interrupts/{third}/answer"), no).await;
    assert_ne!(told["code"], "approver_needed", "{told}");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_approves_for_a_thread_on_a_session_that_others_may_have_begun() {
    let (stage, _folder) = stage(Some(Escalation::Approver)).await;
    let maker = stage.token_of("maker", &[Role::Run, Role::Answer]).await;
    let ann = stage.token_of("ann", &[Role::Answer]).await;
    let body = json!({ "sessionId": "01a1e0de-091e-7b70-a0eb-4db66fd8a949" });
    let (status, thread) = stage.post_as(&maker, "/v1/threads", body).await;
    assert_eq!(status, 201, "{thread}");
    let thread = thread["id"].as_str().unwrap().to_owned();
    let turns = format!("/v1/threads/{thread}/turns");
    // Who runs it now is known; who has run it before is not.
    assert_eq!(stage.post_as(&maker, &turns, json!({ "input": "hi" })).await.0, 201);
    let (status, fork) =
        stage.post_as(&maker, &format!("/v1/threads/{thread}/fork"), json!({})).await;
    assert_eq!(status, 201, "{fork}");
    let yes = json!({ "kind": "permissions", "granted": { "network": { "enabled": true } },
        "forSession": false });
    for (number, thread) in [thread.as_str(), fork["id"].as_str().unwrap()].into_iter().enumerate()
    {
        let token = question(&stage, thread, 10 + u32::try_from(number).unwrap()).await;
        let path = format!("/v1/interrupts/{token}/answer");
        let (_, told) = stage.post_as(&ann, &path, yes.clone()).await;
        assert_eq!(told["code"], "approver_needed", "{told}");
    }
    stage.end().await;
}
