//! Long lists over HTTP: page after page, all of it, each thing once.

use std::path::Path;

use bindery_daemon::config::Config;
use bindery_daemon::store::{Change, Delivery, InterruptRow, TurnRow};
use serde_json::{Value, json};

use crate::stage::{Stage, value};
use crate::store::question;

const MANY: usize = 7;

/// The names in a list, read in pages of three, and how many pages there were. The list is a path
/// with the beginning of its query.
async fn walk(stage: &Stage, list: &str, direction: &str, name: &str) -> (Vec<String>, usize) {
    let (mut names, mut pages, mut path) = (Vec::new(), 0, format!("{list}limit=3"));
    loop {
        let page = value(stage.get(&path).await).await;
        let rows = page["data"].as_array().unwrap_or_else(|| panic!("{path}: {page}"));
        names.extend(rows.iter().map(|row| row[name].as_str().unwrap().to_owned()));
        pages += 1;
        match &page["next"] {
            Value::String(next) => path = format!("{list}limit=3&{direction}={next}"),
            none => {
                assert_eq!(none, &Value::Null, "{path}");
                return (names, pages);
            }
        }
    }
}

fn numbered(prefix: &str) -> Vec<String> {
    (0..MANY).map(|number| format!("{prefix}{number}")).collect()
}

/// All were opened in the same moment: only their tokens tell them apart.
fn open(turn: &TurnRow, token: &str) -> Change {
    let (tenant, thread, turn) = (turn.tenant.clone(), turn.thread.clone(), turn.id.clone());
    let request = json!(token);
    let row = InterruptRow { tenant, thread, turn, request, ..question(token, i64::MAX) };
    Change::OpenInterrupt(Box::new(row))
}

fn delivery(tenant: &str, id: &str) -> Change {
    Change::AddDelivery(Delivery {
        id: id.into(),
        tenant: tenant.into(),
        url: "http://127.0.0.1:9/hook".into(),
        event: "turn.completed".into(),
        body: "{}".into(),
        attempts: 0,
        due: i64::MAX,
        why: None,
        given_up: None,
    })
}

fn session(home: &Path, id: &str, day: u32) {
    let folder = home.join("sessions/2026/01/01");
    std::fs::create_dir_all(&folder).unwrap();
    let at = format!("2026-01-0{day}T00:00:00.000Z");
    let line = json!({ "timestamp": at, "type": "session_meta",
        "payload": { "id": id, "cwd": "/", "timestamp": at } });
    let file = folder.join(format!("rollout-2026-01-0{day}T00-00-00-{id}.jsonl"));
    std::fs::write(file, format!("{line}\n")).unwrap();
}

#[tokio::test]
async fn a_list_longer_than_a_page_is_read_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let config = Config { codex_home: Some(home.clone()), ..Config::default() };
    let stage = Stage::with(config, folder.path().to_owned()).await;
    let tenant = stage.app.tenants.find("default").await.unwrap().id;
    let (tokens, ids) = (numbered("ask_"), numbered("evt_"));
    let first = value(stage.post("/v1/threads", &json!({})).await).await["id"].clone();
    let first = first.as_str().unwrap();
    let turns = format!("/v1/threads/{first}/turns");
    let turn = value(stage.post(&turns, &json!({ "input": "hi" })).await).await["id"].clone();
    let turn = stage.app.store.turn(&tenant, turn.as_str().unwrap()).await.unwrap().unwrap();
    let rows = tokens.iter().map(|token| open(&turn, token));
    let rows = rows.chain(ids.iter().map(|id| delivery(&tenant, id))).collect();
    stage.app.store.commit(rows).await.unwrap();
    // Older versions called the cursor by two other names.
    for name in ["cursor", "after", "before"] {
        let walked = walk(&stage, "/v1/interrupts?open=false&", name, "token").await;
        assert_eq!(walked, (tokens.clone(), 3));
        assert_eq!(walk(&stage, "/v1/deliveries?", name, "id").await, (ids.clone(), 3));
    }

    let mut sessions = numbered("01a1e207-a380-72c0-9e62-3c28d5446a4");
    for (day, id) in (1..).zip(&sessions) {
        session(&home, id, day);
    }
    sessions.reverse();
    for name in ["cursor", "after", "before"] {
        assert_eq!(walk(&stage, "/v1/sessions?", name, "id").await, (sessions.clone(), 3));
    }

    let mut threads = vec![first.to_owned()];
    for _ in 1..MANY {
        let thread = value(stage.post("/v1/threads", &json!({})).await).await;
        threads.insert(0, thread["id"].as_str().unwrap().to_owned());
    }
    for name in ["cursor", "after", "before"] {
        assert_eq!(walk(&stage, "/v1/threads?", name, "id").await, (threads.clone(), 3));
    }
    stage.end().await;
}

