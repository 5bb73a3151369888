//! Events of a run: one turn, from a prompt to exactly one end.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::session::is_false;
use super::{Raw, Usage};
use crate::id::{BootId, HolderId, MessageId, RunId, TaskId, TokenId, WaitId};
use crate::string_enum::string_enums;
use crate::time::Timestamp;

/// A turn began. Every attempt is a run of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunStarted<'a> {
    /// The run.
    pub run_id: RunId,
    /// The daemon's life that began it.
    pub boot_id: BootId,
    /// The kernel's boot id.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub machine_boot: Option<Cow<'a, str>>,
    /// The message that is its prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
    /// Which attempt this is, from 1.
    #[serde(default = "first_attempt")]
    pub attempt: u32,
    /// The interrupted run that it continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<RunId>,
    /// The first run of a chain of attempts; budgets count by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin_run_id: Option<RunId>,
    /// The task that it is an attempt of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
}

fn first_attempt() -> u32 {
    1
}

/// Why a run is to be cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelReason {
    /// A person asked for it.
    User,
    /// Everything is to stop.
    StopAll,
    /// A fresh message came while it was waiting.
    NewMessage,
    /// Nobody answered in time.
    WaitTimeout,
    /// The session came here from elsewhere: nothing starts by itself.
    Imported,
    /// The deadline of its task has passed.
    Deadline,
    /// It has used as much as it may.
    Budget,
    /// A reason a newer version wrote.
    #[serde(other)]
    Unknown,
}

impl CancelReason {
    /// Tells whether a rule ends the run and no person: then it has failed, and is not cancelled.
    pub fn is_rule(self) -> bool {
        matches!(self, CancelReason::Deadline | CancelReason::Budget | CancelReason::WaitTimeout)
    }

    /// Returns it in words.
    pub fn words(self) -> &'static str {
        match self {
            CancelReason::User => "cancelled",
            CancelReason::StopAll => "everything was to stop",
            CancelReason::NewMessage => "another message took its place",
            CancelReason::WaitTimeout => "nobody answered in time",
            CancelReason::Imported => "imported from elsewhere",
            CancelReason::Deadline => "deadline",
            CancelReason::Budget => "budget",
            CancelReason::Unknown => "cancelled for a reason that is not known here",
        }
    }
}

/// Someone wants the run to end. On disk before any other effect, and never undone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunCancelRequested<'a> {
    /// The run, or none: then only the queue is concerned.
    pub run_id: Option<RunId>,
    /// Who.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Cow<'a, str>>,
    /// Why.
    pub why: CancelReason,
    /// Messages taken out of the queue.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<MessageId>,
}

/// What a run waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitKind {
    /// May the agent do this?
    Permission,
    /// The agent asks.
    Question,
    /// A tool outside has the answer.
    ToolResult,
    /// Anything else outside.
    External,
    /// A kind a newer version wrote.
    #[serde(other)]
    Unknown,
}

impl WaitKind {
    /// Tells whether a program opened the wait and not the agent: the agent works on, and is told nothing of it.
    pub fn is_outside(self) -> bool {
        matches!(self, WaitKind::ToolResult | WaitKind::External)
    }
}

/// The run is blocked on someone outside.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunWaiting<'a> {
    /// The run.
    pub run_id: RunId,
    /// The wait.
    pub wait_id: WaitId,
    /// What for.
    pub wait_kind: WaitKind,
    /// The wait's own token.
    pub resume_token_id: TokenId,
    /// When it stops waiting, if ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_at: Option<Timestamp>,
    /// The tool call that permission is asked for: it has not begun while the wait is open.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<Cow<'a, str>>,
    /// The request, whole.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Raw<'a>>,
    /// Who opened it, if it was not the agent.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Cow<'a, str>>,
    /// The caller's key, so that the same request opens one wait.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<Cow<'a, str>>,
}

string_enums! {
    /// How a wait ended.
    pub enum ResumeHow {
        /// Someone answered.
        Answered = "answered",
        /// The agent took its request back.
        Withdrawn = "withdrawn",
        /// The run was cancelled.
        Cancelled = "cancelled",
        /// Time ran out.
        Timeout = "timeout",
        /// A way a newer version wrote.
        #[serde(other)]
        Unknown = "unknown",
    }
}

/// A wait ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunResumed<'a> {
    /// The run.
    pub run_id: RunId,
    /// The wait.
    pub wait_id: WaitId,
    /// The answer.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Raw<'a>>,
    /// Who gave it.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Cow<'a, str>>,
    /// How it ended.
    pub how: ResumeHow,
    /// Whether permission was granted, where it was asked for: a tool call that was granted counts as begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granted: Option<bool>,
}

