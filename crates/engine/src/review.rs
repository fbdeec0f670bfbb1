//! Reviews: a reviewer looks at changes in a conversation of its own, and the thread gets what it
//! found.
//!
//! The reviewer is a turn like any other on a history of its own: told what it is by our rubric,
//! asking nobody, changing nothing. Its raw answer is JSON, which nobody but us sees.

mod reviewer;

mod scope;

mod target;

use std::sync::Arc;

use bindery_core::review::Review;
use serde_json::json;
use uuid::Uuid;

use self::reviewer::{ReviewModel, Reviewer};
use self::scope::Scope;
pub use self::target::Target;
use crate::item::{Message, Role};
use crate::thread::history::{History, assistant_text};
use crate::thread::{Approval, Makings, Standing, TurnInput};
use crate::tools::Session;
use crate::turn::{Core, Turn, TurnFault};

/// What is told of a review that did not come to its end.
const UNFINISHED: &str = "The review did not finish.";

impl Turn<'_> {
    /// The whole of a turn that reviews.
    pub(crate) async fn review(&mut self, target: Target) -> Result<(), TurnFault> {
        self.tell_item("enteredReviewMode", &target.words());
        self.reviewer = Some(Box::new(self.new_reviewer()));
        let scope = scope::look(&target, &self.core.standing.cwd).await;
        let review = match scope.map_err(TurnFault::Missing)? {
            Scope::Nothing(explanation) => Review { explanation, ..Review::default() },
            Scope::Ask(prompt) => Review::read_answer(&self.ask_reviewer(prompt).await?),
        };
        self.settle_reviewer().await;
        self.tell_review(&target, &review.text());
        Ok(())
    }

    /// A review that was cut short is left too; the turn ends after it.
    pub(crate) async fn leave_review(&mut self) {
        if self.reviewer.is_some() {
            self.settle_reviewer().await;
            self.tell_item("exitedReviewMode", UNFINISHED);
        }
    }

    fn new_reviewer(&self) -> Core {
        let core = &*self.core;
        let prompter = Reviewer(Arc::clone(&core.makings.prompter));
        let standing = Standing {
            model: core.makings.prompter.review_model().unwrap_or(core.standing.model.clone()),
            approval: Approval::Never,
            base_instructions: Some(reviewer::RUBRIC.to_owned()),
            ..core.standing.clone()
        };
        let makings = Makings {
            model: Arc::new(ReviewModel(Arc::clone(&core.makings.model))),
            prompter: Arc::new(prompter),
            ..core.makings.clone()
        };
        Core {
            thread_id: Uuid::now_v7().to_string(),
            standing,
            history: History::default(),
            usage: core.usage,
            told: None,
            dynamic_tools: Vec::new(),
            limits: core.limits,
            makings,
            session: Arc::new(Session::new(core.session.environment.clone())),
            mcp: None,
        }
    }

    /// Runs the reviewer's turn and gives its last words.
    async fn ask_reviewer(&mut self, prompt: String) -> Result<String, TurnFault> {
        let voice = self.voice.aside();
        let Some(core) = self.reviewer.as_deref_mut() else { return Ok(String::new()) };
        let mut turn = Turn::new(core, voice, Arc::default(), None);
        turn.converse(TurnInput::text(prompt)).await?;
        let said = core.history.items().iter().rev().find_map(assistant_text);
        Ok(said.unwrap_or_default())
    }

    /// Ends what the reviewer started, and takes over what it cost. What the thread's own history
    /// holds is not changed by it.
    async fn settle_reviewer(&mut self) {
        let Some(reviewer) = self.reviewer.take() else { return };
        reviewer.session.end().await;
        if reviewer.usage != self.core.usage {
            self.core.usage.total = reviewer.usage.total;
            self.voice.usage(self.core.usage, self.profile.effective_window());
        }
    }

    fn tell_review(&mut self, target: &Target, text: &str) {
        let words = target.words();
        let action = format!(
            "<user_action>\n<action>review</action>\n<target>{words}</target>\n<result>The \
             reviewer's findings are the next message.</result>\n</user_action>"
        );
        let mut answer = Message::text(Role::Assistant, text);
        let id = format!("msg_{}", Uuid::now_v7().simple());
        answer.id = Some(id.clone());
        self.record(vec![Message::text(Role::User, action).into(), answer.into()]);
        self.tell_item("exitedReviewMode", text);
        let begun = self.voice.begin(json!({
            "type": "agentMessage",
            "id": id,
            "text": text,
            "phase": null,
            "memoryCitation": null,
            "delivery": null,
            "questions": null,
        }));
        self.voice.complete(begun);
    }

    fn tell_item(&self, kind: &str, review: &str) {
        let id = Uuid::now_v7().to_string();
        let begun = self.voice.begin(json!({ "type": kind, "id": id, "review": review }));
        self.voice.complete(begun);
    }
}
