//! Commands that behave, and commands that do not.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::time::{Duration, Instant};

use bindery_engine::exec::{
    Chunk, Command, Deltas, ExecError, MOST, Processes, State, TIMED_OUT, head_tail, shell,
};
use tokio_util::sync::CancellationToken;

/// Longer than anything takes on a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);

pub(crate) fn environment() -> BTreeMap<OsString, OsString> {
    let mut env = BTreeMap::new();
    env.insert("PATH".into(), std::env::var_os("PATH").unwrap());
    shell::add_to(&mut env);
    env
}

pub(crate) fn script(text: &str) -> Command {
    let argv = shell::argv(OsStr::new("/bin/sh"), false, text);
    let cwd = std::env::temp_dir();
    Command {
        argv,
        cwd,
        env: environment(),
        tty: false,
        enclosed: false,
        placeholders: Vec::new(),
        egress: None,
    }
}

fn on_terminal(text: &str) -> Command {
    Command { tty: true, ..script(text) }
}

pub(crate) async fn collected(processes: &Processes, command: Command) -> Chunk {
    let (process, _) = processes.start(command).unwrap();
    processes.collect(process.session(), LONG, &CancellationToken::new()).await.unwrap()
}

/// Reads live output until it holds the words.
async fn until(deltas: &mut Deltas, words: &str) -> String {
    let mut seen = String::new();
    let wait = async {
        while !seen.contains(words) {
            seen += &deltas.next().await.expect("the command ended early").text;
        }
    };
    tokio::time::timeout(LONG, wait).await.expect("the words never came");
    seen
}

/// Interrupts a command until it ends: a shell that is about to start a program does not pass one
/// on to it.
async fn interrupted(processes: &Processes, session: i32) -> State {
    let none = CancellationToken::new();
    let interrupts = async {
        loop {
            let window = Duration::from_millis(100);
            let chunk = processes.write(session, "\u{3}", window, &none).await.unwrap();
            if let State::Exited(_) = chunk.state {
                return chunk.state;
            }
        }
    };
    tokio::time::timeout(LONG, interrupts).await.expect("no interrupt reached it")
}

