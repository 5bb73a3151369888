//! The outcome of a message: what became of the run that began with it, and of those that continued it. Told by the records
//! behind the message, so that whoever waits for it can begin anew at any time.

use crate::event::Event;
use crate::id::{MessageId, RunId};

/// The outcome of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageOutcome {
    /// Its run, or one that continued it, was completed.
    Completed,
    /// Its run failed.
    Failed,
    /// Its run was cancelled, or it was dropped from the queue.
    Cancelled,
    /// Its run was cut short, and another message came before it was continued.
    Abandoned,
}

/// A message whose outcome is waited for.
#[derive(Debug, Clone, Copy)]
pub struct Pending {
    message: MessageId,
    run: Option<RunId>,
}

impl Pending {
    /// Returns a message of which nothing is known but that it was taken.
    pub fn new(message: MessageId) -> Pending {
        Pending { message, run: None }
    }

    /// Takes in a record behind the message; returns the outcome if it is one.
    pub fn apply(&mut self, event: &Event<'_>) -> Option<MessageOutcome> {
        let ours = |run: RunId| self.run == Some(run);
        match event {
            Event::RunStarted(started) => {
                let continues = started.continues.is_some_and(ours);
                if continues || started.message_id == Some(self.message) {
                    self.run = Some(started.run_id);
                    return None;
                }
                // Only one run is open at a time: ours was cut short.
                self.run.map(|_| MessageOutcome::Abandoned)
            }
            Event::RunCompleted(ended) if ours(ended.run_id) => Some(MessageOutcome::Completed),
            Event::RunFailed(ended) if ours(ended.run_id) => Some(MessageOutcome::Failed),
            Event::RunCancelled(ended) if ours(ended.run_id) => Some(MessageOutcome::Cancelled),
            Event::RunCancelRequested(asked) if asked.dropped.contains(&self.message) => {
                Some(MessageOutcome::Cancelled)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{
        CancelReason, InterruptReason, RunCancelRequested, RunCancelled, RunCompleted, RunFailed,
        RunInterrupted, RunStarted,
    };
    use crate::id::BootId;

    fn run(number: u64) -> RunId {
        RunId::mint(number, 1)
    }

    fn message(number: u64) -> MessageId {
        MessageId::mint(number, 1)
    }

    fn started(number: u64, of: Option<u64>, continues: Option<u64>) -> Event<'static> {
        RunStarted {
            run_id: run(number),
            boot_id: BootId::mint(1, 1),
            machine_boot: None,
            message_id: of.map(message),
            attempt: 1,
            continues: continues.map(run),
            origin_run_id: None,
            task_id: None,
        }
        .into()
    }

    fn completed(number: u64) -> Event<'static> {
        RunCompleted { run_id: run(number), stop_reason: None, usage: None }.into()
    }

    fn failed(number: u64) -> Event<'static> {
        RunFailed { run_id: run(number), error: "no".into() }.into()
    }

    fn cancelled(number: u64) -> Event<'static> {
        RunCancelled { run_id: run(number), by: None }.into()
    }

    fn dropped(number: u64) -> Event<'static> {
        let why = CancelReason::User;
        RunCancelRequested { run_id: Some(run(1)), by: None, why, dropped: vec![message(number)] }.into()
    }

    fn outcome(of: u64, events: &[Event<'_>]) -> Option<(usize, MessageOutcome)> {
        let mut pending = Pending::new(message(of));
        events.iter().enumerate().find_map(|(at, event)| Some((at, pending.apply(event)?)))
    }

    #[test]
    fn the_end_of_its_own_run_is_the_outcome_of_a_message() {
        for (of, events, expected) in [
            (1, vec![started(1, Some(1), None), completed(1)], Some((1, MessageOutcome::Completed))),
            (1, vec![started(1, Some(1), None), failed(1)], Some((1, MessageOutcome::Failed))),
            (1, vec![started(1, Some(1), None), cancelled(1)], Some((1, MessageOutcome::Cancelled))),
            (1, vec![started(1, Some(1), None)], None),
            // It waits for its turn behind another one.
            (
                2,
                vec![completed(1), started(2, Some(2), None), completed(2)],
                Some((2, MessageOutcome::Completed)),
            ),
            (2, vec![dropped(2), cancelled(1)], Some((0, MessageOutcome::Cancelled))),
            (2, vec![dropped(3), cancelled(1)], None),
            // It is cut short, and continued, once and again.
            (
                1,
                vec![
                    started(1, Some(1), None),
                    started(2, None, Some(1)),
                    started(3, None, Some(2)),
                    completed(3),
                ],
                Some((3, MessageOutcome::Completed)),
            ),
            // It is cut short, and somebody wants something else.
            (
                1,
                vec![started(1, Some(1), None), started(2, Some(2), None)],
                Some((1, MessageOutcome::Abandoned)),
            ),
        ] {
            assert_eq!(outcome(of, &events), expected, "{of} {events:?}");
        }
    }

    #[test]
    fn a_cut_is_no_outcome() {
        let (reason, detail) = (InterruptReason::AgentExit, None);
        let cut =
            RunInterrupted { run_id: run(1), reason, uncertain: Vec::new(), uncertain_turn: false, detail };
        assert_eq!(outcome(1, &[started(1, Some(1), None), cut.into()]), None);
    }
}
