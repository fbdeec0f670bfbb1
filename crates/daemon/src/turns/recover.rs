//! What a daemon before us left is taken up.

use std::sync::Arc;

use super::{Inner, Live};
use crate::error::Error;
use crate::store::TurnState;

/// Puts every unfinished turn back into its lane; those that ran come first in theirs.
pub(super) async fn recover(inner: &Arc<Inner>) -> Result<usize, Error> {
    let mut turns = inner.store.unfinished().await?;
    turns.sort_by_key(|turn| turn.state != TurnState::Running);
    for turn in &turns {
        inner.live().insert(turn.id.clone(), Arc::new(Live::new(turn)));
        let place = inner.readmit(&turn.tenant, &turn.thread);
        place.take(&turn.id, turn.state == TurnState::Running);
    }
    if !turns.is_empty() {
        tracing::info!(turns = turns.len(), "unfinished turns are taken up");
    }
    Ok(turns.len())
}
