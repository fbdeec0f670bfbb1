//! What is hidden is hidden from commands and from every tool that reads for the model.
#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bindery_engine::exec::{Command, Processes};
use bindery_engine::guard::{Fenced, Guard, NoFence};
use bindery_engine::prompter::{ExecForm, PatchForm};
use bindery_engine::sandbox::{self, HiddenPaths, Policy};
use bindery_engine::thread::{Approval, Sandbox};
use serde_json::json;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::exec::LONG;
use crate::sandbox::{Scene, helper, mechanisms, ran, tried, workspace};
use crate::stage::{Act, Setting, Stage, call, free_call, say};

/// A data folder as a daemon has it: hidden, but for what is a tenant's own.
struct Data {
    folder: TempDir,
}

impl Data {
    fn new() -> Self {
        let data = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir_all(data.at("homes/own/work")).unwrap();
        fs::write(data.at("homes/own/file"), "shown\n").unwrap();
        fs::write(data.at("store"), "hunter2\n").unwrap();
        data
    }

    fn at(&self, path: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(path)
    }

    fn hidden(&self) -> HiddenPaths {
        HiddenPaths::new(vec![self.at("")]).except([self.at("homes/own")])
    }
}

#[tokio::test]
async fn what_is_shown_in_a_hidden_folder_is_seen_and_nothing_else() {
    for mechanism in mechanisms() {
        let (scene, data) = (Scene::new(), Data::new());
        fs::create_dir(data.at("homes/other")).unwrap();
        fs::write(data.at("homes/other/key"), "hunter2\n").unwrap();
        let sandbox = sandbox::Sandbox::with(mechanism, helper(), Vec::new()).hiding(data.hidden());
        for policy in [Policy::ReadOnly, workspace(false)] {
            let text = format!(
                "cd {} && cat homes/own/file; cat store homes/other/key; ls homes; \
                 echo x > homes/own/made; echo x > made; exit 0",
                data.at("").display()
            );
            let ending = tried(&sandbox, &scene, &policy, &text).await;
            let how = sandbox.mechanism();
            assert!(ending.output.starts_with("shown\n"), "{how:?}: {}", ending.output);
            assert!(!ending.output.contains("hunter2"), "{how:?}: {}", ending.output);
            assert!(!data.at("homes/own/made").exists() && !data.at("made").exists(), "{how:?}");
            // It may be worked in as well.
            let command =
                Command { cwd: data.at("homes/own/work"), ..scene.command("cat ../file") };
            let ending = ran(sandbox.wrap(command, &policy).unwrap()).await;
            assert_eq!(ending.output, "shown\n", "{how:?}");
        }
    }
}

#[tokio::test]
async fn what_is_made_while_a_command_runs_is_hidden_from_it() {
    for mechanism in mechanisms() {
        let (scene, data) = (Scene::new(), Data::new());
        let sandbox = sandbox::Sandbox::with(mechanism, helper(), Vec::new()).hiding(data.hidden());
        let text = format!(
            "echo x > src/ready; until [ -e src/go ]; do sleep 0.01; done; \
             cat {0}/store-wal {0}/homes/later/key {0}/homes/own/later; exit 0",
            data.at("").display()
        );
        let processes = Processes::new();
        let command = sandbox.wrap(scene.command(&text), &workspace(false)).unwrap();
        let (process, _) = processes.start(command).unwrap();
        let ready = async {
            while !scene.root().join("src/ready").exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(LONG, ready).await.unwrap();
        fs::create_dir(data.at("homes/later")).unwrap();
        for name in ["store-wal", "homes/later/key"] {
            fs::write(data.at(name), "hunter2\n").unwrap();
        }
        fs::write(data.at("homes/own/later"), "shown\n").unwrap();
        fs::write(scene.root().join("src/go"), "").unwrap();
        let ending = processes.finish(&process, LONG, &CancellationToken::new()).await.ending;
        assert!(!ending.output.contains("hunter2"), "{:?}: {}", sandbox.mechanism(), ending.output);
        assert!(ending.output.contains("shown"), "{:?}: {}", sandbox.mechanism(), ending.output);
    }
}

/// Tools of a thread in its own folder, which nobody asks about anything.
fn stage(script: Vec<Vec<Act>>, guard: Arc<dyn Guard>, sandbox: Sandbox, cwd: &Path) -> Stage {
    let mut setting = Setting::new(script)
        .profile(|profile| {
            profile.exec = ExecForm::ShellCommand;
            profile.patch = PatchForm::Freeform;
            profile.view_image = true;
        })
        .answer(|_, _| Some(Ok(json!({ "decision": "accept" }))));
    setting.guard = guard;
    let cwd = cwd.to_owned();
    let setting = setting.change(move |settings| {
        settings.standing.approval = Approval::OnRequest;
        settings.standing.sandbox = sandbox;
        settings.standing.cwd = cwd;
    });
    setting.open()
}

fn guards(hidden: &HiddenPaths) -> Vec<Arc<dyn Guard>> {
    let fenced = mechanisms().into_iter().map(|mechanism| {
        let mechanism = sandbox::Sandbox::with(mechanism, helper(), Vec::new());
        Arc::new(Fenced::with(mechanism.hiding(hidden.clone()))) as Arc<dyn Guard>
    });
    fenced.chain([Arc::new(NoFence::default().hiding(hidden.clone())) as Arc<dyn Guard>]).collect()
}

fn told(stage: &Stage, request: usize) -> String {
    stage.input_lines(request).pop().unwrap()
}

fn one_point() -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(Vec::new());
    let point = image::RgbImage::from_pixel(1, 1, image::Rgb([255, 0, 0]));
    point.write_to(&mut bytes, image::ImageFormat::Png).unwrap();
    bytes.into_inner()
}

