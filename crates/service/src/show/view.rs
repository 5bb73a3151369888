//! Views: what the daemon shows, in the shapes that callers rely on. Fields may be added, none of these goes.

use rekindle_domain::event::UncertainTool;
use rekindle_domain::id::{MessageId, RunId, SessionId, TokenId, WaitId};
use rekindle_domain::projector::{Evidence, SessionStatus};
use rekindle_domain::session::UsageShown;
use rekindle_domain::time::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use serde_json::value::RawValue;

use crate::drive::answer::Answered;
pub use crate::drive::connection_state::Link;

/// A session.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Session")]
pub struct SessionView {
    /// The session.
    pub id: SessionId,
    /// A short title.
    pub title: String,
    /// Where its agent works.
    pub working_dir: String,
    /// Its agent's name, or its command's.
    pub agent: String,
    /// The model that its agent is asked to use; none leaves it to the agent.
    pub model: Option<String>,
    /// The mode that its agent is asked to work in, likewise.
    pub mode: Option<String>,
    /// The known agent that it is, by its name or because its command starts one.
    pub known_agent: Option<String>,
    /// Variables that its agent needs and this daemon does not have: names, while no agent lives that has them.
    pub missing_env: Vec<String>,
    /// How its agent is spoken with: `acp`, or `exec` for a command that reads a prompt and writes an answer.
    pub profile: String,
    /// What it is doing.
    pub status: SessionStatus,
    /// Since when.
    pub since: Timestamp,
    /// How that is known.
    pub evidence: Evidence,
    /// How the daemon stands with its agent: `idle`, `starting`, `running`, `ready`, `interrupted` or `error`. Memory only.
    pub connection: Link,
    /// Its newest record.
    pub last_seq: u64,
    /// Its latest run.
    pub run: Option<RunView>,
    /// The oldest open wait.
    pub wait: Option<WaitView>,
    /// All of them; those of a dead agent are `void`.
    pub waits: Vec<WaitView>,
    /// Prompts that wait for their turn.
    pub queued: usize,
    /// Why nothing happens by itself, if something should: for people.
    pub held: Option<String>,
    /// Tokens and money.
    pub usage: UsageShown,
    /// The agent's own session.
    pub cursor: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When anything last happened.
    pub updated_at: Timestamp,
    /// The end of the last thing its agent said, in one line.
    pub last_words: Option<String>,
    /// Whether it is whole.
    pub health: Health,
}

/// A run.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Run")]
pub struct RunView {
    /// The run.
    pub run_id: RunId,
    /// `running`, `waiting`, `cancelling`, `completed`, `failed`, `cancelled` or `interrupted`.
    #[schemars(extend("enum" = ["running", "waiting", "cancelling", "completed", "failed", "cancelled", "interrupted"]))]
    pub state: &'static str,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Which attempt it is.
    pub attempt: u32,
    /// Why it ended as it did, for people: what went wrong, who cancelled it, what cut it.
    pub detail: Option<String>,
    /// It was cut, and `resume` continues it: nobody has cancelled what was left of it, and nothing came after it.
    pub resumable: bool,
    /// What may or may not have happened when it was cut, until the session goes on.
    pub uncertain: Option<UncertainView>,
}

/// What an interruption left open.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Uncertain")]
pub struct UncertainView {
    /// Nothing is known of the end of the turn, as after a loss of power.
    pub turn: bool,
    /// The tool calls that had begun and not ended.
    pub tool_calls: Vec<UncertainCall>,
}

/// A tool call that may or may not have had its effect.
#[derive(Debug, Serialize, JsonSchema)]
pub struct UncertainCall {
    /// The agent's name for it.
    pub tool_call_id: String,
    /// What people are shown.
    pub title: String,
    /// `read`, `edit`, `execute` and so on, if the agent said so.
    pub kind: Option<String>,
    /// What the tool was given, in short: a command, a path; if the agent said so.
    pub input: Option<String>,
}

impl From<&UncertainTool> for UncertainCall {
    fn from(tool: &UncertainTool) -> UncertainCall {
        let UncertainTool { tool_call_id, title, kind, input } = tool.clone();
        UncertainCall { tool_call_id, title, kind, input }
    }
}

