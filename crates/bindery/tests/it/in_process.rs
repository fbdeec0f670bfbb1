//! The engine in this process, over memory: what must hold on every transport holds here.

use crate::cases;
use crate::rig::Kind;

macro_rules! conform {
    ($($test:ident,)+) => {$(
        #[tokio::test]
        async fn $test() {
            cases::$test(Kind).await;
        }
    )+};
}

conform! {
    shakes_hands,
    replies_reach_whoever_asked,
    big_messages_pass_both_ways,
    what_is_told_comes_in_order,
    questions_are_answered,
    closing_leaves_nothing,
    letting_go_is_closing,
    a_dead_server_is_noticed,
}
