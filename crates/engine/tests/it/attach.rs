//! Pictures, files and what was piped in.

use bindery_engine::prompt::attach::{Picture, Piece, user_message, with_stdin};

use crate::place::Place;

fn as_png(bytes: Vec<u8>) -> Result<Picture, String> {
    match bytes.is_empty() {
        true => Err("it is empty".to_owned()),
        false => Ok(Picture { media_type: "image/png".to_owned(), bytes }),
    }
}

fn sent(place: &Place, pieces: &[Piece]) -> String {
    match user_message(pieces, &as_png) {
        Ok(message) => place.stable(&serde_json::to_string_pretty(&message).unwrap()),
        Err(err) => place.stable(&err.to_string()),
    }
}

#[test]
fn pictures_stand_between_labels() {
    let place = Place::new();
    place.write("a.png", "abc");
    place.write("notes.txt", "one\ntwo");
    let pieces = [
        Piece::ImageFile(place.root().join("a.png")),
        Piece::ImageUrl("https://host.example/b.png".to_owned()),
        Piece::TextFile(place.root().join("notes.txt")),
        Piece::Text("what is this?".to_owned()),
    ];
    insta::assert_snapshot!(sent(&place, &pieces), @r#"
    {
      "role": "user",
      "content": [
        {
          "type": "input_text",
          "text": "<image name=[Image #1] path=\"~/a.png\">"
        },
        {
          "type": "input_image",
          "image_url": "data:image/png;base64,YWJj",
          "detail": "high"
        },
        {
          "type": "input_text",
          "text": "</image>"
        },
        {
          "type": "input_text",
          "text": "<image name=[Image #2]>"
        },
        {
          "type": "input_image",
          "image_url": "https://host.example/b.png",
          "detail": "high"
        },
        {
          "type": "input_text",
          "text": "</image>"
        },
        {
          "type": "input_text",
          "text": "<file path=\"~/notes.txt\">\none\ntwo\n</file>"
        },
        {
          "type": "input_text",
          "text": "what is this?"
        }
      ]
    }
    "#);
}

#[test]
fn what_cannot_be_sent_says_why() {
    let place = Place::new();
    place.write("latin.txt", b"caf\xe9");
    place.write("none.png", "");
    place.write("long.txt", vec![b'x'; (1 << 20) + 1]);
    let at = |name: &str| place.root().join(name);
    let cases = [
        Piece::TextFile(at("latin.txt")),
        Piece::TextFile(at("long.txt")),
        Piece::TextFile(at("codex")),
        Piece::ImageFile(at("none.png")),
        Piece::ImageFile(at("nowhere.png")),
    ];
    let told: Vec<_> =
        cases.iter().map(|piece| sent(&place, std::slice::from_ref(piece))).collect();
    insta::assert_debug_snapshot!(told, @r#"
    [
        "`~/latin.txt` is not text in UTF-8",
        "`~/long.txt` has 1048577 bytes, at most 1048576",
        "cannot read `~/codex`",
        "`~/none.png` is no picture that can be sent: it is empty",
        "cannot read `~/nowhere.png`",
    ]
    "#);
}

#[test]
fn what_is_piped_in_follows_the_prompt() {
    #[rustfmt::skip]
    let table = [
        (Some("sum up"), Some("a\nb\n"), Some("sum up\n\n<stdin>\na\nb\n</stdin>")),
        (Some("sum up"), Some("a"),      Some("sum up\n\n<stdin>\na\n</stdin>")),
        (Some("sum up"), Some(""),       Some("sum up")),
        (Some("sum up"), None,           Some("sum up")),
        (None,           Some("do it"),  Some("do it")),
        (None,           Some(" \n"),    None),
        (None,           None,           None),
    ];
    for (prompt, piped, text) in table {
        assert_eq!(with_stdin(prompt, piped).as_deref(), text, "{prompt:?} {piped:?}");
    }
}
