//! What a prompt names by path, before a worker opens it.

use bindery_core::wire::app_server::input::UserInput;
use futures_util::future::BoxFuture;

use crate::error::Error;

/// Looks at the input of every turn and steer before it goes to a worker, which opens the paths in
/// it later: a server of many users reads such files itself and hands on what is in them.
pub trait InputFilter: Send + Sync + 'static {
    /// The input to send, or why there is none.
    fn filter(&self, input: Vec<UserInput>) -> BoxFuture<'static, Result<Vec<UserInput>, Error>>;
}

/// Hands on everything: the worker may open what its caller may.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unfiltered;

impl InputFilter for Unfiltered {
    fn filter(&self, input: Vec<UserInput>) -> BoxFuture<'static, Result<Vec<UserInput>, Error>> {
        Box::pin(std::future::ready(Ok(input)))
    }
}
