//! Borders around a command's processes and around the system, and what is possible within them.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::process::{Command as Program, Stdio};
use std::time::{Duration, Instant};

use bindery_engine::exec::Command;
use bindery_engine::sandbox::{Mechanism, Policy, Sandbox, SandboxError};

use crate::exec::LONG;
use crate::sandbox::{Scene, helper, mechanisms, ran, refused, sandboxes, tried, workspace};

/// Those that give a command a file system of its own.
fn with_mounts() -> impl Iterator<Item = Sandbox> {
    sandboxes().into_iter().filter(|one| *one.mechanism() != Mechanism::Landlock)
}

#[tokio::test]
async fn a_command_creates_renames_and_deletes_in_the_root_of_a_repository() {
    for sandbox in with_mounts() {
        let scene = Scene::new();
        for text in [
            "mkdir build && echo x > build/a && rm -r build",
            "sed -i s/old/new/ README && grep new README",
            "mv README READ.ME && mv READ.ME README",
            "mkdir -p venv/bin && ln -s /bin/sh venv/bin/python && chmod +x venv/bin",
            "cp -p README copy && tar cf all.tar README src && tar xf all.tar && rm copy all.tar",
            "rmdir src && mkdir src",
        ] {
            let ending = tried(&sandbox, &scene, &workspace(false), text).await;
            assert_eq!(ending.exit_code, 0, "{:?}: {text}: {}", sandbox.mechanism(), ending.output);
        }
        for text in ["touch .git/x", "rmdir .git", "mv .git gone", "rm -r .git", "chmod 777 .git"] {
            refused(&tried(&sandbox, &scene, &workspace(false), text).await, &sandbox);
        }
        assert_eq!(fs::read_to_string(scene.root().join(".git/config")).unwrap(), "[core]\n");
    }
}

#[tokio::test]
async fn a_root_inside_something_protected_is_writable() {
    for found in sandboxes() {
        let scene = Scene::bare();
        let home = scene.root().join("home");
        let tree = home.join("worktrees/one");
        fs::create_dir_all(&tree).unwrap();
        let sandbox = Sandbox::with(found.mechanism().clone(), helper(), vec![home]);
        let policy = Policy::WorkspaceWrite {
            roots: vec![tree.clone()],
            network: false,
            exclude_slash_tmp: true,
            exclude_tmpdir: true,
        };
        let ending = tried(&sandbox, &scene, &policy, "echo x > home/worktrees/one/file").await;
        assert_eq!(ending.exit_code, 0, "{:?}: {}", sandbox.mechanism(), ending.output);
        refused(&tried(&sandbox, &scene, &policy, "echo x > home/file").await, &sandbox);
    }
}

#[tokio::test]
async fn the_limits_of_other_processes_stay() {
    let ours = std::process::id();
    let before = fs::read_to_string("/proc/self/limits").unwrap();
    for sandbox in sandboxes() {
        let scene = Scene::new();
        for policy in [workspace(false), Policy::ReadOnly] {
            for text in [
                format!("prlimit --pid {ours} --cpu=1:1"),
                format!("prlimit --pid {ours} --nofile=3:3"),
                "prlimit --pid $PPID --cpu=1:1 && exit 0; renice 19 -p $PPID".to_owned(),
                format!("renice 19 -p {ours}"),
                format!("taskset -p 1 {ours}"),
            ] {
                let ending = tried(&sandbox, &scene, &policy, &text).await;
                if sandbox.mechanism() == &Mechanism::Landlock || !text.contains("$PPID") {
                    refused(&ending, &sandbox);
                }
            }
        }
        assert_eq!(fs::read_to_string("/proc/self/limits").unwrap(), before);
    }
}

#[tokio::test]
async fn modes_owners_and_times_outside_stay() {
    for sandbox in sandboxes() {
        let scene = Scene::new();
        let file = scene.outside("file");
        fs::write(&file, "").unwrap();
        let told = |path: &Path| {
            let meta = fs::metadata(path).unwrap();
            (meta.mode(), meta.uid(), meta.gid(), meta.mtime(), meta.mtime_nsec())
        };
        let (before, path) = (told(&file), file.display());
        let owners = [format!("chown 1:1 {path}"), format!("chgrp 1 {path}")];
        let modes = [format!("chmod 777 {path}"), format!("touch -d 2001-01-01 {path}")];
        for text in owners.iter().chain(&modes) {
            refused(&tried(&sandbox, &scene, &Policy::ReadOnly, text).await, &sandbox);
        }
        for text in &owners {
            refused(&tried(&sandbox, &scene, &workspace(false), text).await, &sandbox);
        }
        // Landlock knows no modes and times, which builds have to set; `limits` says so.
        if *sandbox.mechanism() != Mechanism::Landlock {
            for text in &modes {
                refused(&tried(&sandbox, &scene, &workspace(false), text).await, &sandbox);
            }
        }
        assert_eq!(told(&file), before, "{:?}", sandbox.mechanism());
    }
}

