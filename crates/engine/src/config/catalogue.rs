//! The table of models and providers: ours, and what the user adds to it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use serde::Deserialize;

use super::model::{
    BaseKind, ExecTool, ModelEntry, PatchTool, Placement, ReasoningSettings, ToolSet, Truncation,
};
use super::provider::{MOST_RETRIES, ProviderEntry, WireApi};
use crate::model::{ChatProfileFields, ChatProfileRow, ChatProfiles};

/// Rows of models and providers, the user's before ours. Only theirs are kept here, and shared:
/// every thread has its own settings.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    models: Arc<[ModelRow]>,
    /// What they leave out is taken from ours already.
    providers: Arc<BTreeMap<String, ProviderRow>>,
    chat_profiles: Arc<[ChatProfileRow]>,
}

/// A model as it is written down; what is left out comes from elsewhere.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ModelRow {
    slug: String,
    /// False where the row names no model that anybody could choose.
    listed: Option<bool>,
    like: Option<String>,
    context_window: Option<u64>,
    effective_percent: Option<u64>,
    auto_compact_limit: Option<u64>,
    placement: Option<Placement>,
    base: Option<BaseKind>,
    exec: Option<ExecTool>,
    apply_patch: Option<PatchTool>,
    plan: Option<bool>,
    view_image: Option<bool>,
    truncation: Option<Truncation>,
    wire_api: Option<WireApi>,
    parallel_tool_calls: Option<bool>,
    /// False where the model takes no word about thinking, whatever `reasoning` says.
    thinks: Option<bool>,
    reasoning: Option<ReasoningSettings>,
    /// Empty where the model takes no word about it.
    verbosity: Option<String>,
    images: Option<bool>,
}

/// A provider as it is written down. Codex's words, and four of ours at the end.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ProviderRow {
    name: Option<String>,
    base_url: Option<String>,
    wire_api: Option<WireApi>,
    env_key: Option<String>,
    env_key_instructions: Option<String>,
    experimental_bearer_token: Option<String>,
    requires_openai_auth: Option<bool>,
    query_params: Option<BTreeMap<String, String>>,
    http_headers: Option<BTreeMap<String, String>>,
    env_http_headers: Option<BTreeMap<String, String>>,
    request_max_retries: Option<u32>,
    stream_max_retries: Option<u32>,
    stream_idle_timeout_ms: Option<u64>,
    key_header: Option<String>,
    needs_key: Option<bool>,
    default_model: Option<String>,
    chat: Option<ChatProfileFields>,
}

#[derive(Deserialize)]
struct File {
    fallback: ModelRow,
    models: Vec<ModelRow>,
    model_providers: BTreeMap<String, ProviderRow>,
}

/// Our table; read once, because every thread that starts needs it.
static OURS: LazyLock<File> = LazyLock::new(|| {
    toml::from_str(include_str!("catalogue.toml")).expect("the catalogue is checked by a test")
});

/// How many rows a `like` may lead through; more is a circle.
const DEPTH: usize = 8;

impl Catalogue {
    /// Our table with the user's rows before it.
    pub(super) fn with(
        models: Vec<ModelRow>,
        providers: BTreeMap<String, ProviderRow>,
        chat_profiles: Vec<ChatProfileRow>,
    ) -> Self {
        let providers = providers.into_iter().map(|(id, row)| {
            let known = OURS.model_providers.get(&id).cloned().unwrap_or_default();
            (id, row.over(known))
        });
        let providers = Arc::new(providers.collect());
        Self { models: models.into(), providers, chat_profiles: chat_profiles.into() }
    }

    /// What is known of a model; the fallback where nothing is.
    pub fn model(&self, slug: &str) -> ModelEntry {
        let found = self.find(slug);
        let known = found.is_some();
        let mut row = found.cloned().unwrap_or_default();
        for _ in 0..DEPTH {
            let Some(like) = row.like.take() else { break };
            let Some(base) = self.rows().find(|base| base.slug == like) else { break };
            row = row.over(base.clone());
        }
        row.over(OURS.fallback.clone()).entry(slug, known)
    }

    /// What is known of a provider, if it is one.
    pub fn provider(&self, id: &str, wire: Option<WireApi>) -> Option<ProviderEntry> {
        let row = self.providers.get(id).or_else(|| OURS.model_providers.get(id));
        Some(row?.clone().entry(id, wire))
    }

    /// What a provider's server and its models accept on the Chat wire.
    pub fn chat_profiles(&self, provider: &ProviderEntry) -> ChatProfiles {
        let own = provider.chat.clone();
        ChatProfiles::choose(&provider.id, &provider.base_url, &self.chat_profiles, own)
    }

    /// The names of all providers.
    pub fn provider_ids(&self) -> impl Iterator<Item = &str> {
        let ids = self.providers.keys().chain(OURS.model_providers.keys());
        ids.map(String::as_str).collect::<BTreeSet<_>>().into_iter()
    }

