//! How the tool is offered to a model, in both forms.

use serde::Deserialize;
use serde_json::json;

use crate::model::ToolSpec;

/// The tool's name.
pub const NAME: &str = "apply_patch";

const GRAMMAR: &str = include_str!("spec/patch.lark");

const GUIDE: &str = include_str!("spec/guide.md");

/// Free text in our grammar, for models that can write it.
pub fn freeform() -> ToolSpec {
    ToolSpec::Freeform {
        name: NAME.to_owned(),
        description: "Changes files by a patch. The whole input is the patch itself: write no \
                      JSON around it and no quotes."
            .to_owned(),
        syntax: "lark".to_owned(),
        definition: GRAMMAR.to_owned(),
    }
}

/// A function with the patch as its one argument, and the language explained.
pub fn function() -> ToolSpec {
    ToolSpec::Function {
        name: NAME.to_owned(),
        description: GUIDE.to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "input": { "type": "string", "description": "The whole patch." },
            },
            "required": ["input"],
            "additionalProperties": false,
        }),
    }
}

/// The patch in the arguments of the function form.
pub fn input(arguments: &str) -> Result<String, serde_json::Error> {
    #[derive(Deserialize)]
    struct Arguments {
        input: String,
    }
    serde_json::from_str::<Arguments>(arguments).map(|arguments| arguments.input)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patch::parse::parse;

    #[test]
    fn the_patch_in_the_guide_is_one() {
        let begin = GUIDE.find("*** Begin Patch").unwrap();
        let end = GUIDE.find("*** End Patch").unwrap() + "*** End Patch".len();
        assert_eq!(parse(&GUIDE[begin..end]).unwrap().hunks.len(), 3);
    }

    #[test]
    fn arguments_hold_the_patch_or_are_refused() {
        assert_eq!(input(r#"{"input":"*** x"}"#).unwrap(), "*** x");
        assert!(input(r#"{"patch":"*** x"}"#).is_err());
        assert!(input("*** Begin Patch").is_err());
    }
}
