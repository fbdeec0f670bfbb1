//! Words and maps.
