//! Blocks in their order, and what is told again.

use bindery_engine::config::{ApprovalPolicy, SandboxMode, SandboxSettings};
use bindery_engine::item::HistoryItem;
use bindery_engine::prompt::{Context, Mode, Snapshot, ThreadScene, base};
use serde_json::Value;

use crate::place::Place;

fn scene(place: &Place) -> ThreadScene {
    ThreadScene {
        cwd: place.project(),
        approval_policy: ApprovalPolicy::OnRequest,
        sandbox: SandboxSettings::of(SandboxMode::WorkspaceWrite),
        developer_instructions: Some("Answer in rhyme.".to_owned()),
        date: "2026-03-01".to_owned(),
        timezone: Some("Europe/Berlin".to_owned()),
        shell: Some("zsh".to_owned()),
        git_limit: None,
    }
}

fn place() -> Place {
    let place = Place::new();
    place.write("project/AGENTS.md", "Be brief.");
    place.write("project/.git/HEAD", "ref: refs/heads/main\n");
    place
}

fn gather(place: &Place, scene: &ThreadScene) -> Context {
    Context::gather(&place.load(&[]).unwrap(), scene)
}

/// Each message as `role: part | part`, parts by their first line.
fn sketch(place: &Place, items: &[HistoryItem]) -> Vec<String> {
    let sketch = |item: &HistoryItem| {
        let item = serde_json::to_value(item).unwrap();
        let parts = item["content"].as_array().unwrap().iter().map(first_line);
        format!("{}: {}", item["role"].as_str().unwrap(), parts.collect::<Vec<_>>().join(" | "))
    };
    items.iter().map(|item| place.stable(&sketch(item))).collect()
}

fn first_line(part: &Value) -> String {
    part["text"].as_str().unwrap().lines().next().unwrap().to_owned()
}

#[test]
fn everything_is_told_once_in_order() {
    let place = place();
    let context = gather(&place, &scene(&place));
    let told = context.changes_since(&Snapshot::default());
    assert_eq!(
        sketch(&place, &told),
        [
            "developer: Answer in rhyme. | <permissions instructions>",
            "user: # AGENTS.md instructions for ~/project | <environment_context> | <git_context>",
        ]
    );
    assert_eq!(context.changes_since(&context.snapshot()), []);
    let kept = serde_json::to_string(&context.snapshot()).unwrap();
    let kept: Snapshot = serde_json::from_str(&kept).unwrap();
    assert_eq!(context.changes_since(&kept), []);
    // A thread without a snapshot is known by its history.
    assert_eq!(Snapshot::of_history(&told, Some("Answer in rhyme.")), context.snapshot());
}

