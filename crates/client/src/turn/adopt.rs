//! A turn that was started elsewhere, by a process that is gone, is taken over while it runs.

use bindery_core::ids::TurnId;
use bindery_core::interrupt::Interrupt;
use bindery_core::map::app_server_to_part::{
    Ledger, TurnContext, TurnMapper, Words, finished_items,
};
use bindery_core::part::Part;
use bindery_core::wire::app_server::notification::Tokens;
use bindery_core::wire::rpc::RequestId;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::drive::Drive;
use super::questions::Questions;
use super::{QUEUE, Seat, Turn, TurnControl, TurnRequest};
use crate::app_server::AppServer;
use crate::error::Error;

/// A running turn, and what was told of it so far.
#[derive(Clone, Debug)]
pub struct Adoption {
    /// The turn.
    pub turn_id: TurnId,
    /// What was told, from its beginning; nothing of it is told again.
    pub told: Vec<Part>,
    /// What was asked and not known to be answered. A question that the server asks again keeps its
    /// name, and is recorded under it.
    pub asked: Vec<(RequestId, Interrupt)>,
    /// What the thread had used before what `told` has not accounted for yet.
    pub used: Option<Tokens>,
}

impl Turn {
    /// Goes on with a turn: subscribes, fetches what was missed, and gives the parts that follow
    /// those told. One that is over by now is told to its end.
    pub(crate) fn adopt(
        server: &AppServer,
        request: TurnRequest,
        adoption: Adoption,
    ) -> Result<Self, Error> {
        let thread_id = request.thread_id.clone();
        let Some(events) = server.switchboard().listen(&thread_id) else {
            return Err(Error::Busy { thread: thread_id.to_string() });
        };
        let seat = Seat::take(server, &thread_id);
        let turn_id = adoption.turn_id;
        let mut context = TurnContext::new(thread_id.clone(), turn_id.clone());
        context.model = request.model;
        context.declared_tools = request.declared_tools;
        context.marks = request.marks;
        context.ledger = adoption.used.map(Ledger::after).unwrap_or_default();
        let (sender, parts) = mpsc::channel(QUEUE);
        let server = server.clone();
        let control = TurnControl { server, thread_id, turn_id, stop: CancellationToken::new() };
        let limit = request.deadlines.answer;
        let questions = Questions::new(request.interrupts, request.answerer, limit);
        let mapper = TurnMapper::recall(context, &adoption.told);
        let mut drive =
            Drive::new(control.clone(), mapper, events, sender, request.deadlines, questions);
        drive.gap.know(&control.thread_id, finished_items(&adoption.told));
        for (item, words) in Words::of_parts(&adoption.told) {
            drive.names.know(item, &words);
        }
        (drive.known, drive.begun) = (adoption.asked, true);
        drive.catch_up();
        control.server.track(drive.run(seat));
        Ok(Self { parts, control })
    }
}
