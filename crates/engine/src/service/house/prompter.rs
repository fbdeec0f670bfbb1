//! Prompts from the configuration and the world around a thread.

use std::path::Path;
use std::sync::Arc;

use bindery_core::open::Open;
use bindery_core::wire::app_server::input::UserInput;
use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::config::{
    ApprovalPolicy, Config, ExecTool, PatchTool, SandboxMode, SandboxSettings, Truncation,
};
use crate::item::HistoryItem;
use crate::picture::{self, Detail};
use crate::prompt::attach::{Picture, Piece, user_message};
use crate::prompt::base::{self, COMPACT_PROMPT};
use crate::prompt::context::{Context as World, ThreadScene};
use crate::prompt::custom;
use crate::prompt::{Mode, Snapshot, base as base_of};
use crate::prompter::{Context, ExecForm, PatchForm, Profile, Prompter};
use crate::thread::{Approval, Sandbox, Standing};
use crate::truncate::Budget;

/// Makes prompts as the configuration wants them.
pub(super) struct HousePrompter {
    /// Shared with whoever gathers what surrounds the thread.
    config: Arc<Config>,
}

impl HousePrompter {
    pub(super) fn new(config: Config) -> Self {
        Self { config: Arc::new(config) }
    }
}

impl Prompter for HousePrompter {
    fn profile(&self, model: &str) -> Profile {
        let entry = self.config.entry_of(model);
        let size = |amount: u64| usize::try_from(amount).unwrap_or(usize::MAX);
        let truncation = match entry.truncation {
            Truncation::Tokens(tokens) => Budget::Tokens(size(tokens)),
            Truncation::Bytes(bytes) => Budget::Bytes(size(bytes)),
        };
        let plan = self.config.tools.get("update_plan").and_then(|plan| plan.get("enabled"));
        let plan = plan.and_then(toml::Value::as_bool).unwrap_or(entry.tools.plan);
        Profile {
            slug: entry.slug,
            window: entry.context_window,
            effective_percent: entry.effective_percent,
            auto_compact_limit: entry.auto_compact_limit,
            exec: match entry.tools.exec {
                ExecTool::Unified => ExecForm::Unified,
                ExecTool::Shell => ExecForm::Shell,
                ExecTool::ShellCommand => ExecForm::ShellCommand,
            },
            patch: match entry.tools.apply_patch {
                PatchTool::Freeform => PatchForm::Freeform,
                PatchTool::Function => PatchForm::Function,
                PatchTool::None => PatchForm::None,
            },
            plan,
            images: entry.images,
            view_image: entry.images && entry.tools.view_image,
            parallel: entry.parallel_tool_calls,
            truncation,
            effort: entry.reasoning.as_ref().and_then(|reasoning| reasoning.effort.clone()),
            summary: entry.reasoning.and_then(|reasoning| reasoning.summary),
            verbosity: self.config.verbosity.clone().or(entry.verbosity),
        }
    }

    fn base(&self, standing: &Standing) -> String {
        if let Some(words) = &standing.base_instructions {
            return words.clone();
        }
        let entry = self.config.entry_of(&standing.model);
        // A file that was there when the thread began may be gone.
        let chosen = base::chosen(&self.config, &entry, Mode::Agent).map(|base| base.text);
        chosen.unwrap_or_else(|_| base_of(&entry, Mode::Agent))
    }

    fn context<'a>(
        &'a self,
        standing: &'a Standing,
        told: Option<&'a Value>,
    ) -> BoxFuture<'a, Context> {
        let (config, scene) = (self.config.clone(), scene(&self.config, standing));
        let told: Snapshot =
            told.and_then(|told| serde_json::from_value(told.clone()).ok()).unwrap_or_default();
        Box::pin(async move {
            let known = told.clone();
            let gather = move || World::gather_after(&config, &scene, &known);
            match tokio::task::spawn_blocking(gather).await {
                Ok(world) => Context {
                    items: world.changes_since(&told),
                    told: serde_json::to_value(world.snapshot()).unwrap_or_default(),
                    warnings: Vec::new(),
                },
                Err(err) => Context {
                    warnings: vec![format!("the context cannot be gathered: {err}")],
                    told: serde_json::to_value(told).unwrap_or_default(),
                    items: Vec::new(),
                },
            }
        })
    }

    fn recalled(&self, standing: &Standing, history: &[HistoryItem]) -> Option<Value> {
        let told = Snapshot::of_history(history, standing.developer_instructions.as_deref());
        serde_json::to_value(told).ok()
    }

    fn user<'a>(
        &'a self,
        standing: &'a Standing,
        input: &'a [Open<UserInput>],
    ) -> BoxFuture<'a, Vec<HistoryItem>> {
        let cwd = standing.cwd.clone();
        let pieces: Vec<Piece> = input.iter().filter_map(|input| piece(input, &cwd)).collect();
        Box::pin(async move {
            if pieces.iter().all(|piece| matches!(piece, Piece::Text(_))) {
                return vec![message(pieces)];
            }
            let read = move || vec![message(pieces)];
            tokio::task::spawn_blocking(read).await.unwrap_or_default()
        })
    }

    fn called(&self, words: &str) -> Result<Option<String>, String> {
        if !words.starts_with(custom::CALL) {
            return Ok(None);
        }
        let prompts = custom::list(&custom::folder(&self.config.home.codex));
        custom::expand(words, &prompts).map_err(|err| {
            let hint = err.hint().map(|hint| format!("; {hint}"));
            format!("{err}{}", hint.unwrap_or_default())
        })
    }

    fn review_model(&self) -> Option<String> {
        self.config.review_model.clone()
    }

    fn compaction(&self) -> String {
        self.config.compact_prompt.clone().unwrap_or_else(|| COMPACT_PROMPT.to_owned())
    }
}

