//! Whether a command may run: at once, after somebody was asked, or not at all.
//!
//! A script is read into its plain commands ([`script`]); each is looked up in the [`rules`], and
//! the strictest word wins. Without a rule it counts whether the command destroys things
//! ([`danger`]), whether it is sandboxed, and what the policy says. What cannot be read is never
//! allowed for its looks.

pub mod script;

pub mod danger;

pub mod known_safe;

pub mod rules;

pub mod program_search;

pub mod program_identity;

pub mod starlark;

use serde::Deserialize;

use crate::sandbox;

pub use program_identity::ProgramIdentity;
pub use program_search::ProgramSearch;
pub use rules::{Rules, Verdict};

/// When a person is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ApprovalPolicy {
    /// When the model asks for more than the sandbox allows, and before what destroys things.
    #[default]
    OnRequest,
    /// Never: what would need a question is refused.
    Never,
    /// Before all but commands that are known to only read.
    Untrusted,
    /// As on request, for the kinds of question that are switched on; others are refused.
    Granular(Granular),
}

/// Kinds of question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Granular {
    /// To leave the sandbox, or to run what destroys things.
    pub sandbox_approval: bool,
    /// Because a rule says so.
    pub rules: bool,
}

impl ApprovalPolicy {
    /// Reads Codex's word; `on-failure` has become another name for `on-request`.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "on-request" | "on-failure" => Some(Self::OnRequest),
            "never" => Some(Self::Never),
            "untrusted" => Some(Self::Untrusted),
            _ => None,
        }
    }
}

/// All a decision rests on.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The program and its arguments, before any sandbox was put around it.
    pub argv: &'a [String],
    /// What it may touch.
    pub policy: &'a sandbox::Policy,
    /// When a person is asked.
    pub approval: ApprovalPolicy,
    /// What was decided before.
    pub rules: &'a Rules,
    /// Whether the model asks to leave the sandbox.
    pub escalated: bool,
    /// Whether a mechanism works here that the command is put in.
    pub sandboxed: bool,
    /// The prefix that the model proposes to allow for good.
    pub proposed: Option<&'a [String]>,
    /// Where its programs are found.
    pub search: &'a ProgramSearch,
}

/// What is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It runs, within the sandbox unless `outside`.
    Allow {
        /// Whether it runs outside of the sandbox.
        outside: bool,
    },
    /// Somebody is asked. After a yes it runs, outside of the sandbox if that was the question.
    Ask {
        /// What the person is told.
        reason: String,
        /// What could be allowed for good.
        proposed: Option<Vec<String>>,
        /// Whether it runs outside of the sandbox after a yes.
        outside: bool,
    },
    /// It does not run.
    Forbid {
        /// What the model is told.
        reason: String,
    },
}

/// Kinds of reason to ask.
enum Cause {
    Rule(String),
    Danger,
    Unsandboxed,
    Escalation,
    Untrusted,
}

impl Cause {
    fn words(self) -> String {
        match self {
            Self::Rule(words) => words,
            Self::Danger => "it destroys things without asking".to_owned(),
            Self::Unsandboxed => "this machine offers no sandbox for it".to_owned(),
            Self::Escalation => "it asks to run outside of the sandbox".to_owned(),
            Self::Untrusted => "it is not known to only read".to_owned(),
        }
    }
}

/// Decides.
pub fn decide(question: &Question<'_>) -> Decision {
    let commands = script::commands(question.argv);
    let free = *question.policy == sandbox::Policy::FullAccess;
    let allowed = Decision::Allow { outside: free || question.escalated };
    match question.rules.strictest(&commands) {
        Some(Verdict::Forbid(reason)) => return Decision::Forbid { reason },
        Some(Verdict::Ask(reason)) => return ask(question, &commands, Cause::Rule(reason)),
        // A person's own word, so it also holds where there is no sandbox. It is about a program,
        // though, and not about any file that a command has put under the program's name.
        Some(Verdict::Allow) => {
            let outside = free || question.escalated || !question.sandboxed;
            if !outside || is_trusted(question, &commands) {
                return Decision::Allow { outside };
            }
        }
        None => {}
    }
    if danger::is_dangerous(question.argv) {
        return ask(question, &commands, Cause::Danger);
    }
    if free {
        return untrusted(question, &commands).unwrap_or(allowed);
    }
    if !question.sandboxed {
        return ask(question, &commands, Cause::Unsandboxed);
    }
    if question.escalated {
        return ask(question, &commands, Cause::Escalation);
    }
    untrusted(question, &commands).unwrap_or(Decision::Allow { outside: false })
}

fn untrusted(question: &Question<'_>, commands: &[Vec<String>]) -> Option<Decision> {
    // A repository's configuration can make git run programs, which only a sandbox confines.
    let free = *question.policy == sandbox::Policy::FullAccess;
    let reads = |command: &Vec<String>| {
        known_safe::is_safe(command) && !(free && known_safe::obeys_configuration(command))
    };
    let asks = question.approval == ApprovalPolicy::Untrusted
        && !(commands.iter().all(reads) && is_trusted(question, commands));
    asks.then(|| ask(question, commands, Cause::Untrusted))
}

/// Whether the names of all programs lead to files that no command has put there.
fn is_trusted(question: &Question<'_>, commands: &[Vec<String>]) -> bool {
    let nested = commands.iter().flat_map(|command| script::nested_commands(command));
    let nested: Vec<Vec<String>> = nested.collect();
    let programs = commands.iter().chain(&nested).map(Vec::as_slice).chain([question.argv]);
    programs.flat_map(<[String]>::first).all(|program| question.search.trusts(program))
}

/// Asks, or refuses where nobody may be asked.
fn ask(question: &Question<'_>, commands: &[Vec<String>], cause: Cause) -> Decision {
    let silent = match (question.approval, &cause) {
        (ApprovalPolicy::Never, _) => true,
        (ApprovalPolicy::Granular(kinds), Cause::Rule(_)) => !kinds.rules,
        (ApprovalPolicy::Granular(kinds), _) => !kinds.sandbox_approval,
        _ => false,
    };
    let outside = question.escalated
        || !question.sandboxed
        || *question.policy == sandbox::Policy::FullAccess;
    // A rule that asks would ask again, and what destroys things is asked about each time.
    let offers = !matches!(cause, Cause::Rule(_) | Cause::Danger);
    let proposed = offers.then(|| rules::proposal(question.proposed, commands)).flatten();
    let reason = cause.words();
    if silent {
        let reason = format!("{reason}, and the approval policy allows no question about it");
        return Decision::Forbid { reason };
    }
    Decision::Ask { reason, proposed, outside }
}
