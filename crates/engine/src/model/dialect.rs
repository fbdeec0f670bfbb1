//! Tools and calls for servers that know fewer kinds of them than we do.
//!
//! A group becomes functions with the group's name before their own; a tool that takes free text
//! becomes a function with one argument, `input`. What comes back is told in our kinds again, so
//! that nobody behind the wire sees the difference.

use std::collections::{HashMap, HashSet};

use bindery_core::open::Open;
use bindery_core::surrogates::mended;
use serde_json::{Value, json};

use super::ToolSpec;
use crate::item::{CustomCall, FunctionCall, HistoryItem, Item};

/// OpenAI's limit for the name of a function.
const MAX_NAME: usize = 64;

/// What a server knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dialect {
    pub(super) namespaces: bool,
    pub(super) freeform: bool,
}

/// What the names of functions stand for, where they stand for something else.
#[derive(Debug, Default)]
pub(super) struct Names {
    meanings: HashMap<String, Meaning>,
    /// All that the model may call.
    offered: HashSet<String>,
    /// Ids of the calls in the history.
    used_ids: HashSet<String>,
}

#[derive(Debug)]
struct Meaning {
    namespace: Option<String>,
    name: String,
    freeform: bool,
}

impl Dialect {
    /// Tools as this server can be offered them.
    pub(super) fn tools(self, tools: Vec<ToolSpec>) -> (Vec<ToolSpec>, Names) {
        let mut names = Names::default();
        let tools = tools.into_iter().flat_map(|tool| self.tool(tool, None, &mut names)).collect();
        (tools, names)
    }

    fn tool(self, tool: ToolSpec, within: Option<&str>, names: &mut Names) -> Vec<ToolSpec> {
        match tool {
            ToolSpec::Namespace { name, description, tools } if self.namespaces => {
                // Names inside a group are met with the group's name, so that only a tool of free
                // text needs remembering, and there are none in groups that a server knows.
                let tools = tools.into_iter().flat_map(|tool| self.tool(tool, None, names));
                vec![ToolSpec::Namespace { name, description, tools: tools.collect() }]
            }
            ToolSpec::Namespace { name, tools, .. } => {
                let tools = tools.into_iter();
                tools.flat_map(|tool| self.tool(tool, Some(&name), names)).collect()
            }
            ToolSpec::Function { name, description, parameters } => {
                let name = names.remember(name, within, false);
                vec![ToolSpec::Function { name, description, parameters }]
            }
            ToolSpec::Freeform { name, description, definition, .. } if !self.freeform => {
                let description = format!("{description}\n\nThe grammar of `input`:\n{definition}");
                let name = names.remember(name, within, true);
                vec![ToolSpec::Function { name, description, parameters: input_schema() }]
            }
            other => vec![other],
        }
    }

    /// An entry of the history as this server can be told it.
    pub(super) fn tell(self, item: HistoryItem) -> HistoryItem {
        match item {
            Open::Known(Item::FunctionCall(FunctionCall {
                id,
                name,
                namespace: Some(namespace),
                arguments,
                call_id,
                extra_content,
            })) if !self.namespaces => {
                let name = flat(&namespace, &name);
                let namespace = None;
                let call = FunctionCall { id, name, namespace, arguments, call_id, extra_content };
                Item::FunctionCall(call).into()
            }
            Open::Known(Item::CustomToolCall(call)) if !self.freeform => {
                let CustomCall { name, input, call_id, extra_content, .. } = call;
                let arguments = json!({ "input": input }).to_string();
                let (id, namespace) = (None, None);
                let call = FunctionCall { id, name, namespace, arguments, call_id, extra_content };
                Item::FunctionCall(call).into()
            }
            Open::Known(Item::CustomToolCallOutput(mut output)) if !self.freeform => {
                output.id = None;
                Item::FunctionCallOutput(output).into()
            }
            other => other,
        }
    }
}

