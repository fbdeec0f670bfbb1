//! Which of our crates may use which, and how many outside crates each may use.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Breach, Rule};

/// Each crate with those of ours it may use. `testkit` may besides be used by anyone's tests.
const EDGES: &[(&str, &[&str])] = &[
    ("bindery-core", &[]),
    ("bindery-sessions", &["bindery-core"]),
    ("bindery-client", &["bindery-core"]),
    ("bindery-engine", &["bindery-core", "bindery-sessions"]),
    ("bindery-daemon", &["bindery-core", "bindery-sessions", "bindery-client"]),
    ("bindery", &["bindery-core", "bindery-client", "bindery-sessions", "bindery-engine"]),
    ("bindery-cli", &["bindery", "bindery-daemon"]),
    // Sharing our types would let the doubles and the code under test agree on the same mistake.
    (TESTKIT, &[]),
    ("xtask", &[TESTKIT, "bindery", "bindery-client", "bindery-core"]),
];

const TESTKIT: &str = "bindery-testkit";

/// Outside crates that one crate may use directly, tests aside.
pub const OUTSIDE: usize = 40;

/// Checks the output of `cargo metadata --no-deps`.
pub fn check(metadata: &Value) -> Vec<Breach> {
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    packages.iter().flat_map(|package| edges(package).into_iter().chain(outside(package))).collect()
}

fn edges(package: &Value) -> Vec<Breach> {
    let name = text(package, "name");
    let breach = |words: String| Breach::of_file(Rule::Edge, &manifest(package), words);
    let Some((_, allowed)) = EDGES.iter().find(|(crate_name, _)| *crate_name == name) else {
        return vec![breach(format!("`{name}` has no line in the table of crate edges"))];
    };
    let ours = dependencies(package).iter().filter(|dependency| is_ours(dependency));
    let wrong = ours.filter(|dependency| {
        let used = text(dependency, "name");
        let in_tests = is_for_tests(dependency) && (used == TESTKIT || used == name);
        !allowed.contains(&used) && !in_tests
    });
    wrong.map(|used| breach(format!("`{name}` must not use `{}`", text(used, "name")))).collect()
}

fn outside(package: &Value) -> Option<Breach> {
    let used = dependencies(package).iter().filter(|d| !is_ours(d) && !is_for_tests(d));
    let names: BTreeSet<_> = used.map(|dependency| text(dependency, "name")).collect();
    let words = format!("{} outside crates, at most {OUTSIDE}", names.len());
    (names.len() > OUTSIDE).then(|| Breach::of_file(Rule::Dependency, &manifest(package), words))
}

fn dependencies(package: &Value) -> &[Value] {
    package["dependencies"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// A path means it lies in this repository.
fn is_ours(dependency: &Value) -> bool {
    !dependency["path"].is_null()
}

/// Cargo's kind is `null`, `"build"` or `"dev"`.
fn is_for_tests(dependency: &Value) -> bool {
    dependency["kind"] == "dev"
}

fn manifest(package: &Value) -> String {
    format!("Cargo.toml of {}", text(package, "name"))
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn breaches(name: &str, dependencies: &[Value]) -> Vec<String> {
        let metadata = json!({"packages": [{"name": name, "dependencies": dependencies}]});
        check(&metadata).iter().map(|breach| breach.text.clone()).collect()
    }

    fn ours(name: &str, kind: Value) -> Value {
        json!({"name": name, "kind": kind, "path": "somewhere"})
    }

    #[test]
    fn allowed_edges_pass() {
        let normal = |name| ours(name, Value::Null);
        assert_eq!(breaches("bindery-client", &[normal("bindery-core")]), [""; 0]);
        assert_eq!(breaches("bindery-client", &[ours(TESTKIT, json!("dev"))]), [""; 0]);
        assert_eq!(breaches("bindery-core", &[json!({"name": "serde", "kind": null})]), [""; 0]);
        assert_eq!(breaches("xtask", &[normal(TESTKIT)]), [""; 0]);
    }

    #[test]
    fn forbidden_edges_are_found() {
        let cases = [
            ("bindery-core", "bindery-client", Value::Null),
            ("bindery-client", TESTKIT, Value::Null),
            ("bindery-client", "bindery-engine", json!("dev")),
            ("bindery-client", "bindery-engine", json!("build")),
            (TESTKIT, "bindery-core", json!("dev")),
        ];
        for (name, used, kind) in cases {
            let expected = format!("`{name}` must not use `{used}`");
            assert_eq!(breaches(name, &[ours(used, kind)]), [expected]);
        }
    }

    #[test]
    fn a_new_crate_needs_a_line() {
        let expected = "`bindery-extra` has no line in the table of crate edges";
        assert_eq!(breaches("bindery-extra", &[]), [expected]);
    }

    #[test]
    fn outside_crates_are_counted_once_and_without_those_for_tests() {
        let outside = |count: usize, kind: Value| -> Vec<_> {
            (0..count).map(|n| json!({"name": format!("crate-{n}"), "kind": kind})).collect()
        };
        let twice = [outside(40, Value::Null), outside(40, json!("build"))].concat();
        assert_eq!(breaches("bindery-core", &twice), [""; 0]);
        assert_eq!(breaches("bindery-core", &outside(41, json!("dev"))), [""; 0]);
        let found = breaches("bindery-core", &outside(41, Value::Null));
        assert_eq!(found, ["41 outside crates, at most 40"]);
    }
}
