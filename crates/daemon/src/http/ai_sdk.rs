//! The AI SDK's calls: a call in, its stream parts out; the turn belongs to the response.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body as Outgoing, Bytes};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use bindery_client::interrupts::AnswerError;
use bindery_client::turn::TurnControl;
use bindery_core::ids::ThreadId;
use bindery_core::interrupt::Answer;
use futures_util::{FutureExt as _, StreamExt as _, stream as streams};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::time::sleep;
use utoipa::ToSchema;

use super::access::Access;
use super::app::App;
use super::body::{Body, MendedBody, NoFields, Perhaps, json};
use super::extract::Path;
use super::limits::room;
use super::openapi::shape;
use super::sse;
use super::token_watch::WatchedStream;
use super::turns::NewPrompt;
use crate::error::Error;
use crate::files::TenantFiles;
use crate::front::Events;
use crate::front::request::{CallRequest, FrontSettings};
use crate::store::Change;
use crate::tenant::{Caller, Role};
use crate::turns::{check_files, check_length, steering};

/// How often a quiet stream says that it is alive, at the least.
const QUIET: Duration = Duration::from_secs(15);

/// Bytes that are sent at once, about.
const WRITE: usize = 32 * 1024;

/// Runs a call and streams its parts. Closing the response interrupts the turn.
#[utoipa::path(post, path = "/v1/language-model/stream", tag = "AI SDK",
    operation_id = "stream_call",
    request_body = shape::CallRequest,
    responses((status = 200, body = String, content_type = "text/event-stream")))]
pub async fn stream(
    State(app): State<App>,
    caller: Caller,
    MendedBody(mut request, replaced): MendedBody<CallRequest>,
) -> Result<Response, Error> {
    request.note_replaced(replaced);
    if !app.config.exit_with_parent {
        room(&app, &caller.tenant, 0).await?;
    }
    let admitted = app.fronts.admit(&caller, request)?;
    let front = admitted.front.clone();
    let (events, session) = front.stream(admitted, caller.as_contributor()).await?;
    if !app.config.exit_with_parent {
        contribute_to_thread(&app, &caller, &session).await?;
    }
    let quiet = QUIET.min(Duration::from_secs(app.config.http.keep_alive_seconds.max(1)));
    let watched = app.token_watch.watch(&caller, Access::Of(Role::Run));
    let mut sending = Sending { events, quiet, watched };
    // The head goes with the first events: each alone would wake the reader.
    let first = sending.next().await;
    let rest = streams::unfold(sending, |mut sending| async move {
        sending.next().await.map(|bytes| (bytes, sending))
    });
    let body = streams::iter(first).chain(rest).map(Ok::<_, Infallible>);
    Ok(sse::stream_of(Outgoing::from_stream(body)))
}

/// A call on its way out.
struct Sending {
    events: Events,
    quiet: Duration,
    watched: WatchedStream,
}

impl Sending {
    async fn next(&mut self) -> Option<Bytes> {
        tokio::select! {
            biased;
            () = self.watched.ended() => None,
            frame = self.events.next() => frame.map(|frame| self.joined(frame)),
            () = sleep(self.quiet) => Some(Bytes::from_static(b": keep-alive\n\n")),
        }
    }

    /// One write for what is there.
    fn joined(&mut self, mut frames: String) -> Bytes {
        while frames.len() < WRITE
            && let Some(Some(more)) = self.events.next().now_or_never()
        {
            frames.push_str(&more);
        }
        frames.into()
    }
}

/// Starts a worker and spare threads for conversations that begin like this call.
#[utoipa::path(post, path = "/v1/language-model/prepare", tag = "AI SDK",
    operation_id = "prepare_call",
    request_body = shape::CallRequest, responses((status = 204)))]
pub async fn prepare(
    State(app): State<App>,
    caller: Caller,
    Body(request): Body<CallRequest>,
) -> Result<StatusCode, Error> {
    let admitted = app.fronts.admit(&caller, request)?;
    admitted.front.clone().prepare(admitted).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// What to add to a call that runs: one of both.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Steering {
    /// Text.
    pub text: Option<String>,
    /// Parts as a user message of the AI SDK has them.
    #[schema(value_type = Option<Vec<shape::InputPart>>)]
    pub input: Option<Vec<Value>>,
}

/// Adds to a call while it runs.
#[utoipa::path(post, path = "/v1/language-model/calls/{call}/steer", tag = "AI SDK",
    operation_id = "steer_call",
    request_body = Steering, responses((status = 204)))]
