//! How a turn ends: what was under way is settled, what runs is ended, the end is told.

use crate::item::{Message, Output, Role};
use crate::thread::history;
use crate::truncate;

use super::asking::Slot;
use super::voice::Voice;
use super::{Core, Turn, TurnFault};

/// Tells the model that its last turn was cut. Readers know the wrapper as context, not as words
/// of the user's.
const ABORTED: &str = "<turn_aborted>\nThe user stopped the last turn on purpose. Commands and \
    other calls of it may have run in part, and processes it started were ended. Look at how \
    things stand before you do anything again.\n</turn_aborted>";

impl Turn<'_> {
    pub(super) async fn finish(mut self, end: Result<(), TurnFault>) {
        // A model's fault is no reason to end a server that it started.
        if !matches!(end, Ok(()) | Err(TurnFault::Model(_))) {
            self.core.session.end_turn(self.voice.turn_id()).await;
        }
        self.leave_review().await;
        self.record_done();
        self.record_outputs();
        for input in self.mailbox.close() {
            // It was accepted, so it is kept; the next turn answers it.
            self.take(input).await;
        }
        if matches!(end, Err(TurnFault::Interrupted)) {
            self.record(vec![Message::text(Role::User, ABORTED).into()]);
        }
        self.cx.tell_diff();
        match (end, self.voice.fault()) {
            (Err(TurnFault::Interrupted), None) => self.voice.turn_ended("interrupted", None),
            (Ok(()), None) => self.voice.turn_ended("completed", None),
            (Err(fault), None) => self.voice.turn_ended("failed", Some(fault.value())),
            (_, Some(error)) => {
                self.voice.turn_ended("failed", Some(TurnFault::Journal(error).value()));
            }
        }
    }

    /// What the model said in full stays in the history.
    pub(super) fn record_done(&mut self) {
        let done = self.asking.take_done();
        self.record(done);
    }

    /// Each call gets an answer, in the order of the calls.
    pub(super) fn record_outputs(&mut self) {
        // Tools keep to the budget; what they put around it has a little more room.
        let budget = self.profile.truncation.roomy();
        let slots = self.asking.take_slots();
        let outputs = slots.into_iter().filter_map(|Slot { call, output }| {
            let aborted = || Output::Text("aborted".to_owned());
            let output = truncate::cut_answer(output.unwrap_or_else(aborted), budget);
            history::answer(&call, output)
        });
        let outputs = outputs.collect();
        self.record(outputs);
    }
}

/// The turn's code failed; the thread goes on without it.
pub(crate) fn panicked(core: &mut Core, voice: &Voice) {
    let added = core.history.close_calls();
    let entries: Vec<_> = added.into_iter().map(crate::thread::Entry::Item).collect();
    voice.write(&entries);
    let words = "the engine failed inside; the thread can be used on";
    voice.turn_ended("failed", Some(TurnFault::Internal(words.to_owned()).value()));
}
