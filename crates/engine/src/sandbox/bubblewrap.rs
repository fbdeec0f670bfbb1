//! The arguments of bubblewrap.

use std::ffi::OsString;
use std::path::Path;

use super::inside;
use super::plan::{NetworkAccess, Plan, View, views};

/// Bubblewrap, as it works here.
pub(super) struct Outer<'a> {
    pub(super) program: &'a Path,
    pub(super) own_proc: bool,
}

impl Outer<'_> {
    /// What holds for every command.
    pub(super) fn arguments(&self, host_network: bool) -> Vec<OsString> {
        let mut argv: Vec<OsString> = vec![self.program.into()];
        // The command cannot type into the terminal that we are in, and goes when we go.
        argv.extend(["--new-session", "--die-with-parent"].map(OsString::from));
        argv.extend(["--unshare-user", "--unshare-ipc", "--cap-drop", "ALL"].map(OsString::from));
        argv.extend(["--unshare-pid", "--unshare-uts"].map(OsString::from));
        if !host_network {
            argv.push("--unshare-net".into());
        }
        argv.extend(["--ro-bind", "/", "/", "--dev", "/dev"].map(OsString::from));
        if self.own_proc {
            argv.extend(["--proc", "/proc"].map(OsString::from));
        }
        argv
    }

    /// For a command that runs in `cwd`.
    pub(super) fn wrap(&self, cwd: &Path, plan: &Plan, helper: &Path) -> Vec<OsString> {
        let mut argv = self.arguments(plan.network == NetworkAccess::Host);
        let mut emptied = Vec::new();
        let read_only = plan.protect.iter().chain(&plan.shown).cloned();
        for (path, view) in views(&plan.roots, read_only, &plan.hidden) {
            match view {
                View::Writable => two(&mut argv, "--bind", &path, &path),
                View::ReadOnly => two(&mut argv, "--ro-bind", &path, &path),
                View::Hidden if path.is_dir() => {
                    argv.extend(["--tmpfs".into(), path.clone().into_os_string()]);
                    emptied.push(path);
                }
                View::Hidden => two(&mut argv, "--ro-bind", Path::new("/dev/null"), &path),
            }
        }
        for path in emptied {
            argv.extend(["--remount-ro".into(), path.into_os_string()]);
        }
        argv.extend([OsString::from("--chdir"), cwd.into(), "--".into()]);
        argv.extend(inside::within_bubblewrap(helper, plan));
        argv
    }
}

fn two(argv: &mut Vec<OsString>, how: &str, from: &Path, to: &Path) {
    argv.extend([OsString::from(how), from.into(), to.into()]);
}
