//! Which addresses a command may reach.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

/// A server of one cloud that hands out keys, the only one outside of the link's own addresses.
const METADATA: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);

/// Whether it is another machine, and one farther than the next.
pub(super) fn may_be_reached(address: IpAddr) -> bool {
    !is_near(address) && !is_ours(address)
}

fn is_near(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_near_v4(address),
        IpAddr::V6(address) => {
            address.is_loopback()
                || address.is_unspecified()
                || address.is_multicast()
                || address.is_unicast_link_local()
                || address == METADATA
                || carried(address).is_some_and(is_near_v4)
        }
    }
}

fn is_near_v4(address: Ipv4Addr) -> bool {
    address.is_loopback()
        || address.octets()[0] == 0
        || address.is_link_local()
        || address.is_broadcast()
        || address.is_multicast()
}

/// The older address in a newer one that leads to it: compatible, translated and 6to4.
fn carried(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let v4 = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    match address.segments() {
        [0, 0, 0, 0, 0, 0, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            Some(v4(high, low))
        }
        [0x64, 0xff9b, 1, .., high, low] => Some(v4(high, low)),
        [0x2002, high, low, ..] => Some(v4(high, low)),
        _ => None,
    }
}

/// Whether it is one of this machine's own. The system would send from the address itself; nothing
/// is sent to find out. If it cannot say, it has no way there either.
fn is_ours(address: IpAddr) -> bool {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let from = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect((address, 9))?;
        socket.local_addr()
    });
    from.is_ok_and(|from| from.ip().to_canonical() == address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_near_is_not_reached() {
        let near = [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "0.1.2.3",
            "169.254.169.254",
            "255.255.255.255",
            "224.0.0.1",
            "::1",
            "::",
            "fe80::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "fd00:ec2::254",
        ];
        for address in near {
            assert!(is_near(address.parse().unwrap()), "{address}");
        }
        for address in ["192.0.2.1", "10.1.2.3", "2001:db8::1", "64:ff9b::c000:201"] {
            assert!(!is_near(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn this_machines_own_addresses_are_not_reached() {
        assert!(is_ours("127.0.0.1".parse().unwrap()));
        assert!(!is_ours("192.0.2.1".parse().unwrap()));
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        // Only where there is a way out is there another address of ours.
        if socket.connect("192.0.2.1:9").is_ok() {
            assert!(!may_be_reached(socket.local_addr().unwrap().ip()));
        }
    }
}
