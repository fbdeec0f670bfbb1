//! The fields of a line, each kept as the JSON it is.
//!
//! Written by hand where a derive would do, because real lines repeat a key: `web_search` items
//! carry `id` twice (0.98 to 0.166). The first wins; the second `id` is kept beside it.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// A struct of optional raw values that takes the first of each key and knows no others.
macro_rules! raw_fields {
    ($(#[$doc:meta])* $name:ident { $($field:ident),+ $(,)? } nested { $($nested:ident),* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub(super) struct $name<'a> {
            $(pub(super) $field: Option<&'a RawValue>,)+
            $(pub(super) $nested: Option<Fields<'a>>,)*
            /// A second `id`.
            pub(super) other_id: Option<&'a RawValue>,
        }

        impl<'de: 'a, 'a> Deserialize<'de> for $name<'a> {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                #[derive(serde::Deserialize)]
                #[serde(field_identifier)]
                #[expect(non_camel_case_types, reason = "the names of the fields themselves")]
                enum Key {
                    $($field,)+
                    $($nested,)*
                    #[serde(other)]
                    Other_,
                }

                struct Visit;

                impl<'de> Visitor<'de> for Visit {
                    type Value = $name<'de>;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("an object")
                    }

                    fn visit_map<A: MapAccess<'de>>(
                        self,
                        mut map: A,
                    ) -> Result<Self::Value, A::Error> {
                        let mut fields = $name::default();
                        while let Some(key) = map.next_key::<Key>()? {
                            match key {
                                $(Key::$field => {
                                    let value = map.next_value()?;
                                    if fields.$field.is_none() {
                                        fields.$field = Some(value);
                                    } else if stringify!($field) == "id" {
                                        fields.other_id = Some(value);
                                    }
                                })+
                                $(Key::$nested => {
                                    let value = map.next_value()?;
                                    fields.$nested = fields.$nested.or(Some(value));
                                })*
                                Key::Other_ => {
                                    map.next_value::<IgnoredAny>()?;
                                }
                            }
                        }
                        Ok(fields)
                    }
                }

                deserializer.deserialize_map(Visit)
            }
        }
    };
}

raw_fields! {
    /// The outer object of a line.
    Record {
        r#type, id, thread_id, message, error, usage, model, delta, text, prompt, provider, workdir,
    } nested { item, msg }
}

raw_fields! {
    /// An item or an older event: every field that any of them has and we give meaning to.
    Fields {
        r#type, item_type, id, text, message, status, command, aggregated_output, exit_code,
        changes, server, tool, arguments, result, error, query, action, items, prompt,
        receiver_thread_ids, agents_states, call_id, cwd, stdout, stderr, success, invocation,
        plan, explanation, chunk, info, input_tokens, cached_input_tokens, output_tokens,
        reasoning_output_tokens, total_token_usage,
    } nested {}
}