/// A wait.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Wait")]
pub struct WaitView {
    /// The wait.
    pub wait_id: WaitId,
    /// Its session.
    pub session_id: SessionId,
    /// Its run.
    pub run_id: RunId,
    /// What for.
    #[schemars(extend("enum" = ["permission", "question", "tool_result", "external"]))]
    pub kind: &'static str,
    /// `open`; `void` if its agent is gone: an answer then becomes a message; `ended`, which lists do not have.
    #[schemars(extend("enum" = ["open", "void", "ended"]))]
    pub state: &'static str,
    /// What was asked, whole.
    pub request: Option<Box<RawValue>>,
    /// Since when.
    pub since: Timestamp,
    /// Until when.
    pub deadline_at: Option<Timestamp>,
    /// How it ended, if it has: `answered`, `withdrawn`, `cancelled` or `timeout`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub how: Option<String>,
    /// The answer, if there was one: of a wait that a program opened, as it was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Box<RawValue>>,
}

/// Whether a session is whole.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Health {
    /// `ok`, `damaged` or `degraded`.
    #[schemars(extend("enum" = ["ok", "damaged", "degraded"]))]
    pub state: &'static str,
    /// What is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// A page of sessions.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SessionList {
    /// The sessions; the one that was made last comes first.
    pub sessions: Vec<SessionView>,
    /// The cursor of the next page; null if this is the last.
    pub next: Option<String>,
}

/// A page of waits.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WaitList {
    /// The waits; the one that waits longest comes first.
    pub waits: Vec<WaitView>,
    /// The cursor of the next page; null if this is the last.
    pub next: Option<String>,
}

/// A page of holders.
#[derive(Debug, Serialize, JsonSchema)]
pub struct HolderList {
    /// The holders, by id.
    pub holders: Vec<HolderView>,
    /// The cursor of the next page; null if this is the last.
    pub next: Option<String>,
}

/// A message that was taken.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct MessageTaken {
    /// The message.
    pub message_id: MessageId,
    /// Its run, unless it waits for its turn.
    pub run_id: Option<RunId>,
    /// Its record.
    pub seq: u64,
    /// It waits for its turn.
    pub queued: bool,
}

/// An answer that was taken.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct AnswerTaken {
    /// The run that goes on.
    pub run_id: RunId,
    /// The token that was consumed.
    pub resume_token_id: Option<TokenId>,
}

impl From<Answered> for AnswerTaken {
    fn from(answered: Answered) -> AnswerTaken {
        let Answered { run_id, resume_token_id } = answered;
        AnswerTaken { run_id, resume_token_id }
    }
}

/// A continuation that was begun.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Resumed {
    /// The new run.
    pub run_id: RunId,
    /// How: `continue` or `answer`.
    #[schemars(extend("enum" = ["continue", "answer"]))]
    pub method: &'static str,
    /// Which attempt.
    pub attempt: u32,
}

/// A token, shown once.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct TokenShown {
    /// The token with its secret.
    pub token: String,
    /// Until when it is good.
    pub expires_at: Timestamp,
}

/// A holder.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Holder")]
pub struct HolderView {
    /// The holder.
    pub id: String,
    /// Its session, by its own word.
    pub session_id: Option<String>,
    /// `lives`, `silent`, `dead`, `copied` or `unreadable`.
    #[schemars(extend("enum" = ["lives", "silent", "dead", "copied", "unreadable"]))]
    pub state: &'static str,
    /// No session of this home knows it.
    pub unknown: bool,
    /// Its process.
    pub pid: Option<i32>,
    /// Its agent's process.
    pub agent_pid: Option<i32>,
    /// What it was last heard of.
    pub phase: Option<String>,
    /// The epoch that commands it.
    pub epoch: Option<u64>,
    /// Versions of the protocol that it speaks.
    pub versions: Option<(u16, u16)>,
    /// Since when nobody is attached.
    pub detached_since: Option<String>,
    /// What is wrong with it.
    pub trouble: Option<String>,
}

/// What the daemon says of itself.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct About {
    /// The version.
    pub version: &'static str,
    /// Its process.
    pub pid: u32,
    /// Its life.
    pub boot_id: String,
    /// Its epoch.
    pub epoch: u64,
    /// Its home.
    pub home: String,
    /// Which home that is, whatever its path: device and inode of its `daemon.lock`, as `DEVICE:INODE`. A copy has another.
    pub home_id: String,
    /// Everything that was in the home at the start is listed.
    pub listed: bool,
    /// Recovery is through with what it found at the start.
    pub recovered: bool,
}
