//! Rows as real servers write them.

use serde_json::{Value, json};

use super::super::ServerModel;
use super::{info, models, props, shown};

fn only(list: &Value) -> ServerModel {
    let mut found = models(list).expect("a list").models;
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

/// Window, greatest window, pictures, tools, chat, in memory.
type Told = (Option<u64>, Option<u64>, Option<bool>, Option<bool>, Option<bool>, Option<bool>);

fn told(model: &ServerModel) -> Told {
    let ServerModel { context_window, max_context_window, images, tools, chat, loaded, .. } = model;
    (*context_window, *max_context_window, *images, *tools, *chat, *loaded)
}

#[test]
fn each_server_has_its_own_word_for_the_window() {
    let (yes, no) = (Some(true), Some(false));
    let rows: Vec<(&str, Value, Told)> = vec![
        ("openai", json!({ "owned_by": "openai" }), (None, None, None, None, None, None)),
        (
            "vllm",
            json!({ "owned_by": "vllm", "max_model_len": 32768 }),
            (Some(32768), None, None, None, None, None),
        ),
        (
            "groq",
            json!({ "context_window": 131_072, "max_completion_tokens": 8192 }),
            (Some(131_072), None, None, None, None, None),
        ),
        (
            "openrouter",
            json!({
                "context_length": 262_144,
                "top_provider": { "context_length": 131_072 },
                "architecture": { "input_modalities": ["text", "image"] },
                "supported_parameters": ["max_tokens"],
            }),
            (Some(131_072), Some(262_144), yes, no, None, None),
        ),
        (
            "mistral",
            json!({
                "max_context_length": 131_072,
                "capabilities": {
                    "completion_chat": true, "function_calling": true, "vision": false,
                },
            }),
            (Some(131_072), Some(131_072), no, yes, yes, None),
        ),
        (
            "llama.cpp",
            json!({ "owned_by": "llamacpp", "meta": { "n_ctx_train": 40960, "n_ctx": 8192 } }),
            (Some(8192), Some(40960), None, None, None, None),
        ),
    ];
    check(rows);
}

#[test]
fn lm_studio_has_two_windows_and_nonsense_is_none() {
    let (yes, no) = (Some(true), Some(false));
    check(vec![
        (
            "lm studio, loaded",
            json!({
                "type": "vlm", "state": "loaded", "max_context_length": 32768,
                "loaded_context_length": 4096, "capabilities": ["tool_use"],
            }),
            // What a list of capabilities leaves out is not there.
            (Some(4096), Some(32768), no, yes, yes, yes),
        ),
        (
            "lm studio, on disk",
            json!({ "type": "embeddings", "state": "not-loaded", "max_context_length": 2048 }),
            (None, Some(2048), None, None, no, no),
        ),
        (
            "nonsense",
            json!({ "context_window": 0, "max_model_len": "many", "context_length": -1 }),
            (None, None, None, None, None, None),
        ),
        (
            "floats",
            json!({ "context_length": 8192.0 }),
            (Some(8192), Some(8192), None, None, None, None),
        ),
    ]);
}

fn check(rows: Vec<(&str, Value, Told)>) {
    for (id, mut row, want) in rows {
        row["id"] = json!(id);
        let model = only(&json!({ "object": "list", "data": [row] }));
        assert_eq!((model.id.as_str(), told(&model)), (id, want), "{id}");
    }
}

#[test]
fn a_list_has_one_of_three_shapes_or_is_none() {
    for list in [
        json!({ "data": [{ "id": "m" }] }),
        json!({ "models": [{ "name": "m", "model": "m" }] }),
        json!({ "models": [{ "key": "m" }] }),
        json!([{ "id": "m" }]),
        json!(["m"]),
    ] {
        assert_eq!(only(&list).id, "m", "{list}");
    }
    assert_eq!(models(&json!({ "data": [] })).expect("a list").models, vec![]);
    for none in [json!({}), json!("m"), json!({ "data": [{ "x": 1 }] }), json!({ "data": "m" })] {
        assert_eq!(models(&none), None, "{none}");
    }
}

#[test]
fn what_is_told_elsewhere_is_read() {
    let ollama = json!({
        "parameters": "temperature 0.7\nnum_ctx                        8192\nstop \"<eos>\"",
        "model_info": { "general.architecture": "qwen3", "qwen3.context_length": 40960 },
        "capabilities": ["completion", "tools", "thinking"],
    });
    let (yes, no) = (Some(true), Some(false));
    assert_eq!(told(&shown("m", &ollama)), (Some(8192), Some(40960), no, yes, yes, None));
    let bare = json!({ "model_info": { "llama.context_length": 8192 } });
    assert_eq!(told(&shown("m", &bare)), (None, Some(8192), None, None, None, None));
    let llama = json!({
        "default_generation_settings": { "n_ctx": 4096 },
        "modalities": { "vision": true, "audio": false },
    });
    assert_eq!(told(&props("m", &llama)), (Some(4096), None, yes, None, None, None));
    let tgi = json!({ "model_id": "m", "max_input_tokens": 4095, "max_total_tokens": 4096 });
    assert_eq!(told(&info("m", &tgi)), (Some(4096), None, None, None, None, None));
}
