//! The listener of a command's own network, handed to the engine's proxy.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags,
    SocketType, recv, send, sendmsg, socket_with,
};

use crate::sandbox::egress::LISTENER;

/// Listens in this network and hands the listener over. Afterwards nothing of it is left here.
pub(super) fn hand_over(socket: &Path) -> Result<(), String> {
    let words = |error: io::Error| format!("the way out to the network: {error}");
    let listener = TcpListener::bind(LISTENER).map_err(words)?;
    let engine = UnixStream::connect(socket).map_err(words)?;
    let listeners = [listener.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(&listeners)) {
        return Err(words(io::Error::other("a descriptor does not fit")));
    }
    let byte = [IoSlice::new(&[0])];
    let sent = sendmsg(&engine, &byte, &mut control, SendFlags::NOSIGNAL);
    sent.map(drop).map_err(|error| words(error.into()))
}

/// Switches the loopback of a new network on, as the kernel's route messages have it.
pub(super) fn start_loopback() -> Result<(), String> {
    const LENGTH: u32 = 32;
    const NEW_LINK: u16 = 16;
    const REQUEST_AND_ACKNOWLEDGE: u16 = 1 | 4;
    const LOOPBACK: i32 = 1;
    const UP: u32 = 1;
    let header = [&LENGTH.to_ne_bytes()[..], &NEW_LINK.to_ne_bytes()].concat();
    let header = [&header[..], &REQUEST_AND_ACKNOWLEDGE.to_ne_bytes(), &[0; 8]].concat();
    let link = [&[0; 4][..], &LOOPBACK.to_ne_bytes(), &UP.to_ne_bytes(), &UP.to_ne_bytes()];
    let message = [&header[..], &link.concat()].concat();
    let words = |error: rustix::io::Errno| format!("loopback: {error}");
    let (family, flags) = (AddressFamily::NETLINK, SocketFlags::CLOEXEC);
    let kernel = socket_with(family, SocketType::RAW, flags, None).map_err(words)?;
    send(&kernel, &message, SendFlags::empty()).map_err(words)?;
    let mut answer = [0; 64];
    recv(&kernel, &mut answer, RecvFlags::empty()).map_err(words)?;
    match i32::from_ne_bytes([answer[16], answer[17], answer[18], answer[19]]) {
        0 => Ok(()),
        error => Err(format!("loopback: error {error}")),
    }
}
