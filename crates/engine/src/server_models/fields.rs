//! The words in which servers describe a model.

use std::collections::HashSet;

use serde_json::Value;

use super::{ServerModel, ServerModels};

/// A list under way: what is known so far, and who seems to serve it.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Found {
    pub(super) models: Vec<ServerModel>,
    pub(super) notes: Vec<String>,
    /// The `owned_by` of the first model that has one.
    pub(super) owner: String,
}

impl Found {
    /// Whether the window of some model that answers is still unknown.
    pub(super) fn lacks_windows(&self) -> bool {
        let lacks = |model: &ServerModel| model.context_window.is_none();
        self.models.iter().any(|model| lacks(model) && model.chat != Some(false))
    }

    /// Lays what is known of one model over it; what is not known stays.
    pub(super) fn learn(&mut self, more: ServerModel) {
        let Some(model) = self.models.iter_mut().find(|model| model.id == more.id) else { return };
        model.context_window = more.context_window.or(model.context_window);
        model.max_context_window = more.max_context_window.or(model.max_context_window);
        model.images = more.images.or(model.images);
        model.tools = more.tools.or(model.tools);
        model.chat = more.chat.or(model.chat);
        model.loaded = more.loaded.or(model.loaded);
    }

    pub(super) fn into_models(self) -> ServerModels {
        let mut seen = HashSet::new();
        let models = self.models.into_iter().filter(|model| seen.insert(model.id.clone()));
        ServerModels { models: models.collect(), notes: self.notes }
    }
}

/// `{data: […]}` of most, `{models: […]}` of Ollama's and LM Studio's own, the bare list of
/// Together; none where it is none of them.
pub(super) fn models(list: &Value) -> Option<Found> {
    let rows = [&list["data"], &list["models"], list].into_iter().find_map(Value::as_array)?;
    let owner = rows.iter().find_map(|row| row["owned_by"].as_str()).unwrap_or_default();
    let models: Vec<ServerModel> = rows.iter().filter_map(model).collect();
    // A list whose rows name nothing is none of ours.
    (rows.is_empty() || !models.is_empty()).then(|| Found {
        models,
        notes: Vec::new(),
        owner: owner.to_owned(),
    })
}

fn model(row: &Value) -> Option<ServerModel> {
    let name = ["id", "key", "model", "name"].into_iter().find_map(|key| row[key].as_str());
    let id = name.or_else(|| row.as_str()).filter(|id| !id.is_empty())?;
    Some(ServerModel {
        id: id.to_owned(),
        context_window: window(row),
        max_context_window: max_window(row),
        images: images(row),
        tools: tools(row),
        chat: chat(row),
        loaded: loaded(row),
    })
}

/// What the server serves it with.
fn window(row: &Value) -> Option<u64> {
    let said = [
        // LM Studio, of a model in memory.
        &row["loaded_context_length"],
        // llama.cpp.
        &row["meta"]["n_ctx"],
        // vLLM and SGLang.
        &row["max_model_len"],
        // Groq.
        &row["context_window"],
        // OpenRouter: what its usual host serves, then what the model has; Together, Ollama's `ps`.
        &row["top_provider"]["context_length"],
        &row["context_length"],
        // LiteLLM and Gemini.
        &row["max_input_tokens"],
        &row["inputTokenLimit"],
    ];
    let served = said.into_iter().find_map(count);
    // Mistral has no other word; with LM Studio it is what could be loaded.
    served.or_else(|| row["state"].is_null().then(|| count(&row["max_context_length"])).flatten())
}

fn max_window(row: &Value) -> Option<u64> {
    let said = [&row["meta"]["n_ctx_train"], &row["max_context_length"], &row["context_length"]];
    said.into_iter().find_map(count)
}

fn images(row: &Value) -> Option<bool> {
    let inputs = row["architecture"]["input_modalities"].as_array();
    let inputs = inputs.map(|inputs| inputs.iter().any(|input| input == "image"));
    // Mistral and LM Studio 0.4.
    let capable = row["capabilities"]["vision"].as_bool();
    let listed = capability(row, "vision");
    let kind = row["type"].as_str().filter(|kind| matches!(*kind, "llm" | "vlm"));
    inputs.or(capable).or(listed).or_else(|| Some(kind? == "vlm"))
}

fn tools(row: &Value) -> Option<bool> {
    let parameters = row["supported_parameters"].as_array();
    let parameters = parameters.map(|all| all.iter().any(|parameter| parameter == "tools"));
    let capabilities = &row["capabilities"];
    let capable = capabilities["function_calling"].as_bool();
    let capable = capable.or_else(|| capabilities["trained_for_tool_use"].as_bool());
    let listed = capability(row, "tools").filter(|has| *has);
    parameters.or(capable).or(listed).or_else(|| capability(row, "tool_use"))
}

fn chat(row: &Value) -> Option<bool> {
    let capable = row["capabilities"]["completion_chat"].as_bool();
    // LM Studio's and Together's kinds.
    let kind = match row["type"].as_str() {
        Some("llm" | "vlm" | "chat" | "language") => Some(true),
        Some("embedding" | "embeddings" | "image" | "audio" | "rerank" | "moderation") => {
            Some(false)
        }
        _ => None,
    };
    capable.or(kind).or_else(|| capability(row, "completion"))
}

fn loaded(row: &Value) -> Option<bool> {
    let state = row["state"].as_str().map(|state| state == "loaded");
    state.or_else(|| Some(!row["loaded_instances"].as_array()?.is_empty()))
}

/// Whether a list of capabilities names this one; none where there is no such list.
fn capability(row: &Value, name: &str) -> Option<bool> {
    let all = row["capabilities"].as_array()?;
    Some(all.iter().any(|capability| capability == name))
}

/// Ollama's `/api/show`.
pub(super) fn shown(id: &str, shown: &Value) -> ServerModel {
    let parameters = shown["parameters"].as_str().unwrap_or_default();
    let set = parameters.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        (words.next() == Some("num_ctx")).then(|| words.next()?.parse().ok())?
    });
    let facts = shown["model_info"].as_object().into_iter().flatten();
    let most = facts.filter(|(key, _)| key.ends_with(".context_length"));
    ServerModel {
        id: id.to_owned(),
        context_window: set,
        max_context_window: most.map(|(_, value)| value).find_map(count),
        images: capability(shown, "vision"),
        tools: capability(shown, "tools"),
        chat: capability(shown, "completion"),
        loaded: None,
    }
}

/// llama.cpp's `/props`, which are those of the one model it serves.
pub(super) fn props(id: &str, props: &Value) -> ServerModel {
    let settings = &props["default_generation_settings"];
    let window = [&settings["n_ctx"], &props["n_ctx"]].into_iter().find_map(count);
    let images = props["modalities"]["vision"].as_bool();
    ServerModel { id: id.to_owned(), context_window: window, images, ..ServerModel::default() }
}

/// The `/info` of text-generation-inference, which serves one model.
pub(super) fn info(id: &str, info: &Value) -> ServerModel {
    let window = count(&info["max_total_tokens"]);
    ServerModel { id: id.to_owned(), context_window: window, ..ServerModel::default() }
}

/// A number of tokens; servers write some as floats, and nought for what they do not know.
fn count(value: &Value) -> Option<u64> {
    let whole = || value.as_f64().filter(|n| n.fract() == 0.0 && (1.0..1e15).contains(n));
    #[expect(clippy::cast_sign_loss, clippy::cast_possible_truncation, reason = "it was checked")]
    let count = value.as_u64().or_else(|| whole().map(|n| n as u64));
    count.filter(|count| *count > 0)
}

#[cfg(test)]
mod tests;
