//! The daemon as its clients see it: over HTTP.

mod front;

mod stage;