impl Names {
    fn remember(&mut self, name: String, namespace: Option<&str>, freeform: bool) -> String {
        let shown = match namespace {
            Some(namespace) => flat(namespace, &name),
            None => name.clone(),
        };
        self.offered.insert(shown.clone());
        if namespace.is_some() || freeform {
            let namespace = namespace.map(str::to_owned);
            self.meanings.insert(shown.clone(), Meaning { namespace, name, freeform });
        }
        shown
    }

    /// Remembers the ids of calls, so that none is given twice in a thread.
    pub(super) fn note_ids(&mut self, history: &[HistoryItem]) {
        let id = |item: &HistoryItem| match item.known()? {
            Item::FunctionCall(call) => Some(call.call_id.clone()),
            Item::CustomToolCall(call) => Some(call.call_id.clone()),
            _ => None,
        };
        self.used_ids.extend(history.iter().filter_map(id));
    }

    /// Whether a call in the history has this id.
    pub(super) fn is_used_id(&self, id: &str) -> bool {
        self.used_ids.contains(id)
    }

    /// Whether the model was offered a function of this name.
    pub(super) fn is_offered(&self, name: &str) -> bool {
        self.offered.contains(name)
    }

    /// The function that was meant by a name with a prefix of the template's before it, or with
    /// marks of the template's behind it.
    pub(super) fn clean<'n>(&self, name: &'n str) -> &'n str {
        if self.is_offered(name) {
            return name;
        }
        let bare = name.split("<|").next().unwrap_or(name).trim();
        let bare = ["functions.", "function.", "tools.", "default_api."]
            .iter()
            .find_map(|prefix| bare.strip_prefix(prefix))
            .unwrap_or(bare);
        // Kimi numbers its calls: `functions.exec_command:0`.
        let unnumbered = bare.rsplit_once(':').map_or(bare, |(name, _)| name);
        [bare, unnumbered].into_iter().find(|bare| self.is_offered(bare)).unwrap_or(name)
    }

    /// A call as the model meant it. Arguments that do not hold `input` stay a function's: the
    /// tool then tells the model what is wrong with them.
    pub(super) fn restore(&self, item: HistoryItem) -> HistoryItem {
        let Open::Known(Item::FunctionCall(call)) = &item else { return item };
        let Some(meaning) = self.meanings.get(&call.name).filter(|_| call.namespace.is_none())
        else {
            return item;
        };
        let (id, call_id) = (call.id.clone(), call.call_id.clone());
        let (name, extra_content) = (meaning.name.clone(), call.extra_content.clone());
        if !meaning.freeform {
            let (namespace, arguments) = (meaning.namespace.clone(), call.arguments.clone());
            let call = FunctionCall { id, name, namespace, arguments, call_id, extra_content };
            return Item::FunctionCall(call).into();
        }
        match free_text(&call.arguments) {
            Some(input) => {
                let (id, status) = (None, None);
                let call = CustomCall { id, name, input, call_id, status, extra_content };
                Item::CustomToolCall(call).into()
            }
            None => item,
        }
    }
}

/// `group__tool`, cut where it is longer than names may be; what was cut off still tells two apart.
fn flat(namespace: &str, name: &str) -> String {
    let whole = format!("{namespace}__{name}");
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let safe: String = whole.chars().map(|c| if fits(c) { c } else { '_' }).collect();
    if safe.len() <= MAX_NAME && safe == whole {
        return whole;
    }
    let mark = format!("{:016x}", hash_name(whole.as_bytes()));
    format!("{}{mark}", &safe[..safe.len().min(MAX_NAME - mark.len())])
}

