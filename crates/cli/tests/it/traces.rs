//! Traces: a collector gets them, and one that does not want them hurts nobody.

use bindery_testkit::backend::Server;
use bindery_testkit::model::Script;
use serde_json::json;

use crate::daemon::Daemon;
use crate::receiver::{Answers, Receiver};
use crate::web::text;

/// Runs a turn on a daemon that sends traces there, and ends it.
async fn traced(collector: &str) -> String {
    let run = async {
        let settings = format!("[traces]\notlp = '{collector}'\n");
        let mut daemon = Daemon::with(Script::always("hello"), &settings);
        let thread = daemon.thread(json!({})).await;
        let turn = daemon.say(&thread, "go").await;
        let all = daemon.web.follow(&turn, 0).await.rest().await;
        assert_eq!(text(&all), "hello");
        assert_eq!(daemon.terminate(), Some(0));
        turn
    };
    Server::Engine.run(run).await
}

#[tokio::test]
async fn a_collector_gets_requests_turns_and_calls_of_workers() {
    let collector = Receiver::new(vec![Answers::With(200, String::new())]);
    let turn = traced(&collector.base()).await;
    let calls = collector.wait(1).await;
    assert!(calls.iter().all(|call| call.path == "/v1/traces"));
    assert!(calls.iter().all(|call| call.headers["content-type"] == "application/x-protobuf"));
    let sent: String = calls.iter().map(|call| call.body.as_str()).collect();
    let route = "POST /v1/threads/{thread}/turns";
    for word in ["bindery", route, "turn.id", &turn, "Completed", "worker.call", "engine"] {
        assert!(sent.contains(word), "no `{word}` in {sent}");
    }
}

#[tokio::test]
async fn a_collector_that_is_gone_or_silent_hurts_nobody() {
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    traced(&format!("http://{gone}")).await;
    traced(&Receiver::new(vec![Answers::Never]).base()).await;
    traced(&Receiver::new(vec![Answers::With(500, String::new())]).base()).await;
}
