//! What a command reaches when it may use the network: other machines, and nothing on this one.
#![cfg(target_os = "linux")]

use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};

use bindery_engine::exec::{Command, Ending};
use bindery_engine::sandbox::{Mechanism, Policy, Sandbox, SandboxError};

use crate::sandbox::{Scene, ran, refused, sandboxes, workspace};

async fn bash(sandbox: &Sandbox, scene: &Scene, policy: &Policy, text: &str) -> Ending {
    let argv = ["/bin/bash", "-c", text].map(Into::into).to_vec();
    ran(sandbox.wrap(Command { argv, ..scene.command("") }, policy).unwrap()).await
}

fn with_own_network() -> impl Iterator<Item = Sandbox> {
    sandboxes().into_iter().filter(|one| *one.mechanism() != Mechanism::Landlock)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_with_network_does_not_reach_this_machine() {
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    // This machine's address towards others, where it has one.
    let own = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    let own = own.connect("192.0.2.1:9").and_then(|()| own.local_addr());
    let own = own.map_or("127.0.0.2".to_owned(), |own| own.ip().to_string());
    for sandbox in with_own_network() {
        let scene = Scene::new();
        for host in ["127.0.0.1", "localhost", "0.0.0.0", own.as_str()] {
            let text = format!("exec 3<>/dev/tcp/{host}/{port}");
            refused(&bash(&sandbox, &scene, &workspace(true), &text).await, &sandbox);
            let text = format!(
                "exec 3<>/dev/tcp/127.0.0.1/3128 && printf 'CONNECT {host}:{port} HTTP/1.1\r\n\r\n' \
                 >&3 && cat <&3"
            );
            let ending = bash(&sandbox, &scene, &workspace(true), &text).await;
            let told = ending.output.as_str();
            assert!(told.starts_with("HTTP/1.1 403 "), "{:?} {host}: {told}", sandbox.mechanism());
            assert!(told.contains("loopback = true"), "{told}");
        }
        assert!(listener.accept().is_err(), "{:?} let it through", sandbox.mechanism());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_is_told_of_the_proxy_and_serves_itself() {
    for sandbox in with_own_network() {
        let scene = Scene::new();
        let text = "echo $HTTPS_PROXY $http_proxy $no_proxy; \
                    perl -MIO::Socket::INET -e '$l = IO::Socket::INET->new(Listen => 1, \
                    LocalAddr => \"127.0.0.1:0\") or exit 3; $c = IO::Socket::INET->new(\
                    PeerAddr => \"127.0.0.1\", PeerPort => $l->sockport) or exit 4; exit 9'";
        let ending = bash(&sandbox, &scene, &workspace(true), text).await;
        let proxy = "http://127.0.0.1:3128 http://127.0.0.1:3128 localhost,127.0.0.1,::1\n";
        assert_eq!((ending.output.as_str(), ending.exit_code), (proxy, 9), "{sandbox:?}");
        let closed = bash(&sandbox, &scene, &workspace(false), "echo $HTTPS_PROXY").await;
        assert_eq!(closed.output, "\n");
    }
}

/// Connects to a path or a name without a path, by whatever kind of socket.
const LOCAL: &str = r#"perl -MSocket -e '
    for my $name (@ARGV) { $name =~ s/^@/\0/; for my $kind (SOCK_STREAM, SOCK_DGRAM) {
        if (socket(my $s, AF_UNIX, $kind, 0)) {
            exit 3 if connect($s, pack_sockaddr_un($name));
            exit 4 if defined send($s, "x", 0, pack_sockaddr_un($name));
        }
        if (socketpair(my $a, my $b, AF_UNIX, $kind, 0)) {
            exit 5 if connect($a, pack_sockaddr_un($name));
            exit 6 if $kind != SOCK_STREAM && defined send($a, "x", 0, pack_sockaddr_un($name));
        }
    } }
    socketpair(my $a, my $b, AF_UNIX, SOCK_STREAM, 0) or exit 7;
    syswrite($a, "x") == 1 or exit 8;
    exit 9' "#;

#[tokio::test(flavor = "multi_thread")]
async fn local_sockets_are_closed_whatever_the_network() {
    for sandbox in sandboxes() {
        let scene = Scene::new();
        let (stream, datagram) = (scene.outside("stream"), scene.outside("datagram"));
        let stream_listener = UnixListener::bind(&stream).unwrap();
        stream_listener.set_nonblocking(true).unwrap();
        let datagrams = UnixDatagram::bind(&datagram).unwrap();
        datagrams.set_nonblocking(true).unwrap();
        let name = format!("bindery-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let nameless = UnixListener::bind_addr(&address).unwrap();
        nameless.set_nonblocking(true).unwrap();
        let text = format!("{LOCAL} {} {} @{name}", stream.display(), datagram.display());
        let open = sandbox.clone().with_loopback(true);
        let mut tries = vec![(&sandbox, workspace(false)), (&open, workspace(true))];
        if *sandbox.mechanism() != Mechanism::Landlock {
            tries.push((&sandbox, workspace(true)));
        }
        for (sandbox, policy) in tries {
            let ending = bash(sandbox, &scene, &policy, &text).await;
            let told = (ending.exit_code, ending.output.as_str());
            assert_eq!(told, (9, ""), "{:?} {policy:?}", sandbox.mechanism());
        }
        assert!(stream_listener.accept().is_err() && nameless.accept().is_err());
        assert!(datagrams.recv(&mut [0; 8]).is_err());
    }
}

#[tokio::test]
async fn where_this_machine_cannot_be_closed_the_network_is_refused() {
    let scene = Scene::new();
    for sandbox in sandboxes().into_iter().filter(|one| *one.mechanism() == Mechanism::Landlock) {
        assert!(!sandbox.can_limit(&workspace(true)) && sandbox.can_limit(&workspace(false)));
        let refused = sandbox.wrap(scene.command("true"), &workspace(true)).unwrap_err();
        assert!(matches!(refused, SandboxError::NoWayPastLoopback));
        assert!(refused.to_string().contains("loopback = true"));
        let named = sandbox.with_loopback(true);
        assert_eq!(
            ran(named.wrap(scene.command("exit 9"), &workspace(true)).unwrap()).await.exit_code,
            9
        );
    }
}
