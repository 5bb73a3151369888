//! Notices derived from what streams record, and from the clock. What is told is decided here and nowhere else, from what the domain's
//! folds say of sessions and tasks; nothing is read, and no clock is asked.
//!
//! Of a run that belongs to a task the stream of tasks tells how the task ended, which is not how one attempt did, and of an attempt at
//! a step the ledger of its pipeline run; everything else the session tells, because the wait and the words are there.

mod clock;
mod pipelines;
mod session;
mod settle;
mod tasks;
#[cfg(test)]
mod tests;

use rekindle_domain::event::{BudgetNotice, BudgetScope};
use rekindle_domain::id::{RunId, StreamId};
use rekindle_domain::session::SessionState;
use rekindle_domain::time::Timestamp;

pub use self::clock::{ClockRules, ClockWatch, clock_notices, next_clock_notice};
pub use self::pipelines::{pipeline_notice, pipeline_of, still_holds_of_run};
pub use self::session::{RunFacts, SessionLookup, SessionNotices};
pub use self::settle::{Standing, needs_settling, still_holds};
pub use self::tasks::{EndedTaskFacts, TaskLookup, TaskNotices, is_queue_empty};
use crate::notice::{Notice, NoticeKind};

/// A notice, and what decides whether it is told.
#[derive(Debug, Clone, PartialEq)]
pub struct Derived {
    /// The notice.
    pub notice: Notice,
    /// When its record was written, which may be later than when it happened.
    pub recorded_at: Timestamp,
    /// The interrupted run that goes on: told only to those who were told of the interruption.
    pub continues: Option<RunId>,
}

/// Returns the id of the event that a record is.
pub fn event_id(stream: StreamId, seq: u64) -> String {
    format!("{stream}.{seq}")
}

/// Begins a notice about a session.
fn of_session(state: &SessionState, kind: NoticeKind, seq: u64, at: Timestamp) -> Notice {
    Notice {
        event_id: event_id(state.id.into(), seq),
        kind,
        at,
        session_id: Some(state.id),
        run_id: None,
        task_id: None,
        title: state.title.clone(),
        agent: Some(state.provider.name()),
        directory: Some(state.working_dir.clone()),
        reason: None,
        question: None,
        last_words: None,
    }
}

/// Characters of a reason that are told.
const MOST_REASON: usize = 300;

/// Returns the beginning of a reason in one line.
fn one_line(why: &str) -> String {
    let line = why.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MOST_REASON) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

/// Returns how much of a budget is used, in words.
fn budget_text(notice: &BudgetNotice) -> String {
    let BudgetNotice { scope, part, used, limit, exceeded } = notice;
    let whose = match scope {
        BudgetScope::Day => "of the day".to_owned(),
        scope => format!("of the {}", scope.as_str()),
    };
    let how_much = if *exceeded { "all" } else { "most" };
    format!("{how_much} of the {} {whose} is used: {} of {}", part.name(), number(*used), number(*limit))
}

/// Writes a number without a fraction that says nothing.
fn number(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}
