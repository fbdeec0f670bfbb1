//! Names of things, as newtypes, so that a thread is never taken for a turn.

use std::borrow::Borrow;
use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[doc = $doc:literal] $name:ident;)+) => {$(
        #[doc = $doc]
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Takes a name as it came; names are compared, never parsed.
            pub fn new(name: impl Into<String>) -> Self {
                Self(name.into())
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(name: &str) -> Self {
                Self(name.to_owned())
            }
        }

        impl From<String> for $name {
            fn from(name: String) -> Self {
                Self(name)
            }
        }
    )+};
}

id! {
    /// A conversation: survives restarts, names the session file.
    ThreadId;
    /// One run of a thread from a prompt to its finish.
    TurnId;
    /// One thing inside a turn; unique only together with its thread and turn.
    ItemId;
    /// One text or reasoning run of a live answer.
    PartId;
    /// One tool call; pairs a call with its result.
    CallId;
    /// One question that stops a turn until it is answered.
    ApprovalId;
}
