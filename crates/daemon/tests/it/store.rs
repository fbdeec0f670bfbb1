//! What every store must do; run on each there is.

use std::sync::Arc;

use bindery_core::interrupt::{Answer, Ask, Decision, Interrupt};
use bindery_daemon::store::sqlite::{Sqlite, Sync};
use bindery_daemon::store::{
    Change, Chunk, DELIVERIES, Delivery, Following, InterruptFilter, InterruptRow, InterruptState,
    Paging, Store, StoreError, ThreadRow, TokenRow, TurnEnd, TurnKind, TurnRow, TurnState,
    WorkerRow,
};
use bindery_daemon::tenant::{Contributor, Role, Roles, Tenant, TenantSettings};
use serde_json::json;
use tempfile::TempDir;

/// A store, and how to open it again.
struct Bench {
    store: Arc<dyn Store>,
    folder: TempDir,
}

impl Bench {
    async fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let store = open(&folder);
        for name in ["a", "b"] {
            let settings = TenantSettings::new("/home".into(), "/root".into());
            let tenant = Tenant { id: name.into(), name: name.into(), settings, created: 1 };
            store.commit(vec![Change::AddTenant(Box::new(tenant))]).await.unwrap();
        }
        let bench = Self { store, folder };
        bench.commit(Change::AddThread(Box::new(thread("t1", "a")))).await;
        bench
    }

    async fn commit(&self, change: Change) -> bool {
        self.store.commit(vec![change]).await.unwrap()[0]
    }

    async fn reopen(&mut self) {
        self.store.close().await.unwrap();
        self.store = open(&self.folder);
    }
}

fn open(folder: &TempDir) -> Arc<dyn Store> {
    Arc::new(
        Sqlite::open(&folder.path().join("store"), Sync::Process, &folder.path().join("key"))
            .unwrap(),
    )
}

fn thread(id: &str, tenant: &str) -> ThreadRow {
    ThreadRow {
        id: id.into(),
        tenant: tenant.into(),
        session: None,
        backend: "codex".into(),
        title: None,
        cwd: "/root".into(),
        settings: json!({ "model": "m" }),
        tools: json!([]),
        fork: None,
        contributors: Some(Vec::new()),
        usage: None,
        created: 1,
        updated: 1,
        archived: false,
    }
}

fn turn(id: &str, key: Option<&str>) -> TurnRow {
    TurnRow {
        id: id.into(),
        thread: "t1".into(),
        tenant: "a".into(),
        kind: TurnKind::Prompt,
        state: TurnState::Queued,
        request: json!({ "prompt": [] }),
        key: key.map(Into::into),
        digest: key.map(|_| "d".into()),
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
    }
}

pub(crate) fn question(token: &str, deadline: i64) -> InterruptRow {
    let ask = Ask::FileChange { changes: vec![], reason: None, grant_root: None };
    let (thread_id, turn_id, call_id) = ("s".into(), "u".into(), "c".into());
    InterruptRow {
        token: token.into(),
        tenant: "a".into(),
        thread: "t1".into(),
        turn: "u1".into(),
        request: json!(7),
        interrupt: Interrupt { id: token.into(), thread_id, turn_id, call_id, ask },
        state: InterruptState::Open,
        answer: None,
        answered_by: None,
        why: None,
        opened: 1,
        deadline,
        closed: None,
    }
}

fn answer(token: &str, at: i64) -> Change {
    let answer = Box::new(Answer::decision(Decision::Accept));
    Change::AnswerInterrupt { token: token.into(), answer, by: "tok".into(), at }
}

#[tokio::test]
async fn what_was_written_reads_back_after_a_restart() {
    let mut bench = Bench::new().await;
    bench.commit(Change::AddTurn(Box::new(turn("u1", Some("k"))))).await;
    bench.commit(Change::OpenInterrupt(Box::new(question("q", 10)))).await;
    let worker = WorkerRow {
        id: "w".into(),
        tenant: "a".into(),
        backend: "codex".into(),
        key: "k".into(),
        socket: "/s".into(),
        secret: Some("s".into()),
        started: 3,
    };
    bench.commit(Change::AddWorker(worker.clone())).await;
    bench.reopen().await;
    let store = &bench.store;
    assert_eq!(store.tenants().await.unwrap().len(), 2);
    assert_eq!(store.thread("a", "t1").await.unwrap(), Some(thread("t1", "a")));
    assert_eq!(store.turn("a", "u1").await.unwrap(), Some(turn("u1", Some("k"))));
    assert_eq!(store.turn_of_key("a", "k").await.unwrap(), Some(turn("u1", Some("k"))));
    assert_eq!(store.interrupt("q").await.unwrap(), Some(question("q", 10)));
    assert_eq!(store.workers().await.unwrap(), [worker]);
    assert!(bench.commit(Change::RemoveWorker { id: "w".into() }).await);
    assert!(!bench.commit(Change::RemoveWorker { id: "w".into() }).await);
}

