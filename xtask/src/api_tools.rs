//! What reads the daemon's API document: linters, and generators of clients.

use std::path::{Path, PathBuf};

use crate::need::{Need, Source};

/// Of Python: a validator, a generator with what its clients need, and a webhook verifier. Tests
/// put the folder of modules on Python's path.
pub const PYTHON: Need = Need {
    name: "api-python",
    source: Source::PipLibraries(&[
        "openapi-spec-validator==0.9.0",
        "openapi-python-client==0.29.1",
        "standardwebhooks==1.1.0",
        "jsonschema==4.26.0",
    ]),
    variable: "BINDERY_TEST_API_PYTHON",
    tells_version: false,
    find: modules,
};

/// Of npm: a linter, a generator, the client it types, and the compiler. Tests find the packages
/// beside the one that is named.
pub const NPM: Need = Need {
    name: "api-npm",
    source: Source::NpmLibraries(&[
        "@redocly/cli@2.77.0",
        "openapi-typescript@7.13.0",
        "openapi-fetch@0.17.0",
        "typescript@5.9.3",
    ]),
    variable: "BINDERY_TEST_API_NPM",
    tells_version: false,
    find: packages,
};

fn modules(folder: &Path) -> Option<PathBuf> {
    let named = ["openapi_python_client", "openapi_spec_validator", "standardwebhooks"];
    let module = |name: &str| folder.join("modules").join(name).join("__init__.py");
    named.iter().all(|name| module(name).is_file()).then(|| module("openapi_spec_validator"))
}

fn packages(folder: &Path) -> Option<PathBuf> {
    let named = ["@redocly/cli", "openapi-typescript", "openapi-fetch", "typescript"];
    let package = |name: &str| folder.join("node_modules").join(name).join("package.json");
    named.iter().all(|name| package(name).is_file()).then(|| package("typescript"))
}
