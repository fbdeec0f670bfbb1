//! The Codex App Server protocol, API v2, as 0.166 speaks it.
//!
//! [`inventory`] lists every word the protocol has and what becomes of it; [`item`],
//! [`notification`] and [`request`] are what comes in, [`input`], [`params`] and [`reply`] what
//! we send and what is answered.

pub mod inventory;

pub mod item;

pub mod notification;

pub mod request;

pub mod input;

pub mod params;

pub mod reply;