#[tokio::test]
async fn nothing_of_one_tenant_is_read_by_another() {
    let bench = Bench::new().await;
    bench.commit(Change::AddTurn(Box::new(turn("u1", Some("k"))))).await;
    let bind = Change::BindThread { thread: "t1".into(), session: "s".into(), at: 2 };
    bench.commit(bind).await;
    let store = &bench.store;
    assert_eq!(store.thread("b", "t1").await.unwrap(), None);
    assert_eq!(store.thread_of_session("b", "s").await.unwrap(), None);
    assert!(store.thread_of_session("a", "s").await.unwrap().is_some());
    assert_eq!(store.turn("b", "u1").await.unwrap(), None);
    assert_eq!(store.turn_of_key("b", "k").await.unwrap(), None);
    let page = Paging { before: None, limit: 9 };
    assert_eq!(store.threads("b", false, page.clone()).await.unwrap(), []);
    assert_eq!(store.turns("b", "t1", page).await.unwrap(), []);
}

#[tokio::test]
async fn a_commit_is_whole_or_nothing_and_a_conflict_is_told() {
    let bench = Bench::new().await;
    bench.commit(Change::AddTurn(Box::new(turn("u1", Some("k"))))).await;
    let both = vec![
        Change::AddThread(Box::new(thread("t2", "a"))),
        Change::AddTurn(Box::new(turn("u2", Some("k")))),
    ];
    let failed = bench.store.commit(both).await.unwrap_err();
    assert!(matches!(failed, StoreError::Conflict(_)), "{failed}");
    assert_eq!(bench.store.thread("a", "t2").await.unwrap(), None);
}

#[tokio::test]
async fn many_at_once_are_all_kept_and_one_conflict_is_only_its_own() {
    let bench = Bench::new().await;
    let commits = (0..200).map(|n| {
        // Every tenth wants a key that is taken.
        let key = (n % 10 == 0).then_some("k");
        bench.store.commit(vec![Change::AddTurn(Box::new(turn(&format!("u{n:03}"), key)))])
    });
    let outcomes = futures_util::future::join_all(commits).await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 181);
    assert_eq!(bench.store.unfinished().await.unwrap().len(), 181);
}

#[tokio::test]
async fn unfinished_turns_are_told_without_what_was_asked() {
    let bench = Bench::new().await;
    let asking = |id: &str, request: serde_json::Value| {
        Change::AddTurn(Box::new(TurnRow { request, ..turn(id, None) }))
    };
    let long = json!({ "text": "é".repeat(100_000), "data": "file:///d/uploads/a/upl_01af.png" });
    let bytes = long.to_string().len() as u64;
    bench.commit(asking("u1", long)).await;
    bench.commit(asking("u2", json!({ "file": "/d/upl_02", "and": "/d/upl_01af.png" }))).await;
    bench.commit(asking("u3", json!("no upload: upl_03"))).await;
    let turns = bench.store.unfinished().await.unwrap();
    assert_eq!(turns.len(), 3);
    assert!(turns.iter().all(|unfinished| unfinished.turn.request.is_null()));
    assert_eq!((turns[0].turn.id.as_str(), turns[0].request_bytes), ("u1", bytes));
    let needed = bench.store.needed_uploads().await.unwrap();
    assert_eq!(needed, ["upl_01af", "upl_02"].map(String::from).into());
    let (error, usage) = (None, None);
    let (state, turn) = (TurnState::Completed, "u2".to_owned());
    let end = TurnEnd { turn, state, error, resumable: false, usage, at: 9 };
    bench.commit(Change::EndTurn(Box::new(end))).await;
    let needed = bench.store.needed_uploads().await.unwrap();
    assert_eq!(needed, ["upl_01af".to_owned()].into());
}

