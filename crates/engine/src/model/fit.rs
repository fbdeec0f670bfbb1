//! Makes a history one that servers take: every call answered once, no answer without its call,
//! and no picture for a model that sees none.

use std::collections::{HashMap, HashSet, VecDeque};

use bindery_core::open::{Open, tag_of};

use crate::item::{CallOutput, Content, HistoryItem, Item, Output};

/// What a model is told of a call that never ended.
const ABORTED: &str = "aborted";

/// What stands where a picture was.
const NO_PICTURE: &str = "[a picture was here; this model cannot see pictures]";

/// Which calls pair with which outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Pairing {
    Function,
    Custom,
}

/// Applies all of it.
pub(super) fn fit(items: Vec<HistoryItem>, images: bool) -> Vec<HistoryItem> {
    let items = paired(items);
    if images { items } else { items.into_iter().map(without_pictures).collect() }
}

/// Pairs calls and outputs in order: some servers use the same id for every first call.
fn paired(items: Vec<HistoryItem>) -> Vec<HistoryItem> {
    let mut open: HashMap<(Pairing, String), VecDeque<usize>> = HashMap::new();
    let mut orphans = HashSet::new();
    for (index, item) in items.iter().enumerate() {
        if let Some((pairing, id)) = call(item) {
            open.entry((pairing, id.to_owned())).or_default().push_back(index);
        } else if let Some((pairing, id)) = output(item) {
            let waiting = open.get_mut(&(pairing, id.to_owned()));
            if waiting.and_then(VecDeque::pop_front).is_none() {
                orphans.insert(index);
            }
        }
    }
    let unanswered: HashSet<usize> = open.into_values().flatten().collect();
    let mut kept = Vec::with_capacity(items.len() + unanswered.len());
    for (index, item) in items.into_iter().enumerate() {
        if orphans.contains(&index) {
            continue;
        }
        let answer = call(&item).filter(|_| unanswered.contains(&index)).map(aborted);
        kept.push(item);
        kept.extend(answer);
    }
    kept
}

fn aborted((pairing, id): (Pairing, &str)) -> HistoryItem {
    let output = Output::Text(ABORTED.to_owned());
    let output = CallOutput { id: None, call_id: id.to_owned(), output };
    match pairing {
        Pairing::Function => Item::FunctionCallOutput(output).into(),
        Pairing::Custom => Item::CustomToolCallOutput(output).into(),
    }
}

fn call(item: &HistoryItem) -> Option<(Pairing, &str)> {
    match item {
        Open::Known(Item::FunctionCall(call)) => Some((Pairing::Function, &call.call_id)),
        Open::Known(Item::CustomToolCall(call)) => Some((Pairing::Custom, &call.call_id)),
        // Old sessions have it; its output is a function's.
        Open::Unknown { raw, .. } if tag_of(raw, "type") == "local_shell_call" => {
            raw["call_id"].as_str().map(|id| (Pairing::Function, id))
        }
        _ => None,
    }
}

fn output(item: &HistoryItem) -> Option<(Pairing, &str)> {
    match item {
        Open::Known(Item::FunctionCallOutput(output)) => Some((Pairing::Function, &output.call_id)),
        Open::Known(Item::CustomToolCallOutput(output)) => Some((Pairing::Custom, &output.call_id)),
        _ => None,
    }
}

fn without_pictures(mut item: HistoryItem) -> HistoryItem {
    match &mut item {
        Open::Known(Item::Message(message)) => replace_pictures(&mut message.content),
        Open::Known(Item::FunctionCallOutput(output) | Item::CustomToolCallOutput(output)) => {
            if let Output::Content(content) = &mut output.output {
                replace_pictures(content);
            }
        }
        _ => {}
    }
    item
}

fn replace_pictures(content: &mut [Open<Content>]) {
    for part in content {
        if matches!(part, Open::Known(Content::InputImage { .. })) {
            *part = Content::InputText { text: NO_PICTURE.to_owned() }.into();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::fit;
    use crate::item::HistoryItem;

    fn fitted(items: &[Value], images: bool) -> Vec<Value> {
        let items = items.iter().cloned().map(HistoryItem::from_value).collect();
        let fitted = fit(items, images).into_iter();
        fitted.map(|item| serde_json::to_value(item).unwrap()).collect()
    }

    fn call(kind: &str, id: &str) -> Value {
        let mut item = json!({ "type": kind, "name": "x", "call_id": id });
        let key = if kind == "function_call" { "arguments" } else { "input" };
        item[key] = json!("{}");
        item
    }

    fn output(kind: &str, id: &str, text: &str) -> Value {
        json!({ "type": kind, "call_id": id, "output": text })
    }

    #[test]
    fn calls_and_outputs_are_paired() {
        let (f, fo) = ("function_call", "function_call_output");
        let (c, co) = ("custom_tool_call", "custom_tool_call_output");
        let shell = json!({ "type": "local_shell_call", "call_id": "s", "action": {} });
        let user = json!({ "type": "message", "role": "user", "content": [] });
        let history = [
            output(fo, "0", "before its call"),
            call(f, "0"),
            call(f, "1"),
            output(fo, "1", "one"),
            call(c, "2"),
            output(fo, "2", "of the wrong kind"),
            call(f, "same"),
            output(fo, "same", "first"),
            call(f, "same"),
            output(fo, "same", "second"),
            output(fo, "same", "third"),
            shell.clone(),
            user.clone(),
        ];
        let want = [
            call(f, "0"),
            output(fo, "0", "aborted"),
            call(f, "1"),
            output(fo, "1", "one"),
            call(c, "2"),
            output(co, "2", "aborted"),
            call(f, "same"),
            output(fo, "same", "first"),
            call(f, "same"),
            output(fo, "same", "second"),
            shell,
            output(fo, "s", "aborted"),
            user,
        ];
        assert_eq!(fitted(&history, true), want);
    }

    #[test]
    fn pictures_become_words_for_those_who_see_none() {
        let picture = json!({ "type": "input_image", "image_url": "data:," });
        let words = json!({ "type": "input_text",
            "text": "[a picture was here; this model cannot see pictures]" });
        let odd = json!({ "type": "input_audio", "data": "" });
        let history = |part: &Value| {
            [
                json!({ "type": "message", "role": "user", "content": [part, odd] }),
                call("function_call", "1"),
                json!({ "type": "function_call_output", "call_id": "1", "output": [part] }),
            ]
        };
        assert_eq!(fitted(&history(&picture), false), history(&words));
        assert_eq!(fitted(&history(&picture), true), history(&picture));
    }
}
