//! The `bindery` command.

fn main() {}
