//! Where an app-server is: `stdio:`, `ws://host:port`, `wss://host`, `unix://path`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::error::Error;

/// Where an app-server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A process of our own, spoken to over its stdin and stdout.
    Stdio,
    /// A WebSocket, which may be on another machine.
    WebSocket(WebSocketUrl),
    /// A unix socket; without a path, the one that Codex's daemon listens on.
    Unix(Option<PathBuf>),
}

/// The address of a WebSocket.
#[derive(Clone, PartialEq, Eq)]
pub struct WebSocketUrl {
    /// `wss`: over TLS.
    pub secure: bool,
    /// A name or an IP address, an IPv6 one without its brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Path and query, from the first slash; the query may be a secret and is never shown.
    pub target: String,
}

impl WebSocketUrl {
    /// Whether the server is on this machine.
    pub fn is_loopback(&self) -> bool {
        let ip = self.host.parse::<std::net::IpAddr>();
        self.host.eq_ignore_ascii_case("localhost") || ip.is_ok_and(|ip| ip.is_loopback())
    }

    /// Host and port as the `Host` header has them.
    pub(super) fn authority(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let bad = |why: &str| Error::Address { address: shown(text), why: why.to_owned() };
        let (scheme, rest) = text.split_once(':').ok_or_else(|| bad(ACCEPTED))?;
        match scheme.to_ascii_lowercase().as_str() {
            "stdio" if rest.is_empty() || rest == "//" => Ok(Self::Stdio),
            "stdio" => Err(bad("`stdio:` takes nothing after it")),
            "ws" => url(rest, false).map(Self::WebSocket).map_err(bad),
            "wss" => url(rest, true).map(Self::WebSocket).map_err(bad),
            "unix" => {
                let path = rest.strip_prefix("//").unwrap_or(rest);
                Ok(Self::Unix((!path.is_empty()).then(|| PathBuf::from(path))))
            }
            _ => Err(bad(ACCEPTED)),
        }
    }
}

const ACCEPTED: &str = "use `stdio:`, `ws://HOST:PORT`, `wss://HOST[:PORT]`, `unix://PATH` \
     or `unix://`";

fn url(rest: &str, secure: bool) -> Result<WebSocketUrl, &'static str> {
    let rest = rest.strip_prefix("//").ok_or("two slashes and a host must follow the colon")?;
    if rest.chars().any(|letter| letter.is_whitespace() || letter.is_control()) {
        return Err("there are blanks in it");
    }
    let (authority, target) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let target = target.split('#').next().unwrap_or_default();
    if authority.contains('@') {
        return Err("it holds a user name or password; give a token beside it instead");
    }
    let (host, port) = host_and_port(authority)?;
    let port = match port {
        Some(port) => port.parse().map_err(|_| "the port is not a number up to 65535")?,
        None if secure => 443,
        None => 80,
    };
    if host.is_empty() {
        return Err("there is no host in it");
    }
    let slash = if target.starts_with('/') { "" } else { "/" };
    Ok(WebSocketUrl { secure, host: host.to_owned(), port, target: format!("{slash}{target}") })
}

fn host_and_port(authority: &str) -> Result<(&str, Option<&str>), &'static str> {
    if let Some(rest) = authority.strip_prefix('[') {
        let (host, after) = rest.split_once(']').ok_or("a bracket is not closed")?;
        return match after.strip_prefix(':') {
            Some(port) => Ok((host, Some(port))),
            None if after.is_empty() => Ok((host, None)),
            None => Err("only a port may follow the bracket"),
        };
    }
    match authority.split_once(':') {
        Some((_, port)) if port.contains(':') => Err("an IPv6 address needs brackets"),
        Some((host, port)) => Ok((host, Some(port))),
        None => Ok((authority, None)),
    }
}

/// An address that could not be read may hold secrets where they do not belong.
fn shown(text: &str) -> String {
    let text = text.split('?').next().unwrap_or_default();
    match (text.split_once("//"), text.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}//…@{host}"),
        (None, Some((_, host))) => format!("…@{host}"),
        (_, None) => text.to_owned(),
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdio => f.write_str("stdio:"),
            Self::WebSocket(url) => write!(f, "{url}"),
            Self::Unix(Some(path)) => write!(f, "unix://{}", path.display()),
            Self::Unix(None) => f.write_str("unix://"),
        }
    }
}

impl fmt::Display for WebSocketUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.secure { "wss" } else { "ws" };
        let path = self.target.split('?').next().unwrap_or_default();
        write!(f, "{scheme}://{}{}", self.authority(), path.trim_end_matches('/'))
    }
}

impl fmt::Debug for WebSocketUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WebSocketUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_read_as_written() {
        #[rustfmt::skip]
        let table = [
            ("stdio:",                        "stdio:"),
            ("stdio://",                      "stdio:"),
            ("ws://127.0.0.1:4500",           "ws://127.0.0.1:4500"),
            ("WS://Host",                     "ws://Host:80"),
            ("wss://codex.example.com",       "wss://codex.example.com:443"),
            ("wss://h:1/a/b?key=hidden#no",   "wss://h:1/a/b"),
            ("wss://h?key=hidden",            "wss://h:443"),
            ("ws://[::1]:9",                  "ws://[::1]:9"),
            ("ws://[::1]",                    "ws://[::1]:80"),
            ("unix:///run/codex.sock",        "unix:///run/codex.sock"),
            ("unix:/run/codex.sock",          "unix:///run/codex.sock"),
            ("unix:relative.sock",            "unix://relative.sock"),
            ("unix://",                       "unix://"),
            ("unix:",                         "unix://"),
        ];
        for (text, want) in table {
            let address: Address = text.parse().unwrap();
            assert_eq!(address.to_string(), want, "address: {text}");
        }
    }

    #[test]
    fn what_cannot_be_read_says_why_and_keeps_secrets() {
        let why = |text: &str| {
            let said = Address::from_str(text).unwrap_err().to_string();
            said.replace("the address ", "")
                .replace(" cannot be used", "")
                .replace(ACCEPTED, "(what is accepted)")
        };
        #[rustfmt::skip]
        let bad = [
            "", "codex", "http://host", "stdio:codex", "ws:host", "ws://", "ws://:80", "ws://h:x",
            "ws://h:70000", "ws://::1", "ws://[::1", "ws://a b", "wss://me:secret@host/?k=secret",
        ];
        insta::assert_snapshot!(bad.map(why).join("\n"), @r"
        ``: (what is accepted)
        `codex`: (what is accepted)
        `http://host`: (what is accepted)
        `stdio:codex`: `stdio:` takes nothing after it
        `ws:host`: two slashes and a host must follow the colon
        `ws://`: there is no host in it
        `ws://:80`: there is no host in it
        `ws://h:x`: the port is not a number up to 65535
        `ws://h:70000`: the port is not a number up to 65535
        `ws://::1`: an IPv6 address needs brackets
        `ws://[::1`: a bracket is not closed
        `ws://a b`: there are blanks in it
        `wss://…@host/`: it holds a user name or password; give a token beside it instead
        ");
    }
}
