//! A real Codex on a scripted model, for trying things by hand.
//!
//! `cargo run -p bindery-testkit --example stage -- SCRIPT.json` prints the environment to export
//! and stays until its stdin ends.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a tool for developers")]

use std::io::Read;

use bindery_testkit::codex::{Options, RealCodex};
use bindery_testkit::model::{Model, Script};

fn main() {
    let script = match std::env::args().nth(1) {
        Some(path) => serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap(),
        None => Script::always("Hello from a scripted model."),
    };
    let model = Model::start(script);
    let mut options = Options { trusted: true, ..Options::default() };
    options.tables.push_str("[tools.update_plan]\nenabled = true\n");
    let codex = RealCodex::with(&model, &options);
    println!("export BINDERY_CODEX='{}'", codex.program().display());
    for (name, value) in codex.env().iter().filter(|(name, _)| name != "PATH") {
        println!("export {name}='{value}'");
    }
    println!("cd '{}'", codex.project().display());
    let mut end = Vec::new();
    std::io::stdin().read_to_end(&mut end).unwrap();
}