fn scene(config: &Config, standing: &Standing) -> ThreadScene {
    let mut scene = ThreadScene::here(config);
    scene.cwd = standing.cwd.clone();
    scene.developer_instructions = standing.developer_instructions.clone();
    scene.approval_policy = match standing.approval {
        Approval::Untrusted => ApprovalPolicy::Untrusted,
        Approval::OnRequest => ApprovalPolicy::OnRequest,
        Approval::Never => ApprovalPolicy::Never,
        Approval::Granular(kinds) => ApprovalPolicy::Granular(kinds),
    };
    scene.sandbox = settings(&standing.sandbox);
    scene
}

fn settings(sandbox: &Sandbox) -> SandboxSettings {
    match sandbox {
        Sandbox::ReadOnly { network_access } => SandboxSettings {
            network_access: *network_access,
            ..SandboxSettings::of(SandboxMode::ReadOnly)
        },
        Sandbox::DangerFullAccess | Sandbox::ExternalSandbox { .. } => {
            SandboxSettings::of(SandboxMode::DangerFullAccess)
        }
        Sandbox::WorkspaceWrite {
            writable_roots,
            network_access,
            exclude_tmpdir_env_var,
            exclude_slash_tmp,
        } => SandboxSettings {
            mode: SandboxMode::WorkspaceWrite,
            writable_roots: writable_roots.clone(),
            network_access: *network_access,
            exclude_tmpdir_env_var: *exclude_tmpdir_env_var,
            exclude_slash_tmp: *exclude_slash_tmp,
        },
    }
}

fn piece(input: &Open<UserInput>, cwd: &Path) -> Option<Piece> {
    match input {
        Open::Known(UserInput::Text { text, .. }) => Some(Piece::Text(text.clone())),
        Open::Known(UserInput::Image { url, .. }) => Some(Piece::ImageUrl(url.clone())),
        Open::Known(UserInput::LocalImage { path, .. }) => Some(Piece::ImageFile(cwd.join(path))),
        Open::Known(UserInput::Skill { path, .. }) => Some(Piece::TextFile(cwd.join(path))),
        // The words around it name it already.
        Open::Known(UserInput::Mention { .. }) => None,
        Open::Unknown { raw, .. } => {
            let kind = raw["type"].as_str().unwrap_or("something");
            Some(Piece::Text(format!("({kind} was given here, which this engine cannot show)")))
        }
    }
}

/// The message; a file that cannot be read is told of in its place, and the turn goes on.
fn message(pieces: Vec<Piece>) -> HistoryItem {
    let readable = pieces.into_iter().map(|piece| {
        match user_message(std::slice::from_ref(&piece), &picture) {
            Ok(_) => piece,
            Err(err) => {
                let cause = std::error::Error::source(&err).map(|cause| format!(": {cause}"));
                Piece::Text(format!("({err}{})", cause.unwrap_or_default()))
            }
        }
    });
    let readable: Vec<Piece> = readable.collect();
    match user_message(&readable, &picture) {
        Ok(message) => message.into(),
        // A file went away between two looks.
        Err(err) => crate::item::Message::text(crate::item::Role::User, err.to_string()).into(),
    }
}

/// A picture that is fit to be sent.
fn picture(bytes: Vec<u8>) -> Result<Picture, String> {
    let fit = picture::Picture::of(bytes, Detail::High).map_err(|err| err.to_string())?;
    Ok(Picture { media_type: fit.media_type.to_owned(), bytes: fit.bytes })
}
