//! Questions of the turn on their way to the person at the terminal.

use bindery::core::interrupt::ElicitationAction;
use bindery::{Answer, Answerer, Ask, Decision, Interrupt};
use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};

/// A question and the way back for its answer; closed when the question is withdrawn.
pub(in crate::commands) struct Question {
    pub(in crate::commands) interrupt: Interrupt,
    pub(in crate::commands) reply: oneshot::Sender<Option<Answer>>,
}

/// Takes questions from the turn.
pub(in crate::commands) struct Desk {
    accept: bool,
    questions: mpsc::Sender<Question>,
}

impl Desk {
    /// A desk, and where its questions come out; with `accept` none do.
    pub(in crate::commands) fn open(accept: bool) -> (Self, mpsc::Receiver<Question>) {
        let (questions, receiver) = mpsc::channel(16);
        (Self { accept, questions }, receiver)
    }
}

impl Answerer for Desk {
    fn answer(&self, interrupt: Interrupt) -> BoxFuture<'static, Option<Answer>> {
        if self.accept {
            return Box::pin(std::future::ready(yes(&interrupt.ask)));
        }
        let questions = self.questions.clone();
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            questions.send(Question { interrupt, reply }).await.ok()?;
            answer.await.ok().flatten()
        })
    }
}

/// The yes that fits a question; none for those that want words.
fn yes(ask: &Ask) -> Option<Answer> {
    match ask {
        Ask::Command { person_required: true, .. } => None,
        Ask::Command { .. } | Ask::FileChange { .. } => Some(Answer::decision(Decision::Accept)),
        Ask::Permissions { permissions, .. } => {
            Some(Answer::Permissions { granted: permissions.clone(), for_session: false })
        }
        Ask::Elicitation { tool_params: Some(_), .. } => {
            Some(Answer::Elicitation { action: ElicitationAction::Accept, content: None })
        }
        Ask::UserInput { .. } | Ask::Elicitation { .. } | Ask::ToolCall { .. } => None,
    }
}
