//! The status of a session: derived here and nowhere else, from state, tokens and what was observed.
//!
//! First match wins, in the order of [`SessionStatus`]. Beside the status stands the evidence: how it is
//! known and since when (I8). Nothing stores a status; nothing refuses an action because of one.

use std::borrow::Cow;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::event::{InterruptReason, ProcessIdentity};
use crate::id::{BootId, HolderId, WaitId};
use crate::session::{End, Run, SessionState, Wait};
use crate::string_enum::string_enums;
use crate::time::{Moment, Now, Timestamp};
use crate::token::TokenIndex;

string_enums! {
    /// What a session is doing, in order of precedence.
    #[derive(JsonSchema)]
    pub enum SessionStatus {
        /// A run was cut by a restart, of the daemon, the holder or a machine.
        InterruptedStartup = "interrupted_startup",
        /// A run was cut, or can no longer be answered, while it was waiting.
        InterruptedWaiting = "interrupted_waiting",
        /// A run was cut because its agent ended.
        InterruptedAgent = "interrupted_agent",
        /// A run waits for someone outside, who can still answer.
        Waiting = "waiting",
        /// A run goes on.
        Running = "running",
        /// Nothing is going on.
        Idle = "idle",
    }
}

impl fmt::Display for SessionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What is known of a session's holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HolderProof {
    /// Nobody has looked yet.
    Pending,
    /// Its lock is held and it answered.
    Lock,
    /// Its lock is held and it does not answer: unknown, not dead (I9).
    Unresponsive,
    /// Proven gone.
    Gone,
}

/// What was observed outside the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observed {
    /// This life of the daemon; none when no daemon runs.
    pub boot: Option<BootId>,
    /// The recorded holder. Without a recorded one this is not looked at.
    pub holder: HolderProof,
    /// The time.
    pub now: Now,
}

/// A status, since when, and how it is known.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "DerivedStatus")]
pub struct Derived {
    /// The status.
    pub status: SessionStatus,
    /// When it began.
    pub since: Timestamp,
    /// How it is known.
    pub evidence: Evidence,
}

/// How a status is known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// The newest daemon life that had the latest run.
    pub boot_id: Option<BootId>,
    /// The holder, if one was recorded.
    pub holder: Option<HolderEvidence>,
    /// When the agent last said anything that was logged.
    pub last_output_at: Option<Timestamp>,
    /// The newest record.
    pub last_seq: u64,
    /// The oldest wait that is open.
    pub open_wait: Option<WaitId>,
    /// What the agent has been given and not answered.
    pub in_flight: Vec<Cow<'static, str>>,
}

/// What is known of a holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HolderEvidence {
    /// The holder.
    pub id: HolderId,
    /// Whether it lives; unknown while nobody has looked.
    pub alive: Option<bool>,
    /// How that is known.
    pub proof: HolderProof,
    /// Its process, once it ran.
    #[serde(flatten)]
    pub process: Option<ProcessIdentity>,
}

/// Derives the status of a session.
pub fn project(state: &SessionState, tokens: &TokenIndex, observed: &Observed) -> Derived {
    let moment = Moment { now: observed.now, newest: state.updated_at };
    let holder = holder_proof(state, observed);
    let (status, since) = match &state.run {
        None => (SessionStatus::Idle, state.created_at),
        Some(run) => match run.end {
            Some(end) => (status_after(end), run.ended_at.unwrap_or(run.started_at)),
            None => open(run, tokens, observed.boot, holder, moment),
        },
    };
    Derived { status, since, evidence: evidence(state, holder) }
}

/// Returns the status of a session whose latest run has ended.
pub fn status_after(end: End) -> SessionStatus {
    use InterruptReason as Reason;
    match end {
        End::Completed | End::Failed | End::Cancelled => SessionStatus::Idle,
        End::Interrupted { waiting: true, .. } | End::Interrupted { reason: Reason::WaitTimeout, .. } => {
            SessionStatus::InterruptedWaiting
        }
        End::Interrupted { reason: Reason::AgentExit, .. } => SessionStatus::InterruptedAgent,
        End::Interrupted {
            reason:
                Reason::ProcessRestart
                | Reason::MachineRestart
                | Reason::HolderLost
                | Reason::NodeLost
                | Reason::Unknown,
            ..
        } => SessionStatus::InterruptedStartup,
    }
}

fn open(
    run: &Run,
    tokens: &TokenIndex,
    boot: Option<BootId>,
    holder: Option<HolderProof>,
    moment: Moment,
) -> (SessionStatus, Timestamp) {
    // Only proof ends a run: a holder that nobody has looked at, or that does not answer, may work on.
    let gone = matches!(holder, None | Some(HolderProof::Gone));
    let cut = boot != Some(run.boot_id) && gone;
    let answerable = |wait: &Wait| {
        tokens.is_active(wait.resume_token_id, moment)
            && !wait.deadline_at.is_some_and(|deadline| moment.is_past(deadline))
    };
    let oldest = run.waits.first();
    match oldest {
        None if cut => (SessionStatus::InterruptedStartup, run.started_at),
        None => (SessionStatus::Running, run.started_at),
        Some(wait) if cut || !run.waits.iter().all(answerable) => {
            (SessionStatus::InterruptedWaiting, wait.since)
        }
        Some(wait) => (SessionStatus::Waiting, wait.since),
    }
}

/// Whether a wait of the latest run can be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitState {
    /// As it was asked.
    Open,
    /// Not as it was asked, because whoever asked is gone: the answer to an agent's question begins a new run.
    Void,
}

/// Derives whether a wait of a session's latest run can be answered. While the run goes on only proof that the agent is gone
/// makes a wait void (I9), and only one of the agent's: a program that opened one is answered as long as there is a run.
///
/// Whoever appends goes by what is recorded alone: that is [`HolderProof::Pending`].
pub fn wait_state(run: &Run, wait: &Wait, holder: HolderProof) -> WaitState {
    let gone = holder == HolderProof::Gone && !wait.kind.is_outside();
    if run.end.is_some() || gone { WaitState::Void } else { WaitState::Open }
}

/// Returns what is known of the recorded holder, or none if none was recorded.
fn holder_proof(state: &SessionState, observed: &Observed) -> Option<HolderProof> {
    let agent = state.agent.as_ref()?;
    Some(if agent.exited { HolderProof::Gone } else { observed.holder })
}

fn evidence(state: &SessionState, holder: Option<HolderProof>) -> Evidence {
    let run = state.run.as_ref();
    let open = state.open_run();
    Evidence {
        boot_id: run.map(|run| run.boot_id),
        holder: state.agent.as_ref().zip(holder).map(|(agent, proof)| HolderEvidence {
            id: agent.holder_id,
            alive: match proof {
                HolderProof::Pending => None,
                HolderProof::Lock | HolderProof::Unresponsive => Some(true),
                HolderProof::Gone => Some(false),
            },
            proof,
            process: agent.process.as_ref().map(|process| process.holder),
        }),
        last_output_at: state.agent.as_ref().and_then(|agent| agent.last_output_at),
        last_seq: state.last_seq,
        open_wait: open.and_then(|run| run.waits.first()).map(|wait| wait.wait_id),
        in_flight: open.filter(|run| run.prompted).map(|_| "prompt".into()).into_iter().collect(),
    }
}

#[cfg(test)]
mod tests;
