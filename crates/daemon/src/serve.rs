//! All of it together.
