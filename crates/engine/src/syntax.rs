//! The syntax of a shell script, read without letting its characters reach the grammar.
//!
//! The grammar's scanner is written in C and looks characters up in a table that ends early: after
//! an opening brace one beyond it reads other memory, and far beyond it ends the process. A model
//! writes these scripts, so what is not ASCII is put as letters. The shell has no other use for it
//! either, and every byte keeps its place.

use tree_sitter::{Parser, Tree};

/// The tree of a script; its places are those of the script itself.
pub(crate) fn tree(script: &str) -> Option<Tree> {
    let plain: Vec<u8> =
        script.bytes().map(|byte| if byte.is_ascii() { byte } else { b'x' }).collect();
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
    parser.parse(plain, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_beyond_the_scanners_table_do_no_harm() {
        for beyond in ['\u{e01ef}', '\u{10ffff}', '\u{1f574}', '\u{2028}'] {
            for script in [format!("{{{beyond}..3}}"), format!("echo {{{beyond}"), beyond.into()] {
                assert!(tree(&script).is_some(), "{script}");
            }
        }
    }

    #[test]
    fn places_are_those_of_the_script() {
        let script = "echo 'übel' && ls";
        let tree = tree(script).unwrap();
        let list = tree.root_node().child(0).unwrap();
        let first = list.child(0).unwrap();
        assert_eq!(first.utf8_text(script.as_bytes()), Ok("echo 'übel'"));
    }
}