#[tokio::test]
async fn events_come_back_in_order_from_any_place() {
    let bench = Bench::new().await;
    bench.commit(Change::AddTurn(Box::new(turn("u1", None)))).await;
    for n in 0..5 {
        let chunk = Chunk { first: n * 2 + 1, body: format!("p{}\np{}\n", n * 2 + 1, n * 2 + 2) };
        bench.commit(Change::Append { turn: "u1".into(), chunk, last: n * 2 + 2 }).await;
    }
    let firsts = |chunks: Vec<Chunk>| chunks.iter().map(|chunk| chunk.first).collect::<Vec<_>>();
    let read = |after, bytes| bench.store.events("u1", after, bytes);
    assert_eq!(firsts(read(0, usize::MAX).await.unwrap()), [1, 3, 5, 7, 9]);
    assert_eq!(firsts(read(3, usize::MAX).await.unwrap()), [3, 5, 7, 9]);
    assert_eq!(firsts(read(4, 7).await.unwrap()), [5, 7]);
    assert!(firsts(read(10, usize::MAX).await.unwrap()).is_empty());
    assert_eq!(bench.store.turn("a", "u1").await.unwrap().unwrap().last, 10);
    let doubled = Chunk { first: 9, body: String::new() };
    let again = Change::Append { turn: "u1".into(), chunk: doubled, last: 10 };
    assert!(bench.store.commit(vec![again]).await.is_err());
}

#[tokio::test]
async fn a_turn_starts_once_and_ends_once() {
    let bench = Bench::new().await;
    bench.commit(Change::AddTurn(Box::new(turn("u1", None)))).await;
    let start = || Change::StartTurn { turn: "u1".into(), at: 5 };
    assert!(bench.commit(start()).await);
    assert!(!bench.commit(start()).await);
    let end = |state| {
        let (error, usage) = (Some(json!({ "code": "x" })), None);
        let end = TurnEnd { turn: "u1".into(), state, error, resumable: true, usage, at: 9 };
        Change::EndTurn(Box::new(end))
    };
    assert!(bench.commit(end(TurnState::Failed)).await);
    assert!(!bench.commit(end(TurnState::Completed)).await);
    let row = bench.store.turn("a", "u1").await.unwrap().unwrap();
    assert_eq!((row.state, row.started, row.ended), (TurnState::Failed, Some(5), Some(9)));
    assert_eq!(bench.store.unfinished().await.unwrap(), []);
}

#[tokio::test]
async fn a_question_is_answered_once_in_time_and_confirmed_after() {
    let bench = Bench::new().await;
    bench.commit(Change::AddTurn(Box::new(turn("u1", None)))).await;
    for token in ["q1", "q2", "q3"] {
        assert!(bench.commit(Change::OpenInterrupt(Box::new(question(token, 10)))).await);
    }
    // Asked again, it stays as it is.
    assert!(!bench.commit(Change::OpenInterrupt(Box::new(question("q1", 99)))).await);
    assert!(!bench.commit(answer("q1", 10)).await, "too late");
    let deliver = |token: &str| Change::DeliverInterrupt { token: token.into() };
    assert!(!bench.commit(deliver("q1")).await, "not answered yet");
    let racing =
        futures_util::future::join_all((0..20).map(|_| bench.store.commit(vec![answer("q1", 9)])));
    let taken = racing.await.into_iter().filter(|outcome| *outcome.as_ref().unwrap() == [true]);
    assert_eq!(taken.count(), 1);
    assert!(bench.commit(deliver("q1")).await);
    let why = "late".to_owned();
    let close =
        Change::CloseInterrupt { token: "q2".into(), state: InterruptState::Expired, why, at: 11 };
    assert!(bench.commit(close).await);
    let over = Change::CloseInterrupts { turn: "u1".into(), why: "over".into(), at: 12 };
    assert!(bench.commit(over).await);
    let filter = InterruptFilter { turn: Some("u1".into()), ..InterruptFilter::default() };
    let rows = bench.store.interrupts(filter.clone()).await.unwrap();
    let states: Vec<_> = rows.iter().map(|row| row.state).collect();
    use InterruptState::{Delivered, Expired, Over};
    assert_eq!(states, [Delivered, Expired, Over]);
    let page = |after: Option<(i64, &str)>| {
        let after = after.map(|(opened, token)| (opened, token.to_owned()));
        let filter = InterruptFilter { after, limit: Some(2), ..filter.clone() };
        let rows = bench.store.interrupts(filter);
        async { rows.await.unwrap().into_iter().map(|row| row.token).collect::<Vec<_>>() }
    };
    assert_eq!(page(None).await, ["q1", "q2"]);
    assert_eq!(page(Some((rows[1].opened, "q2"))).await, ["q3"]);
    assert_eq!(page(Some((rows[1].opened, "q1x"))).await, ["q2", "q3"], "one that is gone");
    let open = InterruptFilter { open: true, ..filter };
    assert_eq!(bench.store.interrupts(open).await.unwrap(), []);
}

