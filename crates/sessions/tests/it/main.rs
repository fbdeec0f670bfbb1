//! Session files in, transcripts out: the corpus of real files, and the laws that hold for all.
#![expect(clippy::unwrap_used, reason = "a test that cannot read its fixture has failed")]

mod corpus;

mod law;

mod stdout;

mod acceptance;

mod corruption;

mod drift;

mod mutated;

mod content;

mod told;

mod chain;

mod pages;

mod live;

mod real_codex;

mod recorded;

mod resumed;

mod ages;

mod endured;

mod written;

mod forked;

mod synthetic;

mod spelt;

mod respelt;

mod faults;
