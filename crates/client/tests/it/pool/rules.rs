//! The rules of the pool, one by one, with a clock that is wound by hand.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bindery_client::model::ModelSettings;
use bindery_client::pool::{BackOff, PoolSettings, Stats};
use bindery_core::ids::ThreadId;
use bindery_core::usage::Unified;
use bindery_core::wire::app_server::params::ThreadSettings;
use bindery_testkit::app_server::crowd::{Ending, Part};
use futures_util::future::join_all;
use tokio::time::{Instant, sleep};

use super::memory::{Memory, Table, call, finish, key, say, settings};

/// One worker, no spares.
fn small() -> PoolSettings {
    PoolSettings { workers: 1, warm: 0, ..PoolSettings::default() }
}

fn hang(tag: &str) -> Part {
    Part { end: Ending::Hang, ..say(tag, 1) }
}

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_call_runs_and_nothing_is_left() {
    let table = Table::new(small());
    let part = Part { ask: 2, ..say("a", 3) };
    let (_, told) = finish(table.model("ann").stream(&call(&part)).await.unwrap()).await;
    assert_eq!((told.text(), told.end()), (part.text(), Unified::Stop));
    table.until("over", |stats| stats.turns == 0).await;
    let expected = Stats { workers: 1, threads: 1, ..Stats::default() };
    assert_eq!(table.pool.stats(), expected);
    table.pool.shutdown(SECOND).await;
    assert_eq!(table.memory.crowd("ann").seen().servers, 0);
    let refused = table.model("ann").stream(&call(&part)).await.unwrap_err();
    assert_eq!(refused.code(), "shutting_down");
}