#[tokio::test]
async fn a_place_that_no_page_told_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let config = Config { codex_home: Some(folder.path().join("home")), ..Config::default() };
    let stage = Stage::with(config, folder.path().to_owned()).await;
    let thread = value(stage.post("/v1/threads", &json!({})).await).await["id"].clone();
    let turns = format!("/v1/threads/{}/turns", thread.as_str().unwrap());
    let mut paths: Vec<String> =
        ["/v1/interrupts?cursor=x", "/v1/interrupts?after=x.y", "/v1/sessions?before=x"]
            .map(str::to_owned)
            .to_vec();
    for list in ["/v1/threads", "/v1/deliveries", &*turns] {
        for wrong in ["zzz", "", "thr_", "turn_", "evt_", "thr_é", "evt_a.b", "turn_'--", "ten_a"]
        {
            paths.push(format!("{list}?cursor={wrong}"));
        }
    }
    for path in &paths {
        let response = stage.get(path).await;
        assert_eq!(response.status(), 422, "{path}");
        let told = value(response).await.to_string();
        assert!(told.contains("`next` of the page before"), "{told}");
    }
    stage.end().await;
}

/// Whichever comes first, the turn is there or the thread is gone; no answer is a fault of ours.
#[tokio::test]
async fn a_turn_that_races_the_removal_of_its_thread_is_told_what_happened() {
    let folder = tempfile::tempdir().unwrap();
    let config = Config { codex_home: Some(folder.path().join("home")), ..Config::default() };
    let stage = Stage::with(config, folder.path().to_owned()).await;
    for round in 0..40 {
        let thread = value(stage.post("/v1/threads", &json!({})).await).await["id"].clone();
        let thread = format!("/v1/threads/{}", thread.as_str().unwrap());
        let turns = format!("{thread}/turns");
        let hi = json!({ "input": "hi" });
        let posts = async {
            for _ in 0..round % 4 {
                tokio::task::yield_now().await;
            }
            tokio::join!(stage.post(&turns, &hi), stage.post(&turns, &hi))
        };
        let (deleted, (first, second)) = tokio::join!(stage.delete(&thread), posts);
        assert!([204, 409].contains(&deleted.status().as_u16()), "{}", deleted.status());
        for posted in [first, second] {
            let status = posted.status().as_u16();
            assert!([201, 404, 409, 410].contains(&status), "round {round}: {status}");
        }
    }
    stage.end().await;
}

#[tokio::test]
async fn a_query_that_is_wrong_is_told_by_its_field() {
    let folder = tempfile::tempdir().unwrap();
    let config = Config { codex_home: Some(folder.path().join("home")), ..Config::default() };
    let stage = Stage::with(config, folder.path().to_owned()).await;
    let lists = ["threads", "threads/thr_x/turns", "interrupts", "deliveries", "sessions"];
    for list in lists {
        for wrong in ["0", "1001", "-1", "many", "1e3"] {
            let response = stage.get(&format!("/v1/{list}?limit={wrong}")).await;
            assert_eq!(response.status(), 422, "{list} {wrong}");
            let told = value(response).await["detail"].as_str().unwrap().to_owned();
            let want =
                format!("limit: it must be a whole number from 1 to 1000, and it is `{wrong}`");
            assert_eq!(told, want, "{list}");
        }
        let response = stage.get(&format!("/v1/{list}?page=2")).await;
        assert_eq!(response.status(), 422, "{list}");
        let told = value(response).await["detail"].as_str().unwrap().to_owned();
        assert!(told.contains("`page`") && told.contains("`cursor`"), "{list}: {told}");
    }
    let response = stage.get("/v1/turns/turn_x/events?after=soon").await;
    let told = value(response).await["detail"].as_str().unwrap().to_owned();
    assert_eq!(told, "after: it must be a whole number from 0 on, and it is `soon`");
    let told = value(stage.get("/v1/threads?archived=maybe").await).await["detail"].clone();
    assert!(told.as_str().unwrap().starts_with("archived: "), "{told}");
    stage.end().await;
}
