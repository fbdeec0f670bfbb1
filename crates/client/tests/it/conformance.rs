//! One set of tests for every transport: in memory against the scripted server, all others against
//! the real Codex and the engine. The engine in memory is tested beside the facade, which knows it.

mod cases;

use bindery_testkit::backend::Server;

use crate::rig::Kind;

macro_rules! conform {
    ($($(#[$on:meta])? $name:ident: $server:ident, $kind:expr;)+) => {$(
        $(#[$on])?
        mod $name {
            use super::*;

            conform!(@tests $server, $kind;
                shakes_hands,
                replies_reach_whoever_asked,
                big_messages_pass_both_ways,
                what_is_told_comes_in_order,
                questions_are_answered,
                closing_leaves_nothing,
                letting_go_is_closing,
                a_dead_server_is_noticed,
            );
        }
    )+};
    (@tests $server:ident, $kind:expr; $($test:ident,)+) => {$(
        #[tokio::test]
        async fn $test() {
            Server::$server.run(cases::$test($kind)).await;
        }
    )+};
}

conform! {
    memory: Codex, Kind::Memory;
    stdio: Codex, Kind::Stdio;
    ws: Codex, Kind::Ws;
    #[cfg(unix)] unix: Codex, Kind::Unix;
    older_codex_stdio: OlderCodex, Kind::Stdio;
    #[cfg(unix)] older_codex_unix: OlderCodex, Kind::Unix;
    engine_stdio: Engine, Kind::Stdio;
    engine_ws: Engine, Kind::Ws;
    #[cfg(unix)] engine_unix: Engine, Kind::Unix;
}