/// A later daemon took over a run that is still going on, or goes on with one that never reached an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunAdopted {
    /// The run.
    pub run_id: RunId,
    /// The daemon's life that took it over.
    pub boot_id: BootId,
    /// The holder, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder_id: Option<HolderId>,
    /// Journal records read since the last boot.
    #[serde(default)]
    pub gap: u64,
}

/// The agent ended its turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunCompleted<'a> {
    /// The run.
    pub run_id: RunId,
    /// The agent's word for it.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<Cow<'a, str>>,
    /// Totals, if the agent told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

impl RunCompleted<'_> {
    /// Returns the agent's word for its end, unless that only says that it did what it was asked.
    pub fn unusual_stop(&self) -> Option<&str> {
        self.stop_reason.as_deref().filter(|reason| !is_usual_stop(reason))
    }
}

/// Tells whether an agent's word for its end only says that it did what it was asked.
pub fn is_usual_stop(reason: &str) -> bool {
    matches!(reason, "end_turn" | "exit")
}

/// The turn failed for good.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunFailed<'a> {
    /// The run.
    pub run_id: RunId,
    /// What went wrong.
    #[serde(borrow, default)]
    pub error: Cow<'a, str>,
}

/// The turn ended because someone wanted it to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunCancelled<'a> {
    /// The run.
    pub run_id: RunId,
    /// Who.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Cow<'a, str>>,
}

string_enums! {
    /// What cut a run short.
    pub enum InterruptReason {
        /// The daemon restarted and nothing was left of the agent.
        ProcessRestart = "process_restart",
        /// The machine restarted.
        MachineRestart = "machine_restart",
        /// The agent ended by itself.
        AgentExit = "agent_exit",
        /// The holder was lost, and the agent with it.
        HolderLost = "holder_lost",
        /// Nobody answered in time.
        WaitTimeout = "wait_timeout",
        /// Another machine ran it and is gone.
        NodeLost = "node_lost",
        /// A reason of an older or newer version.
        #[serde(other)]
        Unknown = "unknown",
    }
}

impl InterruptReason {
    /// Returns it in words, for people.
    pub fn text(self) -> &'static str {
        match self {
            InterruptReason::ProcessRestart => "the daemon restarted, and nothing was left of the agent",
            InterruptReason::MachineRestart => "the machine restarted",
            InterruptReason::AgentExit => "the agent's process ended",
            InterruptReason::HolderLost => "the process that kept the agent was lost",
            InterruptReason::WaitTimeout => "nobody answered in time",
            InterruptReason::NodeLost => "the machine that ran it was lost",
            InterruptReason::Unknown => "for a reason that this version does not know",
        }
    }
}

/// A tool call that had begun and not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UncertainTool {
    /// The agent's name for the call.
    pub tool_call_id: String,
    /// What a person sees.
    #[serde(default)]
    pub title: String,
    /// Read, edit, execute and so on.
    pub kind: Option<String>,
    /// What the tool was given, in short: a command, a path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
}

impl UncertainTool {
    /// Returns the call in one line, for people and agents: its title, and what the tool was given unless the title says it.
    pub fn label(&self) -> String {
        tool_label(&self.title, self.input.as_deref())
    }
}

/// Returns a tool call in one line: its title, and what the tool was given unless the title says it.
pub fn tool_label(title: &str, input: Option<&str>) -> String {
    let title = title.trim();
    match input.map(str::trim).filter(|input| !input.is_empty() && !title.contains(input)) {
        Some(input) if title.is_empty() || input.contains(title) => input.to_owned(),
        Some(input) => format!("{title}: {input}"),
        None => title.to_owned(),
    }
}

/// The run was cut short; the session says so and can continue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunInterrupted<'a> {
    /// The run.
    pub run_id: RunId,
    /// By what.
    pub reason: InterruptReason,
    /// Tool calls that may or may not have had their effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncertain: Vec<UncertainTool>,
    /// Nothing is known of the whole turn.
    #[serde(default, skip_serializing_if = "is_false")]
    pub uncertain_turn: bool,
    /// For people.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Cow<'a, str>>,
}

impl RunInterrupted<'_> {
    /// Returns what cut the run, in words.
    pub fn why(&self) -> String {
        let reason = self.reason.text();
        match &self.detail {
            Some(detail) => format!("{reason} ({detail})"),
            None => reason.to_owned(),
        }
    }
}
