//! The API document itself: valid for those who read such documents for a living.

use std::collections::BTreeSet;
use std::path::Path;

use bindery_daemon::http::{openapi, routes};
use bindery_testkit::api_tools::{Npm, Python, run};
use serde_json::Value;

/// All operations of the document.
fn operations(document: &Value) -> Vec<(&String, &String, &Value)> {
    let paths = document["paths"].as_object().unwrap();
    let methods = paths.iter().flat_map(|(path, methods)| {
        methods.as_object().unwrap().iter().map(move |(method, one)| (path, method, one))
    });
    methods.collect()
}

#[test]
fn every_route_is_an_operation_with_a_name_of_its_own() {
    let document = openapi::document();
    let all = operations(&document);
    let named: BTreeSet<&str> =
        all.iter().map(|(.., one)| one["operationId"].as_str().unwrap()).collect();
    assert_eq!(named.len(), all.len(), "a name is there twice");
    let verb_noun = |name: &str| {
        name.contains('_') && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
    };
    assert!(named.iter().all(|name| verb_noun(name)), "{named:?}");
    let described: BTreeSet<(String, String)> =
        all.iter().map(|(path, method, _)| ((*path).clone(), method.to_uppercase())).collect();
    let served = routes().into_iter().flat_map(|route| {
        route.methods.iter().map(move |method| (route.path.to_owned(), (*method).to_owned()))
    });
    assert_eq!(described, served.collect());
}

/// Whether a schema says nothing about what it describes.
fn is_untyped(schema: &Value) -> bool {
    let says = ["$ref", "type", "oneOf", "allOf", "anyOf", "const", "enum"];
    !says.iter().any(|word| schema.get(word).is_some())
}

#[test]
fn every_body_and_every_answer_is_typed() {
    let document = openapi::document();
    for (path, method, one) in operations(&document) {
        let bodies = one["requestBody"]["content"].as_object().into_iter().flatten();
        let answers = one["responses"].as_object().into_iter().flatten();
        let answers = answers.flat_map(|(_, answer)| answer["content"].as_object());
        for (kind, content) in bodies.chain(answers.flatten()) {
            assert!(!is_untyped(&content["schema"]), "{method} {path} {kind}: {content}");
        }
        assert!(one["responses"]["default"].is_object(), "{method} {path}");
    }
    let schemas = document["components"]["schemas"].as_object().unwrap();
    for (name, schema) in schemas {
        assert!(!is_untyped(schema), "{name}");
    }
}

#[test]
fn validators_and_linters_find_nothing() {
    let (Some(python), Some(npm)) = (Python::find(), Npm::find()) else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("openapi.json");
    std::fs::write(&file, openapi::document().to_string()).unwrap();
    let mut validator = python.command(folder.path());
    let (said, _) = run(validator.args(["-m", "openapi_spec_validator"]).arg(&file));
    assert!(said.contains("OK"), "{said}");
    let mut linter = npm.command(Path::new("@redocly/cli/bin/cli.js"));
    linter.args(["lint", "--extends=recommended", "--max-problems=20"]).arg(&file);
    // It would ask for news of itself, and tell of its use.
    linter.env("REDOCLY_TELEMETRY", "off").env("REDOCLY_SUPPRESS_UPDATE_NOTICE", "true");
    let (said, beside) = run(linter.current_dir(folder.path()));
    let said = said + &beside;
    assert!(said.contains("valid") && !said.to_lowercase().contains("warning"), "{said}");
}