#[tokio::test]
async fn a_picture_that_is_hidden_is_not_shown() {
    let (project, data) = (tempfile::tempdir().unwrap(), Data::new());
    for name in ["dot.png", "homes/own/dot.png"] {
        fs::write(data.at(name), one_point()).unwrap();
    }
    symlink(data.at("dot.png"), project.path().join("link.png")).unwrap();
    for guard in guards(&data.hidden()) {
        for sandbox in [Sandbox::workspace(), Sandbox::DangerFullAccess] {
            let mut script: Vec<Vec<Act>> = Vec::new();
            let link = project.path().join("link.png");
            for path in
                [data.at("dot.png"), link, data.at("none.png"), data.at("homes/own/dot.png")]
            {
                script.push(vec![call("c", "view_image", &json!({ "path": path }))]);
            }
            script.push(say("done"));
            let stage = stage(script, Arc::clone(&guard), sandbox, project.path());
            assert_eq!(stage.turn("look").await["status"], "completed");
            for request in [1, 2, 3] {
                let told = told(&stage, request);
                assert!(told.contains("is hidden"), "{told}");
            }
            assert!(stage.input(4).to_string().contains("data:image/png;base64,"));
        }
    }
}

#[tokio::test]
async fn a_patch_says_nothing_of_what_is_hidden() {
    let (project, data) = (tempfile::tempdir().unwrap(), Data::new());
    symlink(data.at("store"), project.path().join("link")).unwrap();
    symlink(data.at("none"), project.path().join("nowhere")).unwrap();
    symlink(data.at(""), project.path().join("folder")).unwrap();
    fs::write(project.path().join("file"), "hunter2\n").unwrap();
    let store = data.at("store").display().to_string();
    let none = data.at("none").display().to_string();
    let update = |path: &str, line: &str| {
        format!("*** Begin Patch\n*** Update File: {path}\n@@\n-{line}\n+x\n*** End Patch\n")
    };
    let add = |path: &str| format!("*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch\n");
    let delete = |path: &str| format!("*** Begin Patch\n*** Delete File: {path}\n*** End Patch\n");
    let mv = |to: &str| {
        format!(
            "*** Begin Patch\n*** Update File: file\n*** Move to: {to}\n@@\n-hunter2\n+x\n*** End Patch\n"
        )
    };
    let patches = [
        update(&store, "hunter2"),
        update(&store, "other"),
        update("link", "hunter2"),
        update("folder/store", "hunter2"),
        update(&none, "hunter2"),
        add(&store),
        add(&none),
        add("nowhere"),
        add("folder/new"),
        delete(&store),
        delete(&none),
        delete("folder/store"),
        mv(&store),
        mv("folder/new"),
    ];
    for guard in guards(&data.hidden()) {
        let mut script: Vec<Vec<Act>> = Vec::new();
        script.extend(patches.iter().map(|patch| vec![free_call("c", "apply_patch", patch)]));
        let own = data.at("homes/own/new").display().to_string();
        script.push(vec![free_call("c", "apply_patch", &add(&own))]);
        script.push(say("done"));
        let stage = stage(script, guard, Sandbox::DangerFullAccess, project.path());
        assert_eq!(stage.turn("go").await["status"], "completed");
        for (request, patch) in patches.iter().enumerate() {
            let told = told(&stage, request + 1);
            assert!(told.contains("is hidden"), "{patch}: {told}");
        }
        assert_eq!(fs::read_to_string(data.at("store")).unwrap(), "hunter2\n");
        assert!(!data.at("none").exists() && !data.at("new").exists());
        assert_eq!(fs::read_to_string(data.at("homes/own/new")).unwrap(), "x\n");
        fs::remove_file(data.at("homes/own/new")).unwrap();
    }
}

/// With rights of its own the engine would read more than a command: its environment, and files
/// that never end.
#[tokio::test]
async fn tools_read_plain_files_only() {
    let project = tempfile::tempdir().unwrap();
    let at = |name: &str| project.path().join(name);
    rustix::fs::mkfifoat(rustix::fs::CWD, at("pipe"), 0o600.into()).unwrap();
    symlink("/dev/zero", at("zero")).unwrap();
    symlink("/proc/self/environ", at("environment")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    fs::File::create(at("sparse")).unwrap().set_len(1 << 40).unwrap();
    let names = ["pipe", "zero", "environment", "socket", "/proc/kmsg", "sparse", "/dev/tty"];
    let mut script: Vec<Vec<Act>> = Vec::new();
    for name in names {
        let patch =
            format!("*** Begin Patch\n*** Update File: {name}\n@@\n-PATH\n+x\n*** End Patch\n");
        let delete = format!("*** Begin Patch\n*** Delete File: {name}\n*** End Patch\n");
        script.push(vec![call("c", "view_image", &json!({ "path": name }))]);
        script.push(vec![free_call("c", "apply_patch", &patch)]);
        script.push(vec![free_call("c", "apply_patch", &delete)]);
    }
    script.push(say("done"));
    let requests = script.len();
    let guard = Arc::new(NoFence::default());
    let stage = stage(script, guard, Sandbox::DangerFullAccess, project.path());
    assert_eq!(stage.turn("go").await["status"], "completed");
    for request in 1..requests {
        let told = told(&stage, request);
        let plain = ["is not a file", "bytes", "No such", "not permitted", "denied"];
        assert!(plain.iter().any(|words| told.contains(words)), "{told}");
        assert!(!told.contains("expected lines"), "{told}");
    }
}
