//! The transition of a run that somebody began by hand: where its row stands after a record of its session, and why. It stands where
//! the same run of a task would.

use std::time::Duration;

use rekindle_domain::event::{CancelReason, Event, TaskStatus};
use rekindle_domain::id::{BootId, RunId};
use rekindle_domain::projector::status_after;
use rekindle_domain::recovery::{AgentPresence, Circumstances, Step, next_step};
use rekindle_domain::session::{End, Run, SessionState, SessionUsage};
use rekindle_domain::task::compose::{actor, user};
use rekindle_domain::task::status_mapping::{Mapped, SessionFacts, task_status, waits_for};

/// What of a session's state matters for the row of its latest run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Seen {
    pub(crate) run_id: Option<RunId>,
    pub(crate) end: Option<End>,
    pub(crate) tool_calls: u32,
    pub(crate) usage: SessionUsage,
    pub(crate) is_command: bool,
    boot_id: Option<BootId>,
    waits: usize,
    cancel: Option<CancelReason>,
    closed: bool,
}

impl Seen {
    pub(crate) fn of(state: &SessionState) -> Seen {
        let run = state.run.as_ref();
        Seen {
            run_id: run.map(|run| run.run_id),
            end: run.and_then(|run| run.end),
            tool_calls: run.map_or(0, |run| run.tool_calls),
            usage: state.usage,
            is_command: state.provider.is_command(),
            boot_id: run.map(|run| run.boot_id),
            waits: run.map_or(0, |run| run.waits.len()),
            cancel: run.and_then(|run| run.cancel),
            closed: state.closed || state.deleted,
        }
    }
}

/// What a record says of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) status: TaskStatus,
    pub(crate) reason: Option<String>,
    pub(crate) actor: String,
}

/// Says where the row of the latest run stands after a record; nothing if the record changes nothing of that.
pub(crate) fn transition(
    state: &SessionState,
    before: &Seen,
    after: &Seen,
    event: Option<&Event<'_>>,
) -> Option<Told> {
    let run = state.run.as_ref()?;
    let told = |status: TaskStatus, reason: Option<String>, actor: &str| {
        Some(Told { status, reason, actor: actor.to_owned() })
    };
    if before.run_id != after.run_id {
        return match run.continues {
            None => told(TaskStatus::Running, None, "user"),
            Some(_) => told(TaskStatus::Running, Some("continued".into()), actor::RECOVERY),
        };
    }
    if before.end != after.end {
        return match after.end {
            None => told(TaskStatus::Running, Some("resumed".into()), "user"),
            Some(end) => Some(ended(state, run, end, event)),
        };
    }
    let (is_open, cut) = (after.end.is_none(), matches!(after.end, Some(End::Interrupted { .. })));
    if after.closed && !before.closed && (is_open || cut) {
        return told(TaskStatus::Failed, Some("its session was closed".into()), "user");
    }
    if !is_open {
        return None;
    }
    if before.waits != after.waits {
        return match run.waits.first() {
            Some(wait) => {
                told(TaskStatus::WaitingInput, Some(waits_for(Some(wait.kind)).into()), actor::AGENT)
            }
            None => {
                let by = match event {
                    Some(Event::RunResumed(resumed)) => resumed.by.as_deref().map(user),
                    _ => None,
                };
                told(TaskStatus::Running, Some("answered".into()), by.as_deref().unwrap_or(actor::AGENT))
            }
        };
    }
    let status = if run.waits.is_empty() { TaskStatus::Running } else { TaskStatus::WaitingInput };
    if let (None, Some(why)) = (before.cancel, after.cancel) {
        let by = match event {
            Some(Event::RunCancelRequested(asked)) => asked.by.as_deref().map(user),
            _ => None,
        };
        let reason = Some(format!("cancel requested: {}", why.words()));
        return told(status, reason, by.as_deref().unwrap_or(canceller(why)));
    }
    let is_adopted = before.boot_id != after.boot_id;
    is_adopted.then(|| Told { status, reason: Some("adopted".into()), actor: actor::RECOVERY.into() })
}

/// Says where the row of a run stands that has ended so.
fn ended(state: &SessionState, run: &Run, end: End, event: Option<&Event<'_>>) -> Told {
    let told = |status: TaskStatus, reason: Option<String>, actor: &str| Told {
        status,
        reason,
        actor: actor.to_owned(),
    };
    match (end, event) {
        (End::Completed, Some(Event::RunCompleted(completed))) => {
            told(TaskStatus::Completed, completed.stop_reason.as_deref().map(str::to_owned), actor::AGENT)
        }
        (End::Completed, _) => told(TaskStatus::Completed, None, actor::AGENT),
        (End::Failed, Some(Event::RunFailed(failed))) => {
            told(TaskStatus::Failed, Some(failed.error.as_ref().into()), actor::AGENT)
        }
        (End::Failed, _) => told(TaskStatus::Failed, None, actor::AGENT),
        (End::Cancelled, event) => {
            let why = run.cancel.unwrap_or(CancelReason::User);
            // By a rule it fails, by a person it is cancelled.
            let status = if why.is_rule() { TaskStatus::Failed } else { TaskStatus::Cancelled };
            let by = match event {
                Some(Event::RunCancelled(cancelled)) => cancelled.by.as_deref().map(user),
                _ => None,
            };
            told(status, Some(why.words().into()), by.as_deref().unwrap_or(canceller(why)))
        }
        (End::Interrupted { .. }, _) => {
            let facts = SessionFacts {
                status: status_after(end),
                waits_for: run.waits.first().map(|wait| wait.kind),
                held: match next_step(state, &UNDISTURBED) {
                    Step::Rest(held) => held,
                    _ => None,
                },
                missing_env: &[],
            };
            let Mapped { status, reason } = task_status(&facts)
                .unwrap_or(Mapped { status: TaskStatus::Failed, reason: Some("interrupted".into()) });
            told(status, reason, actor::RECOVERY)
        }
    }
}

/// A machine on which nothing keeps a session from going on: what its log alone says of that.
const UNDISTURBED: Circumstances = Circumstances {
    found: AgentPresence::Nobody,
    has_directory: true,
    has_environment: true,
    failed_launches: 0,
    shortage: None,
    interrupted_for: Duration::ZERO,
    load_in: Duration::ZERO,
    takes_checkpoints: false,
};

/// Returns who cancels for a reason, if nobody is named.
fn canceller(why: CancelReason) -> &'static str {
    match why {
        CancelReason::Budget => actor::BUDGET,
        CancelReason::Deadline | CancelReason::WaitTimeout => actor::SCHEDULER,
        _ => "user",
    }
}
