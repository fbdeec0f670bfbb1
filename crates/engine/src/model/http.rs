//! HTTP to a model's server.

use std::borrow::Cow;
use std::path::PathBuf;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Response, Url};
use tokio::time::{Instant, timeout_at};
use tokio_util::bytes::Bytes;

use super::classify::{self, Again, Failure, Told};
use super::clients::Clients;
use super::sse::{Event, Parser};
use super::{Fault, ModelError, Provider};
use crate::tls;

/// What we call ourselves to servers.
pub(super) const ORIGINATOR: &str = "bindery";

/// More of an error's body nobody reads.
const MAX_ERROR_BODY: usize = 64 * 1024;

/// More than this is no answer of a model.
const MAX_ANSWER: usize = 256 * 1024 * 1024;

/// A way to one address of a server.
pub(super) struct Http {
    target: Result<Target, ModelError>,
    clients: Clients,
    authority: Option<PathBuf>,
    idle: Duration,
}

struct Target {
    url: Url,
    headers: HeaderMap,
}

impl Http {
    /// Reads the settings; what is wrong with them is told when one asks.
    pub(super) fn new(provider: &Provider, path: &[&str], clients: &Clients) -> Self {
        let target = Target::new(provider, path);
        let (authority, idle) = (provider.authority.clone(), provider.idle_timeout);
        Self { target, clients: clients.clone(), authority, idle }
    }

    /// Posts once. What is not a success is classified.
    pub(super) async fn post(
        &self,
        body: Bytes,
        headers: &[(Cow<'static, str>, String)],
    ) -> Result<Response, Failure> {
        let fixed = |error: &ModelError| Failure { error: error.clone(), again: Again::Never };
        let target = self.target.as_ref().map_err(fixed)?;
        let client = self.clients.to(&target.url, self.authority.as_deref()).await?;
        let mut request =
            client.post(target.url.clone()).header(CONTENT_TYPE, "application/json").body(body);
        for (name, value) in headers {
            match (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value)) {
                (Ok(name), Ok(value)) => request = request.header(name, value),
                _ => tracing::warn!(%name, "left out a header that HTTP cannot carry"),
            }
        }
        // Last, so that what the settings say wins.
        let request = request.headers(target.headers.clone());
        let deadline = Instant::now() + self.idle;
        let sent = timeout_at(deadline, request.send()).await.map_err(|_| idle(self.idle))?;
        let response = sent.map_err(|err| unreachable_server(&target.url, err))?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(refusal(response, deadline).await)
    }

    /// The events of an answer.
    pub(super) fn events(&self, response: Response) -> Events {
        Events {
            response,
            parser: Parser::default(),
            ready: Vec::new().into_iter(),
            received: 0,
            ended: false,
            idle: self.idle,
        }
    }

    /// The whole of an answer that is no stream.
    pub(super) async fn whole(&self, mut response: Response) -> Result<Vec<u8>, Failure> {
        let deadline = Instant::now() + self.idle;
        let mut body = Vec::new();
        loop {
            let chunk = timeout_at(deadline, response.chunk()).await;
            let chunk = chunk.map_err(|_| idle(self.idle))?.map_err(|err| cut(&err))?;
            let Some(chunk) = chunk else { return Ok(body) };
            if body.len() + chunk.len() > MAX_ANSWER {
                return Err(endless());
            }
            body.extend_from_slice(&chunk);
        }
    }
}

/// What kind of body an answer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Stream,
    Json,
    Page,
}

/// Servers that forget the header mean a stream.
pub(super) fn shape(response: &Response) -> Shape {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    match kind.unwrap_or_default().to_ascii_lowercase() {
        kind if kind.starts_with("application/json") => Shape::Json,
        kind if kind.starts_with("text/html") => Shape::Page,
        _ => Shape::Stream,
    }
}

/// A header's text.
pub(super) fn header(response: &Response, name: &str) -> Option<String> {
    response.headers().get(name)?.to_str().ok().map(str::to_owned)
}