pub async fn steer(
    State(app): State<App>,
    caller: Caller,
    Path(call): Path,
    Body(steering_of): Body<Steering>,
) -> Result<StatusCode, Error> {
    let control = running(&app, &caller, &call)?;
    let input = match (steering_of.text, steering_of.input) {
        (Some(text), None) => Value::String(text),
        (None, Some(parts)) => Value::Array(parts),
        _ => return Err(Error::invalid("body", "give `text` or `input`")),
    };
    let settings = Map::new();
    let prompt = NewPrompt { input, settings, tools: None, output_schema: None };
    let call = prompt.call()?;
    check_length("the prompt", &call)?;
    let mut input = steering(&call)?;
    check_files(&input)?;
    if !app.config.exit_with_parent {
        let files = TenantFiles::new(&app.config, &caller.tenant);
        files.check(&call)?;
        input = files.take(input).await?;
    }
    if let Some(front) = app.fronts.known(&caller.tenant) {
        front.contribute(&control, caller.as_contributor());
    }
    control.steer(input).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Stops a call; its stream ends by itself.
#[utoipa::path(post, path = "/v1/language-model/calls/{call}/interrupt", tag = "AI SDK",
    operation_id = "interrupt_call",
    request_body = shape::Nothing, responses((status = 204)))]
pub async fn interrupt(
    State(app): State<App>,
    caller: Caller,
    Path(call): Path,
    Perhaps(NoFields {}): Perhaps<NoFields>,
) -> Result<StatusCode, Error> {
    running(&app, &caller, &call)?.interrupt();
    Ok(StatusCode::NO_CONTENT)
}

fn running(app: &App, caller: &Caller, call: &str) -> Result<TurnControl, Error> {
    let front = app.fronts.known(&caller.tenant);
    let control = front.and_then(|front| front.control(call));
    control.ok_or_else(|| Error::not_found("call", call))
}

/// The models to choose from.
#[utoipa::path(get, path = "/v1/models", tag = "AI SDK",
    operation_id = "list_models",
    responses((status = 200, body = shape::Models)))]
pub async fn models(State(app): State<App>, caller: Caller) -> Result<Response, Error> {
    models_with(&app, &caller, &FrontSettings::default()).await
}

/// Whose models to list.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelsQuery {
    settings: FrontSettings,
}

/// The models to choose from with these settings of a provider.
#[utoipa::path(post, path = "/v1/models", tag = "AI SDK",
    operation_id = "find_models",
    request_body = shape::ModelsRequest, responses((status = 200, body = shape::Models)))]
pub async fn models_of(
    State(app): State<App>,
    caller: Caller,
    Body(query): Body<ModelsQuery>,
) -> Result<Response, Error> {
    models_with(&app, &caller, &query.settings).await
}

async fn models_with(
    app: &App,
    caller: &Caller,
    settings: &FrontSettings,
) -> Result<Response, Error> {
    let (backend, key) = app.fronts.place(&caller.tenant, settings)?;
    let lease = app.fronts.of(&caller.tenant).lease(&key).await?;
    let models = lease.server().models().await?;
    let models: Vec<Value> = models
        .iter()
        .map(|model| {
            json!({
                "id": model.id,
                "name": if model.display_name.is_empty() { &model.id } else { &model.display_name },
                "description": model.description,
                "isDefault": model.is_default,
                "supportedReasoningEfforts": model.supported_reasoning_efforts,
                "defaultReasoningEffort": model.default_reasoning_effort,
                "inputModalities": model.input_modalities,
            })
        })
        .collect();
    Ok(json(StatusCode::OK, &json!({ "models": models, "backend": backend })))
}

/// Answers a question of a call's, if it is one.
pub fn answer(
    app: &App,
    caller: &Caller,
    token: &str,
    answer: &Answer,
) -> Option<Result<Response, Error>> {
    let front = app.fronts.known(&caller.tenant)?;
    let token = token.into();
    if let Err(err) = front.check_answer(caller, &token, answer) {
        return Some(Err(err));
    }
    match front.interrupts().answer(&token, answer.clone()) {
        Ok(()) => Some(Ok(StatusCode::NO_CONTENT.into_response())),
        Err(AnswerError::Unknown(_)) => None,
        Err(err) => Some(Err(Error::Interrupt { code: err.code(), message: err.to_string() })),
    }
}

/// Whoever runs a call in the session of a thread has a part in that thread.
async fn contribute_to_thread(app: &App, caller: &Caller, session: &ThreadId) -> Result<(), Error> {
    let Some(row) = app.store.thread_of_session(&caller.tenant.id, session.as_str()).await? else {
        return Ok(());
    };
    let contributor = caller.as_contributor();
    app.store.commit(vec![Change::AddContributor { thread: row.id, contributor }]).await?;
    Ok(())
}
