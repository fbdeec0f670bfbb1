//! Threads on a model that does what the user says.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bindery_engine::guard::NoFence;
use bindery_engine::item::{Content, FunctionCall, HistoryItem, Item, Message, Role};
use bindery_engine::model::{Answered, Model, ModelError, ModelEvent, ModelRequest};
use bindery_engine::prompter::{PlainPrompter, Profile};
use bindery_engine::service::disk::Disk;
use bindery_engine::service::store::NoStore;
use bindery_engine::service::supply::{Supplied, Supply, Wish};
use bindery_engine::service::{Refused, Service, ServiceSettings};
use bindery_engine::thread::Standing;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};

use crate::stage::environment;

/// Says `you said …` to everything but three words: `wait` waits for the gate, `ask` calls the
/// client's tool, `flood` talks without end.
pub(crate) struct Parrot {
    pub(crate) gate: Semaphore,
}

/// Words of a flood: far more than any outbox of these tests holds.
const FLOOD: usize = 20_000;

impl Model for Parrot {
    fn answer(
        &self,
        request: ModelRequest,
        events: mpsc::Sender<ModelEvent>,
    ) -> BoxFuture<'_, Result<Answered, ModelError>> {
        let answered = request
            .input
            .iter()
            .any(|item| matches!(item.known(), Some(Item::FunctionCallOutput(_))));
        let said = request.input.iter().rev().find_map(words).unwrap_or_default();
        async move {
            let tell = async |event| drop(events.send(event).await);
            match said.as_str() {
                "ask" if !answered => {
                    let call = FunctionCall {
                        id: None,
                        name: "oracle".to_owned(),
                        namespace: None,
                        arguments: "{}".to_owned(),
                        call_id: "c1".to_owned(),
                        extra_content: None,
                    };
                    tell(ModelEvent::ItemDone(Item::FunctionCall(call).into())).await;
                    return Ok(Answered::default());
                }
                "wait" => self.gate.acquire().await.expect("a gate").forget(),
                _ => {}
            }
            let text = match said.as_str() {
                "flood" => "word ".repeat(FLOOD),
                said => format!("you said {said}"),
            };
            let message = |text: &str| {
                let message = Message::text(Role::Assistant, text);
                let message = Message { id: Some("msg_1".to_owned()), ..message };
                HistoryItem::from(Item::Message(message))
            };
            tell(ModelEvent::ItemBegun(message(""))).await;
            for word in text.split_inclusive(' ') {
                tell(ModelEvent::Text(word.to_owned())).await;
            }
            tell(ModelEvent::ItemDone(message(&text))).await;
            Ok(Answered::default())
        }
        .boxed()
    }
}

fn words(item: &HistoryItem) -> Option<String> {
    match item.known()? {
        Item::Message(message) if message.role == Role::User => {
            message.content.iter().find_map(|piece| match piece.known() {
                Some(Content::InputText { text }) => Some(text.clone()),
                _ => None,
            })
        }
        _ => None,
    }
}

/// Threads on a parrot.
pub(crate) struct Aviary {
    home: PathBuf,
    pub(crate) parrot: Arc<Parrot>,
}

impl Supply for Aviary {
    fn home(&self) -> &Path {
        &self.home
    }

    fn thread(&self, wish: &Wish) -> Result<Supplied, Refused> {
        let cwd = wish.cwd.clone().unwrap_or_else(|| self.home.clone());
        let profile = Profile::unknown("parrot");
        let mut standing = Standing::new("parrot", cwd);
        standing.approval = wish.approval.unwrap_or_default();
        standing.sandbox = wish.sandbox.clone().unwrap_or_default();
        Ok(Supplied {
            standing,
            provider: "aviary".to_owned(),
            model: self.parrot.clone(),
            mcp: Vec::new(),
            environment: environment(),
            guard: Arc::new(NoFence::default()),
            prompter: Arc::new(PlainPrompter { profile }),
            sources: Vec::new(),
            warnings: Vec::new(),
        })
    }

    fn models(&self) -> BoxFuture<'_, Vec<Value>> {
        async { vec![json!({ "id": "parrot", "isDefault": true })] }.boxed()
    }

    fn config(&self, _: &Path) -> Result<Value, Refused> {
        Ok(json!({ "model": "parrot" }))
    }
}

/// A service that keeps nothing, and its parrot.
pub(crate) fn service(settings: ServiceSettings) -> (Service, Arc<Parrot>) {
    let parrot = Arc::new(Parrot { gate: Semaphore::new(0) });
    let aviary = Aviary { home: std::env::temp_dir(), parrot: parrot.clone() };
    (Service::start(Arc::new(aviary), Arc::new(NoStore), settings), parrot)
}

/// A service that keeps its threads in a home.
pub(crate) fn service_at(home: &Path) -> Service {
    let parrot = Arc::new(Parrot { gate: Semaphore::new(0) });
    let aviary = Aviary { home: home.to_owned(), parrot };
    let disk = Arc::new(Disk::new(home));
    Service::start(Arc::new(aviary), disk, ServiceSettings::default())
}