/// FNV-1a: short, and the same in every run, which the history needs.
pub(super) fn hash_name(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Small models write the text itself instead of JSON.
fn free_text(arguments: &str) -> Option<String> {
    match serde_json::from_str::<Value>(&mended(arguments).0) {
        Ok(value) => value.get("input").unwrap_or(&value).as_str().map(str::to_owned),
        Err(_) if arguments.trim_start().starts_with('{') => None,
        Err(_) => Some(arguments.to_owned()),
    }
}

fn input_schema() -> Value {
    json!({
        "type": "object",
        "properties": { "input": { "type": "string", "description": "The whole text." } },
        "required": ["input"],
        "additionalProperties": false,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Dialect, MAX_NAME, flat, free_text};
    use crate::item::{FunctionCall, HistoryItem, Item};
    use crate::model::ToolSpec;

    const PLAIN: Dialect = Dialect { namespaces: false, freeform: false };

    fn function(name: &str) -> ToolSpec {
        let (name, description) = (name.to_owned(), String::new());
        ToolSpec::Function { name, description, parameters: json!({}) }
    }

    fn tools() -> Vec<ToolSpec> {
        let patch = ToolSpec::Freeform {
            name: "apply_patch".to_owned(),
            description: "Edits.".to_owned(),
            syntax: "lark".to_owned(),
            definition: "start: x".to_owned(),
        };
        let group = ToolSpec::Namespace {
            name: "mcp__docs".to_owned(),
            description: String::new(),
            tools: vec![function("find")],
        };
        vec![function("exec_command"), patch, group]
    }

    fn call(name: &str, arguments: &str) -> HistoryItem {
        let (name, call_id) = (name.to_owned(), "c".to_owned());
        let arguments = arguments.to_owned();
        let (id, namespace, extra_content) = (None, None, None);
        let call = FunctionCall { id, name, namespace, arguments, call_id, extra_content };
        Item::FunctionCall(call).into()
    }

    #[test]
    fn what_a_server_does_not_know_comes_back_as_it_was_meant() {
        let (offered, names) = PLAIN.tools(tools());
        let shown: Vec<_> = offered
            .iter()
            .map(|tool| match tool {
                ToolSpec::Function { name, .. } => name.as_str(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(shown, ["exec_command", "apply_patch", "mcp__docs__find"]);
        let find = names.restore(call("mcp__docs__find", "{}"));
        let told = serde_json::to_value(&find).unwrap();
        assert_eq!((&told["namespace"], &told["name"]), (&json!("mcp__docs"), &json!("find")));
        assert_eq!(PLAIN.tell(find), call("mcp__docs__find", "{}"));
        let patch = names.restore(call("apply_patch", r#"{"input":"*** Begin"}"#));
        let told = serde_json::to_value(&patch).unwrap();
        assert_eq!(
            (&told["type"], &told["input"]),
            (&json!("custom_tool_call"), &json!("*** Begin"))
        );
        assert_eq!(PLAIN.tell(patch), call("apply_patch", r#"{"input":"*** Begin"}"#));
        let broken = call("apply_patch", r#"{"inp"#);
        assert_eq!(names.restore(broken.clone()), broken);
        let plain = call("exec_command", "{}");
        assert_eq!(names.restore(plain.clone()), plain);
    }

    #[test]
    fn a_server_that_knows_all_is_told_all() {
        let all = Dialect { namespaces: true, freeform: true };
        let (offered, names) = all.tools(tools());
        assert_eq!(offered, tools());
        assert!(names.meanings.is_empty());
    }

    #[test]
    fn names_fit_and_differ() {
        let long = "x".repeat(80);
        let (one, two) = (flat(&long, "a"), flat(&long, "b"));
        assert!(one.len() <= MAX_NAME && two.len() <= MAX_NAME);
        assert_ne!(one, two);
        assert_ne!(flat("a.b", "c"), flat("a_b", "c"));
        assert_eq!(flat("ä", "c").chars().filter(|c| !c.is_ascii()).count(), 0);
    }

    #[test]
    fn free_text_is_taken_from_what_models_write() {
        assert_eq!(free_text(r#"{"input":"a"}"#).as_deref(), Some("a"));
        assert_eq!(free_text(r#""a""#).as_deref(), Some("a"));
        assert_eq!(free_text("*** Begin Patch").as_deref(), Some("*** Begin Patch"));
        assert_eq!(free_text(r#"{"other":1}"#), None);
        assert_eq!(free_text(r#"{"input":"#), None);
    }
}
