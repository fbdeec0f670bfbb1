//! The rules of `AGENTS.md`, one a test. Those marked "as Codex" run beside the real one, too.

use std::path::PathBuf;

use bindery_engine::prompt::agents_md::{Documents, gather};

use crate::place::Place;

fn found(place: &Place, cwd: PathBuf, flags: &[&str]) -> Documents {
    std::fs::create_dir_all(&cwd).unwrap();
    gather(&place.load_in(&cwd, flags).unwrap(), &cwd)
}

/// What is between the tags, for a folder of the project.
fn text_in(place: &Place, folder: &str, flags: &[&str]) -> String {
    let cwd = place.project().join(folder);
    let section = found(place, cwd.clone(), flags).section(&cwd);
    section.map_or_else(|| "(none)".to_owned(), |section| place.stable(&section.text))
}

fn text(place: &Place, flags: &[&str]) -> String {
    text_in(place, "", flags)
}

#[test]
fn the_global_file_alone_names_no_folder() {
    let place = Place::new();
    place.write("codex/AGENTS.md", "  be kind \n\n");
    assert_eq!(
        text(&place, &[]),
        "# AGENTS.md instructions\n\n<INSTRUCTIONS>\nbe kind\n</INSTRUCTIONS>"
    );
}

#[test]
fn the_global_override_goes_first_unless_it_is_blank() {
    let place = Place::new();
    place.write("codex/AGENTS.md", "plain");
    place.write("codex/AGENTS.override.md", "override");
    assert!(text(&place, &[]).contains("\noverride\n"));
    place.write("codex/AGENTS.override.md", " \n\t");
    assert!(text(&place, &[]).contains("\nplain\n"));
}

#[test]
fn documents_join_from_root_to_folder_untrimmed() {
    let place = Place::new();
    place.write("codex/AGENTS.md", "global");
    place.write("project/AGENTS.md", "root\n");
    place.write("project/a/b/AGENTS.md", "  deep\n");
    assert_eq!(
        text_in(&place, "a/b", &[]),
        "# AGENTS.md instructions for ~/project/a/b\n\n<INSTRUCTIONS>\nglobal\n\n\
         --- project-doc ---\n\nroot\n\n\n  deep\n\n</INSTRUCTIONS>"
    );
    // Nothing from beside or below.
    assert!(!text_in(&place, "a", &[]).contains("deep"));
}

#[test]
fn the_nearest_root_counts() {
    let place = Place::new();
    place.write("project/AGENTS.md", "outer");
    place.write("project/inner/.git", "gitdir: elsewhere\n");
    place.write("project/inner/AGENTS.md", "inner");
    let text = text_in(&place, "inner/src", &[]);
    assert!(text.contains("inner\n</INS") && !text.contains("outer"));
}

#[test]
fn without_a_root_only_the_folder_counts() {
    let place = Place::new();
    place.write("loose/AGENTS.md", "above");
    place.write("loose/sub/AGENTS.md", "here");
    let cwd = place.root().join("loose/sub");
    // A marker that nothing above the test's own folder has.
    let documents = found(&place, cwd, &["project_root_markers=['.root-of-this-test']"]);
    let texts: Vec<_> = documents.project.iter().map(|doc| doc.text.as_str()).collect();
    assert_eq!(texts, ["here"]);
}

#[test]
fn markers_can_be_others_or_none() {
    let place = Place::new();
    place.write("project/AGENTS.md", "root");
    place.write("project/a/BUILD", "");
    place.write("project/a/AGENTS.md", "a");
    place.write("project/a/b/AGENTS.md", "b");
    let texts = |flags: &[&str]| {
        let documents = found(&place, place.project().join("a/b"), flags).project;
        documents.into_iter().map(|doc| doc.text).collect::<Vec<_>>()
    };
    assert_eq!(texts(&[]), ["root", "a", "b"]);
    assert_eq!(texts(&["project_root_markers=['BUILD']"]), ["a", "b"]);
    assert_eq!(texts(&["project_root_markers=[]"]), ["b"]);
    assert_eq!(texts(&["project_root_markers=['nowhere']"]), ["b"]);
}

#[test]
fn each_folder_gives_its_first_file() {
    let place = Place::new();
    place.write("project/AGENTS.md", "plain");
    place.write("project/AGENTS.override.md", "override");
    place.write("project/a/CLAUDE.md", "fallback");
    place.write("project/a/OTHER.md", "later");
    let flags = ["project_doc_fallback_filenames=['', 'CLAUDE.md', 'CLAUDE.md', 'OTHER.md']"];
    let text = text_in(&place, "a", &flags);
    assert!(text.contains("\noverride\n\nfallback\n"), "{text}");
    assert!(!text_in(&place, "a", &[]).contains("fallback"));
}

#[test]
fn a_fallback_is_a_name_and_no_path() {
    let place = Place::new();
    place.write("project/docs/A.md", "docs");
    place.write("secret.md", "secret");
    let flags =
        ["project_doc_fallback_filenames=['docs/A.md', '../secret.md', '..', '/etc/hosts']"];
    assert_eq!(text(&place, &flags), "(none)");
}

#[test]
fn an_empty_override_silences_its_folder() {
    let place = Place::new();
    place.write("project/AGENTS.md", "root");
    place.write("project/a/AGENTS.md", "hidden");
    place.write("project/a/AGENTS.override.md", "");
    let text = text_in(&place, "a", &[]);
    assert!(text.contains("<INSTRUCTIONS>\nroot\n</INSTRUCTIONS>"), "{text}");
}

