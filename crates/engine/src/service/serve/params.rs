//! Parameters, as far as they are honoured; what else a client sends is left unread, as Codex
//! leaves it.

use std::path::PathBuf;

use bindery_core::open::Open;
use bindery_core::wire::app_server::input::UserInput;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::review::Target;
use crate::service::page::Paging;
use crate::service::refused::Refused;
use crate::service::shapes::ItemsView;
use crate::service::supply::Wish;
use crate::thread::{Approval, ApprovalsReviewer, Granular, Overrides, Sandbox};

/// What `thread/start`, `thread/resume` and `thread/fork` share.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Wanted {
    pub(super) model: Option<String>,
    pub(super) model_provider: Option<String>,
    pub(super) cwd: Option<String>,
    pub(super) approval_policy: Option<Policy>,
    pub(super) approvals_reviewer: Option<ApprovalsReviewer>,
    pub(super) sandbox: Option<Mode>,
    pub(super) config: Option<Map<String, Value>>,
    pub(super) base_instructions: Option<String>,
    pub(super) developer_instructions: Option<String>,
}

impl Wanted {
    pub(super) fn wish(self) -> Wish {
        Wish {
            cwd: self.cwd.map(PathBuf::from),
            model: self.model,
            provider: self.model_provider,
            approval: self.approval_policy.map(Policy::read),
            reviewer: self.approvals_reviewer,
            sandbox: self.sandbox.map(Mode::read),
            config: self.config.unwrap_or_default(),
            base_instructions: self.base_instructions,
            developer_instructions: self.developer_instructions,
        }
    }

    /// As much of it as changes a thread that is loaded already.
    pub(super) fn overrides(self) -> Overrides {
        Overrides {
            model: self.model,
            cwd: self.cwd.map(PathBuf::from),
            approval: self.approval_policy.map(Policy::read),
            reviewer: self.approvals_reviewer,
            sandbox: self.sandbox.map(Mode::read),
            ..Overrides::default()
        }
    }
}

/// The words of an approval policy.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Policy {
    Untrusted,
    OnRequest,
    Granular(Granular),
    Never,
}

impl Policy {
    fn read(self) -> Approval {
        match self {
            Self::Untrusted => Approval::Untrusted,
            Self::OnRequest => Approval::OnRequest,
            Self::Never => Approval::Never,
            Self::Granular(kinds) => Approval::Granular(kinds),
        }
    }
}

/// The names of sandbox modes.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Mode {
    ReadOnly,
    WorkspaceWrite,
    DangerFullAccess,
}

impl Mode {
    fn read(self) -> Sandbox {
        match self {
            Self::ReadOnly => Sandbox::ReadOnly { network_access: false },
            Self::WorkspaceWrite => Sandbox::workspace(),
            Self::DangerFullAccess => Sandbox::DangerFullAccess,
        }
    }
}

/// `thread/start`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ThreadStart {
    #[serde(flatten)]
    pub(super) wanted: Wanted,
    pub(super) ephemeral: Option<bool>,
    pub(super) dynamic_tools: Option<Vec<Value>>,
}

/// `review/start`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReviewStart {
    pub(super) thread_id: String,
    pub(super) target: Target,
    /// Read for its refusals only: there is one way.
    #[serde(default, rename = "delivery")]
    _delivery: Option<Delivery>,
}

/// Where a review is told.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Delivery {
    Inline,
}

/// `thread/resume`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ThreadResume {
    pub(super) thread_id: String,
    #[serde(flatten)]
    pub(super) wanted: Wanted,
    #[serde(default)]
    pub(super) exclude_turns: bool,
    #[serde(default)]
    pub(super) history: Option<Vec<Value>>,
    #[serde(default)]
    pub(super) path: Option<PathBuf>,
}

/// `thread/fork`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ThreadFork {
    pub(super) thread_id: String,
    #[serde(flatten)]
    pub(super) wanted: Wanted,
    #[serde(default)]
    pub(super) last_turn_id: Option<String>,
    #[serde(default)]
    pub(super) before_turn_id: Option<String>,
    #[serde(default)]
    pub(super) ephemeral: bool,
    #[serde(default)]
    pub(super) exclude_turns: bool,
    #[serde(default)]
    pub(super) path: Option<PathBuf>,
}

