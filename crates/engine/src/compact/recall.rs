//! Plan and files of a thread that goes on in another process, out of what was said in it.

use bindery_core::open::Open;

use super::rebuild::{self, Kept};
use crate::item::{HistoryItem, Item, Output};
use crate::patch::report::UPDATED;
use crate::thread::history::user_text;
use crate::tools::{Step, read_plan};

/// What a history says of plan and files, the newest last.
pub(crate) fn recall(history: &[HistoryItem]) -> (Vec<Step>, Vec<String>) {
    let mut kept = Kept::default();
    for item in history {
        if let Some(earlier) = user_text(item).as_deref().and_then(rebuild::kept_in) {
            kept = earlier;
            continue;
        }
        match item {
            Open::Known(Item::FunctionCall(call)) if call.name == "update_plan" => {
                kept.plan = read_plan(&call.arguments).unwrap_or(kept.plan);
            }
            Open::Known(Item::FunctionCallOutput(told) | Item::CustomToolCallOutput(told)) => {
                note(&told.output, &mut kept.files);
            }
            _ => {}
        }
    }
    (kept.plan, kept.files)
}

/// Takes the files that a patch says it has written.
fn note(output: &Output, files: &mut Vec<String>) {
    let Output::Text(text) = output else { return };
    let Some((_, list)) = text.split_once(UPDATED) else { return };
    let name = |line: &str| {
        ["A ", "M ", "D "].iter().find_map(|kind| line.strip_prefix(kind)).map(str::to_owned)
    };
    for file in list.lines().map_while(name) {
        files.retain(|known| *known != file);
        files.push(file);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::item::{Message, Role};

    fn items(values: &[serde_json::Value]) -> Vec<HistoryItem> {
        values.iter().map(|value| HistoryItem::from_value(value.clone())).collect()
    }

    #[test]
    fn the_newest_plan_and_every_file_are_found_again() {
        let plan = |status: &str| json!({ "plan": [{ "step": "Look", "status": status }] });
        let call = |status: &str| {
            let arguments = plan(status).to_string();
            json!({ "type": "function_call", "name": "update_plan", "call_id": "c",
                "arguments": arguments })
        };
        let told = |text: &str| {
            let kind = "custom_tool_call_output";
            json!({ "type": kind, "call_id": "p", "output": text })
        };
        let first = format!("Exit code: 0\nOutput:\n{UPDATED}A a\nM b c\n\nM x");
        let history = items(&[
            call("pending"),
            told(&first),
            told("Success. Updated the following files:\nD a\n"),
            call("completed"),
            json!({ "type": "function_call", "name": "update_plan", "call_id": "d",
                "arguments": "{bad" }),
            json!({ "type": "something_new" }),
        ]);
        let (plan, files) = recall(&history);
        assert_eq!(plan, [Step { step: "Look".to_owned(), status: "completed".to_owned() }]);
        assert_eq!(files, ["b c", "a"]);
    }

    #[test]
    fn a_summary_is_read_as_it_was_written() {
        let kept = Kept {
            plan: vec![Step { step: "Test [it]".to_owned(), status: "in_progress".to_owned() }],
            files: vec!["src/lib.rs".to_owned(), "a b".to_owned()],
        };
        let history = rebuild::history(&[], Vec::new(), "S\n\nFiles you changed:\n- no", &kept, 0);
        assert_eq!(recall(&history), (kept.plan, kept.files));
        let plain: HistoryItem = Message::text(Role::User, "The plan as it stands:\n- x").into();
        assert_eq!(recall(&[plain]), (Vec::new(), Vec::new()));
    }
}