#[tokio::test]
async fn settings_of_the_system_are_read_only() {
    for sandbox in sandboxes() {
        let sandbox = sandbox.with_loopback(true);
        let scene = Scene::new();
        for policy in [Policy::ReadOnly, workspace(false), workspace(true)] {
            for setting in ["vm/swappiness", "kernel/core_pattern", "kernel/hostname"] {
                let file = format!("/proc/sys/{setting}");
                let value = fs::read_to_string(&file).unwrap();
                // Its own value: should the test fail, the machine stays as it is.
                let text = format!("printf %s '{}' > {file}", value.trim());
                refused(&tried(&sandbox, &scene, &policy, &text).await, &sandbox);
            }
        }
    }
}

#[tokio::test]
async fn a_command_makes_no_namespaces_and_mounts_nothing() {
    for sandbox in sandboxes() {
        let sandbox = sandbox.with_loopback(true);
        let scene = Scene::new();
        for text in [
            "unshare --user --map-root-user true",
            "unshare --mount true",
            "mount -t tmpfs none src",
            "mount -o remount,rw,bind / /",
            "umount .git",
            "nsenter --target 1 --mount true",
        ] {
            refused(&tried(&sandbox, &scene, &workspace(true), text).await, &sandbox);
        }
    }
}

/// A detached process opens a pipe that the test reads: it ends when the process does.
const DETACHED: &str = "env -i setsid -f sh -c 'exec 9> src/pipe; : > src/ready; \
     trap \"\" TERM HUP INT; while :; do sleep 1; done' < /dev/null > /dev/null 2>&1; \
     until test -e src/ready; do sleep 0.01; done";

/// The end that is read; opened before there is a writer.
fn pipe(scene: &Scene) -> fs::File {
    let path = scene.root().join("src/pipe");
    assert!(Program::new("mkfifo").arg(&path).status().unwrap().success());
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    fs::File::options().read(true).custom_flags(nonblocking).open(path).unwrap()
}

