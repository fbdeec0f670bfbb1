//! Webhooks whose receivers are dead, slow or hostile: bounded, told of, and nobody else's trouble.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bindery_daemon::clock;
use bindery_daemon::config::{Config, WebhookConfig};
use bindery_daemon::interrupts::Hooks;
use bindery_daemon::store::sqlite::{Sqlite, Sync};
use bindery_daemon::store::{Change, Delivery, Following, Store};
use bindery_daemon::tenant::{HookEvent, Roles, Tenant, TenantSettings, Webhook};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::stage::{HANG, Stage, value};

/// What a receiver does with a call.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Does {
    /// Takes it.
    Take,
    /// Answers with this head and closes.
    Say(&'static str),
    /// Says that it takes it, with a body that never ends.
    Flood,
    /// Closes without a word.
    Close,
    /// Says nothing, and keeps the connection.
    Nothing,
}

const REFUSE: Does = Does::Say("HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n");

/// Somebody who is called.
struct Receiver {
    url: String,
    heard: Arc<Mutex<Vec<String>>>,
    does: Arc<Mutex<Does>>,
    _tasks: JoinSet<()>,
}

impl Receiver {
    async fn new(does: Does) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let (heard, does) = (Arc::<Mutex<Vec<String>>>::default(), Arc::new(Mutex::new(does)));
        let (said, told, mut tasks) = (heard.clone(), does.clone(), JoinSet::new());
        tasks.spawn(async move {
            let mut calls = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let does = *told.lock().unwrap();
                calls.spawn(answer(stream, does, said.clone()));
            }
        });
        Self { url, heard, does, _tasks: tasks }
    }

    fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }

    async fn wait(&self, count: usize) -> Vec<String> {
        until(|| async { self.heard().len() >= count }).await;
        self.heard()
    }
}

/// Waits for it.
async fn until<F: Future<Output = bool>>(is: impl Fn() -> F) {
    let waiting = async {
        while !is().await {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(HANG, waiting).await.expect("it does not happen");
}

async fn answer(mut stream: TcpStream, does: Does, heard: Arc<Mutex<Vec<String>>>) {
    let (mut text, mut buffer) = (String::new(), [0; 4096]);
    // The body is the delivery's name in brackets.
    while !text.ends_with(']') {
        let count = stream.read(&mut buffer).await.unwrap_or(0);
        if count == 0 {
            return;
        }
        text.push_str(std::str::from_utf8(&buffer[..count]).unwrap());
    }
    let name = text.rsplit('[').next().unwrap().trim_end_matches(']').to_owned();
    heard.lock().unwrap().push(name);
    let _ = match does {
        Does::Take => stream.write_all(b"HTTP/1.1 204 Yes\r\nconnection: close\r\n\r\n").await,
        Does::Say(head) => stream.write_all(head.as_bytes()).await,
        Does::Flood => {
            let head = "HTTP/1.1 200 Yes\r\ncontent-length: 1000000000000\r\n\r\n";
            let _ = stream.write_all(head.as_bytes()).await;
            while stream.write_all(&[b'x'; 65536]).await.is_ok() {}
            Ok(())
        }
        Does::Close => Ok(()),
        Does::Nothing => stream.read(&mut buffer).await.map(drop),
    };
}

/// A store with tenants, and a daemon's webhooks on it.
struct Bench {
    folder: TempDir,
    store: Arc<dyn Store>,
    hooks: Hooks,
    stop: CancellationToken,
    running: JoinHandle<()>,
}

impl Bench {
    /// Each tenant has webhooks at all of these.
    async fn new(tenants: &[&str], urls: &[&str], config: &WebhookConfig) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(
            Sqlite::open(&folder.path().join("store"), Sync::Process, &folder.path().join("key"))
                .unwrap(),
        );
        for name in tenants {
            let mut settings = TenantSettings::new("/h".into(), "/r".into());
            let hook = |url: &&str| Webhook {
                url: (*url).into(),
                secret: "s".into(),
                events: vec![HookEvent::InterruptOpened],
            };
            settings.webhooks = urls.iter().map(hook).collect();
            let (id, name) = ((*name).to_owned(), (*name).to_owned());
            let tenant = Tenant { id, name, settings, created: 0 };
            store.commit(vec![Change::AddTenant(Box::new(tenant))]).await.unwrap();
        }
        Self::on(folder, store, config)
    }

    fn on(folder: TempDir, store: Arc<dyn Store>, config: &WebhookConfig) -> Self {
        let (hooks, stop) = (Hooks::new(store.clone(), config), CancellationToken::new());
        let running = tokio::spawn(hooks.clone().run(stop.clone()));
        Self { folder, store, hooks, stop, running }
    }

    /// The daemon ends, and another one comes.
    async fn again(self, config: &WebhookConfig) -> Self {
        self.stop.cancel();
        timeout(HANG, self.running).await.expect("it does not stop").unwrap();
        self.store.close().await.unwrap();
        let path = self.folder.path().join("store");
        let store =
            Arc::new(Sqlite::open(&path, Sync::Process, &self.folder.path().join("key")).unwrap());
        Self::on(self.folder, store, config)
    }

    async fn add(&self, tenant: &str, receiver: &Receiver, id: &str) {
        let delivery = delivery(tenant, receiver, id);
        self.store.commit(vec![Change::AddDelivery(delivery)]).await.unwrap();
        self.hooks.wake();
    }

    async fn deliveries(&self) -> Vec<Delivery> {
        self.store.deliveries("a", Following::default()).await.unwrap()
    }

    async fn given_up(&self) -> Delivery {
        until(|| async { self.deliveries().await.iter().any(|it| it.given_up.is_some()) }).await;
        self.deliveries().await.remove(0)
    }
}

fn delivery(tenant: &str, receiver: &Receiver, id: &str) -> Delivery {
    Delivery {
        id: id.to_owned(),
        tenant: tenant.to_owned(),
        url: receiver.url.clone(),
        event: "e".into(),
        body: format!("[{id}]"),
        attempts: 0,
        due: clock::now(),
        why: None,
        given_up: None,
    }
}

fn tries(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).unwrap()
}

