//! House tasks.

fn main() {}
