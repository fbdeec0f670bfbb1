//! The methods, one family a file.

mod account;

mod command;

mod files;

mod kept;

mod lists;

mod mcp;

mod params;

mod threads;

mod turns;

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use uuid::Uuid;

use super::Inner;
use super::ears::Ear;
use super::refused::Refused;
use super::threads::Loaded;
use crate::thread::Overrides;

/// Who asks, and of whom.
#[derive(Clone)]
pub(crate) struct Cx {
    pub(crate) inner: Arc<Inner>,
    pub(crate) ear: Arc<Ear>,
}

/// What is answered, and what is done once the answer is on its way.
pub(crate) struct Reply {
    pub(crate) result: Value,
    pub(crate) after: Option<Box<dyn FnOnce() + Send>>,
}

impl Reply {
    fn then(result: Value, after: impl FnOnce() + Send + 'static) -> Self {
        Self { result, after: Some(Box::new(after)) }
    }
}

impl From<Value> for Reply {
    fn from(result: Value) -> Self {
        Self { result, after: None }
    }
}

type Served = Result<Reply, Refused>;

/// Serves one request.
pub(crate) async fn serve(cx: &Cx, method: &str, params: &RawValue) -> Served {
    cx.inner.supply.bound().map_or(Ok(()), |bound| bound.check_method(method))?;
    match method {
        "thread/start" => threads::start(cx, read(params)?).await,
        "thread/resume" => threads::resume(cx, read(params)?).await,
        "thread/fork" => threads::fork(cx, read(params)?).await,
        "thread/unsubscribe" => threads::unsubscribe(cx, &read(params)?),
        "thread/compact/start" => turns::compact(cx, &read(params)?).await,
        "thread/inject_items" => turns::inject(cx, read(params)?).await,
        "thread/archive" => kept::archive(cx, &read(params)?).await,
        "thread/unarchive" => kept::unarchive(cx, &read(params)?).await,
        "thread/delete" => kept::delete(cx, &read(params)?).await,
        "thread/name/set" => kept::name(cx, read(params)?).await,
        "thread/list" => lists::threads(cx, read(params)?).await,
        "thread/loaded/list" => lists::loaded(cx, &read(params)?),
        "thread/read" => lists::thread(cx, &read(params)?).await,
        "thread/turns/list" => lists::turns(cx, &read(params)?).await,
        "thread/items/list" => lists::items(cx, &read(params)?).await,
        "turn/start" => turns::start(cx, read(params)?).await,
        "turn/steer" => turns::steer(cx, read(params)?).await,
        "review/start" => turns::review(cx, read(params)?).await,
        "turn/interrupt" => turns::interrupt(cx, &read(params)?).await,
        "command/exec" => command::exec(cx, read(params)?).await,
        "mcpServerStatus/list" => mcp::status(cx, read(params)?).await,
        "mcpServer/resource/read" => mcp::resource(cx, read(params)?).await,
        "mcpServer/tool/call" => mcp::call(cx, read(params)?).await,
        _ if method.starts_with("fs/") => files::serve(method, params).await,
        "model/list" => account::models(cx, &read(params)?).await,
        _ => account::serve(cx, method, params),
    }
}

/// Reads parameters; the words of a refusal are Codex's, which reads them the same way.
pub(crate) fn read<T: DeserializeOwned>(params: &RawValue) -> Result<T, Refused> {
    if params.get() == "null" {
        return Err(Refused::invalid("Invalid request: missing field `params`"));
    }
    let value: Value =
        serde_json::from_str(params.get()).map_err(|err| Refused::unreadable(&err))?;
    serde_json::from_value(value).map_err(|err| Refused::unreadable(&err))
}

/// Reads parameters that may be left out.
fn read_or_default<T: DeserializeOwned + Default>(params: &RawValue) -> Result<T, Refused> {
    if params.get() == "null" { Ok(T::default()) } else { read(params) }
}

/// Checks the shape of a thread's name; some methods call it a session's.
fn thread_id(text: &str, word: &str) -> Result<(), Refused> {
    let Err(err) = Uuid::parse_str(text) else { return Ok(()) };
    let is_wrong = |letter: &char| !letter.is_ascii_hexdigit() && *letter != '-';
    let wrong = text.chars().enumerate().find(|(_, letter)| is_wrong(letter));
    let why = match wrong {
        Some((at, letter)) => format!(
            "invalid character: expected an optional prefix of `urn:uuid:` followed by \
             [0-9a-fA-F-], found `{letter}` at {}",
            at + 1
        ),
        None => err.to_string(),
    };
    Err(Refused::invalid(format!("invalid {word} id: {why}")))
}

impl Cx {
    /// A thread that must be loaded.
    fn loaded(&self, id: &str) -> Result<Arc<Loaded>, Refused> {
        thread_id(id, "thread")?;
        self.inner.threads.get(id).ok_or_else(|| Refused::no_thread(id))
    }

    /// Refuses changes of a thread that reach beyond what this server may do.
    fn check_overrides(&self, overrides: &Overrides) -> Result<(), Refused> {
        self.inner.supply.bound().map_or(Ok(()), |bound| bound.check_overrides(overrides))
    }

    /// Refuses what needs the experimental capability, unless the client has it.
    fn experimental(&self, wanted: bool, what: &str) -> Result<(), Refused> {
        match wanted && !self.ear.experimental {
            true => Err(Refused::experimental(what)),
            false => Ok(()),
        }
    }
}

/// The answer that says only that it was done.
fn done() -> Value {
    json!({})
}
