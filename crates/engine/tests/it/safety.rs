//! Decisions about commands, as tables; and input that is made to confuse.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use bindery_engine::safety::rules::{self, Rule, Token, Word};
use bindery_engine::safety::{
    ApprovalPolicy, Decision, Granular, ProgramSearch, Question, Rules, danger, decide, known_safe,
    script, starlark,
};
use bindery_engine::sandbox::Policy;
use proptest::prelude::*;

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

fn bash(script: &str) -> Vec<String> {
    ["bash", "-lc", script].map(str::to_owned).to_vec()
}

fn rule(prefix: &str, decision: Word) -> Rule {
    let prefix = words(prefix).into_iter().map(Token::One).collect();
    Rule { prefix, decision, justification: None }
}

#[test]
fn scripts_of_plain_commands_are_read() {
    #[rustfmt::skip]
    let table = [
        ("ls -l",                        Some("ls -l")),
        ("cd a && ls | wc -l; pwd",      Some("cd a / ls / wc -l / pwd")),
        ("false || true",                Some("false / true")),
        ("echo 'a b' \"c d\" e'f'",      Some("echo a b c d ef")),
        ("git log\nls",                  Some("git log / ls")),
        ("ls > file",                    None),
        ("ls < file",                    None),
        ("echo $HOME",                   None),
        ("echo \"$(rm -rf x)\"",         None),
        ("echo `id`",                    None),
        ("(ls)",                         None),
        ("ls &",                         None),
        ("A=1 ls",                       None),
        ("for i in a; do ls; done",      None),
        ("f() { ls; }; f",               None),
        ("ls *",                         None),
        ("l\\s",                         None),
        ("ls {a,b}",                     None),
        ("ls ~",                         None),
        ("cat <<EOF\nx\nEOF",            None),
        ("cat <(ls)",                    None),
        ("! ls",                         None),
        ("ls 'a",                        None),
        ("",                             None),
        ("# only words",                 None),
        ("ls |& cat",                    None),
    ];
    for (text, expected) in table {
        let found = script::plain(text);
        let found = found.map(|all| all.iter().map(|one| one.join(" ")).collect::<Vec<_>>());
        assert_eq!(found.map(|all| all.join(" / ")).as_deref(), expected, "{text}");
    }
}

#[test]
fn what_destroys_is_found_however_it_is_dressed() {
    let dangerous = [
        "rm -f x",
        "rm -rf x",
        "rm -r -f x",
        "rm --force x",
        "/bin/rm -rf x",
        "ls; rm -rf x",
        "ls && (cd a; rm -fr *)",
        "sudo rm -rf x",
        "sudo -u me -- rm -rf x",
        "env A=1 rm -rf x",
        "A=1 rm -rf x",
        "trap 'rm -rf x' EXIT",
        "bash -c 'rm -rf x'",
        "bash -c \"bash -c 'rm -rf x'\"",
        "sh -ec 'rm -rf x'",
        "eval 'rm -rf x'",
        "eval rm -rf x",
        "eval r'm' -rf x",
        "command eval rm -rf x",
        "r\\\nm -rf x",
        "rm \\\n -rf x",
        "echo \"$(rm -rf x)\"",
        "find . -exec rm -f {} ;",
        "ls | xargs rm -f",
        "for i in a b; do rm -rf $i; done",
        "r\\m -rf x",
        "'rm' -rf x",
        "timeout 5 rm -rf x",
        "if true; then rm -rf x",
        "dd if=/dev/zero of=/dev/sda",
        "mkfs.ext4 /dev/sda1",
    ];
    for text in dangerous {
        assert!(danger::is_dangerous(&bash(text)), "{text}");
    }
    for text in ["rm x", "ls -f", "echo rm -rf x", "rm -- -f", "git rm -r x", "grep -rf x y", ""] {
        assert!(!danger::is_dangerous(&bash(text)), "{text}");
    }
    let deep = (0..12)
        .fold(words("ls"), |inner, _| ["sudo".to_owned()].into_iter().chain(inner).collect());
    assert!(danger::is_dangerous(&deep), "too deep to say");
}

