//! Whether we see the words of a script that the shells themselves see.

use std::path::Path;
use std::process::Command;

use bindery_engine::safety::rules::{Rule, Token, Word};
use bindery_engine::safety::{
    ApprovalPolicy, Decision, ProgramSearch, Question, Rules, decide, known_safe, script,
};
use bindery_engine::sandbox::Policy;
use proptest::prelude::*;

/// Shells of this machine. Every system has the first.
fn shells() -> Vec<&'static str> {
    let known = ["/bin/sh", "/bin/bash", "/usr/bin/zsh", "/bin/dash"];
    known.into_iter().filter(|shell| Path::new(shell).is_file()).collect()
}

/// The words of a script that is one command, as a shell passes them to a program.
fn seen_by(shell: &str, script: &str) -> Option<Vec<String>> {
    let script = format!("printf '%s\\0' {script}");
    let output = Command::new(shell).args(["-c", &script]).env_clear().output().unwrap();
    let text = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
    Some(text.split_terminator('\0').map(str::to_owned).collect())
}

fn argv(script: &str) -> Vec<String> {
    ["/bin/sh", "-c", script].map(str::to_owned).to_vec()
}

#[test]
fn what_shells_read_differently_is_not_read_at_all() {
    let scripts = [
        "ls\u{b}-l",
        "ls\u{c}-l",
        "ls\r",
        "ls\r\n",
        "l\\\ns",
        "ls \\\n-l",
        "ls\u{a0}-l",
        "ls\u{2003}x",
        "ls\u{85}x",
        "ls\u{feff}",
        "ls x\u{0}y",
        "=ls",
        "ls =cat",
        "ls ^x",
        "%1",
        "time ls",
        "noglob ls",
        "repeat 2 ls",
        "export A=1",
        "a+=1",
        "ls; ; ls",
        "; ls",
        "ls &&",
        "ls | | wc",
        "&& ls",
        "ls \"$HOME\"",
        "ls \"a\\b\"",
        "ls $'a'",
        "ls \"a!b\"",
    ];
    for text in scripts {
        assert_eq!(script::plain(text), None, "{text:?}");
    }
}

#[test]
fn neither_rules_nor_the_list_of_safe_commands_take_what_a_shell_reads_differently() {
    let prefix = ["ls", "-l"].map(|word| Token::One(word.to_owned())).to_vec();
    let rules = Rules::of(vec![Rule { prefix, decision: Word::Allow, justification: None }]);
    let outcome = |text: &str, approval| {
        decide(&Question {
            argv: &argv(text),
            policy: &Policy::workspace_write(),
            approval,
            rules: &rules,
            escalated: approval == ApprovalPolicy::Never,
            sandboxed: true,
            proposed: None,
            search: &ProgramSearch::default(),
        })
    };
    let allowed = |text: &str, approval| matches!(outcome(text, approval), Decision::Allow { .. });
    use ApprovalPolicy::{Never, Untrusted};
    assert!(allowed("ls -l x", Never) && allowed("ls -a", Untrusted));
    for text in ["ls\u{b}-l x", "ls -l\u{c}x", "ls -l\rx", "ls -l \\\nx", "ls -l\u{a0}x"] {
        assert!(!allowed(text, Never) && !allowed(text, Untrusted), "{text:?}");
    }
}

