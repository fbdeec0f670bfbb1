//! The names of what a turn has heard, for a history that has names of its own.
//!
//! Codex 0.166 keeps a thread of the older form without the names of what was said, and numbers it
//! when asked. Whatever was heard under its name gets it back, so that it is not told twice.

use std::hash::{DefaultHasher, Hash, Hasher};

use bindery_core::ids::ItemId;
use bindery_core::map::app_server_to_part::Words;
use bindery_core::wire::app_server::notification::Body;
use serde_json::{Value, json};

/// What was heard, in order.
#[derive(Debug, Default)]
pub(super) struct Names {
    heard: Vec<Heard>,
}

#[derive(Debug)]
struct Heard {
    item: ItemId,
    kind: &'static str,
    /// The words, too many to keep; none before the end.
    mark: Option<u64>,
}

impl Names {
    /// Something of the thread happens.
    pub(super) fn hear(&mut self, body: &Body) {
        let (Body::ItemStarted(note) | Body::ItemCompleted(note)) = body else { return };
        let Some(words) = Words::of_item(&note.raw) else { return };
        if matches!(body, Body::ItemCompleted(_)) {
            self.know(note.id.clone(), &words);
        } else if self.find(&note.id).is_none() {
            self.heard.push(Heard { item: note.id.clone(), kind: words.kind, mark: None });
        }
    }

    /// An item was told to its end.
    pub(super) fn know(&mut self, item: ItemId, words: &Words) {
        let (kind, mark) = (words.kind, Some(mark_of(words)));
        match self.find(&item) {
            Some(at) => self.heard[at].mark = mark,
            None => self.heard.push(Heard { item, kind, mark }),
        }
    }

    /// Gives numbered items, oldest first, the names under which they were heard. What is open
    /// becomes the first of its kind that nobody has heard the end of.
    pub(super) fn give(&self, items: &mut [Value]) {
        let mut left: Vec<&Heard> = self.heard.iter().collect();
        let mut unheard = Vec::new();
        for item in items {
            let Some(words) = Words::of_item(item) else { continue };
            let mark = Some(mark_of(&words));
            match left.iter().position(|heard| heard.kind == words.kind && heard.mark == mark) {
                Some(at) => item["id"] = json!(left.remove(at).item),
                None => unheard.push((item, words.kind)),
            }
        }
        left.retain(|heard| heard.mark.is_none());
        for (item, kind) in unheard {
            if let Some(at) = left.iter().position(|heard| heard.kind == kind) {
                item["id"] = json!(left.remove(at).item);
            }
        }
    }

    fn find(&self, item: &ItemId) -> Option<usize> {
        self.heard.iter().rposition(|heard| heard.item == *item)
    }
}

fn mark_of(words: &Words) -> u64 {
    let mut hasher = DefaultHasher::new();
    words.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use bindery_core::wire::app_server::notification::Notification;

    use super::*;

    fn message(id: &str, text: &str) -> Value {
        json!({ "type": "agentMessage", "id": id, "text": text })
    }

    fn given(names: &Names, mut items: Vec<Value>) -> Vec<String> {
        names.give(&mut items);
        items.iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
    }

    fn hear(names: &mut Names, method: &str, id: &str, text: &str) {
        let params = json!({ "threadId": "t", "turnId": "u", "item": message(id, text) });
        let params = serde_json::value::to_raw_value(&params).unwrap();
        names.hear(&Notification::decode(method, &params).body);
    }

    fn hear_all(names: &mut Names, id: &str, text: &str) {
        hear(names, "item/started", id, "");
        hear(names, "item/completed", id, text);
    }

    #[test]
    fn what_was_heard_gets_its_name_back_each_once() {
        let mut names = Names::default();
        hear_all(&mut names, "a", "yes");
        hear_all(&mut names, "b", "yes");
        let listed = ["1", "2", "3"].map(|id| message(id, "yes"));
        assert_eq!(given(&names, listed.to_vec()), ["a", "b", "3"]);
    }

    #[test]
    fn an_open_text_is_the_first_that_nobody_heard_the_end_of() {
        let mut names = Names::default();
        hear(&mut names, "item/started", "open", "");
        hear_all(&mut names, "done", "first");
        let listed = vec![message("1", "first"), message("2", "second"), message("3", "third")];
        assert_eq!(given(&names, listed), ["done", "open", "3"]);
    }

    #[test]
    fn kinds_are_not_mistaken_for_each_other_and_calls_keep_their_names() {
        let mut names = Names::default();
        hear_all(&mut names, "a", "same");
        let listed = vec![
            json!({ "type": "plan", "id": "1", "text": "same" }),
            json!({ "type": "commandExecution", "id": "c1" }),
            message("2", "same"),
        ];
        assert_eq!(given(&names, listed), ["1", "c1", "a"]);
    }
}
