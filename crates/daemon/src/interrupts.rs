//! Questions that stop turns: listed, answered once, asked again after a worker's death.
//!
//! The runner writes a question down before anybody sees it; here it is answered, by whoever has
//! the tenant's token, and checked against what was offered. [`Hooks`] tell webhooks of it.

mod hooks;

mod tool;

use std::sync::Arc;

use bindery_core::call::CallOptions;
use bindery_core::interrupt::{Answer, Ask};
use bindery_core::map::answer_to_reply;
use bindery_core::prompt::Prompt;
use serde_json::{Value, json};

pub use self::hooks::Hooks;
use crate::clock;
use crate::error::Error;
use crate::store::{
    Change, InterruptFilter, InterruptRow, InterruptState, Store, TurnKind, TurnRow,
};
use crate::tenant::{Caller, Role, check_answer};
use crate::turns::{NewTurn, Runner};

/// Where questions are answered; clones share it.
#[derive(Clone)]
pub struct Desk {
    store: Arc<dyn Store>,
    runner: Runner,
}

impl Desk {
    /// The questions of this runner's turns.
    pub fn new(store: Arc<dyn Store>, runner: Runner) -> Self {
        Self { store, runner }
    }

    /// Interrupts of the caller's tenant, or of all for an administrator who asks for them.
    pub async fn list(
        &self,
        caller: &Caller,
        filter: InterruptFilter,
        overall: bool,
    ) -> Result<Vec<InterruptRow>, Error> {
        if overall {
            caller.must_have(Role::Admin)?;
        }
        let tenant = (!overall).then(|| caller.tenant.id.clone());
        Ok(self.store.interrupts(InterruptFilter { tenant, ..filter }).await?)
    }

    /// One interrupt. Another tenant's is as unknown as none.
    pub async fn get(&self, caller: &Caller, token: &str) -> Result<InterruptRow, Error> {
        let row = self.store.interrupt(token).await?;
        let row = row.filter(|row| row.tenant == caller.tenant.id);
        row.ok_or_else(|| Error::not_found("interrupt", token))
    }

    /// Answers an interrupt, once.
    pub async fn answer(
        &self,
        caller: &Caller,
        token: &str,
        answer: Answer,
    ) -> Result<InterruptRow, Error> {
        let row = self.get(caller, token).await?;
        let now = clock::now();
        refused(&row, now)?;
        answer_to_reply::reply(&row.interrupt.ask, &answer).map_err(|why| Error::Interrupt {
            code: "answer_unfit",
            message: format!("this answer does not fit interrupt `{token}`: {why}"),
        })?;
        self.check_escalation(caller, &row, &answer).await?;
        let change = Change::AnswerInterrupt {
            token: token.to_owned(),
            answer: Box::new(answer.clone()),
            by: caller.token.clone(),
            at: now,
        };
        if self.store.commit(vec![change]).await? != [true] {
            // Somebody was quicker, or time was.
            refused(&self.get(caller, token).await?, now)?;
            return Err(over(token, "it does not wait any more"));
        }
        self.runner.deliver(&row.turn, token, answer)?;
        self.get(caller, token).await
    }

    /// Holds an answer to the tenant's policy about what may leave the sandbox.
    async fn check_escalation(
        &self,
        caller: &Caller,
        row: &InterruptRow,
        answer: &Answer,
    ) -> Result<(), Error> {
        let thread = self.store.thread(&row.tenant, &row.thread).await?;
        let contributors = thread.and_then(|thread| thread.contributors);
        let (tenant, ask) = (&caller.tenant, &row.interrupt.ask);
        check_answer(tenant, ask, answer, &caller.as_contributor(), contributors.as_deref())
    }

    /// Starts a turn that takes up a question which its worker took with it.
    pub async fn ask_again(&self, caller: &Caller, token: &str) -> Result<TurnRow, Error> {
        let row = self.get(caller, token).await?;
        if row.state != InterruptState::Over {
            let message = format!("interrupt `{token}` is not over");
            return Err(Error::Interrupt { code: "interrupt_not_over", message });
        }
        let thread = self.store.thread(&row.tenant, &row.thread).await?;
        let thread = thread.ok_or_else(|| Error::not_found("thread", row.thread.as_str()))?;
        let options = CallOptions { prompt: Prompt::user(again(&row)), ..CallOptions::default() };
        let new = NewTurn {
            kind: TurnKind::Prompt,
            request: json!(options),
            // Asked twice, it is asked once.
            key: Some(format!("ask-again:{token}")),
        };
        Ok(self.runner.submit(caller, &thread, new).await?.0)
    }
}

/// Why an interrupt takes no answer.
fn refused(row: &InterruptRow, now: clock::Millis) -> Result<(), Error> {
    let token = &row.token;
    match row.state {
        InterruptState::Open if row.deadline > now => Ok(()),
        InterruptState::Open | InterruptState::Expired => Err(Error::Interrupt {
            code: "interrupt_expired",
            message: format!("interrupt `{token}` was not answered in time"),
        }),
        InterruptState::Answered | InterruptState::Delivered => Err(Error::Interrupt {
            code: "interrupt_answered",
            message: format!("interrupt `{token}` was answered already"),
        }),
        InterruptState::Over => Err(over(token, row.why.as_deref().unwrap_or("the turn ended"))),
    }
}

fn over(token: &str, why: &str) -> Error {
    let message = format!("interrupt `{token}` is over: {why}");
    Error::Interrupt { code: "interrupt_over", message }
}

/// What the model is told when a question is taken up again. Nothing is approved by it.
fn again(row: &InterruptRow) -> String {
    let what = match &row.interrupt.ask {
        Ask::Command { command, .. } => format!("to run `{command}`"),
        Ask::FileChange { .. } => "to change files".to_owned(),
        Ask::Permissions { .. } => "for more permissions".to_owned(),
        Ask::UserInput { .. } => "a question to the user".to_owned(),
        Ask::Elicitation { server, .. } => format!("a question of the MCP server `{server}`"),
        Ask::ToolCall { tool, .. } => format!("to call the tool `{tool}`"),
    };
    format!(
        "The previous turn was cut short while it waited for an answer: {what}. It was not \
         answered, and nothing was done. If it is still needed, ask again; then go on."
    )
}

/// An interrupt as clients see it.
pub fn view(row: &InterruptRow) -> Value {
    json!({
        "token": row.token,
        "threadId": row.thread,
        "turnId": row.turn,
        "callId": row.interrupt.call_id,
        "state": row.state,
        "ask": row.interrupt.ask,
        "decisions": offered(&row.interrupt.ask),
        "answer": row.answer,
        "why": row.why,
        "openedAt": row.opened,
        "deadlineAt": row.deadline,
        "closedAt": row.closed,
    })
}

/// The decisions that a question can be answered with; none where the answer is something else.
pub fn offered(ask: &Ask) -> Vec<Value> {
    let plain = || ["accept", "acceptForSession", "decline", "cancel"].map(|word| json!(word));
    match ask {
        Ask::Command { rule, network_rules, .. } => {
            let rule = rule.iter().map(|words| json!({ "acceptWithRule": words }));
            let network = network_rules.iter().map(|rule| json!({ "applyNetworkRule": rule }));
            plain().into_iter().chain(rule).chain(network).collect()
        }
        Ask::FileChange { .. } => plain().into(),
        Ask::Elicitation { tool_params: Some(_), persist, .. } => {
            let mut words = vec![json!("accept"), json!("decline"), json!("cancel")];
            if persist.iter().any(|word| word == "session") {
                words.push(json!("acceptForSession"));
            }
            words
        }
        _ => Vec::new(),
    }
}
