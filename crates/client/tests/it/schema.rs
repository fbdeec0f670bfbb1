//! The installed Codex says what it speaks; nothing of it may be a surprise.
#![cfg(unix)]

use std::collections::BTreeMap;
use std::path::Path;

use bindery_client::drift::{self, Drift, Inventory};
use bindery_core::open::Open;
use bindery_core::wire::app_server::inventory::{self, Fate};
use bindery_core::wire::app_server::notification::{Body, Notification};
use bindery_core::wire::app_server::reply::{
    Initialized, Model, Page, Steered, Thread, ThreadOpened, ThreadRead, TurnOpened,
};
use bindery_core::wire::app_server::request::{Body as Ask, ServerRequest};
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::to_raw_value;
use tempfile::TempDir;

use crate::codex::codex;
use crate::specimen::specimens;

/// The schema of the installed Codex.
async fn schema(experimental: bool) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    drift::generate(&codex(), folder.path(), experimental).await.unwrap();
    folder
}

fn read(folder: &Path, name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(folder.join(name)).unwrap()).unwrap()
}

#[tokio::test]
async fn codex_and_we_have_the_same_words() {
    assert_eq!(drift::check(&codex()).await.unwrap(), Drift::default());
}

#[tokio::test]
async fn either_schema_alone_holds_no_unknown_word() {
    for experimental in [false, true] {
        let folder = schema(experimental).await;
        let drift = drift::compare(&drift::inventory_of(folder.path()).unwrap());
        assert!(drift.is_harmless(), "experimental {experimental}: {drift:?}");
    }
}

#[tokio::test]
async fn the_older_codex_has_no_unknown_word() {
    let drift = drift::check(&bindery_testkit::codex::locate_older()).await.unwrap();
    assert!(drift.is_harmless(), "{drift:?}");
    assert_eq!(drift.missing_notifications, ["thread/section/changed"]);
}

#[test]
fn new_and_lost_words_are_told_apart() {
    let mut offered = Inventory::ours();
    offered.notifications.insert("turn/danced".into());
    offered.requests.insert("item/dance/request".into());
    offered.items.insert("dance".into());
    offered.notifications.remove("turn/started");
    offered.notifications.remove("rawResponse/completed");
    offered.items.remove("sleep");
    let drift = drift::compare(&offered);
    assert!(!drift.is_harmless() && !drift.is_none());
    assert_eq!(drift.unknown_notifications, ["turn/danced"]);
    assert_eq!(drift.unknown_requests, ["item/dance/request"]);
    assert_eq!(drift.unknown_items, ["dance"]);
    assert_eq!(drift.missing_notifications, ["turn/started"]);
    assert_eq!(drift.missing_items, ["sleep"]);
    assert!(drift::compare(&Inventory::ours()).is_none());
}

#[tokio::test]
async fn a_program_that_is_no_codex_is_an_error() {
    let missing = drift::check(Path::new("/nowhere/codex")).await.unwrap_err();
    assert_eq!(missing.code(), "spawn");
    let silent = drift::check(Path::new("/bin/true")).await.unwrap_err();
    assert_eq!(silent.code(), "protocol");
    let failing = drift::check(Path::new("/bin/false")).await.unwrap_err();
    assert_eq!(failing.code(), "protocol");
}

/// Specimens of the parameters of every method of a schema.
fn parameters(schema: &Value) -> BTreeMap<String, Vec<Value>> {
    let variants = schema["oneOf"].as_array().unwrap().iter();
    let named = variants.map(|variant| {
        let method = variant["properties"]["method"]["enum"][0].as_str().unwrap().to_owned();
        (method, specimens(schema, &variant["properties"]["params"]))
    });
    named.collect()
}

#[tokio::test]
async fn every_notification_decodes_to_what_the_list_says() {
    for experimental in [false, true] {
        let schema = read(schema(experimental).await.path(), "ServerNotification.json");
        for (method, specimens) in parameters(&schema) {
            let fate = inventory::notification(&method).unwrap();
            for params in specimens {
                let raw = to_raw_value(&params).unwrap();
                let body = Notification::decode(&method, &raw).body;
                let right = match fate {
                    Fate::Mapped => !matches!(
                        body,
                        Body::Unknown { .. } | Body::Notice { .. } | Body::NotShown(_)
                    ),
                    Fate::Notice => matches!(body, Body::Notice { .. }),
                    Fate::NotShown(_) => matches!(body, Body::NotShown(_)),
                };
                assert!(right, "{method} ({fate:?}) is {body:?}: {params}");
            }
        }
    }
}