#[test]
fn what_only_reads_is_known() {
    let safe = ["ls -la", "cat a b", "git status", "git log -p", "git branch --list", "rg x src"];
    let more = ["find . -name x", "sed -n 3,9p file", "base64 x", "uniq a", "grep -rf x y"];
    let plain = "cat cd cut echo expr false grep head id ls nl numfmt paste pwd rev seq stat tac \
                 tail tr true uname uniq wc which whoami";
    for text in safe.into_iter().chain(more).chain(plain.split_whitespace()) {
        assert!(known_safe::is_safe(&words(text)), "{text}");
    }
    assert!(known_safe::is_safe(&bash("cd a && ls | wc -l")));
    let unsafe_ones = [
        "find . -delete",
        "find . -exec ls ;",
        "rg --pre cat x",
        "rg -iz x",
        "git -c core.pager=x log",
        "git log --output=x",
        "git branch -D x",
        "git push",
        "sed -i s/a/b/ x",
        "sed -n 3w",
        "base64 -o x",
        "uniq a b",
        "./ls",
        "cargo build",
    ];
    for text in unsafe_ones {
        assert!(!known_safe::is_safe(&words(text)), "{text}");
    }
    assert!(!known_safe::is_safe(&bash("ls > x")) && !known_safe::is_safe(&bash("ls; make")));
    assert!(!known_safe::is_safe(&[]));
}

const ASK_RULES: Granular = Granular { sandbox_approval: false, rules: true };

const ASK_SANDBOX: Granular = Granular { sandbox_approval: true, rules: false };

fn decided(
    text: &str,
    approval: ApprovalPolicy,
    policy: &Policy,
    escalated: bool,
    sandboxed: bool,
) -> String {
    let rules = Rules::of(vec![
        rule("cargo test", Word::Allow),
        rule("cargo publish", Word::Forbidden),
        rule("npm install", Word::Prompt),
    ]);
    let argv = bash(text);
    let question = Question {
        argv: &argv,
        policy,
        approval,
        rules: &rules,
        escalated,
        sandboxed,
        proposed: None,
        search: &ProgramSearch::default(),
    };
    match decide(&question) {
        Decision::Allow { outside: false } => "runs".to_owned(),
        Decision::Allow { outside: true } => "runs outside".to_owned(),
        Decision::Ask { outside: false, .. } => "asks".to_owned(),
        Decision::Ask { outside: true, .. } => "asks outside".to_owned(),
        Decision::Forbid { .. } => "no".to_owned(),
    }
}

#[test]
fn policies_decide() {
    use ApprovalPolicy::{Granular, Never, OnRequest, Untrusted};
    let (write, free) = (Policy::workspace_write(), Policy::FullAccess);
    #[rustfmt::skip]
    let table = [
        // command             approval                policy  escalated sandboxed  is
        ("make",               OnRequest,              &write, false,    true,      "runs"),
        ("make",               OnRequest,              &write, true,     true,      "asks outside"),
        ("make",               OnRequest,              &free,  true,     false,     "runs outside"),
        ("make",               OnRequest,              &write, false,    false,     "asks outside"),
        ("ls",                 OnRequest,              &write, false,    false,     "asks outside"),
        ("make",               Never,                  &write, false,    true,      "runs"),
        ("make",               Never,                  &write, true,     true,      "no"),
        ("make",               Never,                  &write, false,    false,     "no"),
        ("make",               Never,                  &free,  false,    false,     "runs outside"),
        ("rm -rf x",           OnRequest,              &write, false,    true,      "asks"),
        ("rm -rf x",           Never,                  &write, false,    true,      "no"),
        ("rm -rf x",           Never,                  &free,  false,    false,     "no"),
        ("ls; rm -rf x",       Granular(ASK_SANDBOX),  &write, false,    true,      "asks"),
        ("rm -rf x",           Granular(ASK_RULES),    &write, false,    true,      "no"),
        ("make",               Granular(ASK_RULES),    &write, true,     true,      "no"),
        ("make",               Granular(ASK_SANDBOX),  &write, true,     true,      "asks outside"),
        ("ls | wc -l",         Untrusted,              &write, false,    true,      "runs"),
        ("make",               Untrusted,              &write, false,    true,      "asks"),
        ("ls > x",             Untrusted,              &write, false,    true,      "asks"),
        ("ls",                 Untrusted,              &write, false,    false,     "asks outside"),
        ("cargo test -q",      Untrusted,              &write, false,    true,      "runs"),
        ("cargo test -q",      Never,                  &write, true,     true,      "runs outside"),
        ("cargo test; make",   Untrusted,              &write, false,    true,      "asks"),
        ("cargo test > x",     Untrusted,              &write, false,    true,      "asks"),
        ("cargo publish",      OnRequest,              &free,  true,     false,     "no"),
        ("ls && cargo publish", OnRequest,             &write, false,    true,      "no"),
        ("npm install x",      OnRequest,              &write, false,    true,      "asks"),
        ("npm install x",      Never,                  &free,  false,    true,      "no"),
        ("npm install x",      Granular(ASK_SANDBOX),  &write, false,    true,      "no"),
    ];
    for (text, approval, policy, escalated, sandboxed, expected) in table {
        let found = decided(text, approval, policy, escalated, sandboxed);
        assert_eq!(found, expected, "{text} {approval:?} {policy:?} {escalated} {sandboxed}");
    }
    assert_eq!(ApprovalPolicy::named("on-failure"), Some(OnRequest));
    assert_eq!(ApprovalPolicy::named("always"), None);
}

