//! Who answers the questions that stop a turn.

use std::sync::Arc;

use bindery_core::interrupt::{Answer, Interrupt};
use futures_util::future::BoxFuture;

/// Answers interrupts. No answer means no.
pub trait Answerer: Send + Sync + 'static {
    /// Answers one; none to refuse. Dropped when the question is withdrawn.
    fn answer(&self, interrupt: Interrupt) -> BoxFuture<'static, Option<Answer>>;

    /// Whether the answer is left to whoever reads the turn, who gives it later by token.
    fn leaves(&self, _: &Interrupt) -> bool {
        false
    }
}

impl<F, R> Answerer for F
where
    F: Fn(Interrupt) -> R + Send + Sync + 'static,
    R: Future<Output = Option<Answer>> + Send + 'static,
{
    fn answer(&self, interrupt: Interrupt) -> BoxFuture<'static, Option<Answer>> {
        Box::pin(self(interrupt))
    }
}

/// Refuses everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct Refuse;

impl Answerer for Refuse {
    fn answer(&self, _: Interrupt) -> BoxFuture<'static, Option<Answer>> {
        Box::pin(std::future::ready(None))
    }
}

/// Leaves everything to whoever reads the turn: answers come by token.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByToken;

impl Answerer for ByToken {
    fn answer(&self, _: Interrupt) -> BoxFuture<'static, Option<Answer>> {
        Box::pin(std::future::pending())
    }

    fn leaves(&self, _: &Interrupt) -> bool {
        true
    }
}

/// Refuses everything; what a turn has when nobody was named.
pub fn refuse() -> Arc<dyn Answerer> {
    Arc::new(Refuse)
}
