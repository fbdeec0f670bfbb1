//! Folders that stand in for a missing `.git` while commands run: they go when the last engine is
//! done with them, also when one is killed, and not before.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bindery_testkit::lines::Lines;
use bindery_testkit::model::Reply;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::interrupt::kill;
use crate::stage::{HANG, Stage};

/// Engines and the folder that their commands write in.
struct Scene {
    stage: Stage,
    /// Uses bubblewrap; else our own namespaces.
    bubblewrap: bool,
    folder: tempfile::TempDir,
}

impl Scene {
    /// One for each mechanism that makes placeholders.
    fn all() -> Vec<Self> {
        let named = std::env::var_os("BINDERY_BWRAP").is_some();
        let ways = if named { vec![true, false] } else { vec![false] };
        let scene = |bubblewrap| {
            let stage = Stage::free(vec![Reply::text("unused")]);
            Self { stage, bubblewrap, folder: tempfile::tempdir().unwrap() }
        };
        ways.into_iter().map(scene).collect()
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    async fn engine(&self) -> Lines {
        let mut command = self.stage.bindery(&["app-server"]);
        command.env_remove("BINDERY_BWRAP");
        if self.bubblewrap {
            command.env("BINDERY_BWRAP", std::env::var_os("BINDERY_BWRAP").unwrap());
        }
        let mut lines = Lines::spawn(command).unwrap();
        lines.initialize().await;
        lines
    }

    /// Asks for a command; its answer comes as that of request `id`.
    async fn start(&self, engine: &mut Lines, id: &str, script: &str) {
        let policy = json!({ "type": "workspaceWrite", "writableRoots": [self.folder.path()],
            "excludeSlashTmp": true, "excludeTmpdirEnvVar": true });
        let params = json!({ "command": ["/bin/sh", "-c", script], "cwd": self.folder.path(),
            "sandboxPolicy": policy, "timeoutMs": 120_000 });
        engine.send(json!({ "id": id, "method": "command/exec", "params": params })).await;
    }
}

async fn ended(engine: &mut Lines, id: &str) -> Value {
    engine.until(|line| line["id"] == id).await["result"].clone()
}

/// Waits until a path is there, or is not.
async fn until_there(path: &Path, there: bool) {
    let began = Instant::now();
    while path.symlink_metadata().is_ok() != there {
        assert!(began.elapsed() < HANG, "{}: there is not {there}", path.display());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

const NAMES: [&str; 5] = [".git", ".codex", ".agents", ".bindery", ".aws"];

#[tokio::test]
async fn they_are_removed_when_the_engine_is_killed() {
    for scene in Scene::all() {
        let mut engine = scene.engine().await;
        scene.start(&mut engine, "c", "echo x > ready; sleep 3000").await;
        until_there(&scene.at("ready"), true).await;
        assert!(NAMES.iter().all(|name| scene.at(name).is_dir()));
        kill(engine.process_id().unwrap(), Signal::KILL);
        while engine.next().await.is_some() {}
        for name in NAMES {
            until_there(&scene.at(name), false).await;
        }
    }
}

#[tokio::test]
async fn they_stay_as_long_as_a_second_engine_has_a_command_there() {
    let scenes = Scene::all().into_iter().map(|scene| (false, scene));
    for (killed, scene) in scenes.chain(Scene::all().into_iter().map(|scene| (true, scene))) {
        let (mut first, mut second) = (scene.engine().await, scene.engine().await);
        let wait = |name: &str| {
            format!("echo x > {name}-ready; until [ -e {name}-go ]; do sleep 0.01; done")
        };
        let escape = "mkdir -p .git/hooks && echo x > .git/hooks/pre-commit && echo escaped";
        scene.start(&mut first, "1", &wait("first")).await;
        until_there(&scene.at("first-ready"), true).await;
        scene.start(&mut second, "2", &format!("{}; {escape}", wait("second"))).await;
        until_there(&scene.at("second-ready"), true).await;
        if killed {
            kill(first.process_id().unwrap(), Signal::KILL);
            while first.next().await.is_some() {}
        } else {
            fs::write(scene.at("first-go"), "").unwrap();
            assert_eq!(ended(&mut first, "1").await["exitCode"], 0);
        }
        assert!(scene.at(".git").is_dir());
        fs::write(scene.at("second-go"), "").unwrap();
        let ended = ended(&mut second, "2").await;
        assert_ne!(ended["exitCode"], 0, "{ended}");
        assert!(!scene.at(".git/hooks").exists(), "{ended}");
        for name in NAMES {
            until_there(&scene.at(name), false).await;
        }
        second.close().await;
    }
}
