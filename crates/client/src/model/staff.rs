//! Who answers for a call: our tools, the caller, or the answerer of the model.

use std::collections::BTreeSet;
use std::sync::Arc;

use bindery_core::interrupt::{Answer, Ask, Interrupt};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::answerer::Answerer;
use crate::tools::ToolSet;

/// The answerer of one call.
pub(super) struct Staff {
    pub(super) tools: ToolSet,
    /// Tools that the caller declared and runs itself.
    pub(super) declared: BTreeSet<String>,
    pub(super) others: Arc<dyn Answerer>,
}

impl Staff {
    fn is_callers(&self, interrupt: &Interrupt) -> bool {
        let Ask::ToolCall { tool, namespace, .. } = &interrupt.ask else { return false };
        let name = match namespace {
            Some(namespace) => format!("{namespace}.{tool}"),
            None => tool.clone(),
        };
        self.declared.contains(&name)
    }
}

impl Answerer for Staff {
    fn answer(&self, interrupt: Interrupt) -> BoxFuture<'static, Option<Answer>> {
        if self.is_callers(&interrupt) {
            return Box::pin(std::future::pending());
        }
        if let Some(running) = self.tools.run(&interrupt) {
            return running.map(Some).boxed();
        }
        self.others.answer(interrupt)
    }

    fn leaves(&self, interrupt: &Interrupt) -> bool {
        self.is_callers(interrupt)
            || (!matches!(interrupt.ask, Ask::ToolCall { .. }) && self.others.leaves(interrupt))
    }
}