/// Waits until a process is gone; one that nobody has reaped yet is.
async fn gone(process: &str) {
    let alive = || {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        (!stat.rsplit_once(')')?.1.trim_start().starts_with('Z')).then_some(())
    };
    let wait = async {
        while alive().is_some() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(LONG, wait).await.expect("it should have been ended");
}

#[tokio::test]
async fn a_command_that_ends_is_told_whole_and_forgotten() {
    let processes = Processes::new();
    let (process, _) = processes.start(script("echo out; echo err >&2; exit 3")).unwrap();
    let session = process.session();
    let chunk = processes.collect(session, LONG, &CancellationToken::new()).await.unwrap();
    assert_eq!((chunk.state, chunk.output.as_str()), (State::Exited(3), "out\nerr\n"));
    assert_eq!((chunk.total_bytes, chunk.omitted, chunk.original_tokens()), (8, 0, 2));
    assert_eq!(process.ended().await.output, "out\nerr\n");
    let again = processes.collect(session, LONG, &CancellationToken::new()).await;
    assert!(matches!(again, Err(ExecError::Unknown(unknown)) if unknown == session));
}

#[tokio::test]
async fn the_environment_is_what_was_given() {
    let chunk = collected(&Processes::new(), script("env | grep -c .; echo $TERM $CODEX_CI")).await;
    let expected = environment().len() + ["PWD", "BINDERY_COMMAND"].len();
    let count: usize = chunk.output.lines().next().unwrap().parse().unwrap();
    // Some shells add `_`, `OLDPWD` or `SHLVL`.
    assert!((expected..=expected + 3).contains(&count), "{}", chunk.output);
    assert!(chunk.output.ends_with("\ndumb 1\n"), "{}", chunk.output);
}

#[tokio::test]
async fn a_command_that_runs_on_is_asked_again() {
    let processes = Processes::new();
    let (process, mut deltas) = processes.start(on_terminal("read x; echo got $x")).unwrap();
    let session = process.session();
    let none = CancellationToken::new();
    let chunk = processes.collect(session, Duration::from_millis(1), &none).await.unwrap();
    assert_eq!(chunk.state, State::Running(session));
    assert_eq!(processes.running(), [session]);
    let chunk = processes.write(session, "words\n", LONG, &none).await.unwrap();
    assert_eq!(chunk.state, State::Exited(0));
    assert_eq!(chunk.output, "words\r\ngot words\r\n");
    assert_eq!(until(&mut deltas, "got").await, "words\r\ngot words\r\n");
}

#[tokio::test]
async fn a_terminal_is_one_and_an_interrupt_reaches_it() {
    let processes = Processes::new();
    let command = on_terminal("test -t 0 && test -t 1 && echo ready; sleep 1000");
    let (process, mut deltas) = processes.start(command).unwrap();
    until(&mut deltas, "ready").await;
    assert_eq!(interrupted(&processes, process.session()).await, State::Exited(130));
}

#[tokio::test]
async fn without_a_terminal_only_an_interrupt_is_taken() {
    let processes = Processes::new();
    let (process, mut deltas) = processes.start(script("echo ready; sleep 1000")).unwrap();
    until(&mut deltas, "ready").await;
    let none = CancellationToken::new();
    let refused = processes.write(process.session(), "words\n", LONG, &none).await;
    assert!(matches!(refused, Err(ExecError::NoInput(_))));
    assert_eq!(interrupted(&processes, process.session()).await, State::Exited(130));
}

#[tokio::test]
async fn input_that_nobody_reads_is_bounded() {
    let processes = Processes::new();
    let (process, mut deltas) =
        processes.start(on_terminal("stty raw -echo; echo ready; sleep 1000")).unwrap();
    until(&mut deltas, "ready").await;
    let (none, piece) = (CancellationToken::new(), "x".repeat(64 * 1024));
    let mut refused = false;
    for _ in 0..32 {
        let wrote = processes.write(process.session(), &piece, Duration::ZERO, &none).await;
        refused = refused || matches!(wrote, Err(ExecError::InputFull(_)));
    }
    assert!(refused);
    processes.end_all().await;
}

#[tokio::test]
async fn a_command_that_ignores_being_asked_is_ended_all_the_same() {
    let processes = Processes::new();
    let (process, mut deltas) = processes
        .start(script("trap '' TERM INT HUP; echo ready; while :; do sleep 1; done"))
        .unwrap();
    until(&mut deltas, "ready").await;
    process.end();
    let ending = tokio::time::timeout(LONG, process.ended()).await.unwrap();
    assert_eq!((ending.exit_code, ending.output.as_str()), (137, "ready\n"));
}

#[tokio::test]
async fn a_command_may_tidy_up_when_it_is_asked_to_end() {
    let processes = Processes::new();
    let command = script("trap 'echo tidy; exit 7' TERM; echo ready; while :; do sleep 0.01; done");
    let (process, mut deltas) = processes.start(command).unwrap();
    until(&mut deltas, "ready").await;
    process.end();
    let ending = tokio::time::timeout(LONG, process.ended()).await.unwrap();
    // Some shells also tell what became of `sleep`.
    assert!(ending.exit_code == 7 && ending.output.ends_with("tidy\n"), "{ending:?}");
}

#[tokio::test]
async fn a_closed_output_is_no_end() {
    let processes = Processes::new();
    let (process, mut deltas) =
        processes.start(script("echo on; exec >&- 2>&-; sleep 1000")).unwrap();
    until(&mut deltas, "on").await;
    let none = CancellationToken::new();
    let window = Duration::from_millis(300);
    let chunk = processes.collect(process.session(), window, &none).await.unwrap();
    assert_eq!(chunk.state, State::Running(process.session()));
    process.end();
    assert_eq!(process.ended().await.exit_code, 143);
}

#[tokio::test]
async fn what_holds_the_pipe_is_not_waited_for_and_is_ended() {
    let processes = Processes::new();
    let begun = Instant::now();
    let chunk = collected(&processes, script("sleep 1000 & echo $!")).await;
    assert!(begun.elapsed() < Duration::from_secs(50));
    assert_eq!(chunk.state, State::Exited(0));
    gone(chunk.output.trim()).await;
}

#[tokio::test]
async fn what_left_the_group_is_ended_too() {
    let processes = Processes::new();
    // A session of its own, and no parent left that is ours.
    let detached = "(setsid sh -c 'trap \"\" TERM HUP; echo $$; exec >/dev/null 2>&1; \
                    while :; do sleep 1; done' &) ; sleep 0.3; echo over";
    let chunk = collected(&processes, script(detached)).await;
    let process = chunk.output.lines().next().unwrap().to_owned();
    gone(&process).await;
}

#[tokio::test]
async fn output_without_end_is_held_in_bounded_memory() {
    let processes = Processes::new();
    let chunk = collected(&processes, script("head -c 1000000000 /dev/zero; echo end")).await;
    assert_eq!((chunk.state, chunk.total_bytes), (State::Exited(0), 1_000_000_004));
    assert!(chunk.output.len() < head_tail::MOST + 100, "{}", chunk.output.len());
    assert!(chunk.output.ends_with("\0end\n"));
}

#[tokio::test]
async fn output_that_is_no_text_is_shown_as_far_as_it_goes() {
    let chunk = collected(&Processes::new(), script(r"printf 'a\377\000b\303'")).await;
    assert_eq!(chunk.output, "a\u{FFFD}\0b\u{FFFD}");
}

#[tokio::test]
async fn a_signal_has_an_exit_code() {
    let chunk = collected(&Processes::new(), script("kill -SEGV $$")).await;
    assert_eq!(chunk.state, State::Exited(139));
}

#[tokio::test]
async fn a_limit_ends_the_older_forms() {
    let processes = Processes::new();
    let (process, mut deltas) = processes.start(script("echo began; sleep 1000")).unwrap();
    until(&mut deltas, "began").await;
    let none = CancellationToken::new();
    let ran = processes.finish(&process, Duration::from_millis(50), &none).await;
    assert!(ran.timed_out);
    assert_eq!((ran.ending.exit_code, ran.ending.output.as_str()), (TIMED_OUT, "began\n"));
    assert!(processes.running().is_empty());
}

#[tokio::test]
async fn a_cancelled_wait_ends_at_once() {
    let processes = Processes::new();
    let (process, _) = processes.start(script("sleep 1000")).unwrap();
    let cancelled = CancellationToken::new();
    cancelled.cancel();
    let chunk = processes.collect(process.session(), LONG * 10, &cancelled).await.unwrap();
    assert_eq!(chunk.state, State::Running(process.session()));
    let ran = processes.finish(&process, LONG * 10, &cancelled).await;
    assert_eq!((ran.timed_out, ran.ending.exit_code), (false, 143));
}

#[tokio::test]
async fn what_cannot_start_says_why() {
    let processes = Processes::new();
    let no_program = Command { argv: vec!["/no/such/program".into()], ..script("") };
    let said = processes.start(no_program).unwrap_err().to_string();
    assert_eq!(said, "cannot start `/no/such/program`: No such file or directory (os error 2)");
    let no_folder = Command { cwd: "/no/such/folder".into(), ..script("true") };
    let said = processes.start(no_folder).unwrap_err().to_string();
    assert_eq!(said, "cannot run in `/no/such/folder`: it is no folder");
    let empty = Command { argv: Vec::new(), ..script("") };
    assert!(matches!(processes.start(empty), Err(ExecError::Empty)));
}

#[tokio::test]
async fn there_are_so_many_and_no_more() {
    assert_eq!(MOST, 64, "as many as Codex has");
    let processes = Processes::new();
    let first = processes.start(script("true")).unwrap().0;
    let rest: Vec<_> =
        (1..MOST).map(|_| processes.start(script("sleep 1000")).unwrap().0.session()).collect();
    first.ended().await;
    // The one that has ended makes room; no other may be forgotten.
    let last = processes.start(script("sleep 1000")).unwrap().0.session();
    assert!(matches!(processes.find(first.session()), Err(ExecError::Unknown(_))));
    let mut expected: Vec<_> = rest.into_iter().chain([last]).collect();
    expected.sort_unstable();
    let refused = processes.start(script("true"));
    assert!(matches!(refused, Err(ExecError::TooMany { sessions }) if sessions == expected));
    tokio::time::timeout(LONG, processes.end_all()).await.unwrap();
    assert!(processes.running().is_empty());
}

#[tokio::test]
async fn dropping_the_thread_ends_its_commands() {
    let processes = Processes::new();
    let (process, mut deltas) = processes.start(script("echo $$; sleep 1000")).unwrap();
    let id = until(&mut deltas, "\n").await;
    drop((process, processes));
    gone(id.trim()).await;
}

#[tokio::test]
async fn nobody_watching_holds_up_nothing() {
    let processes = Processes::new();
    let (process, _unread) = processes.start(script("head -c 50000000 /dev/zero")).unwrap();
    let ending = tokio::time::timeout(LONG, process.ended()).await.unwrap();
    assert_eq!(ending.total_bytes, 50_000_000);
}