fn quick() -> WebhookConfig {
    WebhookConfig { attempts: tries(10), pause_seconds: 0.001, answer_seconds: 60.0 }
}

#[tokio::test]
async fn what_is_not_taken_is_tried_ten_times_and_then_given_up_for_all_to_see() {
    let receiver = Receiver::new(REFUSE).await;
    let bench = Bench::new(&["a"], &[&receiver.url], &quick()).await;
    bench.add("a", &receiver, "d1").await;
    bench.add("a", &receiver, "d2").await;
    let lost = bench.given_up().await;
    assert_eq!((lost.id.as_str(), lost.attempts), ("d1", 10));
    assert_eq!(lost.why.as_deref(), Some("it answered 500 Internal Server Error"));
    assert_eq!(receiver.heard()[..10], ["d1"; 10]);
    // The next one gets its own ten.
    until(|| async { bench.store.delivery_counts().await.unwrap().given_up == 2 }).await;
    assert_eq!(receiver.heard()[10..], ["d2"; 10]);
    // It is over with them, not with the receiver.
    *receiver.does.lock().unwrap() = Does::Take;
    bench.add("a", &receiver, "d3").await;
    assert_eq!(receiver.wait(21).await[20], "d3");
    until(|| async { bench.store.delivery_counts().await.unwrap().waiting == 0 }).await;
}

#[tokio::test]
async fn a_receiver_hears_everything_in_order_whatever_it_refuses_at_first() {
    let receiver = Receiver::new(REFUSE).await;
    let bench = Bench::new(&["a"], &[&receiver.url], &quick()).await;
    for number in 0..20 {
        bench.add("a", &receiver, &format!("d{number:02}")).await;
    }
    receiver.wait(3).await;
    *receiver.does.lock().unwrap() = Does::Take;
    until(|| async { bench.store.delivery_counts().await.unwrap().waiting == 0 }).await;
    let mut heard = receiver.heard();
    heard.dedup();
    assert_eq!(heard, (0..20).map(|number| format!("d{number:02}")).collect::<Vec<_>>());
    assert_eq!(bench.deliveries().await, []);
}

#[tokio::test]
async fn a_receiver_that_never_answers_holds_up_nobody_else() {
    let (dead, well) = (Receiver::new(Does::Nothing).await, Receiver::new(Does::Take).await);
    // Longer than the test may take: nobody gets through by waiting.
    let config = WebhookConfig { answer_seconds: 600.0, ..quick() };
    let bench = Bench::new(&["a", "b"], &[&dead.url, &well.url], &config).await;
    for number in 0..100 {
        bench.add("a", &dead, &format!("x{number:03}")).await;
    }
    dead.wait(1).await;
    for number in 0..10 {
        bench.add("a", &well, &format!("own{number}")).await;
        bench.add("b", &well, &format!("other{number}")).await;
    }
    well.wait(20).await;
    assert_eq!(dead.heard(), ["x000"], "it is called once at a time");
}

#[tokio::test]
async fn hostile_receivers_are_left_after_a_moment_and_it_is_told_why() {
    let cases = [
        (Does::Nothing, "it did not answer in time"),
        (Does::Say("HTTP/1.1 302 There\r\nlocation: /other\r\ncontent-length: 0\r\n\r\n"), "302"),
        (Does::Say("HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n"), "404"),
        (Does::Say("not HTTP at all\r\n\r\n"), "invalid HTTP"),
        (Does::Close, ""),
    ];
    let config = WebhookConfig { attempts: tries(2), pause_seconds: 0.001, answer_seconds: 0.2 };
    for (does, told) in cases {
        let receiver = Receiver::new(does).await;
        let bench = Bench::new(&["a"], &[&receiver.url], &config).await;
        bench.add("a", &receiver, "d1").await;
        let lost = bench.given_up().await;
        let why = lost.why.unwrap();
        assert!(!why.is_empty() && why.contains(told), "{does:?}: {why}");
        assert!(!why.contains("127.0.0.1"), "the address may hold a secret: {why}");
        assert_eq!(lost.attempts, 2, "{does:?}");
    }
}