#[test]
fn only_narrow_prefixes_are_offered() {
    let offered = |script: &str, wish: Option<&str>| {
        let (argv, wish) = (bash(script), wish.map(words));
        let decision = decide(&Question {
            argv: &argv,
            policy: &Policy::workspace_write(),
            approval: ApprovalPolicy::OnRequest,
            rules: &Rules::default(),
            escalated: true,
            sandboxed: true,
            proposed: wish.as_deref(),
            search: &ProgramSearch::default(),
        });
        match decision {
            Decision::Ask { proposed, .. } => proposed.map(|words| words.join(" ")),
            other => panic!("{other:?}"),
        }
    };
    #[rustfmt::skip]
    let table = [
        ("cargo build -q",    Some("cargo build"),  Some("cargo build")),
        ("cargo build -q",    None,                 Some("cargo build -q")),
        ("cargo build",       Some("cargo test"),   Some("cargo build")),
        ("git push origin",   Some("git"),          Some("git push origin")),
        ("git",               None,                 None),
        ("python3 -c",        None,                 None),
        ("ls; make",          Some("ls"),           None),
        ("echo $HOME",        None,                 None),
    ];
    for (script, wish, expected) in table {
        assert_eq!(offered(script, wish).as_deref(), expected, "{script}");
    }
}

#[test]
fn a_yes_for_good_is_kept_in_our_own_file() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("new/rules.toml");
    let nowhere = home.path().join("none");
    fs::create_dir(home.path().join("new")).unwrap();
    fs::write(&file, "# mine\n[[rule]]\nprefix = [\"a\"]\ndecision = \"prompt\"\n").unwrap();
    rules::allow_for_good(&file, &words("cargo test")).unwrap();
    assert!(rules::allow_for_good(&file, &words("bash")).is_err());
    insta::assert_snapshot!(fs::read_to_string(&file).unwrap(), @r#"
    # mine
    [[rule]]
    prefix = ["a"]
    decision = "prompt"

    [[rule]]
    prefix = ["cargo", "test"]
    decision = "allow"
    "#);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let loaded = Rules::load(&file, &nowhere);
    let expected = vec![rule("a", Word::Prompt), rule("cargo test", Word::Allow)];
    assert_eq!(loaded, Rules::of(expected));
    fs::write(&file, "[[rule]]\nprefix = [\"ls\"]\ndecision = \"allow\"\nelse = 1\n").unwrap();
    let broken = Rules::load(&file, &nowhere);
    assert_eq!((broken.rules.len(), broken.problems.len()), (0, 1));
    assert!(rules::allow_for_good(home.path(), &words("cargo test")).is_err());
}

#[test]
fn rule_files_of_codex_are_read() {
    let text = r#"
        # Words.
        prefix_rule(pattern = ["git", ["fetch", 'pull']], decision = "allow",
            match = ["git fetch origin", ["git", "pull"]], not_match = ["git push"])
        prefix_rule(pattern=["rm"], decision="forbidden", justification="use \"trash\"",)
        host_executable(name = "git", paths = ["/usr/bin/git"])
    "#;
    let found = starlark::read(text);
    assert_eq!(found.problem, None);
    let mut rules = Rules::of(found.rules);
    rules.programs = found.programs;
    let verdict = |text: &str| rules.strictest(&[words(text)]).map(|word| format!("{word:?}"));
    #[rustfmt::skip]
    let table = [
        ("git fetch x",          Some("Allow")),
        ("git push",             None),
        ("git",                  None),
        ("/usr/bin/git pull",    Some("Allow")),
        ("/tmp/git pull",        None),
        ("./git pull",           None),
        ("/tmp/rm x",            Some("Forbid(\"use \\\"trash\\\"\")")),
    ];
    for (text, expected) in table {
        assert_eq!(verdict(text).as_deref(), expected, "{text}");
    }
}

