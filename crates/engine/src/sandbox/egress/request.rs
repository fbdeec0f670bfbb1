//! The first lines of what a program sends to a proxy.

/// Where a program wants to go.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) host: String,
    pub(super) port: u16,
    /// What the server is sent first, for a request in plain text; none for a tunnel.
    pub(super) first: Option<Vec<u8>>,
    /// How much of the bytes was the head; what follows is passed on.
    pub(super) head_bytes: usize,
}

impl Request {
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let head_bytes = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
        let head = std::str::from_utf8(&bytes[..head_bytes]).ok()?;
        let mut lines = head.split("\r\n");
        let [method, target, version] =
            lines.next()?.split(' ').collect::<Vec<_>>().try_into().ok()?;
        if !version.starts_with("HTTP/1.") {
            return None;
        }
        if method == "CONNECT" {
            let (host, port) = host_and_port(target, None)?;
            return Some(Self { host, port, first: None, head_bytes });
        }
        let rest = target.get(..7).filter(|start| start.eq_ignore_ascii_case("http://"));
        let rest = rest.map(|_| &target[7..])?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let (host, port) = host_and_port(authority, Some(80))?;
        let slash = if path.starts_with('/') { "" } else { "/" };
        let mut first = format!("{method} {slash}{path} {version}\r\n");
        for line in lines.filter(|line| !line.is_empty() && !is_of_this_hop(line)) {
            first += line;
            first += "\r\n";
        }
        // The next request may be for another server.
        first += "Connection: close\r\n\r\n";
        Some(Self { host, port, first: Some(first.into_bytes()), head_bytes })
    }
}

fn is_of_this_hop(line: &str) -> bool {
    let name = line.split(':').next().unwrap_or_default().trim().to_ascii_lowercase();
    matches!(name.as_str(), "connection" | "keep-alive") || name.starts_with("proxy-")
}

fn host_and_port(authority: &str, usual: Option<u16>) -> Option<(String, u16)> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']')?;
            (host, after.strip_prefix(':'))
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let port = match port {
        Some(port) => port.parse().ok()?,
        None => usual?,
    };
    // A name with a user in front of it could be read in two ways.
    let plain = !host.is_empty() && !host.contains(['@', '/', '\\', ' ', '%']);
    plain.then(|| (host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(head: &str) -> Option<(String, u16, Option<String>)> {
        let request = Request::parse(head.as_bytes())?;
        let first = request.first.map(|first| String::from_utf8(first).unwrap());
        Some((request.host, request.port, first))
    }

    #[test]
    fn tunnels_and_plain_requests_are_read() {
        let tunnel = parsed("CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_eq!(tunnel, Some(("example.com".to_owned(), 443, None)));
        let six = parsed("CONNECT [2001:db8::1]:443 HTTP/1.1\r\n\r\n").unwrap();
        assert_eq!(six.0, "2001:db8::1");
        let plain = parsed(
            "GET http://Example.com?q HTTP/1.1\r\nHost: h\r\nProxy-Connection: k\r\nA: b\r\n\r\n",
        );
        let first = "GET /?q HTTP/1.1\r\nHost: h\r\nA: b\r\nConnection: close\r\n\r\n";
        assert_eq!(plain, Some(("Example.com".to_owned(), 80, Some(first.to_owned()))));
        let bytes = b"CONNECT a:1 HTTP/1.1\r\n\r\nrest";
        assert_eq!(&bytes[Request::parse(bytes).unwrap().head_bytes..], b"rest");
    }

    #[test]
    fn what_is_neither_is_refused() {
        for head in [
            "GET / HTTP/1.1\r\n\r\n",
            "CONNECT example.com HTTP/1.1\r\n\r\n",
            "GET http://user@example.com/ HTTP/1.1\r\n\r\n",
            "GET https://example.com/ HTTP/1.1\r\n\r\n",
            "CONNECT :443 HTTP/1.1\r\n\r\n",
            "CONNECT a:99999 HTTP/1.1\r\n\r\n",
            "CONNECT a:1 HTTP/2\r\n\r\n",
            "CONNECT a:1 HTTP/1.1\r\n",
        ] {
            assert_eq!(parsed(head), None, "{head}");
        }
    }
}