/// 200 with a web page: a login or a wrong address.
pub(super) fn page(response: &Response) -> Failure {
    let words = format!(
        "`{}` answers with a web page and not as a model; check `base_url`",
        place(response.url()),
    );
    Failure::new(Fault::Garbage, Again::Never, words)
}

/// Events as they come.
pub(super) struct Events {
    response: Response,
    parser: Parser,
    ready: std::vec::IntoIter<Event>,
    received: usize,
    ended: bool,
    idle: Duration,
}

impl Events {
    /// The next event; none at the end of the stream. Comments keep nothing alive: a server that
    /// only pings is silent.
    pub(super) async fn next(&mut self) -> Result<Option<Event>, Failure> {
        self.next_within(self.idle).await
    }

    /// The next event, if it comes within this time.
    pub(super) async fn next_within(&mut self, time: Duration) -> Result<Option<Event>, Failure> {
        let deadline = Instant::now() + time;
        loop {
            if let Some(event) = self.ready.next() {
                return Ok(Some(event));
            }
            if self.ended {
                return Ok(None);
            }
            let chunk = timeout_at(deadline, self.response.chunk()).await;
            self.take(chunk.map_err(|_| idle(time))?.map_err(|err| cut(&err))?)?;
        }
    }

    /// Reads to the end of the body, if that comes at once: only then is the connection used again.
    pub(super) async fn drain(mut self, time: Duration) {
        let deadline = Instant::now() + time;
        while !self.ended {
            let Ok(Ok(chunk)) = timeout_at(deadline, self.response.chunk()).await else { return };
            self.ended = chunk.is_none();
        }
    }

    /// How many lines were nothing at all.
    pub(super) fn strange(&self) -> usize {
        self.parser.strange()
    }

    fn take(&mut self, chunk: Option<Bytes>) -> Result<(), Failure> {
        let mut events = Vec::new();
        match chunk {
            None => {
                self.ended = true;
                events.extend(self.parser.finish());
            }
            Some(chunk) => {
                self.received += chunk.len();
                if self.received > MAX_ANSWER {
                    return Err(endless());
                }
                let garbage = |err: super::sse::TooLong| {
                    Failure::new(Fault::Garbage, Again::Stream, err.to_string())
                };
                self.parser.push(&chunk, &mut events).map_err(garbage)?;
            }
        }
        self.ready = events.into_iter();
        Ok(())
    }
}

impl Target {
    fn new(provider: &Provider, path: &[&str]) -> Result<Self, ModelError> {
        let base = &provider.base_url;
        let wrong = |why: &str| ModelError {
            kind: Fault::BadRequest,
            message: format!("`{base}` is no address of a model's server: {why}; set `base_url`"),
            status: None,
        };
        let mut url = Url::parse(base).map_err(|err| wrong(&err.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(wrong("it must begin with http:// or https://"));
        }
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        if !provider.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&provider.query);
        }
        Ok(Self { url, headers: headers(provider)? })
    }
}

fn headers(provider: &Provider) -> Result<HeaderMap, ModelError> {
    let mut headers = HeaderMap::new();
    let mut add = |name: &str, value: &str, secret: bool| {
        let wrong = || ModelError {
            kind: Fault::BadRequest,
            message: format!("the header `{name}` cannot be sent: it holds what no header may"),
            status: None,
        };
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
        let mut value = HeaderValue::from_str(value).map_err(|_| wrong())?;
        value.set_sensitive(secret);
        headers.insert(key, value);
        Ok(())
    };
    add("accept", "text/event-stream", false)?;
    add("originator", ORIGINATOR, false)?;
    if let Some(key) = &provider.key {
        add(AUTHORIZATION.as_str(), &format!("Bearer {}", key.trim()), true)?;
    }
    for (name, value) in &provider.headers {
        add(name, value, true)?;
    }
    Ok(headers)
}