#[tokio::test(start_paused = true)]
async fn users_of_different_keys_never_share_a_worker() {
    let table = Table::new(small());
    let run = async |user: &str| {
        let part = say(user, 2);
        finish(table.model(user).stream(&call(&part)).await.unwrap()).await.1.text()
    };
    assert_eq!(
        tokio::join!(run("ann"), run("bob")),
        ("ann#0 ann#1 ".into(), "bob#0 bob#1 ".into())
    );
    for user in ["ann", "bob"] {
        let seen = table.memory.crowd(user).seen();
        assert_eq!((seen.served, seen.started), (1, 1), "{user}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_thread_of_one_key_is_not_found_under_another() {
    let table = Table::new(small());
    let (thread, _) = finish(table.model("ann").stream(&call(&say("a", 1))).await.unwrap()).await;
    assert!(table.pool.worker_for(&key("ann"), &thread).is_some());
    assert!(table.pool.worker_for(&key("bob"), &thread).is_none());
    let refused = table.on("bob", &thread).stream(&call(&say("b", 1))).await.unwrap_err();
    assert!(refused.to_string().contains("no rollout found"), "{refused}");
    table.until("forgotten", |stats| stats.turns == 0 && stats.threads == 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_thread_stays_with_its_worker() {
    let two = PoolSettings { workers: 2, turns_per_worker: 2, ..small() };
    let table = Table::new(two);
    let model = table.model("ann");
    let calls =
        join_all((0..4).map(|_| async { model.stream(&call(&say("a", 1))).await.unwrap() }));
    let mut threads = Vec::new();
    for call in calls.await {
        threads.push(finish(call).await.0);
    }
    for thread in &threads {
        let (same, told) =
            finish(table.on("ann", thread).stream(&call(&say("b", 1))).await.unwrap()).await;
        assert_eq!((&same, told.text().as_str()), (thread, "b#0 "));
    }
    let seen = table.memory.crowd("ann").seen();
    assert_eq!((seen.served, seen.started, seen.resumed), (2, 4, 0));
    assert_eq!(seen.faults.len(), 0, "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn a_thread_held_by_another_process_says_so() {
    let table = Table::new(small());
    let (thread, _) = finish(table.model("ann").stream(&call(&say("a", 1))).await.unwrap()).await;
    let other = bindery_client::pool::Pool::with_starter(small(), table.memory.clone());
    let model = other.model(key("ann"), settings(Some(&thread)));
    let held = model.stream(&call(&say("b", 1))).await.unwrap_err();
    assert_eq!(held.code(), "thread_held");
    insta::assert_snapshot!(held.hint().unwrap(), @"end the other process, or fork the thread");
    assert_eq!(other.stats().threads, 0);
    // Once the holder is gone, the thread can be had.
    table.pool.shutdown(SECOND).await;
    assert_eq!(finish(model.stream(&call(&say("b", 1))).await.unwrap()).await.1.text(), "b#0 ");
}

#[tokio::test(start_paused = true)]
async fn who_waits_is_served_in_order_and_who_is_too_many_is_told_when_to_come_again() {
    let table = Table::new(PoolSettings { turns_per_worker: 1, queue: 2, ..small() });
    let model = table.model("ann");
    let first = model.stream(&call(&hang("first"))).await.unwrap();
    let mut waiting = Vec::new();
    for tag in ["second", "third"] {
        let model = model.clone();
        waiting.push(tokio::spawn(async move { model.stream(&call(&say(tag, 1))).await }));
        table.until("waiting", |stats| stats.queue == waiting.len()).await;
    }
    let busy = model.stream(&call(&say("fourth", 1))).await.unwrap_err();
    assert_eq!(busy.code(), "busy");
    insta::assert_snapshot!(busy, @"all workers are busy and 2 callers wait already");
    assert!(busy.hint().unwrap().starts_with("retry in "), "{busy}");
    first.turn.control().interrupt();
    let ends = async {
        let (_, told) = finish(first).await;
        assert_eq!(told.text(), "first#0 ");
    };
    let second = async { finish(waiting.remove(0).await.unwrap().unwrap()).await.1.text() };
    assert_eq!(tokio::join!(ends, second).1, "second#0 ");
    assert_eq!(finish(waiting.remove(0).await.unwrap().unwrap()).await.1.text(), "third#0 ");
    assert_eq!(table.memory.crowd("ann").seen().most_turns, 1);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_goes_away_leaves_the_queue() {
    let table = Table::new(PoolSettings { turns_per_worker: 1, queue: 1, ..small() });
    let model = table.model("ann");
    let first = model.stream(&call(&hang("first"))).await.unwrap();
    let options = call(&say("second", 1));
    let second = tokio::spawn({
        let model = model.clone();
        async move { model.stream(&options).await.map(drop) }
    });
    table.until("waiting", |stats| stats.queue == 1).await;
    second.abort();
    let _ = second.await;
    assert_eq!(table.pool.stats().queue, 0);
    drop(first);
    assert_eq!(
        finish(model.stream(&call(&say("third", 1))).await.unwrap()).await.1.text(),
        "third#0 "
    );
}

#[tokio::test(start_paused = true)]
async fn a_turn_takes_room_until_codex_has_stopped_it() {
    let table = Table::new(PoolSettings { turns_per_worker: 1, ..small() });
    let model = table.model("ann");
    let deaf = Part { end: Ending::Deaf, ..say("deaf", 1) };
    let begin = Instant::now();
    drop(model.stream(&call(&deaf)).await.unwrap());
    let second = finish(model.stream(&call(&say("second", 1))).await.unwrap()).await;
    assert_eq!(second.1.text(), "second#0 ");
    // It never stops, so it is given up after the deadline for interrupts.
    assert!(begin.elapsed() >= Duration::from_secs(10), "{:?}", begin.elapsed());
}

#[tokio::test(start_paused = true)]
async fn threads_are_started_a_few_at_a_time() {
    let memory = Memory { thread: Duration::from_millis(50), ..Memory::default() };
    let table = Table::over(memory, PoolSettings { starts: 3, ..small() });
    let model = table.model("ann");
    let calls = (0..20).map(|_| async { model.stream(&call(&say("a", 1))).await.unwrap() });
    for call in join_all(calls).await {
        finish(call).await;
    }
    let seen = table.memory.crowd("ann").seen();
    assert_eq!((seen.most_starts, seen.started, seen.served), (3, 20, 1));
}

fn warm() -> PoolSettings {
    PoolSettings { warm: 2, ..small() }
}

#[tokio::test(start_paused = true)]
async fn new_conversations_take_spare_threads_and_none_is_taken_twice() {
    let memory = Memory { thread: Duration::from_millis(50), ..Memory::default() };
    let table = Table::over(memory, warm());
    let model = table.model("ann");
    model.prepare(&call(&say("a", 1))).await.unwrap();
    assert_eq!(table.pool.stats(), Stats { workers: 1, warm: 2, ..Stats::default() });
    let started = || table.memory.crowd("ann").seen().started;
    assert_eq!(started(), 2);
    let begin = Instant::now();
    let calls = (0..3).map(|_| async { model.stream(&call(&say("a", 1))).await.unwrap() });
    let mut threads = Vec::new();
    for call in join_all(calls).await {
        threads.push(finish(call).await.0);
    }
    threads.sort();
    threads.dedup();
    assert_eq!((threads.len(), started()), (3, 3));
    assert!(begin.elapsed() < Duration::from_millis(100), "{:?}", begin.elapsed());
    // They are replaced behind the scenes.
    table.until("refilled", |stats| stats.warm == 2).await;
    assert_eq!(started(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_spare_thread_is_for_its_own_settings_only() {
    let table = Table::new(warm());
    let with = |model: &str| {
        let thread = ThreadSettings { model: Some(model.into()), ..ThreadSettings::default() };
        table.pool.model(key("ann"), ModelSettings { thread, ..settings(None) })
    };
    with("one").prepare(&call(&say("a", 1))).await.unwrap();
    let started = || table.memory.crowd("ann").seen().started;
    finish(with("two").stream(&call(&say("a", 1))).await.unwrap()).await;
    assert_eq!((table.pool.stats().warm, started()), (2, 3));
    finish(with("one").stream(&call(&say("a", 1))).await.unwrap()).await;
    assert_eq!((table.pool.stats().warm, started()), (1, 3));
    table.until("refilled", |stats| stats.warm == 4).await;
}

#[tokio::test(start_paused = true)]
async fn spare_threads_are_bounded_and_go_when_nobody_wants_them() {
    let table = Table::new(PoolSettings { warm: 3, warm_total: 4, ..small() });
    for model in ["one", "two", "three"] {
        let thread = ThreadSettings { model: Some(model.into()), ..ThreadSettings::default() };
        let model = table.pool.model(key("ann"), ModelSettings { thread, ..settings(None) });
        finish(model.stream(&call(&say("a", 1))).await.unwrap()).await;
    }
    table.until("filled", |stats| stats.warm == 4).await;
    sleep(30 * SECOND).await;
    assert_eq!(table.pool.stats().warm, 4);
    sleep(PoolSettings::default().warm_idle).await;
    table.until("gone", |stats| stats.warm == 0).await;
    let seen = table.memory.crowd("ann").seen();
    assert_eq!((seen.deleted, seen.faults.len()), (4, 0), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn an_idle_thread_is_left_and_comes_back_when_it_is_wanted() {
    let table =
        Table::new(PoolSettings { thread_idle: 60 * SECOND, idle: 600 * SECOND, ..small() });
    let model = table.model("ann");
    let (thread, _) = finish(model.stream(&call(&say("a", 1))).await.unwrap()).await;
    sleep(59 * SECOND).await;
    let seen = || table.memory.crowd("ann").seen();
    assert_eq!(seen().unsubscribed, 0);
    sleep(2 * SECOND).await;
    assert_eq!(seen().unsubscribed, 1);
    let again = finish(table.on("ann", &thread).stream(&call(&say("b", 2))).await.unwrap()).await;
    assert_eq!((again.1.text().as_str(), seen().resumed), ("b#0 b#1 ", 1));
    assert_eq!(seen().faults.len(), 0, "{:?}", seen());
}

#[tokio::test(start_paused = true)]
async fn an_idle_worker_is_ended_and_another_takes_its_threads() {
    let table = Table::new(PoolSettings { idle: 60 * SECOND, ..small() });
    let model = table.model("ann");
    let (thread, _) = finish(model.stream(&call(&say("a", 1))).await.unwrap()).await;
    sleep(59 * SECOND).await;
    assert_eq!(table.pool.stats().workers, 1);
    sleep(5 * SECOND).await;
    assert_eq!(table.pool.stats(), Stats::default());
    assert_eq!(table.memory.crowd("ann").seen().servers, 0);
    let again = finish(table.on("ann", &thread).stream(&call(&say("b", 1))).await.unwrap()).await;
    assert_eq!(again.1.text(), "b#0 ");
    assert_eq!(table.memory.crowd("ann").seen().resumed, 1);
}

#[tokio::test(start_paused = true)]
async fn the_crash_of_one_worker_ends_only_its_turns() {
    let table = Table::new(PoolSettings { workers: 2, turns_per_worker: 1, ..small() });
    let model = table.model("ann");
    let crashing = Part { end: Ending::Crash, pause: 500, ..say("crash", 1) };
    let slow = Part { pause: 1000, ..say("slow", 3) };
    let (crashing, slow) = (call(&crashing), call(&slow));
    let (crashing, slow) = tokio::join!(model.stream(&crashing), model.stream(&slow));
    let (crashed, slow) = tokio::join!(finish(crashing.unwrap()), finish(slow.unwrap()));
    assert_eq!((crashed.1.end(), crashed.1.errors().len()), (Unified::Error, 1));
    assert_eq!((slow.1.end(), slow.1.text().as_str()), (Unified::Stop, "slow#0 slow#1 slow#2 "));
    table.until("replaced", |stats| stats.restarts == 1 && stats.turns == 0).await;
    let resumed =
        finish(table.on("ann", &crashed.0).stream(&call(&say("back", 1))).await.unwrap()).await;
    assert_eq!((resumed.0, resumed.1.text().as_str()), (crashed.0, "back#0 "));
}

#[tokio::test(start_paused = true)]
async fn workers_that_do_not_start_are_tried_again_later_and_later() {
    let memory = Memory { failing: 3.into(), ..Memory::default() };
    let table = Table::over(memory, small());
    let model = table.model("ann");
    let options = call(&say("a", 1));
    let code = async || model.stream(&options).await.map(drop).unwrap_err();
    // All who waited for the first are told.
    let both = tokio::join!(code(), code());
    assert_eq!((both.0.code(), both.1.code()), ("spawn", "spawn"));
    assert_eq!(both.0.to_string(), "cannot start `ann`");
    assert_eq!(code().await.code(), "spawn");
    let pause = code().await;
    insta::assert_snapshot!(pause, @"workers keep ending; the next is started in 1 s");
    assert_eq!(pause.code(), "back_off");
    sleep(BackOff::default().first).await;
    assert_eq!(code().await.code(), "spawn");
    assert_eq!(code().await.code(), "back_off");
    sleep(BackOff::default().first * 2).await;
    assert_eq!(finish(model.stream(&options).await.unwrap()).await.1.text(), "a#0 ");
    assert_eq!(table.memory.failing.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn workers_that_die_young_are_replaced_later_and_later() {
    let table = Table::new(small());
    let model = table.model("ann");
    let crash = call(&Part { end: Ending::Crash, pause: 10, ..say("a", 1) });
    for _ in 0..2 {
        let (_, told) = finish(model.stream(&crash).await.unwrap()).await;
        assert_eq!(told.end(), Unified::Error);
        table.until("noticed", |stats| stats.workers == 0).await;
    }
    assert_eq!(model.stream(&crash).await.unwrap_err().code(), "back_off");
    sleep(SECOND).await;
    let call = model.stream(&call(&Part { pause: 20_000, ..say("old", 1) })).await.unwrap();
    assert_eq!(finish(call).await.1.end(), Unified::Stop);
    // One that lasted is replaced at once.
    while table.memory.kill("ann") {}
    table.until("noticed", |stats| stats.workers == 0).await;
    assert!(model.stream(&crash).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn shutdown_lets_turns_end_and_then_interrupts_them() {
    let table = Table::new(small());
    let model = table.model("ann");
    let short = model.stream(&call(&Part { pause: 1000, ..say("short", 2) })).await.unwrap();
    let long = model.stream(&call(&hang("long"))).await.unwrap();
    let deaf = Part { end: Ending::Deaf, ..say("deaf", 1) };
    let deaf = model.stream(&call(&deaf)).await.unwrap();
    let begin = Instant::now();
    let (_, short, long, deaf) =
        tokio::join!(table.pool.shutdown(20 * SECOND), finish(short), finish(long), finish(deaf));
    assert_eq!((short.1.end(), short.1.text().as_str()), (Unified::Stop, "short#0 short#1 "));
    assert_eq!((long.1.errors().len(), deaf.1.errors().len()), (0, 1));
    assert!(begin.elapsed() <= 25 * SECOND, "{:?}", begin.elapsed());
    assert_eq!(table.memory.crowd("ann").seen().servers, 0);
    assert_eq!(table.pool.stats().turns, 0);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_pool_ends_its_workers() {
    let table = Table::new(warm());
    let call = table.model("ann").stream(&call(&hang("a"))).await.unwrap();
    let Table { memory, pool } = table;
    drop(pool);
    assert_eq!(finish(call).await.1.end(), Unified::Error);
    while memory.crowd("ann").seen().servers > 0 {
        sleep(SECOND / 10).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_given_up_half_way_leaves_no_turn_behind() {
    let memory = Memory { thread: SECOND, ..Memory::default() };
    let table = Table::over(memory, PoolSettings { thread_idle: 10 * SECOND, ..small() });
    let model = table.model("ann");
    let options = call(&hang("a"));
    let given_up = tokio::time::timeout(SECOND / 2, model.stream(&options)).await;
    assert!(given_up.is_err());
    table.until("over", |stats| stats.turns == 0).await;
    assert_eq!(table.memory.crowd("ann").seen().turns, 0);
    // The thread that was started for it is let go as any idle thread is.
    sleep(20 * SECOND).await;
    assert_eq!(table.memory.crowd("ann").seen().unsubscribed, 1);
}

#[tokio::test(start_paused = true)]
async fn two_calls_on_one_thread_do_not_wait_for_room_they_do_not_need() {
    let table = Table::new(PoolSettings { turns_per_worker: 1, queue: 0, ..small() });
    let running = table.model("ann").stream(&call(&hang("a"))).await.unwrap();
    let thread: ThreadId = running.turn.thread_id().clone();
    let second = table.on("ann", &thread).stream(&call(&say("b", 1))).await.unwrap_err();
    assert_eq!(second.code(), "thread_busy");
    running.turn.control().interrupt();
    finish(running).await;
    let again = table.on("ann", &thread).stream(&call(&say("b", 1))).await;
    assert!(again.is_ok() || again.unwrap_err().code() == "busy");
}