#[tokio::test]
async fn every_notification_of_a_turn_is_addressed() {
    let schema = read(schema(true).await.path(), "ServerNotification.json");
    for (method, specimens) in parameters(&schema) {
        let of_item = method.starts_with("item/");
        let of_turn = of_item || method.starts_with("turn/");
        for params in specimens {
            let raw = to_raw_value(&params).unwrap();
            let address = Notification::decode(&method, &raw).address;
            let named = params.get("threadId").is_some_and(Value::is_string);
            assert_eq!(address.thread_id.is_some(), named || method == "thread/started");
            assert!(!of_turn || address.thread_id.is_some(), "{method}: {params}");
            assert!(!of_turn || address.turn_id.is_some(), "{method}: {params}");
        }
    }
}

#[tokio::test]
async fn every_request_decodes_to_what_the_list_says() {
    for experimental in [false, true] {
        let schema = read(schema(experimental).await.path(), "ServerRequest.json");
        for (method, specimens) in parameters(&schema) {
            let fate = inventory::server_request(&method).unwrap();
            for params in specimens {
                let request = ServerRequest::decode(&method, &to_raw_value(&params).unwrap());
                let right = match fate {
                    Fate::Mapped => {
                        !matches!(request.body, Ask::Unknown { .. } | Ask::NotServed(_))
                    }
                    _ => matches!(request.body, Ask::NotServed(_)),
                };
                assert!(right, "{method} ({fate:?}) is {:?}: {params}", request.body);
                let addressed = request.address.thread_id.is_some();
                assert!(addressed || fate != Fate::Mapped, "{method}: {params}");
            }
        }
    }
}

#[tokio::test]
async fn every_item_decodes_to_what_it_is() {
    for experimental in [false, true] {
        let schema = read(schema(experimental).await.path(), "ServerNotification.json");
        let items = specimens(&schema, &schema["definitions"]["ThreadItem"]);
        assert!(items.len() >= 2 * inventory::THREAD_ITEMS.len());
        for item in items {
            let params = serde_json::json!({ "threadId": "t", "turnId": "u", "item": item });
            let raw = to_raw_value(&params).unwrap();
            let note = Notification::decode("item/completed", &raw);
            let Body::ItemCompleted(note) = note.body else { panic!("{:?}", note.body) };
            assert!(matches!(note.item, Open::Known(_)), "{:?}: {item}", note.item);
        }
    }
}

#[tokio::test]
async fn every_reply_we_read_has_the_shape_we_read() {
    for experimental in [false, true] {
        let folder = schema(experimental).await;
        let folder = folder.path();
        reads::<Initialized>(folder, "v1/InitializeResponse.json");
        reads::<ThreadOpened>(folder, "v2/ThreadStartResponse.json");
        reads::<ThreadOpened>(folder, "v2/ThreadResumeResponse.json");
        reads::<ThreadOpened>(folder, "v2/ThreadForkResponse.json");
        reads::<ThreadRead>(folder, "v2/ThreadReadResponse.json");
        reads::<Page<Thread>>(folder, "v2/ThreadListResponse.json");
        reads::<TurnOpened>(folder, "v2/TurnStartResponse.json");
        reads::<TurnOpened>(folder, "v2/ReviewStartResponse.json");
        reads::<Steered>(folder, "v2/TurnSteerResponse.json");
        reads::<Page<Model>>(folder, "v2/ModelListResponse.json");
    }
}

fn reads<T: DeserializeOwned>(folder: &Path, name: &str) {
    let schema = read(folder, name);
    for specimen in specimens(&schema, &schema) {
        if let Err(err) = serde_json::from_value::<T>(specimen.clone()) {
            panic!("{name}: {err}: {specimen}");
        }
    }
}
