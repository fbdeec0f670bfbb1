//! The same test on two backends: the real Codex, and the engine that speaks its protocol.

/// Makes each function a test of both.
macro_rules! on_both {
    ($($test:ident,)+) => {
        mod codex {
            $(
                #[tokio::test]
                async fn $test() {
                    bindery_testkit::backend::Server::Codex.run(super::$test()).await;
                }
            )+
        }

        mod engine {
            $(
                #[tokio::test]
                async fn $test() {
                    bindery_testkit::backend::Server::Engine.run(super::$test()).await;
                }
            )+
        }
    };
}

pub(crate) use on_both;
