//! What a daemon before us left is taken up.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Inner, Live};
use crate::error::Error;
use crate::store::{TurnState, UnfinishedTurn};

/// Puts every unfinished turn back into its lane; those that ran come first in theirs.
pub(super) async fn recover(inner: &Arc<Inner>) -> Result<usize, Error> {
    let mut turns = inner.store.unfinished().await?;
    turns.sort_by_key(|unfinished| unfinished.turn.state != TurnState::Running);
    let fates = fates(inner, &turns).await?;
    for UnfinishedTurn { turn, request_bytes } in &turns {
        // What was never asked for has no worker that could be gone.
        let asked = turn.mark.is_some() || turn.backend_turn.is_some();
        let gone = fates.get(&turn.id).cloned().flatten().filter(|_| asked);
        inner.live().insert(turn.id.clone(), Arc::new(Live { gone, ..Live::new(turn) }));
        let place = inner.readmit(&turn.tenant, &turn.thread, *request_bytes);
        place.take(&turn.id, turn.state == TurnState::Running);
    }
    if !turns.is_empty() {
        tracing::info!(turns = turns.len(), "unfinished turns are taken up");
    }
    Ok(turns.len())
}

/// How the workers of the running turns ended, of those that did. Asked before any turn is taken
/// up: the first one starts a new worker, and nothing tells that from the old one afterwards.
async fn fates(
    inner: &Inner,
    turns: &[UnfinishedTurn],
) -> Result<HashMap<String, Option<String>>, Error> {
    let (mut kinds, mut fates) = (HashMap::new(), HashMap::new());
    let turns = turns.iter().map(|unfinished| &unfinished.turn);
    for turn in turns.filter(|turn| turn.state == TurnState::Running) {
        let Some(thread) = inner.store.thread(&turn.tenant, &turn.thread).await? else { continue };
        let kind = (turn.tenant.clone(), thread.backend);
        if !kinds.contains_key(&kind) {
            let fate = inner.workers.fate(&kind.0, &kind.1).await;
            kinds.insert(kind.clone(), fate);
        }
        fates.insert(turn.id.clone(), kinds[&kind].clone());
    }
    Ok(fates)
}