#[test]
fn what_is_not_understood_allows_nothing() {
    let good =
        "prefix_rule(pattern=[\"ls\"])\nprefix_rule(pattern=[\"rm\"], decision=\"forbidden\")\n";
    for bad in [
        "load(\"x\", \"y\")",
        "x = 1",
        "prefix_rule(pattern=[])",
        "prefix_rule(pattern=[\"a\"], decision=\"maybe\")",
        "prefix_rule(pattern=[\"a\"], surprise=\"b\")",
        "prefix_rule(pattern=[\"a\" + \"b\"])",
        "prefix_rule(pattern=[x for x in y])",
        "prefix_rule(pattern=[\"a\"], match=[\"b\"])",
        "prefix_rule(pattern=[\"\"\"a\"\"\"])",
        "prefix_rule(pattern=[\"a",
        "if True:",
        "prefix_rule(pattern=[[[[[[\"a\"]]]]]])",
    ] {
        let found = starlark::read(&format!("{good}{bad}"));
        assert!(found.problem.is_some(), "{bad}");
        assert_eq!(found.rules, [rule("rm", Word::Forbidden)], "{bad}");
    }
}

proptest! {
    #[test]
    fn garbage_never_allows(text in "\\PC{0,200}", piece in "[a-z$(){}<>|&;'\"` \\\\*\n=-]{0,80}") {
        for script in [text.as_str(), piece.as_str()] {
            script::plain(script);
            danger::is_dangerous(&bash(script));
            known_safe::is_safe(&bash(script));
            let found = starlark::read(script);
            prop_assert!(found.problem.is_none() || found.rules.is_empty());
        }
    }

    #[test]
    fn no_dressing_gets_a_removal_past_never(before in "[a-z =&|;(\n]{0,20}", after in "[a-z ;|&]{0,20}") {
        let script = format!("{before}; rm -rf x ;{after}");
        let decision = decided(&script, ApprovalPolicy::Never, &Policy::workspace_write(), false, true);
        prop_assert_eq!(decision, "no");
    }

    #[test]
    fn a_cut_rule_file_allows_only_what_was_whole(cut in 0usize..120) {
        let text = "prefix_rule(pattern=[\"git\", \"fetch\"], decision=\"forbidden\")\n\
                    prefix_rule(pattern=[\"rm\", \"-r\"], decision=\"prompt\")\n";
        let found = starlark::read(&text[..cut.min(text.len())]);
        prop_assert!(found.rules.iter().all(|rule| rule.decision != Word::Allow));
    }
}

/// The name of a program within a script within a script is one that a command can have taken.
#[test]
fn a_program_in_a_nested_script_must_lie_out_of_reach_too() {
    let project = tempfile::tempdir().unwrap();
    let trojan = project.path().join("ls");
    std::fs::write(&trojan, "").unwrap();
    std::fs::set_permissions(&trojan, PermissionsExt::from_mode(0o755)).unwrap();
    let path = std::env::join_paths([project.path(), Path::new("/usr/bin"), Path::new("/bin")]);
    let steered = ProgramSearch::new(Some(&path.unwrap()), &[project.path().to_owned()]);
    let plain = ProgramSearch::new(Some("/usr/bin:/bin".as_ref()), &[project.path().to_owned()]);
    let decided = |script: &[&str], search: &ProgramSearch| {
        let argv: Vec<String> = script.iter().map(|word| (*word).to_owned()).collect();
        decide(&Question {
            argv: &argv,
            policy: &Policy::FullAccess,
            approval: ApprovalPolicy::Untrusted,
            rules: &Rules::default(),
            escalated: false,
            sandboxed: true,
            proposed: None,
            search,
        })
    };
    let scripts: [&[&str]; 4] = [
        &["ls"],
        &["bash", "-c", "ls"],
        &["bash", "-lc", "bash -c ls"],
        &["bash", "-lc", "true && bash -c 'cat x; ls'"],
    ];
    for script in scripts {
        assert_eq!(decided(script, &plain), Decision::Allow { outside: true }, "{script:?}");
        assert!(matches!(decided(script, &steered), Decision::Ask { .. }), "{script:?}");
    }
}
