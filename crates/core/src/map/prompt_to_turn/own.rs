//! Our own options among a call's provider options.

use serde_json::{Map, Value};

use super::detail;
use super::notes::Notes;
use crate::ids::ThreadId;
use crate::spec::{Metadata, PROVIDER_KEY};

/// Keys that options and metadata are read under; an earlier key wins.
///
/// The last is the npm provider whose histories can be taken over.
const KEYS: [&str; 3] = [PROVIDER_KEY, "bindery", "@janole/ai-sdk-provider-codex-asp"];

/// Our options of a call, read.
#[derive(Debug, Default)]
pub(super) struct Own {
    pub(super) thread_id: Option<ThreadId>,
    pub(super) fork: bool,
    pub(super) as_base: bool,
    pub(super) base_instructions: Option<String>,
    pub(super) developer_instructions: Option<String>,
    pub(super) model: Option<String>,
    pub(super) model_provider: Option<String>,
    pub(super) cwd: Option<String>,
    pub(super) approval_policy: Option<Value>,
    pub(super) approvals_reviewer: Option<String>,
    pub(super) sandbox: Option<String>,
    pub(super) sandbox_policy: Option<Value>,
    pub(super) ephemeral: Option<bool>,
    pub(super) config: Option<Map<String, Value>>,
    pub(super) effort: Option<String>,
    pub(super) summary: Option<String>,
    pub(super) image_detail: Option<String>,
    pub(super) parse_mentions: bool,
    pub(super) thread_extra: Map<String, Value>,
    pub(super) turn_extra: Map<String, Value>,
}

/// Reads the options of a call; each that is unknown or of a wrong type is noted.
pub(super) fn read(metadata: Option<&Metadata>, notes: &mut Notes<'_>) -> Own {
    note_shapes(metadata, notes);
    let mut given = Given { left: merged(metadata), notes };
    let mut own = Own {
        thread_id: given.text("threadId").map(ThreadId::new),
        fork: given.flag("fork").unwrap_or(false),
        as_base: given.word("instructions", &["developer", "base"]).is_some_and(|w| w == "base"),
        base_instructions: given.text("baseInstructions"),
        developer_instructions: given.text("developerInstructions"),
        model: given.text("model"),
        model_provider: given.text("modelProvider"),
        cwd: given.text("cwd"),
        approval_policy: given.either("approvalPolicy"),
        approvals_reviewer: given.text("approvalsReviewer"),
        sandbox: given.word("sandbox", &["read-only", "workspace-write", "danger-full-access"]),
        sandbox_policy: given.object("sandboxPolicy").map(Value::Object),
        ephemeral: given.flag("ephemeral"),
        config: given.object("config"),
        effort: given.text("effort"),
        summary: given.word("summary", &["auto", "concise", "detailed", "none"]),
        image_detail: given.word("imageDetail", &detail::WORDS),
        parse_mentions: given.flag("parseMentions").unwrap_or(false),
        thread_extra: given.object("threadExtra").unwrap_or_default(),
        turn_extra: given.object("turnExtra").unwrap_or_default(),
    };
    // The names that providers of plain models use.
    let effort = given.text("reasoningEffort");
    own.effort = own.effort.or(effort);
    let summary = given.word("reasoningSummary", &["auto", "concise", "detailed", "none"]);
    own.summary = own.summary.or(summary);
    own.image_detail = own.image_detail.or_else(|| detail::openai(metadata));
    given.finish();
    own
}

/// Options that are no object cannot be read at all.
fn note_shapes(metadata: Option<&Metadata>, notes: &mut Notes<'_>) {
    for key in KEYS {
        let given = metadata.and_then(|metadata| metadata.get(key));
        if given.is_some_and(|given| !given.is_object() && !given.is_null()) {
            notes.unsupported(format!("providerOptions.{key}"), "it must be an object; left out");
        }
    }
}

/// One of our options on a message or a part, null taken for absent.
pub(super) fn find<'a>(metadata: Option<&'a Metadata>, name: &str) -> Option<&'a Value> {
    let metadata = metadata?;
    KEYS.iter().filter_map(|key| metadata.get(*key)?.get(name)).find(|value| !value.is_null())
}

/// One of our options that is text.
pub(super) fn find_text<'a>(metadata: Option<&'a Metadata>, name: &str) -> Option<&'a str> {
    find(metadata, name)?.as_str().filter(|text| !text.is_empty())
}

/// Our options under all keys as one object.
pub(super) fn merged(metadata: Option<&Metadata>) -> Map<String, Value> {
    let mut all = Map::new();
    let objects = KEYS.iter().rev().filter_map(|key| metadata?.get(*key)?.as_object());
    objects.for_each(|object| all.extend(object.clone()));
    all.retain(|_, value| !value.is_null());
    all
}

/// Options not read yet.
struct Given<'n, 'c> {
    left: Map<String, Value>,
    notes: &'n mut Notes<'c>,
}

impl Given<'_, '_> {
    fn text(&mut self, name: &str) -> Option<String> {
        self.take(name, "a text that is not empty", |value| {
            value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
        })
    }

    fn flag(&mut self, name: &str) -> Option<bool> {
        self.take(name, "true or false", Value::as_bool)
    }

    fn object(&mut self, name: &str) -> Option<Map<String, Value>> {
        self.take(name, "an object", |value| value.as_object().cloned())
    }

    fn either(&mut self, name: &str) -> Option<Value> {
        self.take(name, "a word or an object", |value| {
            (value.is_string() || value.is_object()).then(|| value.clone())
        })
    }

    fn word(&mut self, name: &str, words: &[&str]) -> Option<String> {
        self.take(name, &format!("one of {}", words.join(", ")), |value| {
            value.as_str().filter(|word| words.contains(word)).map(str::to_owned)
        })
    }

    fn take<T>(
        &mut self,
        name: &str,
        want: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Option<T> {
        let value = self.left.remove(name)?;
        let taken = read(&value);
        if taken.is_none() {
            let feature = format!("providerOptions.{PROVIDER_KEY}.{name}");
            self.notes.unsupported(feature, format!("it must be {want}; left out"));
        }
        taken
    }

    fn finish(self) {
        for name in self.left.keys() {
            let feature = format!("providerOptions.{PROVIDER_KEY}.{name}");
            self.notes.unsupported(
                feature,
                "no such option; Codex's own parameters go into `threadExtra` or `turnExtra`",
            );
        }
    }
}
