# The five verbs of the house. Each is one or two cargo commands; `just` is a convenience.

# List the verbs.
default:
    @just --list

# Fetch the crates and install the pinned Codex that the tests run against.
setup:
    cargo fetch --locked
    cargo xtask codex

# Everything that must hold before a merge. `just test --fast`, `just test -- name`.
test *arguments:
    cargo xtask test {{arguments}}

# Mend what a tool can mend: format and simple lints.
fix:
    cargo clippy --fix --allow-dirty --allow-staged --workspace --all-targets
    cargo fmt --all

# One turn on your own Codex in this folder.
demo prompt="Say in three lines what this repository is.":
    cargo run --quiet -- run {{quote(prompt)}}

# The program as we ship it: target/release/bindery.
release:
    cargo xtask test
    cargo build --release --locked --package bindery-cli
