//! Any schedule of calls, kills and shutdowns: every turn ends once, hears only itself, and
//! nothing is left.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bindery_client::error::Error;
use bindery_client::pool::{PoolSettings, PooledModel, Stats};
use bindery_core::ids::ThreadId;
use bindery_core::part::Part as Piece;
use bindery_core::usage::Unified;
use bindery_testkit::app_server::crowd::{Ending, Part};
use proptest::prelude::*;
use proptest::sample::Index;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::memory::{Memory, Table, call};
use crate::stage::Told;

const USERS: [&str; 2] = ["ann", "bob"];

/// One thing that happens.
#[derive(Clone, Debug)]
enum Act {
    Call(Plan),
    Kill(usize),
    FailStarts(usize),
    Wait(u64),
}

/// A call and what its caller does.
#[derive(Clone, Debug)]
struct Plan {
    user: usize,
    /// One of the threads there are, or a new one.
    thread: Option<Index>,
    part: Part,
    caller: Caller,
}

#[derive(Clone, Copy, Debug)]
enum Caller {
    Patient,
    /// Reads so many parts and goes.
    Leaves(usize),
    /// Waits so long for the turn to start.
    GivesUp(u64),
    /// Interrupts it after so long.
    Interrupts(u64),
}

fn part() -> impl Strategy<Value = Part> {
    let end = prop_oneof![
        8 => Just(Ending::Complete),
        2 => Just(Ending::Fail),
        2 => Just(Ending::Hang),
        1 => Just(Ending::Crash),
    ];
    (0..4_usize, 0..3_usize, 0..40_u64, end).prop_map(|(say, ask, pause, end)| Part {
        say,
        ask,
        pause,
        end,
        ..Part::default()
    })
}

fn act() -> impl Strategy<Value = Act> {
    let caller = prop_oneof![
        6 => Just(Caller::Patient),
        1 => (0..6_usize).prop_map(Caller::Leaves),
        1 => (0..60_u64).prop_map(Caller::GivesUp),
        2 => (0..200_u64).prop_map(Caller::Interrupts),
    ];
    let thread = prop::option::weighted(0.4, any::<Index>());
    let plan = (0..USERS.len(), thread, part(), caller)
        .prop_map(|(user, thread, part, caller)| Act::Call(Plan { user, thread, part, caller }));
    prop_oneof![
        12 => plan,
        1 => (0..USERS.len()).prop_map(Act::Kill),
        1 => (1..3_usize).prop_map(Act::FailStarts),
        5 => (0..60_u64).prop_map(Act::Wait),
        1 => (500..5_000_u64).prop_map(Act::Wait),
        // Long enough for everything idle to be let go.
        1 => (60_000..90_000_u64).prop_map(Act::Wait),
    ]
}

fn settings() -> impl Strategy<Value = PoolSettings> {
    (1..3_usize, 1..4_usize, 0..6_usize, 1..3_usize, 0..3_usize).prop_map(
        |(workers, turns_per_worker, queue, starts, warm)| PoolSettings {
            workers,
            turns_per_worker,
            queue,
            starts,
            warm,
            warm_total: 3,
            idle: Duration::from_secs(50),
            thread_idle: Duration::from_secs(20),
            warm_idle: Duration::from_secs(30),
            ..PoolSettings::default()
        },
    )
}

/// How a call came out.
enum Came {
    Refused(Error),
    GivenUp,
    /// Its reader left.
    Left,
    Ended(Told),
}

type Threads = Arc<Mutex<Vec<(usize, ThreadId)>>>;

async fn run(model: PooledModel, plan: Plan, threads: Threads) -> (Part, Came) {
    let options = call(&plan.part);
    let limit = match plan.caller {
        Caller::GivesUp(ms) => Duration::from_millis(ms),
        _ => Duration::from_secs(3600),
    };
    let call = match timeout(limit, model.stream(&options)).await {
        Err(_) => return (plan.part, Came::GivenUp),
        Ok(Err(err)) => return (plan.part, Came::Refused(err)),
        Ok(Ok(call)) => call,
    };
    let mut turn = call.turn;
    threads.lock().unwrap().push((plan.user, turn.thread_id().clone()));
    match plan.caller {
        Caller::Leaves(count) => {
            for _ in 0..count {
                let _ = timeout(Duration::from_secs(1), turn.next()).await;
            }
            return (plan.part, Came::Left);
        }
        Caller::Interrupts(ms) => {
            let control = turn.control();
            let told = tokio::join!(Told::of(turn), async {
                sleep(Duration::from_millis(ms)).await;
                control.interrupt();
            });
            return (plan.part, Came::Ended(told.0));
        }
        // Nobody else would end it.
        _ if plan.part.end == Ending::Hang => {
            let control = turn.control();
            let told = tokio::join!(Told::of(turn), async {
                sleep(Duration::from_secs(5)).await;
                control.interrupt();
            });
            return (plan.part, Came::Ended(told.0));
        }
        _ => {}
    }
    let told = Told::of(turn).await;
    (plan.part, Came::Ended(told))
}

