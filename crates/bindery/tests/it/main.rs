//! The facade, as an application uses it.
#![expect(clippy::unwrap_used, reason = "a failing helper is a failing test")]

mod example;

mod rig;

#[expect(dead_code, reason = "the client's tests ask more of it")]
#[path = "../../../client/tests/it/told.rs"]
mod told;

#[path = "../../../client/tests/it/conformance/cases.rs"]
mod cases;

mod in_process;
