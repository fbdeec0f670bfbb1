//! `apply_patch`: changes to files, checked as a whole, allowed, written.

use std::path::PathBuf;
use std::time::Instant;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::json;

use super::approve::{self, Verdict};
use super::fence::Fence;
use super::{Call, Cx, Ended, Tool};
use crate::model::ToolSpec;
use crate::patch::{Denied, Done, Halted, Plan, changes, report, spec};
use crate::thread::Approval;
use crate::turn::voice::Begun;

/// The tool.
pub(super) struct ApplyPatch {
    /// Offered as free text, where the model takes that.
    pub(super) free: bool,
}

impl Tool for ApplyPatch {
    fn name(&self) -> &'static str {
        "apply_patch"
    }

    fn spec(&self) -> Option<ToolSpec> {
        Some(if self.free { spec::freeform() } else { spec::function() })
    }

    fn call<'a>(&'a self, call: Call, cx: &'a Cx) -> BoxFuture<'a, Ended> {
        async move {
            let text = match call.free {
                true => Ok(call.input.clone()),
                false => spec::input(&call.input),
            };
            let text = match text {
                Ok(text) => text,
                Err(err) => {
                    return Ended::text(format!("failed to parse function arguments: {err}"));
                }
            };
            let cwd = cx.standing.cwd.clone();
            let applied = apply(&call.id, text, cwd, cx).await;
            applied.map(Ended::text).unwrap_or_else(|ended| ended)
        }
        .boxed()
    }
}

/// Applies a patch; gives what the model is told, be it of a failure.
pub(super) async fn apply(id: &str, text: String, cwd: PathBuf, cx: &Cx) -> Result<String, Ended> {
    let begun_at = Instant::now();
    let reader = cx.file_reader();
    let made = blocking(move || Plan::make_with(&text, &cwd, reader)).await?;
    // A patch that does not fit is between the model and us: nobody else is told.
    let plan = made.map_err(|refused| Ended::text(refused.to_string()))?;
    let begun = cx.voice.begin(json!({
        "type": "fileChange",
        "id": id,
        "changes": changes(&plan),
        "status": "inProgress",
    }));
    let begun = allow(&plan, id, begun, cx).await?;
    let (plan, outcome) = write(plan).await?;
    if let Some(done) = done_of(&outcome) {
        cx.session.note(cx.voice.turn_id(), &cx.standing.cwd, &plan, done);
    }
    finish(begun, if outcome.is_ok() { "completed" } else { "failed" }, cx);
    cx.tell_diff();
    let code = i32::from(outcome.is_err());
    Ok(report::output(code, begun_at.elapsed(), &report::told(&outcome)))
}

fn finish(mut begun: Begun, status: &str, cx: &Cx) {
    begun.item["status"] = json!(status);
    cx.voice.complete(begun);
}

/// What was written before a write failed counts as well.
fn done_of(outcome: &Result<Done, Halted>) -> Option<&Done> {
    match outcome {
        Ok(done) => Some(done),
        Err(halted) => Some(halted.done.as_ref()).filter(|done| done.steps > 0),
    }
}

/// Whether it may be written, by the policy or by a person.
async fn allow(plan: &Plan, id: &str, begun: Begun, cx: &Cx) -> Result<Begun, Ended> {
    let fence = Fence::of(cx);
    let fits = plan.permitted(&|place| fence.check(place));
    let known = plan.targets().all(|target| cx.session.may_write(&target.place));
    let reason = match (fits, cx.standing.approval) {
        (_, _) if known => return Ok(begun),
        (Ok(()), Approval::Untrusted) => None,
        (Ok(()), _) => return Ok(begun),
        (Err(Denied { why }), approval) if !approval.asks_about_sandbox() => {
            finish(begun, "declined", cx);
            return Err(Ended::text(format!("patch rejected: {why}, and nobody may be asked")));
        }
        (Err(Denied { why }), _) => Some(why),
    };
    match approve::files(id, reason.as_deref(), cx).await {
        Verdict::Yes | Verdict::Always(_) => Ok(begun),
        Verdict::ForSession => {
            plan.targets().for_each(|target| cx.session.allow_write(target.place.clone()));
            Ok(begun)
        }
        Verdict::No(why) => {
            finish(begun, "declined", cx);
            Err(Ended::text(format!("patch rejected: {why}")))
        }
        Verdict::Cancel => {
            finish(begun, "declined", cx);
            Err(Ended::Cancelled)
        }
    }
}

/// Writes exactly the places that were allowed: a link that was changed in the meantime leads
/// nowhere.
async fn write(plan: Plan) -> Result<(Plan, Result<Done, Halted>), Ended> {
    blocking(move || {
        let places: Vec<PathBuf> = plan.targets().map(|target| target.place.clone()).collect();
        let outcome = plan.write(&|place| match places.iter().any(|known| known == place) {
            true => Ok(()),
            false => Err(Denied { why: "it is another place than the one allowed".to_owned() }),
        });
        (plan, outcome)
    })
    .await
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Ended> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Ended::text("apply_patch failed inside the engine"))
}
