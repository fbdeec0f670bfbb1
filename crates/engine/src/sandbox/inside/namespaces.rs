//! Namespaces of users, mounts, processes, messages, names and the network, made for one command.
//!
//! The file system of the command is ours, mounted once more: read-only throughout, then its roots
//! writable over it, then what is protected in them read-only again.

use std::ffi::{CString, OsString};
use std::fs;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, StatVfsMountFlags, openat2, statvfs};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_change,
    mount_remount, move_mount, open_tree,
};
use rustix::process::{getgid, getuid};
use rustix::thread::UnshareFlags;

use super::{Limits, handover};
use crate::sandbox::plan::{NetworkAccess, View, views};

/// Devices that are harmless.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Settings of the whole system in a `/proc` that is otherwise the command's own.
const SYSTEM_SETTINGS: [&str; 6] =
    ["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/acpi"];

/// What is mounted where, taken off the old file system before it becomes read-only.
struct Piece {
    path: PathBuf,
    view: View,
    /// The part of the old file system; none for what is hidden.
    tree: Option<OwnedFd>,
    folder: bool,
}

/// Enters the namespaces and makes the file system. The namespace of processes is for what this
/// process starts.
pub(super) fn enter(limits: &Limits) -> Result<(), String> {
    let cwd = std::env::current_dir().map_err(|error| format!("the working folder: {error}"))?;
    unshare(limits.network == NetworkAccess::Host)?;
    if let NetworkAccess::Bridged(socket) = &limits.network {
        handover::start_loopback()?;
        handover::hand_over(socket)?;
    }
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).map_err(|error| told("/", error))?;
    let pieces = pieces(limits)?;
    let devices = devices()?;
    for path in mount_points()? {
        make_read_only(&path)?;
    }
    mount_devices(devices)?;
    for piece in &pieces {
        piece.place()?;
    }
    let emptied = pieces.iter().filter(|piece| piece.view == View::Hidden && piece.folder);
    for piece in emptied {
        remount(&piece.path, MountFlags::RDONLY)?;
    }
    // The old one is a place in the read-only file system.
    std::env::set_current_dir(&cwd).map_err(|error| format!("`{}`: {error}", cwd.display()))
}

/// A `/proc` of the new namespace of processes; for a process in it.
pub(super) fn mount_proc() -> Result<(), String> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", flags, None).map_err(|error| told("/proc", error))?;
    for path in SYSTEM_SETTINGS.map(Path::new).into_iter().filter(|path| path.exists()) {
        rustix::mount::mount_bind(path, path).map_err(|error| told(path, error))?;
        remount(path, MountFlags::RDONLY)?;
    }
    Ok(())
}

fn told(what: impl AsRef<Path>, error: Errno) -> String {
    format!("`{}`: {error}", what.as_ref().display())
}

/// The user stays who they are; nobody else is known in here.
fn unshare(host_network: bool) -> Result<(), String> {
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    let mut spaces = UnshareFlags::NEWUSER | UnshareFlags::NEWNS | UnshareFlags::NEWPID;
    spaces |= UnshareFlags::NEWIPC | UnshareFlags::NEWUTS;
    if !host_network {
        spaces |= UnshareFlags::NEWNET;
    }
    #[expect(deprecated, reason = "unsafe only with a flag for file descriptors, not used here")]
    rustix::thread::unshare(spaces).map_err(|error| format!("namespaces: {error}"))?;
    let write = |file: &str, text: String| {
        fs::write(file, text).map_err(|error| format!("`{file}`: {error}"))
    };
    write("/proc/self/setgroups", "deny".to_owned())?;
    write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    write("/proc/self/gid_map", format!("{group} {group} 1"))
}

/// Opens a path that was resolved before. A link put in its place meanwhile is not followed.
fn open(path: &Path) -> Result<OwnedFd, String> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
        .map_err(|error| told(path, error))
}

/// A copy of a part of the file system, mounted nowhere yet.
fn copy(path: &Path) -> Result<OwnedFd, String> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    open_tree(open(path)?, "", flags).map_err(|error| told(path, error))
}

fn attach(tree: &OwnedFd, path: &Path) -> Result<(), String> {
    let empty = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(tree, "", open(path)?, "", empty).map_err(|error| told(path, error))
}

fn pieces(limits: &Limits) -> Result<Vec<Piece>, String> {
    let piece = |(path, view): (PathBuf, View)| {
        let folder = path.is_dir();
        let tree = match view {
            View::Writable | View::ReadOnly => Some(copy(&path)?),
            View::Hidden if folder => None,
            View::Hidden => Some(copy(Path::new("/dev/null"))?),
        };
        Ok(Piece { path, view, tree, folder })
    };
    let read_only = limits.protect.iter().chain(&limits.shown).cloned();
    views(&limits.roots, read_only, &limits.hidden).into_iter().map(piece).collect()
}

impl Piece {
    /// Makes something to mount it on.
    fn make(&self) -> std::io::Result<()> {
        if self.folder {
            return fs::create_dir_all(&self.path);
        }
        self.path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(&self.path, "")
    }