/// What names a thread and nothing else.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OfThread {
    pub(super) thread_id: String,
}

/// `thread/name/set`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Name {
    pub(super) thread_id: String,
    pub(super) name: String,
}

/// `thread/inject_items`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Inject {
    pub(super) thread_id: String,
    pub(super) items: Vec<Value>,
}

/// `thread/read`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ThreadRead {
    pub(super) thread_id: String,
    #[serde(default)]
    pub(super) include_turns: bool,
}

/// `thread/turns/list`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TurnsList {
    pub(super) thread_id: String,
    #[serde(default)]
    pub(super) items_view: Option<ItemsView>,
    #[serde(flatten)]
    pub(super) paging: Paging,
}

/// `thread/items/list`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ItemsList {
    pub(super) thread_id: String,
    #[serde(default)]
    pub(super) turn_id: Option<String>,
    #[serde(flatten)]
    pub(super) paging: Paging,
}

/// `thread/list`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ThreadList {
    #[serde(flatten)]
    pub(super) paging: Paging,
    pub(super) sort_key: Option<SortKey>,
    pub(super) archived: Option<bool>,
    pub(super) cwd: Option<Folders>,
    pub(super) search_term: Option<String>,
    pub(super) model_providers: Option<Vec<String>>,
}

/// What a list of threads is sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SortKey {
    #[default]
    CreatedAt,
    UpdatedAt,
    RecencyAt,
    SectionPosition,
}

/// One folder or several.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Folders {
    One(String),
    Several(Vec<String>),
}

impl Folders {
    pub(super) fn hold(&self, folder: &str) -> bool {
        match self {
            Self::One(one) => one == folder,
            Self::Several(several) => several.iter().any(|one| one == folder),
        }
    }
}

/// `turn/start`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TurnStart {
    pub(super) thread_id: String,
    pub(super) input: Vec<Open<UserInput>>,
    #[serde(default)]
    pub(super) client_user_message_id: Option<String>,
    #[serde(default)]
    pub(super) model: Option<String>,
    #[serde(default)]
    pub(super) effort: Option<String>,
    #[serde(default)]
    pub(super) summary: Option<Summary>,
    #[serde(default)]
    pub(super) cwd: Option<String>,
    #[serde(default)]
    pub(super) approval_policy: Option<Policy>,
    #[serde(default)]
    pub(super) approvals_reviewer: Option<ApprovalsReviewer>,
    #[serde(default)]
    pub(super) sandbox_policy: Option<Sandbox>,
    #[serde(default)]
    pub(super) output_schema: Option<Value>,
}

impl TurnStart {
    pub(super) fn overrides(&mut self) -> Overrides {
        Overrides {
            model: self.model.take(),
            cwd: self.cwd.take().map(PathBuf::from),
            approval: self.approval_policy.take().map(Policy::read),
            reviewer: self.approvals_reviewer.take(),
            sandbox: self.sandbox_policy.take(),
            effort: self.effort.take(),
            summary: self.summary.map(|summary| summary.word().to_owned()),
        }
    }
}

/// How thoughts are summed up.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Summary {
    Auto,
    Concise,
    Detailed,
    None,
}

impl Summary {
    fn word(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Concise => "concise",
            Self::Detailed => "detailed",
            Self::None => "none",
        }
    }
}

/// `turn/steer`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TurnSteer {
    pub(super) thread_id: String,
    pub(super) expected_turn_id: String,
    pub(super) input: Vec<Open<UserInput>>,
    #[serde(default)]
    pub(super) client_user_message_id: Option<String>,
}

/// `turn/interrupt`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TurnInterrupt {
    pub(super) thread_id: String,
    pub(super) turn_id: String,
}

/// Codex takes no pictures from the network.
pub(super) fn checked(input: &[Open<UserInput>]) -> Result<(), Refused> {
    let remote = |input: &Open<UserInput>| match input {
        Open::Known(UserInput::Image { url, .. }) => !url.starts_with("data:"),
        _ => false,
    };
    match input.iter().any(remote) {
        true => Err(Refused::invalid(
            "remote image URLs are not supported; use an inline data URL instead",
        )),
        false => Ok(()),
    }
}
