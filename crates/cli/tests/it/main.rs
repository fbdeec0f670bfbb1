//! The command as a person sees it: what it shows, and how it ends.
#![expect(clippy::unwrap_used, reason = "a failing helper is a failing test")]

mod screen;

mod turn;

mod engine;

mod exec;

mod exec_trust;

mod clients;

mod generated;

mod conformance;

mod results;

mod removal;

mod once;

mod config_flags;

#[cfg(unix)]
mod global_flags;

mod review;

mod markdown;

mod view;

mod approval;

mod stable;

mod stage;

mod help;

mod run;

mod parts;

mod options;

mod attached;

mod thread;

mod failure;

mod doctor;

mod doctor_model;

#[cfg(unix)]
mod models;

#[cfg(target_os = "linux")]
mod litellm;

#[cfg(target_os = "linux")]
mod interrupt;

#[cfg(target_os = "linux")]
mod pty;

#[cfg(target_os = "linux")]
mod interactive;

#[cfg(target_os = "linux")]
mod mcp;

#[cfg(target_os = "linux")]
mod escalation;

#[cfg(target_os = "linux")]
mod neighbours;

#[cfg(target_os = "linux")]
mod granular;

#[cfg(target_os = "linux")]
mod faults;

mod map;

mod agent;

mod placeholders;

mod reviewer;

mod prompt;

#[cfg(target_os = "linux")]
mod web;

#[cfg(target_os = "linux")]
mod daemon;

#[cfg(target_os = "linux")]
mod serve;

#[cfg(target_os = "linux")]
mod starts;

#[cfg(target_os = "linux")]
mod durability;

#[cfg(target_os = "linux")]
mod receiver;

#[cfg(target_os = "linux")]
mod hooks;

#[cfg(target_os = "linux")]
mod traces;

#[cfg(target_os = "linux")]
mod routes;

#[cfg(target_os = "linux")]
mod tenant;

#[cfg(target_os = "linux")]
mod bounded_home;

mod hidden_tenants;

mod isolation;

mod login;

#[cfg(target_os = "linux")]
mod parent;

#[cfg(target_os = "linux")]
mod load;
