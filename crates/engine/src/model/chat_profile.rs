//! What a Chat Completions server and the model's chat template accept.
//!
//! Every field is data: `chat_profiles.toml` sets it for servers and model families, a user for
//! a provider (`[model_providers.NAME.chat]`). The code never asks which server it talks to.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// Declares the profile, the partial form that settings are read into, and how one is laid over
/// the other.
macro_rules! chat_profile {
    ($($(#[$doc:meta])+ $field:ident: $type:ty = $default:expr;)+) => {
        /// Everything that differs between servers and model families on the Chat wire.
        #[derive(Clone, Debug, PartialEq)]
        pub struct ChatProfile {
            $($(#[$doc])+ pub $field: $type,)+
        }

        /// A profile as it is written down: what is left out stays as it was.
        #[derive(Clone, Debug, Default, PartialEq, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct ChatProfileFields {
            $($field: Option<$type>,)+
        }

        impl Default for ChatProfile {
            fn default() -> Self {
                Self { $($field: $default,)+ }
            }
        }

        impl ChatProfile {
            /// The names of all fields.
            pub const FIELDS: &'static [&'static str] = &[$(stringify!($field),)+];

            /// Lays what is written down over this profile.
            pub fn set(&mut self, fields: &ChatProfileFields) {
                $(if let Some(value) = &fields.$field {
                    self.$field.clone_from(value);
                })+
            }
        }
    };
}

chat_profile! {
    /// Where system messages may stand.
    system: SystemPlacement = SystemPlacement::First;
    /// The role of a developer's message.
    developer_role: DeveloperRole = DeveloperRole::System;
    /// Whether user and assistant must take turns: neighbours of one role are merged.
    alternate_roles: bool = false;
    /// Whether a user's message may not follow a tool's: a short assistant message is put between.
    bridge_tool_to_user: bool = false;
    /// Whether an assistant message may hold one call only: parallel calls are told in a row.
    single_tool_calls: bool = false;
    /// Whether text and calls of the model need messages of their own.
    split_text_from_calls: bool = false;
    /// The form of the ids of calls.
    tool_call_ids: ToolCallIds = ToolCallIds::Any;
    /// What stands for the text of a message that only calls.
    empty_content: EmptyContent = EmptyContent::Empty;
    /// Whether texts may not be empty: a dash stands in for each.
    non_empty_text: bool = false;
    /// Whether a tool's message names the tool.
    tool_message_name: bool = false;
    /// Whether the server knows no tools: they are described in the prompt and called in text.
    tools_as_text: bool = false;
    /// Keywords of JSON Schema that are left out of the tools' parameters.
    schema_drop: Vec<String> = Vec::new();
    /// Whether every parameter of a tool needs a description, if only an empty one.
    describe_parameters: bool = false;
    /// Whether `parallel_tool_calls` may be sent.
    send_parallel_tool_calls: bool = true;
    /// The field in which thoughts are sent back; empty sends none.
    reasoning_field: String = "reasoning".to_owned();
    /// Which thoughts are sent back.
    reasoning_scope: ReasoningScope = ReasoningScope::Turn;
    /// The field of the reasoning effort, with dots for nested ones; empty sends none.
    effort_field: String = "reasoning_effort".to_owned();
    /// Whether usage is asked for in a stream (`stream_options`).
    stream_usage: bool = true;
    /// How an answer in JSON is asked for.
    structured_output: StructuredOutput = StructuredOutput::JsonSchema;
    /// The name of the limit of an answer's length.
    max_tokens_field: String = "max_tokens".to_owned();
    /// The limit; none asks for no limit.
    max_tokens: Option<u64> = None;
    /// The temperature; none leaves it to the server.
    temperature: Option<f64> = None;
    /// Laid over the body of every request; `false` for a key of ours does not remove it.
    extra_body: BTreeMap<String, Value> = BTreeMap::new();
    /// Sent with every request.
    extra_headers: BTreeMap<String, String> = BTreeMap::new();
    /// Further reasons to stop that mean a whole answer.
    finish_reasons: Vec<String> = Vec::new();
}

/// Where system messages may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SystemPlacement {
    /// Anywhere.
    Anywhere,
    /// First, and only one; later ones are told as the user's.
    First,
    /// Nowhere: the first one is told at the beginning of the first user message.
    Unsupported,
}

/// What a developer's message is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeveloperRole {
    /// As it is.
    Developer,
    /// As the system's, where a system message may stand there.
    System,
    /// As the user's, where it is not among the first.
    User,
}

/// The form of the ids of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolCallIds {
    /// As the server or we made them.
    Any,
    /// Nine letters and digits.
    Alnum9,
}

/// What stands for a text that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EmptyContent {
    /// `null`.
    Null,
    /// `""`.
    Empty,
    /// No `content` at all.
    Omit,
}

/// Which thoughts are sent back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReasoningScope {
    /// Those since the last user message.
    Turn,
    /// All.
    All,
}

/// How an answer in JSON is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StructuredOutput {
    /// `response_format` with the schema.
    JsonSchema,
    /// `response_format` without it; the schema is told in the prompt.
    JsonObject,
    /// In the prompt alone.
    Prompt,
}
