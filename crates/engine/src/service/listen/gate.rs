//! Who may come in over HTTP: the head of the request is read here, and judged.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::digest;
use tokio::io::{AsyncRead, AsyncReadExt};

use super::ListenError;

/// Longest head of a request.
const HEAD: usize = 16 * 1024;

/// What the RFC adds to the key, to tell a WebSocket server from one that merely echoes.
const MAGIC: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// A bearer token that clients must bring. Only its digest is kept.
#[derive(Clone)]
pub struct Token([u8; 32]);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Token {
    /// A token by its words.
    pub fn new(words: &str) -> Self {
        Self(sha256(words))
    }

    /// Reads a token out of a file; white space around it does not count.
    pub fn read(path: &Path) -> Result<Self, ListenError> {
        let fault = |why: String| ListenError::Token { path: path.display().to_string(), why };
        let text = std::fs::read_to_string(path).map_err(|err| fault(err.to_string()))?;
        let words = text.trim();
        if words.is_empty() || !words.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(fault("it must be one word of plain characters".to_owned()));
        }
        Ok(Self::new(words))
    }

    /// Whether these are the words. Digests are compared, all of them, so the time that it takes
    /// says nothing about the words.
    fn fits(&self, words: &str) -> bool {
        let theirs = sha256(words);
        self.0.iter().zip(theirs).fold(0, |seen, (ours, theirs)| seen | (ours ^ theirs)) == 0
    }
}

fn sha256(words: &str) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest::digest(&digest::SHA256, words.as_bytes()).as_ref());
    bytes
}

/// Who may come in.
#[derive(Clone, Debug, Default)]
pub(super) struct Gate {
    /// The address that is listened on; none for a socket in the file system, whose clients name
    /// any host.
    pub(super) address: Option<SocketAddr>,
    /// What clients must bring.
    pub(super) token: Option<Token>,
    /// Names, beside addresses, under which the server is known.
    pub(super) hosts: Vec<String>,
}

/// What to do with a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Answer with this key and go on as a WebSocket.
    Upgrade {
        /// `Sec-WebSocket-Accept`.
        accept: String,
    },
    /// Answer with this and hang up.
    Answer {
        /// `200 OK` and its like.
        status: &'static str,
        /// In words.
        body: &'static str,
    },
}

fn answer(status: &'static str, body: &'static str) -> Verdict {
    Verdict::Answer { status, body }
}

impl Gate {
    /// Judges the head of a request.
    pub(super) fn judge(&self, head: &[u8]) -> Verdict {
        let Some(request) = Request::read(head) else { return answer("400 Bad Request", "") };
        // Only browsers send it, and no page has any business here.
        if request.header("origin").is_some() {
            return answer("403 Forbidden", "");
        }
        if !self.knows(request.header("host")) {
            return answer("403 Forbidden", "unknown host");
        }
        let path = request.target.split('?').next().unwrap_or_default();
        match (request.method, path) {
            ("GET", "/readyz" | "/healthz") => answer("200 OK", ""),
            ("GET", _) => self.upgrade(&request),
            _ => answer("405 Method Not Allowed", "Request method must be `GET`"),
        }
    }

    fn upgrade(&self, request: &Request<'_>) -> Verdict {
        if let Some(token) = &self.token {
            let Some(given) = request.header("authorization") else {
                return answer("401 Unauthorized", "missing websocket bearer token");
            };
            let Some((scheme, words)) = given.split_once(' ') else {
                return answer("401 Unauthorized", "invalid authorization header");
            };
            if !scheme.eq_ignore_ascii_case("bearer") {
                return answer("401 Unauthorized", "invalid authorization header");
            }
            if !token.fits(words.trim()) {
                return answer("401 Unauthorized", "invalid websocket bearer token");
            }
        }
        if !request.names("connection", "upgrade") {
            return answer("400 Bad Request", "Connection header did not include 'upgrade'");
        }
        if !request.names("upgrade", "websocket") {
            return answer("400 Bad Request", "`Upgrade` header did not include 'websocket'");
        }
        if request.header("sec-websocket-version") != Some("13") {
            return answer("400 Bad Request", "`Sec-WebSocket-Version` header is not 13");
        }
        match request.header("sec-websocket-key") {
            Some(key) => Verdict::Upgrade { accept: accept(key) },
            None => answer("400 Bad Request", "`Sec-WebSocket-Key` header missing"),
        }
    }

    /// A page that makes its own name lead to us (DNS rebinding) is told from one who means us.
    fn knows(&self, host: Option<&str>) -> bool {
        let Some(ours) = self.address else { return true };
        let Some(host) = host else { return false };
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => host,
        };
        if self.hosts.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            return true;
        }
        let local = ours.ip().is_loopback() || ours.ip().is_unspecified();
        if name.eq_ignore_ascii_case("localhost") {
            return local;
        }
        let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        bare.parse::<IpAddr>().is_ok_and(|ip| {
            ip == ours.ip() || ours.ip().is_unspecified() || (local && ip.is_loopback())
        })
    }
}

fn accept(key: &str) -> String {
    let joined = format!("{key}{MAGIC}");
    let hash = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, joined.as_bytes());
    STANDARD.encode(hash.as_ref())
}

struct Request<'a> {
    method: &'a str,
    target: &'a str,
    headers: Vec<(&'a str, &'a str)>,
}

impl<'a> Request<'a> {
    fn read(head: &'a [u8]) -> Option<Self> {
        let text = std::str::from_utf8(head).ok()?;
        let mut lines = text.split("\r\n");
        let mut first = lines.next()?.split(' ');
        let (method, target, version) = (first.next()?, first.next()?, first.next()?);
        if !version.starts_with("HTTP/1.") || first.next().is_some() {
            return None;
        }
        let headers = lines.take_while(|line| !line.is_empty());
        let headers = headers.map(|line| line.split_once(':').map(|(k, v)| (k, v.trim())));
        Some(Self { method, target, headers: headers.collect::<Option<_>>()? })
    }

    /// The header's value; none also where it is given twice and says different things.
    fn header(&self, name: &str) -> Option<&'a str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|pair| pair.1)
    }

    /// Whether a list names a word.
    fn names(&self, name: &str, word: &str) -> bool {
        let lists = self.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        lists.flat_map(|(_, list)| list.split(',')).any(|one| one.trim().eq_ignore_ascii_case(word))
    }
}

/// Reads the head of a request; gives what has come behind it too.
pub(super) async fn read_head(
    stream: &mut (impl AsyncRead + Unpin),
) -> std::io::Result<(Vec<u8>, Vec<u8>)> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let rest = bytes.split_off(end + 4);
            return Ok((bytes, rest));
        }
        if bytes.len() > HEAD {
            return Err(std::io::Error::other("the head of the request does not end"));
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
}

#[cfg(test)]
mod tests;