async fn refusal(mut response: Response, deadline: Instant) -> Failure {
    let status = response.status();
    let retry_after = retry_after(response.headers());
    let mut body = Vec::new();
    while body.len() < MAX_ERROR_BODY {
        // The status says enough where the body does not come.
        let Ok(Ok(Some(chunk))) = timeout_at(deadline, response.chunk()).await else { break };
        body.extend_from_slice(&chunk);
    }
    body.truncate(MAX_ERROR_BODY);
    let mut told = Told::read(&String::from_utf8_lossy(&body));
    if let Some(to) = header(&response, "location").filter(|_| status.is_redirection()) {
        told = Told::read(&format!("it moved to `{to}`; set `base_url`"));
    }
    classify::status(status.as_u16(), retry_after, &told)
}

/// Seconds or a date; `retry-after-ms` is OpenAI's own and finer.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let number = |name: &str| text(name)?.parse::<f64>().ok();
    let seconds = number("retry-after-ms").map(|millis| millis / 1000.0);
    if let Some(seconds) = seconds.or_else(|| number("retry-after")) {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = jiff::fmt::rfc2822::parse(text("retry-after")?).ok()?.timestamp();
    Some(Duration::try_from(date.duration_since(jiff::Timestamp::now())).unwrap_or_default())
}

fn unreachable_server(url: &Url, err: reqwest::Error) -> Failure {
    let place = place(url);
    if let Some(why) = tls::fault(&err) {
        let words = format!("no safe connection to the model's server at `{place}`: {why}");
        return Failure::new(Fault::Transport, Again::Never, words);
    }
    let connects = err.is_connect();
    let why = causes(&err.without_url());
    let words = match connects {
        true => format!("cannot reach the model's server at `{place}`: {why}; is it running?"),
        false => format!("the connection to the model's server at `{place}` failed: {why}"),
    };
    Failure::new(Fault::Transport, Again::Request, words)
}

fn cut(err: &reqwest::Error) -> Failure {
    // The innermost cause is the only one that says anything.
    let mut cause: &dyn std::error::Error = err;
    while let Some(source) = cause.source() {
        cause = source;
    }
    let words = format!("the model's server cut its answer: {cause}");
    Failure::new(Fault::Transport, Again::Stream, words)
}

fn idle(time: Duration) -> Failure {
    let words = format!("the model's server said nothing for {} s", time.as_secs_f64());
    Failure::new(Fault::Idle, Again::Stream, words)
}

fn endless() -> Failure {
    let words = format!("the model's server sent more than {MAX_ANSWER} bytes for one answer");
    Failure::new(Fault::Garbage, Again::Never, words)
}

/// Scheme, host and port: enough to know the server by, and no secret of the query.
fn place(url: &Url) -> String {
    url.origin().ascii_serialization()
}

pub(super) fn causes(err: &dyn std::error::Error) -> String {
    let mut words = err.to_string();
    let mut source = err.source();
    while let Some(cause) = source {
        words.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    words
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use reqwest::header::{HeaderMap, HeaderValue};

    use super::super::{Provider, Wire};
    use super::{Target, retry_after};

    #[test]
    fn addresses_are_joined_and_checked() {
        let mut provider = Provider::new(Wire::Responses, "https://host/v1/");
        provider.query = vec![("api-version".to_owned(), "a b".to_owned())];
        let url = Target::new(&provider, &["chat", "completions"]).unwrap().url;
        assert_eq!(url.as_str(), "https://host/v1/chat/completions?api-version=a+b");
        for wrong in ["", "localhost:11434", "ftp://host", "/v1"] {
            provider.base_url = wrong.to_owned();
            let error = Target::new(&provider, &["responses"]).err().unwrap();
            assert!(error.message.contains("set `base_url`"), "{error}");
        }
    }

    #[test]
    fn a_time_to_wait_is_read_from_headers() {
        let read = |name: &'static str, value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, HeaderValue::from_str(value).unwrap());
            retry_after(&headers)
        };
        assert_eq!(read("retry-after", "2"), Some(Duration::from_secs(2)));
        assert_eq!(read("retry-after-ms", "1500"), Some(Duration::from_millis(1500)));
        assert_eq!(read("retry-after", "-1"), None);
        assert_eq!(read("retry-after", "soon"), None);
        let past = read("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(past, Some(Duration::ZERO));
    }
}
