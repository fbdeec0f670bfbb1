//! What servers tell at addresses of their own.

use futures_util::StreamExt;
use serde_json::{Value, json};

use super::ListFault;
use super::fetch::Fetcher;
use super::fields::{self, Found};

/// Models of Ollama's that are asked about one by one; whoever has more is told so.
const MOST_SHOWN: usize = 64;

/// Requests that run beside each other.
const BESIDE: usize = 8;

/// The servers that tell more elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Ollama,
    LmStudio,
    LlamaCpp,
    TextGeneration,
}

/// The list of a server that has none where all others do.
pub(super) async fn other_list(fetcher: &Fetcher) -> Option<Found> {
    for path in [&["api", "tags"][..], &["api", "v0", "models"]] {
        if let Ok(list) = fetcher.get(fetcher.rooted(path)).await
            && let Some(found) = fields::models(&list)
        {
            return Some(found);
        }
    }
    None
}

/// Learns what the list leaves out.
pub(super) async fn complete(fetcher: &Fetcher, found: &mut Found) {
    for kind in kinds(fetcher, found) {
        if found.models.is_empty() || kind != Kind::Ollama && !found.lacks_windows() {
            continue;
        }
        match kind {
            Kind::Ollama => ollama(fetcher, found).await,
            Kind::LmStudio => lm_studio(fetcher, found).await,
            Kind::LlamaCpp => only_model(fetcher, found, &["props"], fields::props).await,
            Kind::TextGeneration => only_model(fetcher, found, &["info"], fields::info).await,
        }
    }
}

/// Who it may be. Servers of the wide world have no such addresses; one that is nearby and does not
/// say who it is, is asked for all of them.
fn kinds(fetcher: &Fetcher, found: &Found) -> Vec<Kind> {
    match found.owner.as_str() {
        "library" => vec![Kind::Ollama],
        "organization_owner" => vec![Kind::LmStudio],
        "llamacpp" => vec![Kind::LlamaCpp],
        "vllm" | "sglang" => Vec::new(),
        _ if fetcher.is_nearby() => {
            vec![Kind::Ollama, Kind::LmStudio, Kind::LlamaCpp, Kind::TextGeneration]
        }
        _ => Vec::new(),
    }
}

async fn ollama(fetcher: &Fetcher, found: &mut Found) {
    // What is in memory says with how much of a window; whoever has no such page is no Ollama.
    let Ok(running) = fetcher.get(fetcher.rooted(&["api", "ps"])).await else { return };
    if !running["models"].is_array() {
        return;
    }
    let ids: Vec<String> = found.models.iter().map(|model| model.id.clone()).collect();
    if ids.len() > MOST_SHOWN {
        let left = ids.len() - MOST_SHOWN;
        found.notes.push(format!("{left} models were not asked about one by one"));
    }
    let shown = futures_util::stream::iter(ids.into_iter().take(MOST_SHOWN)).map(|id| async move {
        let url = fetcher.rooted(&["api", "show"]);
        let shown = fetcher.post(url, &json!({ "model": id })).await;
        (id, shown)
    });
    let shown: Vec<_> = shown.buffer_unordered(BESIDE).collect().await;
    for (id, shown) in shown {
        match shown {
            Ok(shown) => found.learn(fields::shown(&id, &shown)),
            Err(error) => found.notes.push(format!("`{id}`: {error}")),
        }
    }
    for mut model in fields::models(&running).map(|list| list.models).unwrap_or_default() {
        model.max_context_window = None;
        model.loaded = Some(true);
        found.learn(model);
    }
}

async fn lm_studio(fetcher: &Fetcher, found: &mut Found) {
    let list = fetcher.get(fetcher.rooted(&["api", "v0", "models"])).await;
    let list = note(found, list);
    for model in list.and_then(|list| fields::models(&list)).unwrap_or_default().models {
        found.learn(model);
    }
}

/// What a server of one model says of it.
async fn only_model(
    fetcher: &Fetcher,
    found: &mut Found,
    path: &[&str],
    read: fn(&str, &Value) -> super::ServerModel,
) {
    let [model] = &found.models[..] else { return };
    let id = model.id.clone();
    let told = fetcher.get(fetcher.rooted(path)).await;
    if let Some(told) = note(found, told) {
        found.learn(read(&id, &told));
    }
}

/// That a server has no such address is no news; anything else that went wrong is.
fn note(found: &mut Found, told: Result<Value, super::ListError>) -> Option<Value> {
    match told {
        Ok(told) => Some(told),
        Err(error) => {
            if error.fault == ListFault::Slow {
                found.notes.push(error.to_string());
            }
            None
        }
    }
}