#[test]
fn the_environment_is_that_of_codex() {
    let place = place();
    let mut scene = scene(&place);
    scene.sandbox.writable_roots = vec!["/opt/x & 'y'".into()];
    scene.sandbox.exclude_slash_tmp = true;
    // One line in the block, many here.
    let text = |scene: &ThreadScene| {
        place.stable(&bindery_engine::prompt::environment::text(scene)).replace("><", ">\n<")
    };
    insta::assert_snapshot!(text(&scene));
    scene.sandbox.mode = SandboxMode::DangerFullAccess;
    (scene.timezone, scene.shell) = (None, None);
    insta::assert_snapshot!(text(&scene), @r#"
    <environment_context>
      <cwd>~/project</cwd>
      <current_date>2026-03-01</current_date>
      <filesystem>
    <workspace_roots>
    <root>~/project</root>
    </workspace_roots>
    <permission_profile type="disabled">
    <file_system type="unrestricted" />
    </permission_profile>
    </filesystem>
    </environment_context>
    "#);
}

#[test]
fn permissions_say_what_may_be_done() {
    let place = place();
    let mut scene = scene(&place);
    let text = |scene: &ThreadScene| {
        let text = bindery_engine::prompt::permissions::text(scene);
        place.stable(&text).replace(". ", ".\n").replace(": ", ":\n")
    };
    insta::assert_snapshot!(text(&scene), @"
    <permissions instructions>
    Files (`workspace-write`):
    commands can read everything, and change what is in the workspace; `.git`, `.codex`, `.agents`, `.bindery`, `.aws` in it can only be read.
    Writable folders:
    `~/project`, `/tmp`, the folder `$TMPDIR` names, if it is set.
    Network:
    closed to commands.
    Approvals (`on-request`):
    a command that needs more than the sandbox gives, such as the network or another folder, can ask for it:
    set `sandbox_permissions` to `require_escalated` and say why in one sentence as `justification`.
    The user then decides.
    Ask only for what the task needs.
    </permissions instructions>
    ");
    scene.sandbox.mode = SandboxMode::ReadOnly;
    scene.approval_policy = ApprovalPolicy::Never;
    insta::assert_snapshot!(text(&scene), @"
    <permissions instructions>
    Files (`read-only`):
    commands can read everything and change nothing.
    Network:
    closed to commands.
    Approvals (`never`):
    nobody can be asked.
    A command that asks for more than the sandbox gives is refused, so do not ask; find another way or say what is missing.
    </permissions instructions>
    ");
    scene.sandbox.mode = SandboxMode::DangerFullAccess;
    scene.approval_policy = ApprovalPolicy::Untrusted;
    insta::assert_snapshot!(text(&scene), @"
    <permissions instructions>
    Files (`danger-full-access`):
    there is no sandbox; commands can read and change whatever the user can.
    Take care outside the workspace.
    Network:
    commands can reach it.
    Approvals (`untrusted`):
    the user is asked before every command that is not known to only read.
    Expect to wait, and put together what belongs together.
    </permissions instructions>
    ");
}

#[test]
fn only_what_changed_is_told_again() {
    let place = place();
    let first = scene(&place);
    let snapshot = gather(&place, &first).snapshot();
    let told =
        |scene: &ThreadScene| sketch(&place, &gather(&place, scene).changes_since(&snapshot));
    assert_eq!(told(&first), [""; 0]);
    assert_eq!(
        told(&ThreadScene { date: "2026-03-02".to_owned(), ..first.clone() }),
        ["user: <environment_context>"]
    );
    assert_eq!(told(&ThreadScene { shell: None, ..first.clone() }), [""; 0]);
    assert_eq!(
        told(&ThreadScene { approval_policy: ApprovalPolicy::Never, ..first.clone() }),
        ["developer: <permissions instructions>"]
    );
    place.write("project/.git/HEAD", "ref: refs/heads/other\n");
    assert_eq!(told(&first), ["user: <git_context>"]);
}

#[test]
fn changed_instructions_say_that_they_replace() {
    let place = place();
    let scene = scene(&place);
    let first = gather(&place, &scene);
    let mut history = first.changes_since(&Snapshot::default());
    place.write("project/AGENTS.md", "Be verbose.");
    let second = gather(&place, &scene);
    let changes = second.changes_since(&first.snapshot());
    let text = serde_json::to_value(&changes).unwrap()[0]["content"][0]["text"].clone();
    insta::assert_snapshot!(place.stable(text.as_str().unwrap()), @"
    # AGENTS.md instructions for ~/project

    <INSTRUCTIONS>
    The project's instructions have changed. What follows takes the place of every AGENTS.md instruction given before.

    Be verbose.
    </INSTRUCTIONS>
    ");
    history.extend(changes);
    assert_eq!(Snapshot::of_history(&history, Some("Answer in rhyme.")), second.snapshot());
    std::fs::remove_file(place.project().join("AGENTS.md")).unwrap();
    let third = gather(&place, &scene);
    let changes = third.changes_since(&second.snapshot());
    let text = serde_json::to_value(&changes).unwrap();
    insta::assert_snapshot!(text[0]["content"][0]["text"].as_str().unwrap(), @"
    # AGENTS.md instructions

    <INSTRUCTIONS>
    The project has no instructions any more. Every AGENTS.md instruction given before is withdrawn.
    </INSTRUCTIONS>
    ");
    assert_eq!(third.changes_since(&third.snapshot()), []);
    history.extend(changes);
    let told = Snapshot::of_history(&history, Some("Answer in rhyme."));
    assert_eq!(third.changes_since(&told), []);
}

#[test]
fn base_prompts_name_only_tools_that_are_offered() {
    let place = Place::new();
    for model in ["gpt-5.5", "gpt-5", "gpt-oss:20b", "never-heard-of", "gpt-4.1"] {
        let entry = place.load(&[&format!("model={model}")]).unwrap().entry;
        let text = base(&entry, Mode::Agent);
        let offered = entry.tools.apply_patch != bindery_engine::config::PatchTool::None;
        assert_eq!(text.contains("apply_patch"), offered, "{model}");
        assert_eq!(text.contains("update_plan"), entry.tools.plan, "{model}");
        let pictures = entry.tools.view_image && entry.images;
        assert_eq!(text.contains("view_image"), pictures, "{model}");
        assert!(text.len() < 8_000 && base(&entry, Mode::Plan).len() > text.len(), "{model}");
    }
}
