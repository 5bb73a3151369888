//! Every list as a table: what is in the log, what is asked, and the records it comes to, in their order. Whatever is
//! composed must be legal where it was composed.

mod answer_links;
mod begin;
mod cancel;
mod checkpoint;
mod environment;
mod import;
mod interrupt;
mod launch;
mod wait;

use crate::event::{Event, InputQueued};
use crate::line::Draft;
use crate::session::SessionState;
use crate::session::tests::log::Log;
use crate::session::tests::script::{at, draft};
use crate::token::TokenIndex;

/// A session with an open run.
const STARTED: &str = "session.created; message.user; run.started msg=1";
/// Its agent.
const AGENT: &str = "agent.launching; agent.started; agent.ready cursor=c";
/// The agent has been given the prompt.
const PROMPTED: &str = "input.queued input_seq=1";
/// The agent waits for an answer.
const ASKED: &str = "run.waiting; token.minted";
/// It waits for another one, which has a further token.
const ASKED_AGAIN: &str = "run.waiting wait=2; token.minted wait=2; token.minted wait=2 token=20";
/// A program waits, and has a further token.
const OUTSIDE: &str =
    "run.waiting wait=3 wait_kind=external; token.minted wait=3; token.minted wait=3 token=30";

/// Checks what is composed after a log, and that the log takes it.
fn check(appends: &[&str], expected: &str, compose: impl FnOnce(&SessionState, &TokenIndex) -> Vec<Draft>) {
    let mut log = Log::of(appends);
    let composed = compose(&log.replay.state, log.tokens());
    let wanted: Vec<Draft> = expected.split(';').filter(|text| !text.trim().is_empty()).map(draft).collect();
    assert_eq!(composed, wanted, "after {appends:#?}");
    let count = composed.len();
    for (n, draft) in composed.into_iter().enumerate() {
        log.record(draft, at(100), n + 1 < count);
    }
    assert_eq!(log.replay.oddities, [], "{expected} after {appends:#?}");
}

/// Returns an input as a short text has it.
fn input(text: &str) -> InputQueued<'static> {
    match draft(text).event {
        Event::InputQueued(queued) => queued,
        other => panic!("{other:?} is no input"),
    }
}