/// What a turn told is its own, in order, without doubles, with one end.
pub(crate) fn check(part: &Part, told: &Told) {
    let ends = told.parts.iter().filter(|part| matches!(part, Piece::Finish { .. })).count();
    assert_eq!(ends, 1, "{told:?}");
    let (text, whole) = (told.streamed(), part.text());
    assert!(whole.starts_with(&text), "`{text}` is no beginning of `{whole}`");
    match told.end() {
        Unified::Stop => assert_eq!((text, told.errors().len()), (whole, 0)),
        Unified::Error => assert!(!told.errors().is_empty(), "{told:?}"),
        _ => {}
    }
}

const REFUSALS: [&str; 7] =
    ["busy", "back_off", "spawn", "closed", "thread_busy", "shutting_down", "rpc"];

fn check_refusal(err: &Error) {
    assert!(REFUSALS.contains(&err.code()), "{}: {err}", err.code());
    // The only thing that Codex may refuse is a thread that was lost before it ever ran.
    assert!(err.code() != "rpc" || err.to_string().contains("no rollout found"), "{err}");
}

async fn play(acts: Vec<Act>, limits: PoolSettings, shutdown: Option<u64>) {
    let memory = Memory {
        delay: Duration::from_millis(30),
        thread: Duration::from_millis(7),
        ..Memory::default()
    };
    let table = Table::over(memory, limits.clone());
    let (mut calls, threads) = (JoinSet::new(), Threads::default());
    for (number, act) in acts.into_iter().enumerate() {
        match act {
            Act::Call(mut plan) => {
                plan.part.tag = format!("{}{number}", USERS[plan.user]);
                let known: Vec<_> = threads.lock().unwrap().clone();
                let own: Vec<_> = known.iter().filter(|(user, _)| *user == plan.user).collect();
                let thread = plan.thread.filter(|_| !own.is_empty()).map(|at| &at.get(&own).1);
                let user = USERS[plan.user];
                let model = thread.map_or_else(|| table.model(user), |it| table.on(user, it));
                calls.spawn(run(model, plan, threads.clone()));
            }
            Act::Kill(user) => drop(table.memory.kill(USERS[user])),
            Act::FailStarts(count) => table.memory.failing.store(count, Ordering::SeqCst),
            Act::Wait(ms) => sleep(Duration::from_millis(ms)).await,
        }
    }
    if let Some(ms) = shutdown {
        let begin = Instant::now();
        table.pool.shutdown(Duration::from_millis(ms)).await;
        assert!(begin.elapsed() <= Duration::from_millis(ms + 5_000), "{:?}", begin.elapsed());
    }
    let mut tags = BTreeSet::new();
    while let Some(done) = calls.join_next().await {
        let (part, came) = done.unwrap();
        assert!(tags.insert(part.tag.clone()));
        match came {
            Came::Ended(told) => check(&part, &told),
            Came::Refused(err) => check_refusal(&err),
            Came::GivenUp | Came::Left => {}
        }
    }
    over(&table, &limits).await;
}

/// Nothing is left, and no limit was passed on the way.
async fn over(table: &Table, limits: &PoolSettings) {
    table.until("quiet", |stats| stats.turns + stats.queue + stats.starting == 0).await;
    // Idle threads, spares and workers go one after the other.
    sleep(Duration::from_secs(200)).await;
    let left = table.pool.stats();
    assert_eq!(left, Stats { restarts: left.restarts, ..Stats::default() });
    for user in USERS {
        let seen = table.memory.crowd(user).seen();
        assert_eq!((seen.servers, seen.turns, seen.loaded), (0, 0, 0), "{seen:?}");
        assert!(seen.most_servers <= limits.workers, "{seen:?}");
        assert!(seen.most_turns <= limits.turns_per_worker, "{seen:?}");
        assert!(seen.most_starts <= limits.starts, "{seen:?}");
        assert!(seen.faults.is_empty(), "{seen:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn no_schedule_loses_mixes_or_leaks_anything(
        acts in prop::collection::vec(act(), 0..60),
        limits in settings(),
        shutdown in prop::option::of(0..3_000_u64),
    ) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().start_paused(true).build().unwrap();
        runtime.block_on(play(acts, limits, shutdown));
    }
}
