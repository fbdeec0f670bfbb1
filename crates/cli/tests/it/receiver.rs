//! Whoever a webhook calls: answers what it is told to, and remembers what it heard.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::time::{sleep, timeout};

use crate::stage::HANG;

/// How a call is answered.
#[derive(Clone, Debug)]
pub(crate) enum Answers {
    /// With this status and body.
    With(u16, String),
    /// Not at all; the connection stays open.
    Never,
    /// With the end of the connection.
    Closing,
    /// With somebody else's address.
    Elsewhere(String),
    /// With a body that does not end before the caller goes.
    Flood,
}

/// A call that came.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) path: String,
    pub(crate) headers: HashMap<String, String>,
    /// With characters in the place of bytes that are no text.
    pub(crate) body: String,
    pub(crate) at: Instant,
}

impl Call {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// Whether the signature is that of this secret.
    pub(crate) fn is_signed(&self, secret: &str) -> bool {
        let signature = &self.headers["bindery-signature"];
        let (time, given) = signature.strip_prefix("t=").unwrap().split_once(",v1=").unwrap();
        let time = time.parse().unwrap();
        given == bindery_daemon::secret::sign(secret, time, self.body.as_bytes())
    }
}

/// A server on a thread of its own, which ends with the test.
pub(crate) struct Receiver {
    address: SocketAddr,
    calls: Arc<Mutex<Vec<Call>>>,
}

impl Receiver {
    /// Answers calls with these, one after the other; the last goes on.
    pub(crate) fn new(answers: Vec<Answers>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let calls = Arc::new(Mutex::new(Vec::new()));
        let heard = calls.clone();
        std::thread::spawn(move || {
            let mut held = Vec::new();
            for (number, stream) in listener.incoming().enumerate() {
                let stream = stream.unwrap();
                let answer = answers.get(number).unwrap_or(answers.last().unwrap());
                let call = read(&stream);
                // Told before it is heard: whoever waits for a call may rely on its answer.
                match answer {
                    Answers::With(status, body) => say(&stream, *status, body),
                    Answers::Never => held.push(stream),
                    Answers::Closing => drop(stream),
                    Answers::Elsewhere(url) => {
                        let head = "HTTP/1.1 307 X\r\nconnection: close\r\ncontent-length: 0";
                        let _ = write!(&stream, "{head}\r\nlocation: {url}\r\n\r\n");
                    }
                    Answers::Flood => flood(&stream),
                }
                heard.lock().unwrap().push(call);
            }
        });
        Self { address, calls }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    /// The address without a path.
    pub(crate) fn base(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap().clone()
    }

    /// Waits for so many calls.
    pub(crate) async fn wait(&self, count: usize) -> Vec<Call> {
        let waiting = async {
            while self.calls().len() < count {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(HANG, waiting).await.expect("nobody calls");
        self.calls()
    }
}

fn read(stream: &TcpStream) -> Call {
    let mut reader = BufReader::new(stream);
    let (mut headers, mut first) = (HashMap::new(), String::new());
    reader.read_line(&mut first).unwrap();
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.trim().split_once(": ") {
            headers.insert(name.to_ascii_lowercase(), value.to_owned());
        }
    }
    let length = headers["content-length"].parse().unwrap();
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let body = String::from_utf8_lossy(&body).into_owned();
    Call { path, headers, body, at: Instant::now() }
}

fn flood(mut stream: &TcpStream) {
    let head = "HTTP/1.1 200 X\r\ncontent-length: 1000000000000\r\n\r\n";
    let _ = stream.write_all(head.as_bytes());
    while stream.write_all(&[b' '; 1 << 16]).is_ok() {}
}

fn say(mut stream: &TcpStream, status: u16, body: &str) {
    let length = body.len();
    let head = format!("HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {length}\r\n");
    // A caller who gave up is no failure of ours.
    let _ = write!(stream, "{head}\r\n{body}");
}
