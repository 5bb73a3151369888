//! Events of an agent: its process, what was put into it, and what it does besides talking.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Raw;
use crate::id::{HolderId, RunId, WaitId};
use crate::string_enum::string_enums;

/// A process named so that a reused pid is not mistaken for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessIdentity {
    /// The process id.
    pub pid: u32,
    /// Its start time in kernel ticks since the machine's boot.
    pub started: u64,
}

/// An agent began to use a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall<'a> {
    /// The run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The agent's name for the call.
    #[serde(borrow)]
    pub tool_call_id: Cow<'a, str>,
    /// What a person sees.
    #[serde(borrow, default)]
    pub title: Cow<'a, str>,
    /// Read, edit, execute and so on.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub tool_kind: Option<Cow<'a, str>>,
    /// The protocol's word: `pending`, `in_progress`, `completed`, `failed`.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Cow<'a, str>>,
    /// What the tool was given, in short: a command, a path.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Cow<'a, str>>,
    /// Files that it changes, as far as the agent says.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<Cow<'a, str>>,
    /// The whole update where it has fields we do not model.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Raw<'a>>,
}

/// A tool call went on or ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolUpdate<'a> {
    /// The run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The agent's name for the call.
    #[serde(borrow)]
    pub tool_call_id: Cow<'a, str>,
    /// A new title, if it changed.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub title: Option<Cow<'a, str>>,
    /// The protocol's word: `pending`, `in_progress`, `completed`, `failed`.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Cow<'a, str>>,
    /// What the tool was given, if it is told now.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Cow<'a, str>>,
    /// Files that it changes, as far as the agent says.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<Cow<'a, str>>,
    /// The whole update where it has fields we do not model.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Raw<'a>>,
}

/// The agent's plan, whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanUpdated<'a> {
    /// The run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The entries as the agent gave them.
    #[serde(borrow)]
    pub entries: Raw<'a>,
}

/// Tokens of a run and money, as its agent told with its end.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, Default, JsonSchema)]
pub struct Usage {
    /// Tokens read.
    #[serde(default)]
    pub input_tokens: u64,
    /// Tokens written.
    #[serde(default)]
    pub output_tokens: u64,
    /// Cost of the agent's session so far, in its currency, if it tells.
    #[serde(default)]
    pub cost: Option<f64>,
}

/// What an agent told of its usage, as it told it: tokens of the run that goes on, the cost of its session so far. The fold
/// adds up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UsageUpdated<'a> {
    /// Tokens read, of the run; 0 if this report does not say.
    #[serde(default)]
    pub input_tokens: u64,
    /// Tokens written.
    #[serde(default)]
    pub output_tokens: u64,
    /// Cost of the agent's session so far, in its currency, if it tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// What the agent reported where it has fields we do not model.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Raw<'a>>,
}

/// The agent works in another mode.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModeUpdated<'a> {
    /// The agent's name of the mode.
    #[serde(borrow)]
    pub mode_id: Cow<'a, str>,
}

/// Something worth keeping that fits nowhere else: noise, unknown updates, late replies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentNotice<'a> {
    /// The run, if one is concerned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// What it is, in a word.
    #[serde(borrow)]
    pub what: Cow<'a, str>,
    /// For people.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub text: Option<Cow<'a, str>>,
    /// Verbatim.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Raw<'a>>,
}

string_enums! {
    /// What an input is for.
    pub enum InputKind {
        /// The prompt of a run.
        Prompt = "prompt",
        /// The answer to a request of the agent's.
        Answer = "answer",
        /// A cancel.
        Cancel = "cancel",
        /// Setting up: initialize, new or load session, mode, model.
        Setup = "setup",
        /// A kind a newer version wrote.
        #[serde(other)]
        Unknown = "unknown",
    }
}

/// A line is to be put into an agent, exactly once, under this number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InputQueued<'a> {
    /// The run it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The holder it goes to.
    pub holder_id: HolderId,
    /// Its number at that holder.
    pub input_seq: u64,
    /// What it is for.
    pub what: InputKind,
    /// The wait it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_id: Option<WaitId>,
    /// The exact line, or a blob reference.
    #[serde(borrow)]
    pub line: Raw<'a>,
    /// SHA-256 of the exact line.
    #[serde(borrow)]
    pub sha256: Cow<'a, str>,
}

/// A holder is about to be made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentLaunching<'a> {
    /// The holder.
    pub holder_id: HolderId,
    /// The run it is launched for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The command.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub argv: Vec<Cow<'a, str>>,
}

/// An agent's process runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentStarted<'a> {
    /// The holder.
    pub holder_id: HolderId,
    /// The kernel's boot id.
    #[serde(borrow)]
    pub machine_boot: Cow<'a, str>,
    /// The holder's process.
    pub holder: ProcessIdentity,
    /// The agent's process.
    pub agent: ProcessIdentity,
    /// The command.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub argv: Vec<Cow<'a, str>>,
}

/// An agent has a session of its own and takes prompts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentReady<'a> {
    /// The holder.
    pub holder_id: HolderId,
    /// What the agent says of itself.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub info: Option<Raw<'a>>,
    /// What it can do.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Raw<'a>>,
    /// Its own session id: where its conversation picks up.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cow<'a, str>>,
}

/// An agent's process ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentExited<'a> {
    /// The holder.
    pub holder_id: HolderId,
    /// Its exit code, unless a signal ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The signal that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// The last it wrote to stderr.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub stderr_tail: Option<Cow<'a, str>>,
}
