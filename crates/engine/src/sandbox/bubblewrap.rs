//! The arguments of bubblewrap.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::exec::Command;

use super::placeholder::{Placeholder, Site};
use super::roots::WritableRoots;
use super::{Policy, SandboxError, inside, prefixed};

/// Bubblewrap, as it works here.
pub(super) struct Outer<'a> {
    pub(super) program: &'a Path,
    pub(super) own_processes: bool,
}

impl Outer<'_> {
    /// What holds for every command.
    pub(super) fn arguments(&self, network: bool) -> Vec<OsString> {
        let mut argv: Vec<OsString> = vec![self.program.into()];
        // The command cannot type into the terminal that we are in, and goes when we go.
        argv.extend(["--new-session", "--die-with-parent"].map(OsString::from));
        argv.extend(["--unshare-user", "--unshare-ipc", "--cap-drop", "ALL"].map(OsString::from));
        if !network {
            argv.push("--unshare-net".into());
        }
        argv.extend(["--ro-bind", "/", "/", "--dev", "/dev"].map(OsString::from));
        if self.own_processes {
            argv.extend(["--unshare-pid", "--proc", "/proc"].map(OsString::from));
        }
        argv
    }

    pub(super) fn wrap(
        &self,
        mut command: Command,
        policy: &Policy,
        roots: &WritableRoots,
        helper: &Path,
    ) -> Result<Command, SandboxError> {
        let mut argv = self.arguments(policy.network());
        for root in roots.roots() {
            bind(&mut argv, "--bind", &root.path);
        }
        for path in roots.protected() {
            match Placeholder::at(&path) {
                Site::Ours(placeholder) => command.placeholders.push(placeholder),
                Site::Taken if path.is_symlink() => return Err(SandboxError::ProtectedLink(path)),
                Site::Taken => {}
                Site::Unfit => continue,
            }
            bind(&mut argv, "--ro-bind", &path);
        }
        argv.extend([OsString::from("--chdir"), command.cwd.clone().into(), "--".into()]);
        argv.extend(inside::within_bubblewrap(helper, policy, command.tty));
        command.enclosed = true;
        Ok(prefixed(command, argv))
    }
}

fn bind(argv: &mut Vec<OsString>, how: &str, path: &Path) {
    let path = PathBuf::from(path).into_os_string();
    argv.extend([OsString::from(how), path.clone(), path]);
}
