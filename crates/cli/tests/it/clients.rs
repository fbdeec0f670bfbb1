//! Clients that are not ours, with `bindery` in the place of Codex.
