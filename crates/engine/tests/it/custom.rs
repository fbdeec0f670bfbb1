//! Custom prompts: heads, arguments, errors.

use bindery_engine::prompt::custom::{expand, list};

use crate::place::Place;

/// What `/prompts:p rest` becomes with this body.
fn call(body: &str, rest: &str) -> String {
    let place = Place::new();
    place.write("p.md", body);
    match expand(&format!("/prompts:p {rest}"), &list(&place.root())) {
        Ok(Some(text)) => text,
        Ok(None) => "(plain)".to_owned(),
        Err(err) => format!("{err}; {}", err.hint().unwrap()),
    }
}

#[test]
fn arguments_by_number() {
    #[rustfmt::skip]
    let table = [
        // body                    rest             text
        ("look at $1",             "a.rs",          "look at a.rs"),
        ("[$1] [$2]",              "'x y' z",       "[x y] [z]"),
        ("[$1] [$2]",              "one",           "[one] []"),
        ("$ARGUMENTS!",            "a  b   c",      "a b c!"),
        ("$10",                    "x",             "x0"),
        ("$$1 $$ $0 $ $x",         "v",             "$$1 $$ $0 $ $x"),
        ("$$ARGUMENTS",            "v",             "$$ARGUMENTS"),
        ("$9",                     "1 2 3 4 5 6 7 8 9 10", "9"),
        ("plain",                  "ignored",       "plain"),
        ("é$1é",                   "ü",             "éüé"),
        ("$1",                     "\"$2\" x",      "$2"),
        ("",                       "",              ""),
    ];
    for (body, rest, text) in table {
        assert_eq!(call(body, rest), text, "{body:?} {rest:?}");
    }
}

#[test]
fn arguments_by_name() {
    #[rustfmt::skip]
    let table = [
        // body                    rest                        text
        ("fix $FILE",              "FILE=a.rs",                "fix a.rs"),
        ("$A$B",                   "B='two words' A=1",        "1two words"),
        ("$A_1 $A",                "A=x A_1=y",                "y x"),
        ("$A $$A",                 "A=x",                      "x $$A"),
        ("$A",                     "A=x EXTRA=y",              "x"),
        ("$A",                     "A=x=y",                    "x=y"),
        ("$A",                     "A=",                       ""),
        ("$A",                     "A=1 A=2",                  "2"),
        ("$A $1 $ARGUMENTS",       "A=x",                      "x $1 $ARGUMENTS"),
    ];
    for (body, rest, text) in table {
        assert_eq!(call(body, rest), text, "{body:?} {rest:?}");
    }
}

#[test]
fn errors_say_what_to_write() {
    insta::assert_snapshot!(call("$FILE", "a.rs"), @"`/prompts:p`: expected key=value but found 'a.rs'; write KEY=value, with quotes around a value that has spaces");
    insta::assert_snapshot!(call("$FILE", "=x"), @"`/prompts:p`: expected a name before '=' in '=x'; write KEY=value, with quotes around a value that has spaces");
    insta::assert_snapshot!(call("$FILE $FOCUS $FILE", ""), @"`/prompts:p`: missing required args: FILE, FOCUS; add FILE=… FOCUS=…");
    insta::assert_snapshot!(call("$1", "don't"), @r#"`/prompts:p`: a quote is not closed in: don't; close the quote, or write \' for an apostrophe"#);
}

#[test]
fn names_that_are_not_known_are_plain_text() {
    let place = Place::new();
    place.write("p.md", "text");
    let prompts = list(&place.root());
    for text in ["/prompts:q x", "/p", "p", " /prompts:p", "/prompts:", "/prompts:p/../p"] {
        assert_eq!(expand(text, &prompts), Ok(None), "{text}");
    }
    assert_eq!(expand("/prompts:p", &prompts), Ok(Some("text".to_owned())));
    assert_eq!(expand("/prompts:p\na", &prompts), Ok(Some("text".to_owned())));
}

#[test]
fn heads_are_read_line_by_line() {
    let head = |text: &str| {
        let place = Place::new();
        place.write("p.md", text);
        let prompt = list(&place.root()).remove(0);
        (prompt.description, prompt.argument_hint, prompt.body)
    };
    let some = |text: &str| Some(text.to_owned());
    #[rustfmt::skip]
    let table = [
        ("---\ndescription: a\n---\nbody\n",                    (some("a"), None, "body\n")),
        (" --- \r\nDescription: \"q: 'x'\"\r\n---\r\nb",        (some("q: 'x'"), None, "b")),
        ("---\nargument-hint: [f]\n---\n",                      (None, some("[f]"), "")),
        ("---\nargument_hint: 'f'\n---\nb",                     (None, some("f"), "b")),
        ("---\n# description: no\n\nother: x\nnothing\n---\nb", (None, None, "b")),
        ("---\ndescription: 'a\"\n---\nb",                      (some("'a\""), None, "b")),
        ("---\ndescription: a\nbody",                           (None, None, "---\ndescription: a\nbody")),
        ("\n---\ndescription: a\n---\nb",                       (None, None, "\n---\ndescription: a\n---\nb")),
    ];
    for (text, (description, hint, body)) in table {
        assert_eq!(head(text), (description, hint, body.to_owned()), "{text:?}");
    }
}

#[test]
fn a_folder_is_listed_by_name() {
    let place = Place::new();
    for (path, text) in [("b.md", "b"), ("a.MD", "a"), ("c.txt", "c"), ("deep/d.md", "d")] {
        place.write(&format!("p/{path}"), text);
    }
    place.write("p/latin.md", b"caf\xe9");
    std::fs::create_dir(place.root().join("p/folder.md")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("b.md", place.root().join("p/link.md")).unwrap();
    let names: Vec<_> = list(&place.root().join("p")).into_iter().map(|p| p.name).collect();
    let expected: &[&str] = if cfg!(unix) { &["a", "b", "link"] } else { &["a", "b"] };
    assert_eq!(names, expected);
    assert_eq!(list(&place.root().join("nowhere")), []);
}