#[tokio::test]
async fn a_body_without_an_end_is_not_read() {
    let receiver = Receiver::new(Does::Flood).await;
    let config = WebhookConfig { answer_seconds: 600.0, ..quick() };
    let bench = Bench::new(&["a"], &[&receiver.url], &config).await;
    bench.add("a", &receiver, "d1").await;
    bench.add("a", &receiver, "d2").await;
    assert_eq!(receiver.wait(2).await, ["d1", "d2"], "its status was enough");
}

#[tokio::test]
async fn the_next_daemon_goes_on_where_one_was_stopped() {
    let receiver = Receiver::new(REFUSE).await;
    let slow = WebhookConfig { pause_seconds: 600.0, ..quick() };
    let bench = Bench::new(&["a"], &[&receiver.url], &slow).await;
    bench.add("a", &receiver, "d1").await;
    bench.add("a", &receiver, "d2").await;
    until(|| async { bench.deliveries().await[0].attempts == 1 }).await;
    // It waits for its next try; then another is in the middle of a call.
    let bench = bench.again(&slow).await;
    assert_eq!(bench.deliveries().await[0].attempts, 1, "what was tried counts");
    *receiver.does.lock().unwrap() = Does::Nothing;
    let retry = Change::RetryDelivery { id: "d1".into(), due: clock::now(), why: "w".into() };
    bench.store.commit(vec![retry]).await.unwrap();
    bench.hooks.wake();
    receiver.wait(2).await;
    *receiver.does.lock().unwrap() = Does::Take;
    let bench = bench.again(&slow).await;
    assert_eq!(receiver.wait(4).await, ["d1", "d1", "d1", "d2"]);
    until(|| async { bench.deliveries().await.is_empty() }).await;
}

#[tokio::test]
async fn a_webhook_that_was_taken_away_is_not_called() {
    let receiver = Receiver::new(Does::Take).await;
    let bench = Bench::new(&["a"], &[], &quick()).await;
    bench.add("a", &receiver, "d1").await;
    let lost = bench.given_up().await;
    assert_eq!((lost.attempts, lost.why.as_deref()), (0, Some("the webhook was taken away")));
    assert!(receiver.heard().is_empty());
}

#[tokio::test]
async fn those_it_belongs_to_see_what_was_given_up() {
    let (receiver, folder) = (Receiver::new(REFUSE).await, tempfile::tempdir().unwrap());
    let webhooks = WebhookConfig { attempts: tries(1), ..quick() };
    let home = Some(folder.path().to_owned());
    let config = Config { webhooks, codex_home: home, ..Config::default() };
    let stage = Stage::with(config, folder.path().to_owned()).await;
    let tenants = &stage.app.tenants;
    let mut tenant = tenants.list().await.unwrap().remove(0);
    tenant.settings.webhooks = vec![Webhook {
        url: receiver.url.clone(),
        secret: "s".into(),
        events: vec![HookEvent::InterruptOpened],
    }];
    let other = TenantSettings::new("/h".into(), "/r".into());
    let other = tenants.add("other", other).await.unwrap();
    let token = tenants.token(&other, "", Roles::usual()).await.unwrap();
    let add = Change::AddDelivery(delivery(&tenant.id, &receiver, "d1"));
    stage.app.store.commit(vec![Change::SetTenant(Box::new(tenant)), add]).await.unwrap();
    let told = async || value(stage.get("/v1/deliveries").await).await["data"].clone();
    assert_eq!(told().await[0]["state"], "waiting");
    stage.app.runner.hooks().wake();
    until(|| async { told().await[0]["state"] == "given_up" }).await;
    let told = told().await;
    assert_eq!((&told[0]["id"], &told[0]["attempts"]), (&"d1".into(), &1.into()));
    assert_eq!(told[0]["why"], "it answered 500 Internal Server Error");
    assert_eq!(told[0]["receiver"].as_str(), receiver.url.strip_suffix("/hook"));
    let counts = stage.get("/metrics").await.text().await.unwrap();
    assert!(counts.contains("bindery_webhooks_given_up 1\n"), "{counts}");
    assert!(counts.contains("bindery_webhooks_waiting 0\n"), "{counts}");
    let path = format!("{}/v1/deliveries", stage.url);
    let others = stage.client.get(path).bearer_auth(token).send().await.unwrap();
    assert_eq!(value(others).await["data"], serde_json::json!([]));
    stage.end().await;
}
