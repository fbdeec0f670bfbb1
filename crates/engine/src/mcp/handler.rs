//! What a server may ask of us and tell us: questions to the person, and how far a call is.

use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationCapability, Implementation, ProgressNotificationParam,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, ErrorData, RoleClient};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;

use crate::thread::view::Wait;
use crate::turn::voice::Voice;

/// Questions that one server may have open at once; more are declined.
const QUESTIONS: usize = 4;

/// Hears one server.
#[derive(Clone)]
pub(super) struct Handler {
    shared: Arc<Shared>,
}

struct Shared {
    server: String,
    /// The call under way; there is one at a time.
    call: Mutex<Option<Line>>,
    /// Questions that wait for an answer.
    asking: watch::Sender<usize>,
    room: Semaphore,
}

#[derive(Clone)]
struct Line {
    voice: Voice,
    asks: bool,
    item_id: String,
    over: CancellationToken,
}

/// Who a call is made for.
#[derive(Clone, Copy)]
pub(crate) struct Speaker<'a> {
    /// Tells how far it is.
    pub(crate) voice: &'a Voice,
    /// Whether the server may ask the person.
    pub(crate) asks: bool,
    /// The call's item.
    pub(crate) item_id: &'a str,
}

/// A call is under way until this is dropped; then nobody is asked for it any more.
pub(super) struct OnCall {
    shared: Arc<Shared>,
    over: CancellationToken,
}

impl Drop for OnCall {
    fn drop(&mut self) {
        self.over.cancel();
        *self.shared.lock() = None;
    }
}

/// A question waits until this is dropped.
struct Asking<'a>(&'a Shared);

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.asking.send_modify(|count| *count -= 1);
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Line>> {
        self.call.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a question to the person. No call, no room, no answer: all mean no.
    async fn ask(&self, request: &ElicitRequestParams, gone: &CancellationToken) -> ElicitResult {
        let no = || ElicitResult::new(ElicitationAction::Decline);
        let Some(line) = self.lock().clone().filter(|line| line.asks) else { return no() };
        let Ok(_room) = self.room.try_acquire() else { return no() };
        let Some(params) = self.question(request) else { return no() };
        self.asking.send_modify(|count| *count += 1);
        let _asking = Asking(self);
        let method = "mcpServer/elicitation/request";
        tokio::select! {
            biased;
            () = line.over.cancelled() => no(),
            () = gone.cancelled() => no(),
            answer = line.voice.ask(method, params, Some(Wait::Input)) => match answer {
                Ok(answer) => read(&answer),
                Err(_) => no(),
            },
        }
    }

    fn question(&self, request: &ElicitRequestParams) -> Option<Value> {
        let Value::Object(mut params) = serde_json::to_value(request).ok()? else { return None };
        params.insert("serverName".to_owned(), json!(self.server));
        params.entry("_meta").or_insert(Value::Null);
        Some(Value::Object(params))
    }
}

/// Only a clear yes is one.
fn read(answer: &Value) -> ElicitResult {
    let action = match answer["action"].as_str() {
        Some("accept") => ElicitationAction::Accept,
        Some("cancel") => ElicitationAction::Cancel,
        _ => ElicitationAction::Decline,
    };
    let accepted = matches!(action, ElicitationAction::Accept);
    let mut result = ElicitResult::new(action);
    result.content =
        answer.get("content").filter(|content| accepted && !content.is_null()).cloned();
    result
}

impl Handler {
    pub(super) fn new(server: &str) -> Self {
        let shared = Shared {
            server: server.to_owned(),
            call: Mutex::default(),
            asking: watch::Sender::new(0),
            room: Semaphore::new(QUESTIONS),
        };
        Self { shared: Arc::new(shared) }
    }

    /// A call begins.
    pub(super) fn begin(&self, speaker: Speaker<'_>) -> OnCall {
        let over = CancellationToken::new();
        let Speaker { voice, asks, item_id } = speaker;
        let (voice, item_id) = (voice.clone(), item_id.to_owned());
        *self.shared.lock() = Some(Line { voice, asks, item_id, over: over.clone() });
        OnCall { shared: Arc::clone(&self.shared), over }
    }

    /// Waits until no question is open; false where none was.
    pub(super) async fn answered(&self) -> bool {
        let mut asking = self.shared.asking.subscribe();
        let open = *asking.borrow_and_update() > 0;
        if open {
            // The sender is ours, so this cannot fail.
            let _ = asking.wait_for(|count| *count == 0).await;
        }
        open
    }
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(ElicitationCapability::default());
        ClientConfig::new(capabilities, Implementation::new("bindery", env!("CARGO_PKG_VERSION")))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(self.shared.ask(&request, &context.ct).await)
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let Some(line) = self.shared.lock().clone() else { return };
        let message = params.message.unwrap_or_else(|| match params.total {
            Some(total) => format!("{} of {total}", params.progress),
            None => params.progress.to_string(),
        });
        let told = json!({ "itemId": line.item_id, "message": message });
        line.voice.tell("item/mcpToolCall/progress", told);
    }
}
