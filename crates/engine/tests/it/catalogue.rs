//! Which entry a model's name finds.

use bindery_engine::config::{Catalogue, ExecTool, PatchTool, Placement, WireApi};

use crate::place::Place;

#[test]
fn names_find_their_entries() {
    let catalogue = Catalogue::default();
    #[rustfmt::skip]
    let table = [
        // name                   known  window     patch                 thinks
        ("gpt-5.5",               true,  272_000,   PatchTool::Freeform,  "medium"),
        ("gpt-5.6-sol",           true,  272_000,   PatchTool::Freeform,  "low"),
        ("gpt-5.6-terra",         true,  272_000,   PatchTool::Freeform,  "medium"),
        ("gpt-6.1-terra",         true,  500_000,   PatchTool::Freeform,  "low"),
        ("gpt-5-codex",           true,  272_000,   PatchTool::Freeform,  "medium"),
        ("gpt-5.1-codex-max",     true,  272_000,   PatchTool::Freeform,  "medium"),
        ("gpt-5-mini",            true,  272_000,   PatchTool::Freeform,  "medium"),
        ("codex-mini-latest",     true,  200_000,   PatchTool::Function,  "medium"),
        ("o4-mini",               true,  200_000,   PatchTool::Function,  "medium"),
        ("gpt-4.1",               true,  1_047_576, PatchTool::Function,  "-"),
        ("gpt-4o-mini",           true,  128_000,   PatchTool::Function,  "-"),
        ("gpt-oss:20b",           true,  131_072,   PatchTool::Function,  "medium"),
        ("openai/gpt-oss-20b",    true,  131_072,   PatchTool::Function,  "medium"),
        ("qwen3-coder:30b",       true,  262_144,   PatchTool::Function,  "-"),
        ("never-heard-of",        false, 272_000,   PatchTool::None,      ""),
        ("",                      false, 272_000,   PatchTool::None,      ""),
    ];
    for (slug, known, window, patch, effort) in table {
        let entry = catalogue.model(slug);
        let thinks = entry.reasoning.map_or("-".to_owned(), |r| r.effort.unwrap_or_default());
        let found = (entry.known, entry.context_window, entry.tools.apply_patch, thinks.as_str());
        assert_eq!(found, (known, window, patch, effort), "{slug}");
        assert_eq!(entry.slug, slug);
    }
}

#[test]
fn every_row_of_ours_is_sound() {
    let catalogue = Catalogue::default();
    for slug in catalogue.model_slugs() {
        let entry = catalogue.model(slug.trim_end_matches('*'));
        assert!(entry.known && entry.context_window >= 8_192, "{slug}");
        let reasoning = entry.reasoning.unwrap_or_default();
        let effort = reasoning.effort.into_iter();
        assert!(effort.into_iter().all(|effort| reasoning.efforts.contains(&effort)), "{slug}");
    }
    let ids: Vec<_> = catalogue.provider_ids().collect();
    assert_eq!(ids, ["azure", "demo", "lmstudio", "ollama", "openai", "vllm"]);
}

#[test]
fn the_fallback_is_that_of_codex() {
    let entry = Catalogue::default().model("never-heard-of");
    assert_eq!((entry.usable_window(), entry.compact_at()), (258_400, 244_800));
    assert_eq!((entry.tools.exec, entry.verbosity), (ExecTool::Unified, None));
    assert_eq!(entry.reasoning.unwrap().summary.as_deref(), Some("auto"));
}

#[test]
fn a_user_adds_models() {
    let place = Place::new();
    place.write(
        "bindery/bindery.toml",
        "[[models]]\nslug = 'house-*'\nlike = 'gpt-oss*'\ncontext_window = 64000\n\
         [[models]]\nslug = 'gpt-5.5'\nlike = 'house-*'\nplan = false\n",
    );
    let catalogue = place.load(&["model=house-7b"]).unwrap().catalogue;
    let entry = catalogue.model("house-7b");
    assert_eq!((entry.known, entry.context_window, entry.images), (true, 64_000, false));
    let entry = catalogue.model("gpt-5.5");
    assert_eq!((entry.context_window, entry.tools.plan), (64_000, false));
}

#[test]
fn a_circle_of_likes_ends() {
    let place = Place::new();
    place.write(
        "bindery/bindery.toml",
        "[[models]]\nslug = 'a'\nlike = 'b'\n[[models]]\nslug = 'b'\nlike = 'a'\n",
    );
    let entry = place.load(&["model=a"]).unwrap().entry;
    assert_eq!((entry.known, entry.context_window), (true, 272_000));
    place.write("bindery/bindery.toml", "[[models]]\nslug = 'a'\ncontext_widow = 1\n");
    insta::assert_snapshot!(place.failure(&[]));
}

#[test]
fn the_wire_says_where_the_base_prompt_goes() {
    let catalogue = Catalogue::default();
    let at = |slug: &str, wire| catalogue.model(slug).placement_on(wire);
    assert_eq!(at("gpt-5.5", WireApi::Responses), Placement::Developer);
    assert_eq!(at("gpt-5.5", WireApi::Chat), Placement::System);
    assert_eq!(at("gpt-oss:20b", WireApi::Responses), Placement::Instructions);
}
