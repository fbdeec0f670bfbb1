//! Back-pressure: a slow reader slows the server, and is not taken for a silent one.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bindery_client::app_server::{AppServer, ConnectOptions};
use bindery_client::transport;
use bindery_client::turn::TurnRequest;
use bindery_core::part::Part;
use bindery_core::usage::Unified;
use bindery_core::wire::app_server::params::ThreadStart;
use bindery_testkit::app_server::{Script, Step, initialize, play, start_thread};
use serde_json::{Map, json};
use tokio::io::{AsyncWrite, DuplexStream};
use tokio::time::sleep;

use super::{Scene, turn};
use crate::stage::Told;

/// Counts the lines that go through it.
struct Counting {
    to: DuplexStream,
    lines: Arc<AtomicUsize>,
}

impl AsyncWrite for Counting {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = std::task::ready!(Pin::new(&mut self.to).poll_write(cx, bytes))?;
        let lines = bytes[..written].iter().filter(|&&byte| byte == b'\n').count();
        self.lines.fetch_add(lines, Ordering::SeqCst);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.to).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.to).poll_shutdown(cx)
    }
}

fn flood(times: u32) -> Vec<Step> {
    vec![Step::Repeat { times: Some(times), steps: vec![turn().delta("m", "x")] }]
}

const DELTAS: usize = 50_000;

/// More than all queues between server and reader hold: two buffers of bytes and four of messages.
const UNDER_WAY: usize = 2_000;

#[tokio::test(start_paused = true)]
async fn a_reader_that_waits_makes_the_server_wait() {
    let (to, from) = tokio::io::duplex(64 * 1024);
    let (to_server, from_client) = tokio::io::duplex(64 * 1024);
    let lines = Arc::new(AtomicUsize::new(0));
    let out = Counting { to, lines: lines.clone() };
    let steps =
        [initialize(), start_thread("thread-1"), turn().begin(), flood(50_000), turn().complete()];
    let script = Script::new(steps);
    let server = tokio::spawn(async move { play(&script, from_client, out).await });
    let transport = transport::over(from, to_server, transport::LINE_LIMIT);
    let client = AppServer::connect(transport, &ConnectOptions::default()).await.unwrap();
    let thread = client.start_thread(&ThreadStart::default()).await.unwrap().thread.id;
    let turn = client.start_turn(TurnRequest::new(thread, "go")).await.unwrap();
    // On a paused clock this passes only when nobody can do anything any more.
    sleep(Duration::from_secs(1)).await;
    let written = lines.load(Ordering::SeqCst);
    assert!(written < UNDER_WAY, "{written} messages were taken without a reader");
    sleep(Duration::from_secs(60)).await;
    assert_eq!(lines.load(Ordering::SeqCst), written);
    let told = Told::of(turn).await;
    assert_eq!((told.streamed().len(), told.end()), (DELTAS, Unified::Stop));
    client.close().await;
    server.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_is_not_a_silent_server() {
    let scene = Scene::open([turn().begin(), flood(3_000), turn().complete()]).await;
    let mut request = scene.request();
    request.deadlines.idle = Duration::from_secs(5);
    let mut turn = scene.client.start_turn(request).await.unwrap();
    for _ in 0..3 {
        sleep(Duration::from_secs(60)).await;
        for _ in 0..500 {
            assert!(turn.next().await.is_some());
        }
    }
    sleep(Duration::from_secs(60)).await;
    let told = Told::of(turn).await;
    assert_eq!((told.end(), told.errors().len()), (Unified::Stop, 0));
    scene.close().await;
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_gets_through_though_nobody_reads() {
    let asked = vec![Step::expect("turn/interrupt"), Step::reply(json!({}))];
    let both = [turn().begin(), flood(200), asked, turn().complete()];
    let scene = Scene::open(both).await;
    let turn = scene.client.start_turn(scene.request()).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    turn.control().interrupt();
    sleep(Duration::from_secs(1)).await;
    let told = Told::of(turn).await;
    assert!(matches!(told.parts.last(), Some(Part::Finish { .. })));
    assert_eq!(super::count(&scene.close().await, "turn/interrupt"), 1);
}

/// The reply is behind more events than may wait: the deadline ends the standstill, and whoever
/// comes after finds a connection that works.
#[tokio::test(start_paused = true)]
async fn events_before_the_turns_own_reply_cannot_block_for_ever() {
    let early = vec![Step::expect("turn/start")];
    let list = vec![Step::wait_for("thread/list"), Step::reply(json!({ "data": [] }))];
    let scene = Scene::open([early, flood(5_000), list]).await;
    let err = scene.client.start_turn(scene.request()).await.unwrap_err();
    assert_eq!(err.code(), "timeout");
    let page = scene.client.list_threads(&Map::new()).await.unwrap();
    assert!(page.data.is_empty());
    scene.close().await;
}