#[tokio::test]
async fn a_revoked_token_says_so_and_pages_follow_each_other() {
    let bench = Bench::new().await;
    let token = TokenRow {
        id: "tok".into(),
        tenant: "a".into(),
        name: "n".into(),
        hash: "h".into(),
        roles: Roles::usual(),
        created: 1,
        revoked: None,
    };
    bench.commit(Change::AddToken(token.clone())).await;
    let found = bench.store.token("h").await.unwrap().unwrap();
    assert_eq!((found.0, found.1.id.as_str()), (token, "a"));
    assert_eq!(bench.store.token("other").await.unwrap(), None);
    let roles = || Roles::new([Role::Answer]);
    assert!(bench.commit(Change::SetTokenRoles { id: "tok".into(), roles: roles() }).await);
    assert_eq!(bench.store.token("h").await.unwrap().unwrap().0.roles, roles());
    let revoke = || Change::RevokeToken { id: "tok".into(), at: 5 };
    assert!(bench.commit(revoke()).await);
    assert!(!bench.commit(revoke()).await);
    let late = Change::SetTokenRoles { id: "tok".into(), roles: Roles::usual() };
    assert!(!bench.commit(late).await, "a token that is void stays so");
    assert_eq!(bench.store.token("h").await.unwrap().unwrap().0.revoked, Some(5));
    let ann = Contributor { token: "tok".into(), name: "ann".into() };
    for _ in 0..2 {
        let (thread, contributor) = ("t1".into(), ann.clone());
        bench.commit(Change::AddContributor { thread, contributor }).await;
    }
    let row = bench.store.thread("a", "t1").await.unwrap().unwrap();
    assert_eq!(row.contributors, Some(vec![ann]), "each once");
    for n in 2..6 {
        bench.commit(Change::AddThread(Box::new(thread(&format!("t{n}"), "a")))).await;
    }
    let page = |before: Option<&str>| {
        let page = Paging { before: before.map(Into::into), limit: 2 };
        bench.store.threads("a", false, page)
    };
    let names = |rows: Vec<ThreadRow>| rows.into_iter().map(|row| row.id).collect::<Vec<_>>();
    assert_eq!(names(page(None).await.unwrap()), ["t5", "t4"]);
    assert_eq!(names(page(Some("t4")).await.unwrap()), ["t3", "t2"]);
}

