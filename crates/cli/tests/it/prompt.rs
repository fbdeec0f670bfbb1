//! `bindery prompt`: what would be sent, and custom prompts.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

/// A home and a project.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self { folder: TempDir::new().unwrap() };
        place.write("home/.codex/AGENTS.md", "Be kind.\n");
        place.write("home/project/.git/HEAD", "ref: refs/heads/trunk\n");
        place.write("home/project/AGENTS.md", "Use tabs.\n");
        place.write("home/project/src/AGENTS.md", "No macros.\n");
        place
    }

    fn root(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Runs `bindery prompt` in the project: exit code, stdout, stderr.
    fn run(&self, args: &[&str]) -> (i32, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bindery"));
        command.arg("prompt").args(args).current_dir(self.root().join("home/project/src"));
        command.env_clear().env("HOME", self.root().join("home")).env("LANG", "C.UTF-8");
        // A repository without objects: git has nothing to say, and need not be there.
        command.env("PATH", "");
        let output = command.output().unwrap();
        let text = |bytes: Vec<u8>| self.stable(&String::from_utf8(bytes).unwrap());
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    }

    fn stable(&self, text: &str) -> String {
        text.replace(&*self.root().to_string_lossy(), "[root]")
    }
}

/// The table without what differs from machine to machine: how long folders' names are.
fn settled(text: &str) -> String {
    let machine = ["environment", "git", "permissions", "project instructions", "total", "your"];
    let line = |line: &str| match machine.iter().any(|name| line.contains(name)) {
        true => {
            let words: Vec<_> = line.split("  ").map(str::trim).filter(|w| !w.is_empty()).collect();
            let number = |word: &&str| !word.starts_with(|c: char| c.is_ascii_digit());
            format!("  {}", words.into_iter().filter(number).collect::<Vec<_>>().join(" | "))
        }
        false => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_table_of_what_would_be_sent() {
    let (code, out, err) = Place::new().run(&["show", "-m", "gpt-5.5", "fix it"]);
    assert_eq!((code, err.as_str()), (0, ""));
    insta::assert_snapshot!(settled(&out), @"
    gpt-5.5 · OpenAI (responses) · window 272,000 · ~/project/src
    base prompt: the first item, from the developer

      role          block                     bytes   tokens  source
      developer     base prompt               2,374      594  built in
      developer | permissions | settings
      user | project instructions | ~/.codex/AGENTS.md
                                                              ~/project/AGENTS.md
                                                              ~/project/src/AGENTS.md
      user | environment | this machine
      user | git | this machine
      user | your prompt | the command line
      total
    ");
}

#[test]
fn the_wire_says_where_the_base_prompt_goes() {
    let heading = |args: &[&str]| {
        let (code, out, err) = Place::new().run(args);
        assert_eq!(code, 0, "{err}");
        let lines: Vec<_> = out.lines().take(2).map(str::to_owned).collect();
        let base = out.lines().find(|line| line.contains("  base prompt")).unwrap();
        let role = base.split_whitespace().next().unwrap();
        format!("{}\n{}\nrole: {role}", lines[0], lines[1])
    };
    insta::assert_snapshot!(heading(&["show"]), @"
    demo · Demo (demo) · window 272,000 · ~/project/src
    base prompt: read by the demo model
    role: developer
    ");
    insta::assert_snapshot!(heading(&["show", "-m", "gpt-5.5", "--wire", "chat"]), @"
    gpt-5.5 · OpenAI (chat) · window 272,000 · ~/project/src
    base prompt: the first message, from the system
    role: system
    ");
    let local = ["show", "--base-url", "http://localhost:1/v1", "-m", "x"];
    insta::assert_snapshot!(heading(&local), @"
    x · the given address (chat) · window 32,768 · ~/project/src
    base prompt: the first message, from the system
    role: system
    ");
    let ollama = ["show", "--provider", "ollama", "--wire", "responses", "-C", ".."];
    insta::assert_snapshot!(heading(&ollama), @"
    gpt-oss:20b · Ollama (responses) · window 131,072 · ~/project
    base prompt: the request's `instructions`
    role: instructions
    ");
}

#[test]
fn texts_and_json() {
    let place = Place::new();
    let (_, out, _) = place.run(&["show", "--full", "hello"]);
    let instructions = "--- user · project instructions ---\n\
        # AGENTS.md instructions for [root]/home/project/src\n\n<INSTRUCTIONS>\nBe kind.\n\n\
        --- project-doc ---\n\nUse tabs.\n\n\nNo macros.\n\n</INSTRUCTIONS>\n";
    assert!(out.contains(instructions), "{out}");
    assert!(out.ends_with("--- user · your prompt ---\nhello\n"), "{out}");
    let (_, out, _) = place.run(&["show", "--json"]);
    let json: Value = serde_json::from_str(&out).unwrap();
    let blocks = json["blocks"].as_array().unwrap();
    assert!(blocks.iter().all(|block| block.get("text").is_none()));
    let names: Vec<_> = blocks.iter().map(|block| block["name"].as_str().unwrap()).collect();
    let expected = ["base prompt", "permissions", "project instructions", "environment", "git"];
    assert_eq!(names, expected);
    let sources: Vec<_> = blocks[2]["sources"].as_array().unwrap().iter().collect();
    assert_eq!(sources.len(), 3);
    assert_eq!(sources[0], "[root]/home/.codex/AGENTS.md");
    let tokens: u64 = blocks.iter().map(|block| block["tokens"].as_u64().unwrap()).sum();
    assert_eq!(json["tokens"], tokens);
    let (_, out, _) = place.run(&["show", "--json", "--full"]);
    let json: Value = serde_json::from_str(&out).unwrap();
    for block in json["blocks"].as_array().unwrap() {
        let bytes = block["text"].as_str().unwrap().len() as u64;
        // The folder's name is shortened for the test, in the text and not in its length.
        assert!(block["bytes"].as_u64().unwrap() >= bytes, "{block}");
        assert_eq!(block["tokens"], block["bytes"].as_u64().unwrap().div_ceil(4));
    }
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    let place = Place::new();
    place.write("home/project/AGENTS.md", "red \u{1b}[31m\n");
    let (_, out, _) = place.run(&["show", "--full"]);
    assert!(!out.contains('\u{1b}'));
}

#[test]
fn settings_that_are_wrong_say_where() {
    let place = Place::new();
    place.write("home/.codex/config.toml", "model = 'x'\nmodel_context_window = 'wide'\n");
    let (code, _, err) = place.run(&["show"]);
    assert_eq!(code, 1);
    insta::assert_snapshot!(err, @r#"error: `model_context_window` in `[root]/home/.codex/config.toml`, line 2: invalid type: string "wide", expected u64"#);
    place.write("home/.codex/config.toml", "hologram = true\nmodel = 'gpt-5.5'\n");
    let (code, _, err) = place.run(&["show"]);
    assert_eq!(
        (code, err.as_str()),
        (0, "note: the engine has no use for `hologram` of the configuration\n")
    );
    let (code, _, err) = place.run(&["show", "-C", "nowhere"]);
    assert_eq!(code, 1);
    insta::assert_snapshot!(err, @"
    error: cannot enter `nowhere`
      cause: No such file or directory (os error 2)
    ");
    let (code, _, err) = place.run(&["show", "--provider", "vllm", "-c", "model"]);
    assert_eq!(code, 1);
    insta::assert_snapshot!(err, @"error: `model` in `-c`: give `key=value`");
}

#[test]
fn prompts_are_listed_and_filled_in() {
    let place = Place::new();
    let (_, out, _) = place.run(&["list"]);
    assert_eq!(out, "no prompts in [root]/home/.codex/prompts\n");
    let perf =
        "---\ndescription: Look for slow code\nargument-hint: FILE\n---\nSlow: $1 ($ARGUMENTS)\n";
    place.write("home/.codex/prompts/perf.md", perf);
    place.write("home/.codex/prompts/ask.md", "Ask $WHO about $WHAT");
    let (_, out, _) = place.run(&["list"]);
    insta::assert_snapshot!(out, @"
    /prompts:ask WHO=… WHAT=…
    /prompts:perf FILE         Look for slow code
    ");
    let (_, out, _) = place.run(&["list", "--json"]);
    let first: Value = serde_json::from_str(out.lines().next().unwrap()).unwrap();
    assert_eq!((&first["name"], &first["names"][1]), (&"ask".into(), &"WHAT".into()));
    let (_, out, _) = place.run(&["expand", "perf", "a b.rs", "--deep"]);
    assert_eq!(out, "Slow: a b.rs (a b.rs --deep)\n");
    let (_, out, _) = place.run(&["expand", "/prompts:ask", "WHO=her", "WHAT=two words"]);
    assert_eq!(out, "Ask her about two words\n");
    let (code, _, err) = place.run(&["expand", "ask", "WHO=her"]);
    assert_eq!(code, 1);
    insta::assert_snapshot!(err, @"
    error: `/prompts:ask`: missing required args: WHAT
      hint: add WHAT=…
    ");
    let (code, _, err) = place.run(&["expand", "nobody"]);
    assert_eq!(code, 2);
    insta::assert_snapshot!(err, @"
    error: no prompt `nobody`
      hint: there are ask, perf
    ");
    let (_, out, _) = place.run(&["show", "--full", "/prompts:ask WHO=me WHAT=it"]);
    assert!(out.ends_with("--- user · your prompt ---\nAsk me about it\n"), "{out}");
}

#[test]
fn the_page_about_the_engine_names_every_provider() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/engine.md")).unwrap();
    for word in ["ollama", "lmstudio", "vllm", "openai", "azure", "demo", "bindery.toml"] {
        assert!(page.contains(word), "{word}");
    }
}
