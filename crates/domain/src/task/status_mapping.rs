//! The status of a task as its session tells it, while its run has not come to an end of its own. One pure function; ends are
//! recorded with the run's own end (`compose.rs`).

use crate::event::{TaskStatus, WaitKind};
use crate::projector::SessionStatus;
use crate::recovery::Held;

/// What is known of the session in which a task runs.
#[derive(Debug, Clone, Copy)]
pub struct SessionFacts<'a> {
    /// Its derived status.
    pub status: SessionStatus,
    /// What its oldest open wait is for.
    pub waits_for: Option<WaitKind>,
    /// Why it does not go on by itself, if it does not.
    pub held: Option<Held>,
    /// Variables that its agent needs and nobody has.
    pub missing_env: &'a [String],
}

/// Where a task stands because of its session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapped {
    /// The status.
    pub status: TaskStatus,
    /// Why.
    pub reason: Option<String>,
}

/// Derives the status of a task from its session; none if the session is at rest and says nothing of it.
pub fn task_status(facts: &SessionFacts<'_>) -> Option<Mapped> {
    use TaskStatus::{Failed, Running, WaitingInput};
    let mapped = |status: TaskStatus, reason: String| Some(Mapped { status, reason: Some(reason) });
    if !facts.missing_env.is_empty() && facts.status != SessionStatus::Idle {
        return mapped(WaitingInput, format!("env_missing: {}", facts.missing_env.join(", ")));
    }
    match facts.status {
        SessionStatus::Idle => None,
        SessionStatus::Running => Some(Mapped { status: Running, reason: None }),
        SessionStatus::Waiting => mapped(WaitingInput, waits_for(facts.waits_for).into()),
        SessionStatus::InterruptedStartup
        | SessionStatus::InterruptedWaiting
        | SessionStatus::InterruptedAgent => {
            let cut = format!("interrupted: {}", facts.status.as_str());
            match facts.held {
                // The ladder may still act.
                None => mapped(Running, cut),
                Some(Held::Uncertain | Held::Command) => mapped(WaitingInput, "uncertain".into()),
                Some(Held::NoEnvironment) => mapped(WaitingInput, "env_missing".into()),
                Some(Held::Unanswered) => mapped(WaitingInput, waits_for(facts.waits_for).into()),
                Some(Held::Asks) => mapped(WaitingInput, cut),
                Some(held @ (Held::Never | Held::Budget | Held::TimedOut | Held::NoDirectory)) => {
                    mapped(Failed, format!("{cut}; {}", held.words()))
                }
            }
        }
    }
}

/// Returns the word for what is waited for.
pub fn waits_for(kind: Option<WaitKind>) -> &'static str {
    match kind {
        Some(WaitKind::Permission) => "permission",
        Some(WaitKind::Question) | None | Some(WaitKind::Unknown) => "question",
        Some(WaitKind::ToolResult) => "tool_result",
        Some(WaitKind::External) => "external",
    }
}
