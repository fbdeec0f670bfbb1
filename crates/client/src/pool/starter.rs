//! Where workers come from.

use futures_util::future::BoxFuture;

use super::WorkerKey;
use crate::app_server::{AppServer, ConnectOptions};
use crate::error::Error;

/// Starts workers.
pub trait Starter: Send + Sync + 'static {
    /// A new worker of this kind. Dropped, the future leaves nothing behind.
    fn start(&self, key: &WorkerKey) -> BoxFuture<'static, Result<AppServer, Error>>;

    /// Whether a worker of this kind is ours alone. Only then may its threads be unloaded.
    fn owns(&self, _key: &WorkerKey) -> bool {
        false
    }

    /// The connection to a worker is closed: because it had nothing to do (`idle`), or it was lost.
    /// A worker that outlives its connection is ended here.
    fn ended(&self, _key: &WorkerKey, _idle: bool) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// Starts workers as child processes.
#[derive(Clone, Debug, Default)]
pub struct Spawn {
    /// How to introduce ourselves.
    pub options: ConnectOptions,
}

impl Starter for Spawn {
    fn start(&self, key: &WorkerKey) -> BoxFuture<'static, Result<AppServer, Error>> {
        let (key, options) = (key.clone(), self.options.clone());
        Box::pin(async move { AppServer::spawn(key.launch(), &options).await })
    }
}
