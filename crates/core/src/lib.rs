//! Words and maps.

pub mod lines;

pub mod wire;