#[tokio::test]
async fn deliveries_wait_until_they_are_due_and_old_events_are_forgotten() {
    let bench = Bench::new().await;
    let delivery = |id: &str, due| Delivery {
        id: id.into(),
        tenant: "a".into(),
        url: "http://x".into(),
        event: "e".into(),
        body: "{}".into(),
        attempts: 0,
        due,
        why: None,
        given_up: None,
    };
    bench.commit(Change::AddDelivery(delivery("d1", 5))).await;
    bench.commit(Change::AddDelivery(delivery("d2", 9))).await;
    assert_eq!(bench.store.due(5, 9, 9).await.unwrap(), [delivery("d1", 5)]);
    bench.commit(Change::RetryDelivery { id: "d1".into(), due: 20, why: "w".into() }).await;
    assert_eq!(bench.store.due(19, 9, 9).await.unwrap(), [], "the second waits for the first");
    assert_eq!(bench.store.next_due(9).await.unwrap(), Some(20));
    let first = bench.store.due(20, 9, 9).await.unwrap().remove(0);
    assert_eq!((first.attempts, first.why.as_deref()), (1, Some("w")));
    let give_up =
        || Change::GiveUpDelivery { id: "d1".into(), why: "x".into(), at: 21, tried: true };
    assert!(bench.commit(give_up()).await);
    assert!(!bench.commit(give_up()).await, "only once");
    assert_eq!(bench.store.due(21, 9, 9).await.unwrap(), [delivery("d2", 9)]);
    let counts = bench.store.delivery_counts().await.unwrap();
    assert_eq!((counts.waiting, counts.given_up), (1, 1));
    bench.commit(Change::RemoveDelivery { id: "d2".into() }).await;
    let all = Following::default;
    let left = bench.store.deliveries("a", all()).await.unwrap();
    assert_eq!((left.len(), left[0].attempts, left[0].given_up), (1, 2, Some(21)));
    assert!(bench.commit(Change::Forget { before: 22 }).await);
    assert_eq!(bench.store.deliveries("a", all()).await.unwrap(), []);
    bench.commit(Change::AddTurn(Box::new(turn("u1", None)))).await;
    let chunk = Chunk { first: 1, body: "p1\n".into() };
    bench.commit(Change::Append { turn: "u1".into(), chunk, last: 1 }).await;
    assert!(!bench.commit(Change::Forget { before: 100 }).await, "it runs");
    let end = TurnEnd {
        turn: "u1".into(),
        state: TurnState::Completed,
        error: None,
        resumable: false,
        usage: None,
        at: 9,
    };
    bench.commit(Change::EndTurn(Box::new(end))).await;
    assert!(!bench.commit(Change::Forget { before: 9 }).await);
    assert!(bench.commit(Change::Forget { before: 10 }).await);
    assert_eq!(bench.store.events("u1", 0, 9).await.unwrap(), []);
}

#[tokio::test]
async fn a_store_of_a_newer_version_is_left_alone() {
    let bench = Bench::new().await;
    bench.store.close().await.unwrap();
    let path = bench.folder.path().join("store");
    let db = rusqlite::Connection::open(&path).unwrap();
    db.pragma_update(None, "user_version", 999).unwrap();
    drop(db);
    let newer = Sqlite::open(&path, Sync::Process, &bench.folder.path().join("key")).err().unwrap();
    assert!(matches!(newer, StoreError::Newer { found: 999, .. }), "{newer}");
}

#[tokio::test]
async fn a_closed_store_takes_nothing_more() {
    let bench = Bench::new().await;
    bench.store.close().await.unwrap();
    let late = bench.store.commit(vec![Change::RemoveWorker { id: "w".into() }]).await;
    assert!(matches!(late, Err(StoreError::Closed)));
}

#[tokio::test]
async fn a_tenant_of_many_receivers_comes_no_sooner_and_a_queue_has_an_end() {
    let bench = Bench::new().await;
    let delivery = |tenant: &str, url: usize, id: String| {
        Change::AddDelivery(Delivery {
            id,
            tenant: tenant.into(),
            url: format!("http://{url}"),
            event: "e".into(),
            body: "{}".into(),
            attempts: 0,
            due: 1,
            why: None,
            given_up: None,
        })
    };
    let most = usize::try_from(DELIVERIES).unwrap();
    let many = (0..most + 7).map(|number| delivery("a", 0, format!("a{number:05}")));
    bench.store.commit(many.collect()).await.unwrap();
    let more = (1..20).map(|url| delivery("a", url, format!("b{url:05}")));
    bench.store.commit(more.collect()).await.unwrap();
    bench.commit(delivery("z", 0, "z".to_owned())).await;
    let due = bench.store.due(1, 4, 9).await.unwrap();
    let names: Vec<_> = due.iter().map(|delivery| delivery.id.as_str()).collect();
    // The oldest seven made room.
    assert_eq!(names, ["a00007", "z", "b00001", "b00002"]);
    assert_eq!(bench.store.due(1, 99, 9).await.unwrap().len(), 10, "nine of one, one of the other");
    let counts = bench.store.delivery_counts().await.unwrap();
    assert_eq!((counts.waiting, counts.given_up), (DELIVERIES + 20, 7));
    let lost = bench.store.deliveries("a", Following::default()).await.unwrap().remove(0);
    assert_eq!((lost.attempts, lost.given_up), (0, Some(1)));
    assert!(lost.why.unwrap().contains("too many"));
}