#[test]
fn options_that_write_or_run_are_no_part_of_what_only_reads() {
    let safe = |text: &str| {
        let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
        known_safe::is_safe(&words)
    };
    #[rustfmt::skip]
    let unsafe_ones = [
        "uniq - x", "uniq -c - x", "uniq -- a b", "uniq a -f 1 b", "uniq -f 1 a b",
        "sort a", "sort -o x a", "base64 --output=x a", "base64 -do x", "base64 -i a -o b",
        "find . -fprint x", "find . -fprint0 x", "find . -fls x", "find . -fprintf x y",
        "find . -execdir ls ;", "find . -okdir ls ;", "find . -ok ls ;", "find . -name",
        "find -f x -delete", "find . -unknown",
        "rg --pre=cat x", "rg --pre cat x", "rg --hostname-bin=x y", "rg --search-zip x", "rg -zi x",
        "rg --pr cat x", "rg -nz x",
        "sed -n 1,2w x", "sed -n 1e", "sed -n -i 1p", "sed -n 1p x y", "sed -ne 1p x",
        "git --output=x log", "git log --output x", "git log --outp=x", "git diff --ext-diff",
        "git log --textconv", "git -C x status", "git --git-dir=x status", "git show --show-signature",
        "git log --format=%G?", "git log --pretty=%GS", "git branch new", "git branch -m x",
        "git branch --list --edit-description", "git diff --no-index a b -O x", "git log -O x",
        "git status --unknown", "git stash", "git diff --submodule=log",
        "tail -f x", "tail --pid=1 x", "date -s x", "hostname x", "tee x", "dd if=a", "awk 1",
        "xargs ls", "tar tf x", "env ls", "less x", "man ls", "eval ls", "command ls", "exec ls",
        "numfmt --debug", "wc --files0-from=x", "cd a b", "pwd x", "which --read-alias x",
        "/bin/ls", "./cat x", "cat --unknown", "ls --hyperlink=x", "stat --cached=never x",
        "bash -c ls extra", "/project/bash -c ls",
    ];
    for text in unsafe_ones {
        assert!(!safe(text), "{text}");
    }
    #[rustfmt::skip]
    let safe_ones = [
        "uniq -c a", "uniq -f 1 a", "uniq -", "head -5 x", "head -n 5 x", "tail -c+3 x", "ls -la --color=auto",
        "grep -rn -A3 -e x src", "grep --include=*.rs -r x .", "rg -n -g *.rs x", "rg --files",
        "git log --oneline -5", "git log -n 3 --stat", "git diff HEAD~1 -- a b", "git show HEAD:a",
        "git status --short", "git status -sb", "git diff --cached --name-only", "git log --format=%h",
        "find src -type f -name *.rs -not -path x", "cut -d: -f1 x", "base64 -d x", "wc -l a b",
    ];
    for text in safe_ones {
        assert!(safe(text), "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Words that we read are the words that every shell passes on.
    #[test]
    fn every_shell_sees_the_words_that_we_see(
        text in prop_oneof![
            "([a-z0-9_./:,+@%=-]|'[^'\u{0}]{0,6}'|\"[a-zé* ]{0,6}\"|[ \t]){1,14}",
            "([a-z0-9_./:,+@%=^~#!-]|'[^'\u{0}]{0,6}'|\"[a-z $`\\\\!é*]{0,6}\"|[ \t]\
             |[\u{b}\u{c}\r\\\\\n\u{a0}ü]|[*?{}()<>&;|]){0,8}",
        ]
    ) {
        // The first word is ours, so that the shell has a program to pass them to.
        let script = format!("printf '%s\\0' {text}");
        let Some(commands) = script::plain(&script) else { return Ok(()) };
        if commands.len() > 1 || commands[0].len() < 3 {
            return Ok(());
        }
        for shell in shells() {
            let seen = seen_by(shell, &text);
            prop_assert_eq!(seen.as_deref(), Some(&commands[0][2..]), "{}: {:?}", shell, text);
        }
    }

    /// A script of several commands runs exactly those that we see.
    #[test]
    fn every_shell_runs_the_commands_that_we_see(
        pieces in prop::collection::vec("(say|'say') [a-z'=]{0,5}", 1..5),
        joints in prop::collection::vec("( && | ; |\n|;| \t\n\n|\r|\u{b}| & |\\\\\n|#)", 5),
    ) {
        let text: String =
            pieces.iter().zip(&joints).map(|(piece, joint)| format!("{piece}{joint}")).collect();
        let Some(commands) = script::plain(&text) else { return Ok(()) };
        let expected: String = commands.iter().map(|words| format!("{}\n", words.join("|"))).collect();
        for shell in shells() {
            let function = "say() { printf say; for w in \"$@\"; do printf '|%s' \"$w\"; done; echo; }";
            let script = format!("{function}\n{text}");
            let output = Command::new(shell).args(["-c", &script]).env_clear().output().unwrap();
            let seen = String::from_utf8_lossy(&output.stdout).into_owned();
            prop_assert_eq!(&seen, &expected, "{}: {:?}", shell, text);
        }
    }
}
