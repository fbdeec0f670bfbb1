//! House tasks: the full test run, the house rules, the benches.
//!
//! Read: [`arguments`] (what can be asked), [`test_run`] (the full run), [`test_counts`] (what its
//! runners report), [`need`] (outside programs
//! the tests use), [`npm`] (the npm package on both majors of the AI SDK), [`tidy`] (house rules as
//! a test), [`mod@bench`] (measuring against targets).

pub mod arguments;

pub mod test_run;

pub mod test_counts;

pub mod step;

pub mod need;

pub mod schemathesis;

pub mod litellm;

pub mod codex;

pub mod npm;

pub mod clients;

pub mod api_tools;

pub mod tidy;

pub mod bench;

pub mod workspace;
