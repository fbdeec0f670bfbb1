//! House tasks: the full test run, the house rules, the benches.
//!
//! Read: [`arguments`] (what can be asked), [`test_run`] (the full run), [`need`] (outside programs
//! the tests use), [`tidy`] (house rules as a test), [`mod@bench`] (measuring against targets).

pub mod arguments;

pub mod test_run;

pub mod step;

pub mod need;

pub mod codex;

pub mod clients;

pub mod tidy;

pub mod bench;

pub mod workspace;
