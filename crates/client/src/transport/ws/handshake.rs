//! The HTTP request that opens a WebSocket, and the answer to it (RFC 6455 §4).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::digest;
use ring::rand::{SecureRandom, SystemRandom};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::transport::dial::Token;

/// Why there is no WebSocket.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The server said no.
    Status { status: u16, body: String },
    /// The connection failed, or the other side is no WebSocket server.
    Other(String),
}

/// Longest head of an answer.
const HEAD: usize = 16 * 1024;

/// As much of a refusal as a person reads.
const BODY: usize = 512;

/// What the RFC adds to the key, to tell a WebSocket server from one that merely echoes.
const MAGIC: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Opens the WebSocket; gives what has come behind the answer.
pub(super) async fn shake(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    host: &str,
    target: &str,
    token: Option<&Token>,
) -> Result<Vec<u8>, Refusal> {
    let key = new_key()?;
    let request = request(host, target, &key, token)?;
    stream.write_all(request.as_bytes()).await.map_err(lost)?;
    stream.flush().await.map_err(lost)?;
    let (head, mut rest) = read_head(stream).await?;
    let answer = Answer::read(&head)?;
    if answer.status == 101 {
        return answer.check(&key).map(|()| rest);
    }
    let length = answer.header("content-length").and_then(|length| length.parse().ok());
    let missing = length.unwrap_or(0_usize).min(BODY).saturating_sub(rest.len());
    let mut more = stream.take(missing as u64);
    // Whatever comes of it: the status is known.
    let _ = more.read_to_end(&mut rest).await;
    Err(Refusal::Status { status: answer.status, body: readable(&rest, token) })
}

fn new_key() -> Result<String, Refusal> {
    let mut bytes = [0; 16];
    let random = SystemRandom::new().fill(&mut bytes);
    random.map_err(|_| Refusal::Other("the system has no random numbers".to_owned()))?;
    Ok(STANDARD.encode(bytes))
}

fn request(host: &str, target: &str, key: &str, token: Option<&Token>) -> Result<String, Refusal> {
    // No `Origin`: Codex refuses whatever has one, since only browsers do.
    let mut request = format!(
        "GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n"
    );
    if let Some(token) = token.map(Token::reveal) {
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            let why = "the token is empty, or holds letters that no header may hold";
            return Err(Refusal::Other(why.to_owned()));
        }
        request.push_str(&format!("Authorization: Bearer {token}\r\n"));
    }
    request.push_str("\r\n");
    Ok(request)
}

async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> Result<(Vec<u8>, Vec<u8>), Refusal> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let rest = bytes.split_off(end + 4);
            return Ok((bytes, rest));
        }
        if bytes.len() > HEAD {
            return Err(not_ours("its answer does not end"));
        }
        if stream.read_buf(&mut bytes).await.map_err(lost)? == 0 {
            return Err(not_ours("it hung up"));
        }
    }
}

struct Answer<'a> {
    status: u16,
    headers: Vec<(&'a str, &'a str)>,
}

impl<'a> Answer<'a> {
    fn read(head: &'a [u8]) -> Result<Self, Refusal> {
        let text = std::str::from_utf8(head).map_err(|_| not_ours("its answer is no text"))?;
        let mut lines = text.split("\r\n");
        let first = lines.next().unwrap_or_default();
        let status = first.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
        let status = status.ok_or_else(|| not_ours("its answer is not HTTP"))?;
        let headers = lines.filter_map(|line| line.split_once(':'));
        Ok(Self { status, headers: headers.map(|(name, value)| (name, value.trim())).collect() })
    }

    fn header(&self, name: &str) -> Option<&'a str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| *value)
    }

    fn check(&self, key: &str) -> Result<(), Refusal> {
        let accept = format!("{key}{MAGIC}");
        let accept = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, accept.as_bytes());
        let accepted = self.header("sec-websocket-accept") == Some(&STANDARD.encode(accept));
        let upgraded =
            self.header("upgrade").is_some_and(|upgrade| upgrade.eq_ignore_ascii_case("websocket"));
        // We offer neither extensions nor subprotocols, so none may be chosen.
        let plain = self.header("sec-websocket-extensions").is_none()
            && self.header("sec-websocket-protocol").is_none();
        match accepted && upgraded && plain {
            true => Ok(()),
            false => Err(not_ours("its answer does not fit our question")),
        }
    }
}

