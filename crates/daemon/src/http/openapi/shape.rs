//! Shapes that are written by hand, in `schemas.json`: JSON that other crates own (parts,
//! questions, answers, sessions), and lists of it. Here each has a type to be named by.

use std::borrow::Cow;

use serde_json::{Map, Value};
use utoipa::openapi::{ObjectBuilder, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

macro_rules! shapes {
    ($($name:ident),* $(,)?) => {
        $(
            /// The schema of this name.
            pub struct $name;

            impl PartialSchema for $name {
                fn schema() -> RefOr<Schema> {
                    // What is written by hand takes its place.
                    ObjectBuilder::new().into()
                }
            }

            impl ToSchema for $name {
                fn name() -> Cow<'static, str> {
                    stringify!($name).into()
                }
            }
        )*

        /// The names that handlers use.
        #[cfg(test)]
        const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

shapes! {
    Answer, CallRequest, DeliveryPage, FileChange, Input, InputPart, Interrupt, InterruptPage,
    Models, ModelsRequest, Nothing, ReviewTarget, Session, SessionPage, Settings, ThreadPage, Tool,
    Transcript, TurnError, TurnPage, TurnRef, Usage,
}

const WRITTEN: &str = include_str!("schemas.json");

/// All schemas that are written by hand, and that of the settings.
pub(super) fn all() -> Map<String, Value> {
    let mut all: Map<String, Value> = serde_json::from_str(WRITTEN).unwrap_or_default();
    all.insert("Settings".to_owned(), bindery_core::settings::schema());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_its_schema() {
        let all = all();
        let missing: Vec<_> = NAMES.iter().filter(|name| !all.contains_key(**name)).collect();
        assert_eq!(missing, Vec::<&&str>::new());
    }
}