#[test]
fn the_budget_cuts_at_the_byte() {
    let place = Place::new();
    place.write("codex/AGENTS.md", "global is free");
    place.write("project/AGENTS.md", "12345");
    place.write("project/a/AGENTS.md", "67é");
    place.write("project/a/b/AGENTS.md", "gone");
    let cwd = place.project().join("a/b");
    let documents = found(&place, cwd, &["project_doc_max_bytes=8"]);
    let texts: Vec<_> = documents.project.iter().map(|doc| doc.text.as_str()).collect();
    assert_eq!(texts, ["12345", "67\u{fffd}"]);
    let cut = [place.project().join("a/AGENTS.md"), place.project().join("a/b/AGENTS.md")];
    assert_eq!(documents.cut, cut);
    assert_eq!(documents.global.unwrap().text, "global is free");
}

#[test]
fn the_usual_budget_is_32_kib() {
    let place = Place::new();
    place.write("project/AGENTS.md", "x".repeat(40_000));
    let documents = found(&place, place.project(), &[]);
    assert_eq!(documents.project[0].text.len(), 32_768);
}

#[test]
fn blank_documents_cost_nothing() {
    let place = Place::new();
    place.write("project/AGENTS.md", " \n".repeat(4));
    place.write("project/a/AGENTS.md", "12345678");
    let text = text_in(&place, "a", &["project_doc_max_bytes=8"]);
    assert!(text.contains("<INSTRUCTIONS>\n12345678\n</INSTRUCTIONS>"), "{text}");
}

#[test]
fn a_budget_of_zero_leaves_the_global_file() {
    let place = Place::new();
    place.write("codex/AGENTS.md", "global");
    place.write("project/AGENTS.md", "root");
    let text = text(&place, &["project_doc_max_bytes=0"]);
    assert_eq!(text, "# AGENTS.md instructions\n\n<INSTRUCTIONS>\nglobal\n</INSTRUCTIONS>");
}

#[test]
fn an_untrusted_project_says_nothing() {
    let place = Place::new();
    place.write("codex/AGENTS.md", "global");
    place.write("project/AGENTS.md", "root");
    let trust = format!("[projects.'{}']\ntrust_level = 'untrusted'\n", place.project().display());
    place.write("codex/config.toml", trust);
    let text = text_in(&place, "a", &[]);
    assert_eq!(text, "# AGENTS.md instructions\n\n<INSTRUCTIONS>\nglobal\n</INSTRUCTIONS>");
}

#[test]
fn bytes_that_are_no_text_are_shown_as_such() {
    let place = Place::new();
    place.write("codex/AGENTS.md", b"caf\xe9");
    place.write("project/AGENTS.md", b"na\xefve\r\n");
    assert!(
        text(&place, &[]).contains("caf\u{fffd}\n\n--- project-doc ---\n\nna\u{fffd}ve\r\n\n<")
    );
}

#[test]
fn folders_and_nothing_at_all_are_passed_over() {
    let place = Place::new();
    assert_eq!(text(&place, &[]), "(none)");
    std::fs::create_dir_all(place.project().join("AGENTS.override.md")).unwrap();
    place.write("project/AGENTS.md", "still");
    assert!(text(&place, &[]).contains("still"));
}

#[cfg(unix)]
#[test]
fn links_within_the_project_are_followed_and_pipes_are_not_waited_for() {
    let place = Place::new();
    place.write("project/docs/shared.md", "shared");
    std::os::unix::fs::symlink("docs/shared.md", place.project().join("AGENTS.md")).unwrap();
    assert!(text(&place, &[]).contains("\nshared\n"));
    let pipe = place.root().join("codex/AGENTS.md");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert!(text(&place, &[]).contains("\nshared\n"));
}

/// The engine reads with rights of its own: a repository or a command could have it read its
/// environment, or a file that is hidden from commands, to the model.
#[cfg(unix)]
#[test]
fn a_link_that_leads_out_of_the_project_is_not_followed() {
    use std::os::unix::fs::symlink;
    let place = Place::new();
    place.write("shared.md", "shared");
    let file = place.project().join("AGENTS.md");
    std::fs::create_dir_all(place.project().join("sub")).unwrap();
    for target in ["../shared.md", "/proc/self/environ", "/proc/self/cwd/Cargo.toml"] {
        symlink(target, &file).unwrap();
        assert_eq!(text(&place, &[]), "(none)", "{target}");
        assert_eq!(
            found(&place, place.project(), &[]).cut,
            std::slice::from_ref(&file),
            "{target}"
        );
        std::fs::remove_file(&file).unwrap();
    }
    // Neither through a folder that is a link.
    place.write("outside/AGENTS.md", "shared");
    std::fs::remove_dir(place.project().join("sub")).unwrap();
    symlink(place.root().join("outside"), place.project().join("sub")).unwrap();
    assert!(!text_in(&place, "sub", &[]).contains("shared"));
}

#[cfg(unix)]
#[test]
fn what_is_hidden_is_no_instruction() {
    use std::os::unix::fs::symlink;
    let place = Place::new();
    place.write("project/private/notes.md", "secret");
    place.write("project/sub/AGENTS.md", "seen");
    let link = place.project().join("AGENTS.md");
    symlink("private/notes.md", &link).unwrap();
    let mut config = place.load(&[]).unwrap();
    let all = bindery_engine::prompt::agents_md::gather(&config, &place.project().join("sub"));
    assert_eq!(all.project.len(), 2, "{all:?}");
    config.hidden = vec![place.project().join("private")].into();
    let seen = bindery_engine::prompt::agents_md::gather(&config, &place.project().join("sub"));
    assert_eq!(seen.project.len(), 1, "{seen:?}");
    assert_eq!((seen.project[0].text.as_str(), seen.cut), ("seen", vec![link]));
}