/// One line of plain text, and never the token, should the server repeat it.
fn readable(body: &[u8], token: Option<&Token>) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(BODY)]).into_owned();
    let text = match token.map(Token::reveal).filter(|token| !token.is_empty()) {
        Some(token) => text.replace(token, "…"),
        None => text,
    };
    text.split(|letter: char| letter.is_control() || letter.is_whitespace())
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

fn lost(err: std::io::Error) -> Refusal {
    Refusal::Other(format!("the connection was lost: {err}"))
}

fn not_ours(why: &str) -> Refusal {
    Refusal::Other(format!("there is no app-server: {why}"))
}

#[cfg(test)]
mod tests {
    use tokio::io::duplex;

    use super::*;

    /// Shakes hands with a server that answers the same whatever it is asked.
    async fn against(answer: &[u8]) -> Result<Vec<u8>, Refusal> {
        let (mut ours, mut theirs) = duplex(64 * 1024);
        theirs.write_all(answer).await.unwrap();
        theirs.shutdown().await.unwrap();
        shake(&mut ours, "host:1", "/", Some(&Token::new("s3cret\n"))).await
    }

    #[tokio::test]
    async fn refusals_are_told_without_the_token() {
        let said = |status, body: &str| Err(Refusal::Status { status, body: body.to_owned() });
        let other = |why: &str| Err(Refusal::Other(format!("there is no app-server: {why}")));
        let endless = [b"HTTP/1.1 200 OK\r\n".as_slice(), &b"a: b\r\n".repeat(10_000)].concat();
        #[rustfmt::skip]
        let table: [(&[u8], _); 8] = [
            (b"HTTP/1.1 401 No\r\ncontent-length: 31\r\n\r\ninvalid websocket bearer token\n",
                said(401, "invalid websocket bearer token")),
            (b"HTTP/1.1 403 No\r\nContent-Length: 99999\r\n\r\nnot \x1b[31m s3cret",
                said(403, "not [31m …")),
            (b"HTTP/1.1 404 Not Found\r\n\r\n", said(404, "")),
            (b"HTTP/1.1 101 Yes\r\nupgrade: websocket\r\nsec-websocket-accept: wrong\r\n\r\n",
                other("its answer does not fit our question")),
            (b"", other("it hung up")),
            (b"{\"id\":1}\r\n\r\n", other("its answer is not HTTP")),
            (b"\xff\xff\r\n\r\n", other("its answer is no text")),
            (&endless, other("its answer does not end")),
        ];
        for (answer, want) in table {
            let head = String::from_utf8_lossy(&answer[..answer.len().min(40)]).into_owned();
            assert_eq!(against(answer).await, want, "answer: {head}");
        }
    }

    #[tokio::test]
    async fn the_request_is_what_the_rfc_asks_for() {
        let request = request("host:1", "/a?b", "KEY", Some(&Token::new("t"))).unwrap();
        insta::assert_snapshot!(request.replace("\r\n", "\n").trim_end(), @r"
        GET /a?b HTTP/1.1
        Host: host:1
        Connection: Upgrade
        Upgrade: websocket
        Sec-WebSocket-Version: 13
        Sec-WebSocket-Key: KEY
        Authorization: Bearer t
        ");
        assert!(super::request("h", "/", "K", Some(&Token::new("a\r\nb: c"))).is_err());
        assert!(super::request("h", "/", "K", Some(&Token::new(" "))).is_err());
    }

    #[test]
    fn the_answer_to_the_key_is_that_of_the_rfc() {
        let head = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\n\
            Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
        assert_eq!(Answer::read(head).unwrap().check("dGhlIHNhbXBsZSBub25jZQ=="), Ok(()));
    }
}
