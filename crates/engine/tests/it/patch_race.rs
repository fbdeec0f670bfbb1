//! Patches while a command in the sandbox swaps the folders on their way.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bindery_engine::exec::Processes;
use bindery_engine::patch::{Denied, Plan};
use bindery_engine::sandbox::WritableRoots;
use tokio_util::sync::CancellationToken;

use crate::exec::LONG;
use crate::sandbox::{Scene, sandboxes, workspace};

/// Patches of each kind that are tried under every mechanism.
const ROUNDS: usize = 150;

/// Exchanges the folder with links that lead outside and to what is protected, as fast as it can.
const SWAP: &str = "
import ctypes, os, sys
libc = ctypes.CDLL(None)
os.symlink(sys.argv[1], 'out')
os.symlink('../.git', 'in')
open('ready', 'w').close()
while not os.path.exists('stop'):
    for _ in range(50):
        for name in (b'out', b'out', b'in', b'in'):
            if libc.renameat2(-100, b'd', -100, name, 2) != 0:
                sys.exit('cannot swap')
";

fn patches() -> [&'static str; 4] {
    [
        "*** Begin Patch\n*** Add File: src/d/keys\n+evil\n*** End Patch\n",
        "*** Begin Patch\n*** Update File: src/d/keys\n@@\n-mine\n+evil\n*** End Patch\n",
        "*** Begin Patch\n*** Add File: src/d/sub/new\n+evil\n*** End Patch\n",
        "*** Begin Patch\n*** Delete File: src/d/keys\n*** End Patch\n",
    ]
}

/// Applies a patch as the tool does: read, checked, allowed, written to the places allowed.
fn apply(text: &str, root: &Path) -> bool {
    let Ok(plan) = Plan::make(text, root) else { return false };
    let roots = WritableRoots::of(&workspace(false), root, None, Vec::new()).unwrap();
    let fits = plan.permitted(&|place| {
        roots.check(root, place).map(drop).map_err(|error| Denied { why: error.to_string() })
    });
    let places: Vec<PathBuf> = plan.targets().map(|target| target.place.clone()).collect();
    let known = |place: &Path| match places.iter().any(|known| known == place) {
        true => Ok(()),
        false => Err(Denied { why: "another place".to_owned() }),
    };
    fits.is_ok() && plan.write(&known).is_ok()
}

/// What lies in a folder, however deep.
fn everything(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(everything(&entry.path())),
            false => found.push((entry.path(), fs::read_to_string(entry.path()).unwrap())),
        }
    }
    found.sort();
    found
}

#[tokio::test]
async fn a_folder_that_is_swapped_meanwhile_leads_no_patch_outside() {
    let mut landed = 0;
    for sandbox in sandboxes() {
        let scene = Scene::new();
        let (root, victim) = (scene.root(), scene.outside("victim"));
        fs::create_dir_all(victim.join("sub")).unwrap();
        fs::create_dir_all(root.join("src/d/sub")).unwrap();
        for folder in [&victim, &root.join("src/d")] {
            fs::write(folder.join("keys"), "mine\n").unwrap();
        }
        let outside = everything(&scene.outside(""));
        let git = everything(&root.join(".git"));
        fs::write(root.join("swap.py"), SWAP).unwrap();
        let swap = format!("cd src && python3 ../swap.py {}", victim.display());
        let processes = Processes::new();
        let command = sandbox.wrap(scene.command(&swap), &workspace(false)).unwrap();
        let (process, _) = processes.start(command).unwrap();
        let ready = async {
            while !root.join("src/ready").exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(LONG, ready).await.unwrap();
        let at = root.clone();
        let tries = move || {
            let rounds = (0..ROUNDS).flat_map(|_| patches());
            rounds.filter(|text| apply(text, &at)).count()
        };
        landed += tokio::task::spawn_blocking(tries).await.unwrap();
        fs::write(root.join("src/stop"), "").unwrap();
        let ending = processes.finish(&process, LONG, &CancellationToken::new()).await.ending;
        let how = sandbox.mechanism();
        assert_eq!(ending.exit_code, 0, "{how:?}: {}", ending.output);
        assert_eq!(everything(&scene.outside("")), outside, "{how:?}: {}", ending.output);
        assert_eq!(everything(&root.join(".git")), git, "{how:?}: {}", ending.output);
    }
    assert!(landed > 0, "no patch was written at all, so nothing was tried");
}