/// Waits until nobody can write to it.
async fn closed(mut pipe: fs::File, sandbox: &Sandbox) {
    let begun = Instant::now();
    while !matches!(pipe.read(&mut [0; 16]), Ok(0)) {
        assert!(begun.elapsed() < LONG, "{:?}: it lives on", sandbox.mechanism());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_detached_process_ends_with_its_command() {
    for sandbox in sandboxes() {
        let scene = Scene::new();
        let pipe = pipe(&scene);
        let ending = tried(&sandbox, &scene, &workspace(false), DETACHED).await;
        assert_eq!(ending.exit_code, 0, "{:?}: {}", sandbox.mechanism(), ending.output);
        closed(pipe, &sandbox).await;
    }
}

#[tokio::test]
async fn a_detached_process_ends_with_a_killed_engine() {
    for sandbox in sandboxes() {
        let scene = Scene::new();
        let pipe = pipe(&scene);
        let text = format!("{DETACHED}; : > src/started; while :; do sleep 1; done");
        let command = sandbox.wrap(scene.command(&text), &workspace(false)).unwrap();
        // A shell stands for the engine: what it starts is told the shell's number as its parent.
        let ours = std::process::id().to_string();
        let words: Vec<_> = command.argv.iter().map(|word| word.to_str().unwrap()).collect();
        let quoted = words.iter().enumerate().map(|(at, word)| {
            let engine = at > 0 && words[at - 1] == "--supervise-for" && *word == ours;
            if engine { "$$".to_owned() } else { shlex::try_quote(word).unwrap().into_owned() }
        });
        let script = format!("{} & wait", quoted.collect::<Vec<_>>().join(" "));
        let mut shell = Program::new("/bin/sh");
        shell.args(["-c", &script]).current_dir(scene.root()).env_clear().envs(&command.env);
        let mut engine = shell.stdin(Stdio::null()).spawn().unwrap();
        let begun = Instant::now();
        while !scene.root().join("src/started").exists() {
            assert!(begun.elapsed() < LONG, "{:?}: it never started", sandbox.mechanism());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        engine.kill().unwrap();
        engine.wait().unwrap();
        closed(pipe, &sandbox).await;
    }
}

#[tokio::test]
async fn the_supervisor_is_out_of_the_commands_reach() {
    for sandbox in sandboxes() {
        let scene = Scene::new();
        let ours = std::process::id();
        let text = format!("kill -9 $PPID; kill -0 {ours}; prlimit --pid $PPID; echo still here");
        let ending = tried(&sandbox, &scene, &workspace(false), &text).await;
        assert_eq!(ending.exit_code, 0, "{:?}: {}", sandbox.mechanism(), ending.output);
        assert!(ending.output.ends_with("still here\n"), "{}", ending.output);
    }
}

#[tokio::test]
async fn hidden_files_and_folders_are_not_read() {
    for mechanism in mechanisms() {
        let scene = Scene::new();
        let data = scene.outside("data");
        fs::create_dir_all(data.join("deep")).unwrap();
        fs::create_dir(scene.root().join("private")).unwrap();
        let [token, key, inner] =
            [data.join("deep/token"), scene.outside("key"), scene.root().join("private/x")];
        for file in [&token, &key, &inner] {
            fs::write(file, "hunter2\n").unwrap();
        }
        fs::write(scene.outside("other"), "seen\n").unwrap();
        let hidden = vec![data, key.clone(), scene.root().join("private")];
        let sandbox = Sandbox::with(mechanism, helper(), Vec::new()).hiding(hidden);
        for policy in [Policy::ReadOnly, workspace(false)] {
            for file in [&token, &key, &inner] {
                let text = format!("cat {}", file.display());
                let ending = tried(&sandbox, &scene, &policy, &text).await;
                assert!(!ending.output.contains("hunter2"), "{:?}: {text}", sandbox.mechanism());
            }
            let text =
                format!("cat {} README && ls / > /dev/null", scene.outside("other").display());
            let ending = tried(&sandbox, &scene, &policy, &text).await;
            assert_eq!(ending.output, "seen\nold\n", "{:?}", sandbox.mechanism());
            assert_eq!(ending.exit_code, 0);
        }
        let text = "echo x > private/y; echo x > private/x; rm -r private";
        refused(&tried(&sandbox, &scene, &workspace(false), text).await, &sandbox);
        assert_eq!(fs::read_to_string(&inner).unwrap(), "hunter2\n");
        assert_eq!(fs::read_dir(scene.root().join("private")).unwrap().count(), 1);
        let ending = tried(&sandbox, &scene, &workspace(false), "echo x > src/y").await;
        assert_eq!(ending.exit_code, 0, "{}", ending.output);
    }
}

#[tokio::test]
async fn a_root_in_a_hidden_folder_is_seen_alone() {
    for mechanism in mechanisms() {
        let scene = Scene::new();
        let parent = scene.root().parent().unwrap().to_owned();
        let hidden = tempfile::tempdir_in(&parent).unwrap();
        let folder = hidden.path().canonicalize().unwrap();
        let work = folder.join("spaces/one");
        fs::create_dir_all(&work).unwrap();
        fs::write(folder.join("token"), "hunter2\n").unwrap();
        let sandbox = Sandbox::with(mechanism, helper(), Vec::new()).hiding(vec![folder.clone()]);
        let text = "echo x > made && cat made; cat ../../token; echo y > ../../z; exit 0";
        let command = Command { cwd: work.clone(), ..scene.command(text) };
        let ending = ran(sandbox.wrap(command, &workspace(false)).unwrap()).await;
        assert!(ending.output.starts_with("x\n"), "{:?} {}", sandbox.mechanism(), ending.output);
        assert!(!ending.output.contains("hunter2"), "{:?}", sandbox.mechanism());
        assert!(work.join("made").exists() && !folder.join("z").exists());
        let command = Command { cwd: folder.clone(), ..scene.command("true") };
        let wrapped = sandbox.wrap(command, &Policy::ReadOnly);
        assert!(matches!(wrapped, Err(SandboxError::Hidden(_))));
    }
}