    fn place(&self) -> Result<(), String> {
        let Some(tree) = &self.tree else {
            let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
            return mount_at(&self.path, "tmpfs", flags, "mode=0755,size=64k");
        };
        // In a hidden folder, which is empty but can be written until the end.
        if self.view != View::Hidden && !self.path.exists() {
            self.make().map_err(|error| format!("`{}`: {error}", self.path.display()))?;
        }
        attach(tree, &self.path)?;
        match self.view {
            View::Writable => remount(&self.path, MountFlags::empty()),
            View::ReadOnly => {
                let points = mount_points()?;
                let within = points.iter().filter(|point| point.starts_with(&self.path));
                within.into_iter().try_for_each(|point| make_read_only(point))
            }
            // A device, which stays one.
            View::Hidden => Ok(()),
        }
    }
}

fn mount_at(path: &Path, kind: &str, flags: MountFlags, options: &str) -> Result<(), String> {
    let opened = open(path)?;
    let by_number = format!("/proc/self/fd/{}", opened.as_fd().as_raw_fd());
    let options = CString::new(options).map_err(|error| error.to_string())?;
    mount(kind, by_number, kind, flags, options.as_c_str()).map_err(|error| told(path, error))
}

/// Adds flags to a mount, keeps those it has, and takes away devices and other users' rights.
fn remount(path: &Path, more: MountFlags) -> Result<(), String> {
    remounted(path, more).map_err(|error| told(path, error))
}

fn remounted(path: &Path, more: MountFlags) -> Result<(), Errno> {
    let has = statvfs(path)?.f_flag;
    let mut flags = MountFlags::BIND | MountFlags::NOSUID | MountFlags::NODEV | more;
    flags.set(MountFlags::NOEXEC, has.contains(StatVfsMountFlags::NOEXEC));
    if has.contains(StatVfsMountFlags::RDONLY) {
        flags |= MountFlags::RDONLY;
    }
    mount_remount(path, flags, "")
}

/// A mount under another one, or in a folder that we may not enter, is out of the command's reach.
fn make_read_only(path: &Path) -> Result<(), String> {
    match remounted(path, MountFlags::RDONLY) {
        Err(Errno::INVAL | Errno::NOENT | Errno::ACCESS) => Ok(()),
        other => other.map_err(|error| told(path, error)),
    }
}

/// Where something is mounted, in the order in which it was.
fn mount_points() -> Result<Vec<PathBuf>, String> {
    let text = fs::read("/proc/self/mountinfo").map_err(|error| format!("mounts: {error}"))?;
    let lines = text.split(|byte| *byte == b'\n');
    let points = lines.filter_map(|line| line.split(|byte| *byte == b' ').nth(4));
    Ok(points.map(unescaped).collect())
}

/// Spaces and the like are three octal digits after a backslash.
fn unescaped(text: &[u8]) -> PathBuf {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, more @ ..] = rest {
        let digits = more.get(..3).filter(|_| *first == b'\\');
        let octal = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|octal| u8::from_str_radix(octal, 8).ok()) {
            Some(byte) => {
                plain.push(byte);
                rest = &more[3..];
            }
            None => {
                plain.push(*first);
                rest = more;
            }
        }
    }
    PathBuf::from(OsString::from_vec(plain))
}

fn devices() -> Result<Vec<(PathBuf, OwnedFd)>, String> {
    let paths = DEVICES.map(|name| Path::new("/dev").join(name));
    let there = paths.into_iter().filter(|path| path.exists());
    there.map(|path| copy(&path).map(|tree| (path, tree))).collect()
}

/// A `/dev` with nothing but harmless devices, terminals of its own and shared memory of its own.
fn mount_devices(devices: Vec<(PathBuf, OwnedFd)>) -> Result<(), String> {
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    mount_at(Path::new("/dev"), "tmpfs", flags, "mode=0755")?;
    let made = |path: &Path, result: std::io::Result<()>| {
        result.map_err(|error| format!("`{}`: {error}", path.display()))
    };
    for (path, tree) in devices {
        made(&path, fs::write(&path, ""))?;
        attach(&tree, &path)?;
    }
    for folder in ["/dev/pts", "/dev/shm"].map(Path::new) {
        made(folder, fs::create_dir(folder))?;
    }
    let shared = Path::new("/dev/shm");
    made(shared, fs::set_permissions(shared, fs::Permissions::from_mode(0o1777)))?;
    mount_at(Path::new("/dev/pts"), "devpts", flags, "newinstance,ptmxmode=0666,mode=620")?;
    let links = [
        ("pts/ptmx", "/dev/ptmx"),
        ("/proc/self/fd", "/dev/fd"),
        ("/proc/self/fd/0", "/dev/stdin"),
        ("/proc/self/fd/1", "/dev/stdout"),
        ("/proc/self/fd/2", "/dev/stderr"),
    ];
    links.into_iter().try_for_each(|(to, link)| made(Path::new(link), symlink(to, link)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn names_of_mounts_are_read_as_they_are() {
        let read = |text: &str| unescaped(text.as_bytes()).as_os_str().as_bytes().to_vec();
        assert_eq!(read(r"/a\040b\134c"), b"/a b\\c");
        assert_eq!(read(r"/a\9x\04"), br"/a\9x\04");
    }
}
