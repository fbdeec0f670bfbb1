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

/// Without network. A local socket can be as good as one: a container's master listens on one. So
/// only pairs of sockets are left, which lead nowhere.
const CONNECTIONS: &[i64] = &[
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_sendmmsg,
];

/// On x86-64 every call has a second number.
const SECOND: Option<i64> = if cfg!(target_arch = "x86_64") { Some(0x4000_0000) } else { None };

/// Types into a terminal as if somebody had; and the console's menu of the same.
const TYPING: [u64; 2] = [0x5412, 0x541C];

pub(super) fn restrict(network: bool) -> Result<(), String> {
    let words = |error: seccompiler::Error| format!("seccomp: {error}");
    let program = program(network).map_err(|error| format!("seccomp: {error}"))?;
    seccompiler::apply_filter(&program).map_err(words)
}

fn program(network: bool) -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    rules.extend(NEVER.iter().map(|call| (*call, Vec::new())));
    let typing = TYPING.map(|request| when(1, SeccompCmpOp::Eq, request));
    rules.insert(libc::SYS_ioctl, typing.into_iter().collect::<Result<_, _>>()?);
    if !network {
        rules.extend(CONNECTIONS.iter().map(|call| (*call, Vec::new())));
        let other = || when(0, SeccompCmpOp::Ne, libc::AF_UNIX as u64);
        rules.insert(libc::SYS_socket, vec![other()?]);
        rules.insert(libc::SYS_socketpair, vec![other()?]);
        // To somebody named; on a pair nobody is.
        let named = SeccompCondition::new(4, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?;
        rules.insert(libc::SYS_sendto, vec![SeccompRule::new(vec![named])?]);
    }
    if let Some(second) = SECOND {
        let again: Vec<_> =
            rules.iter().map(|(call, rule)| (call | second, rule.clone())).collect();
        rules.extend(again);
    }
    let refused = SeccompAction::Errno(libc::EPERM as u32);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_can_be_made() {
        let (closed, open) = (program(false).unwrap(), program(true).unwrap());
        assert!(closed.len() > open.len() && open.len() > NEVER.len());
    }
}
