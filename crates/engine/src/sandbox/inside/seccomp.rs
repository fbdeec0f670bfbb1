//! System calls that a limited command may not make. They fail with "operation not permitted".

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

/// What reaches into other processes, past other limits, or into the system itself.
const NEVER: &[i64] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Does the work of other calls where no filter sees it.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // For a command that runs as the system's owner.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_open_by_handle_at,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
];

/// What makes namespaces and changes the file system they hold. Nothing of it is needed to build
/// or to test, and much of the kernel is reached through it.
const NAMESPACES: &[i64] = &[
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_mount_setattr,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
];

/// Flags of `clone` that make a namespace.
const NEW_NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// Calls that change another process by its number, and which argument the number is. Zero is the
/// process itself.
const BY_NUMBER: &[(i64, u8)] = &[
    (libc::SYS_prlimit64, 0),
    (libc::SYS_setpriority, 1),
    (libc::SYS_ioprio_set, 1),
    (libc::SYS_sched_setscheduler, 0),
    (libc::SYS_sched_setparam, 0),
    (libc::SYS_sched_setattr, 0),
    (libc::SYS_sched_setaffinity, 0),
    (libc::SYS_migrate_pages, 0),
    (libc::SYS_move_pages, 0),
];

/// Owners and further attributes of files, which Landlock does not know about. Few builds need it.
const OWNERS: &[i64] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    // `setxattrat` and `removexattrat`, the same number everywhere.
    463,
    466,
    // `file_setattr`: the flags that `chattr` sets.
    469,
];

/// Modes and times of files, which every build needs in its roots.
const MODES: &[i64] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_futimesat,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchmodat2,
    libc::SYS_utimensat,
];

/// Without network only pairs of sockets are left, which lead nowhere.
const CONNECTIONS: &[i64] = &[
    libc::SYS_socket,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_sendmmsg,
];

/// With it, these. A local socket is none of them: a container's master listens on one, and so do
/// the engine and the daemon.
const FAMILIES: [i32; 3] = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// The type of a socket, without the flags beside it.
const SOCKET_TYPE: u64 = 0xf;

/// On x86-64 every call has a second number.
const SECOND: Option<i64> = if cfg!(target_arch = "x86_64") { Some(0x4000_0000) } else { None };

/// Types into a terminal as if somebody had; and the console's menu of the same.
const TYPING: [u64; 2] = [0x5412, 0x541C];

/// What a command may call.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Calls {
    /// It may connect to other machines.
    pub(super) network: bool,
    /// Its processes are numbered among all others, so that it could name them.
    pub(super) shared_processes: bool,
    /// Modes and times are to be left alone everywhere, since nothing else sees to it.
    pub(super) unlimited_modes: bool,
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

pub(super) fn restrict(calls: Calls) -> Result<(), String> {
    let made = |error: seccompiler::BackendError| format!("seccomp: {error}");
    let refused = program(rules(calls).map_err(made)?, libc::EPERM).map_err(made)?;
    // Its flags lie in memory, where no filter sees them. Programs go on with `clone` if they are
    // told that there is no such call.
    let absent = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    let absent = program(absent, libc::ENOSYS).map_err(made)?;
    for program in [absent, refused] {
        seccompiler::apply_filter(&program).map_err(|error| format!("seccomp: {error}"))?;
    }
    Ok(())
}

fn rules(calls: Calls) -> Result<Rules, seccompiler::BackendError> {
    let mut rules = Rules::new();
    let mut never = |calls: &[i64]| rules.extend(calls.iter().map(|call| (*call, Vec::new())));
    never(NEVER);
    never(NAMESPACES);
    if calls.shared_processes {
        never(OWNERS);
    }
    if calls.unlimited_modes {
        never(MODES);
    }
    let typing = TYPING.map(|request| when(1, SeccompCmpOp::Eq, request));
    rules.insert(libc::SYS_ioctl, typing.into_iter().collect::<Result<_, _>>()?);
    let spaces = NEW_NAMESPACES.map(|flag| u64::from(flag.cast_unsigned()));
    let spaces = spaces.map(|flag| when(0, SeccompCmpOp::MaskedEq(flag), flag));
    rules.insert(libc::SYS_clone, spaces.into_iter().collect::<Result<_, _>>()?);
    if calls.shared_processes {
        for (call, argument) in BY_NUMBER {
            rules.insert(*call, vec![when(*argument, SeccompCmpOp::Ne, 0)?]);
        }
    }
    add_sockets(&mut rules, calls.network)?;
    Ok(rules)
}

fn add_sockets(rules: &mut Rules, network: bool) -> Result<(), seccompiler::BackendError> {
    let local = u64::from(libc::AF_UNIX.cast_unsigned());
    let datagram = u64::from(libc::SOCK_DGRAM.cast_unsigned());
    // One of a pair for single messages can still send them to somebody named.
    let pairs = vec![
        when(0, SeccompCmpOp::Ne, local)?,
        when(1, SeccompCmpOp::MaskedEq(SOCKET_TYPE), datagram)?,
    ];
    rules.insert(libc::SYS_socketpair, pairs);
    if network {
        let others = FAMILIES.map(|family| condition(0, SeccompCmpOp::Ne, family.cast_unsigned()));
        let others = others.into_iter().collect::<Result<_, _>>()?;
        rules.insert(libc::SYS_socket, vec![SeccompRule::new(others)?]);
        return Ok(());
    }
    rules.extend(CONNECTIONS.iter().map(|call| (*call, Vec::new())));
    // To somebody named; on a pair nobody is.
    let named = SeccompCondition::new(4, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?;
    rules.insert(libc::SYS_sendto, vec![SeccompRule::new(vec![named])?]);
    Ok(())
}

fn program(mut rules: Rules, error: i32) -> Result<BpfProgram, seccompiler::BackendError> {
    if let Some(second) = SECOND {
        let again: Vec<_> =
            rules.iter().map(|(call, rule)| (call | second, rule.clone())).collect();
        rules.extend(again);
    }
    let refused = SeccompAction::Errno(error.cast_unsigned());
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    SeccompFilter::new(rules, SeccompAction::Allow, refused, arch)?.try_into()
}

/// The system looks at the lower half of such an argument only, and so do we.
fn when(
    argument: u8,
    comparison: SeccompCmpOp,
    value: u64,
) -> Result<SeccompRule, seccompiler::BackendError> {
    let length = SeccompCmpArgLen::Dword;
    SeccompRule::new(vec![SeccompCondition::new(argument, length, comparison, value)?])
}

fn condition(
    argument: u8,
    comparison: SeccompCmpOp,
    value: u32,
) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, comparison, u64::from(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_can_be_made() {
        let made = |calls| program(rules(calls).unwrap(), libc::EPERM).unwrap().len();
        let open = Calls { network: true, ..Calls::default() };
        let alone = Calls { shared_processes: true, unlimited_modes: true, ..open };
        let [closed, open, alone] = [Calls::default(), open, alone].map(made);
        assert!(closed > open && alone > open && open > NEVER.len());
    }
}