    /// The names of all models. A row that describes every name with one beginning names none, nor
    /// does one that others are only like.
    pub fn model_slugs(&self) -> impl Iterator<Item = &str> {
        names(self.rows())
    }

    /// The names of the models that the user has described.
    pub fn own_model_slugs(&self) -> impl Iterator<Item = &str> {
        names(self.models.iter())
    }

    fn rows(&self) -> impl DoubleEndedIterator<Item = &ModelRow> {
        self.models.iter().chain(&OURS.models)
    }

    fn find(&self, slug: &str) -> Option<&ModelRow> {
        let exact = self.rows().find(|row| row.slug == slug);
        let fits = |row: &&ModelRow| {
            row.slug.strip_suffix('*').is_some_and(|beginning| slug.starts_with(beginning))
        };
        // Of equals the first is taken, which is the user's.
        let longest = || {
            let beginnings = self.rows().filter(fits).rev();
            beginnings.max_by_key(|row| row.slug.len())
        };
        exact.or_else(longest)
    }
}

fn names<'a>(rows: impl Iterator<Item = &'a ModelRow>) -> impl Iterator<Item = &'a str> {
    let rows = rows.filter(|row| row.listed.unwrap_or(true));
    rows.map(|row| row.slug.as_str()).filter(|slug| !slug.ends_with('*'))
}

macro_rules! over {
    ($row:ident, $base:ident, [$($own:ident),*], $($field:ident),+ $(,)?) => {
        Self { $($own: $row.$own,)* $($field: $row.$field.or($base.$field),)+ }
    };
}

impl ModelRow {
    /// This row, with what it leaves out taken from another.
    #[rustfmt::skip]
    fn over(self, base: Self) -> Self {
        let row = self;
        over!(
            row, base, [slug, listed], like, context_window, effective_percent, auto_compact_limit,
            placement,
            base, exec, apply_patch, plan, view_image, truncation, wire_api,
            parallel_tool_calls, thinks, reasoning, verbosity, images,
        )
    }

    fn entry(self, slug: &str, known: bool) -> ModelEntry {
        ModelEntry {
            slug: slug.to_owned(),
            known,
            context_window: self.context_window.unwrap_or(32_768),
            effective_percent: self.effective_percent.unwrap_or(95).clamp(1, 100),
            auto_compact_limit: self.auto_compact_limit,
            placement: self.placement.unwrap_or(Placement::Developer),
            base: self.base.unwrap_or(BaseKind::Full),
            tools: ToolSet {
                exec: self.exec.unwrap_or(ExecTool::Unified),
                apply_patch: self.apply_patch.unwrap_or(PatchTool::None),
                plan: self.plan.unwrap_or(true),
                view_image: self.view_image.unwrap_or(false),
            },
            truncation: self.truncation.unwrap_or(Truncation::Bytes(10_000)),
            wire_api: self.wire_api,
            parallel_tool_calls: self.parallel_tool_calls.unwrap_or(false),
            reasoning: self.reasoning.filter(|_| self.thinks.unwrap_or(true)),
            verbosity: self.verbosity.filter(|verbosity| !verbosity.is_empty()),
            images: self.images.unwrap_or(false),
        }
    }
}

impl ProviderRow {
    /// This row, with what it leaves out taken from another.
    #[rustfmt::skip]
    fn over(self, base: Self) -> Self {
        let row = self;
        over!(
            row, base, [], name, base_url, wire_api, env_key, env_key_instructions,
            experimental_bearer_token, requires_openai_auth, query_params, http_headers,
            env_http_headers, request_max_retries, stream_max_retries, stream_idle_timeout_ms,
            key_header, needs_key, default_model, chat,
        )
    }

    fn entry(self, id: &str, wire: Option<WireApi>) -> ProviderEntry {
        let wants_key = self.needs_key.or(self.requires_openai_auth).unwrap_or(false);
        let env_key = self.env_key.or_else(|| {
            self.requires_openai_auth.unwrap_or(false).then(|| "OPENAI_API_KEY".to_owned())
        });
        ProviderEntry {
            id: id.to_owned(),
            name: self.name.unwrap_or_else(|| id.to_owned()),
            base_url: self.base_url.unwrap_or_default().trim_end_matches('/').to_owned(),
            wire_api: self.wire_api.or(wire).unwrap_or(WireApi::Responses),
            env_key,
            env_key_instructions: self.env_key_instructions,
            bearer_token: self.experimental_bearer_token,
            needs_key: wants_key,
            query_params: self.query_params.unwrap_or_default(),
            http_headers: self.http_headers.unwrap_or_default(),
            env_http_headers: self.env_http_headers.unwrap_or_default(),
            key_header: self.key_header,
            request_max_retries: self.request_max_retries.unwrap_or(4).min(MOST_RETRIES),
            stream_max_retries: self.stream_max_retries.unwrap_or(5).min(MOST_RETRIES),
            stream_idle_timeout_ms: self.stream_idle_timeout_ms.unwrap_or(300_000),
            default_model: self.default_model,
            chat: self.chat.unwrap_or_default(),
        }
    }
}
