//! One run as a snapshot tells it: where it stands, what it waits for, what its agent was doing.

use serde::{Deserialize, Serialize};

use super::{Checkpoints, OwedEnd, PlanProgress};
use crate::event::{BudgetNotice, CancelReason, Drift, InterruptReason, UncertainTool, WaitKind};
use crate::id::{BootId, MessageId, RunId, TaskId, TokenId, WaitId};
use crate::time::Timestamp;

/// One turn of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The run.
    pub run_id: RunId,
    /// The newest daemon life that has it: the one that started or last adopted it.
    pub boot_id: BootId,
    /// The kernel's boot id when it started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_boot: Option<String>,
    /// The message that is its prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
    /// When it started.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<End>,
    /// Which attempt it is.
    pub attempt: u32,
    /// The run it continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<RunId>,
    /// The first run of the chain of attempts.
    pub origin_run_id: RunId,
    /// The task that it is an attempt of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// Who is waited for. After an interruption these waits are void, but may still be answered.
    pub waits: Vec<Wait>,
    /// Why it is to be cancelled, if someone asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel: Option<CancelReason>,
    /// Its prompt was queued for an agent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub prompted: bool,
    /// What its directory contained, before and after.
    #[serde(default, skip_serializing_if = "Checkpoints::is_empty")]
    pub checkpoints: Checkpoints,
    /// What was not as the turn before had left it when its prompt was given to an agent, in brief.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<Box<Drift>>,
    /// Tool calls announced so far.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tool_calls: u32,
    /// How much of its agent's plan is done, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanProgress>,
    /// A budget that it has used up, or nearly so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetNotice>,
    /// Tool calls announced and not ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<UncertainTool>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Run {
    /// Finds one of its waits.
    pub fn wait(&self, id: WaitId) -> Option<&Wait> {
        self.waits.iter().find(|wait| wait.wait_id == id)
    }

    /// Returns the tool calls that may have had an effect: those that have begun. One whose permission nobody has given yet
    /// has not.
    pub fn begun_tools(&self) -> impl Iterator<Item = &UncertainTool> {
        let asked = |id: &str| self.waits.iter().any(|wait| wait.tool_call_id.as_deref() == Some(id));
        self.tools.iter().filter(move |tool| !asked(&tool.tool_call_id))
    }

    /// Returns the checkpoint that it is owed: it has ended, and of its two only the one at its start is recorded.
    pub fn owed_end(&self) -> Option<OwedEnd> {
        let start =
            self.checkpoints.start.filter(|_| self.end.is_some() && self.checkpoints.end.is_none())?;
        let ended_at = self.ended_at.unwrap_or(self.started_at);
        Some(OwedEnd { run_id: self.run_id, boot_id: self.boot_id, ended_at, start })
    }

    /// Tells whether its agent waits for an answer; what a program waits for is not counted.
    pub fn has_asked(&self) -> bool {
        self.waits.iter().any(|wait| !wait.kind.is_outside())
    }
}

/// How a run ended: exactly one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum End {
    /// The agent ended its turn.
    Completed,
    /// It failed for good.
    Failed,
    /// Someone wanted it to end.
    Cancelled,
    /// It was cut short.
    Interrupted {
        /// By what.
        reason: InterruptReason,
        /// A wait was open then.
        waiting: bool,
    },
}

/// Someone outside is waited for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Wait {
    /// The wait.
    pub wait_id: WaitId,
    /// What for.
    pub kind: WaitKind,
    /// The record that began it.
    pub since_seq: u64,
    /// When that was.
    pub since: Timestamp,
    /// Its own token.
    pub resume_token_id: TokenId,
    /// When it stops waiting, if ever.
    pub deadline_at: Option<Timestamp>,
    /// The tool call that permission is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
}
