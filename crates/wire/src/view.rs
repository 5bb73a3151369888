//! Views: what the daemon shows, in the shapes that callers rely on. Fields may be added, none of these goes. One that is
//! added is read with a default: a daemon of an earlier version does not send it.

use std::borrow::Cow;

use rekindle_domain::event::{self, UncertainTool};
use rekindle_domain::id::{MessageId, RunId, SessionId, TokenId, WaitId};
use rekindle_domain::projector::{self, Evidence, SessionStatus};
use rekindle_domain::session::UsageShown;
use rekindle_domain::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::words::words;

words! {
    /// How a daemon stands with a session's agent: in its memory only, and never taken for the session's status.
    pub enum Connection {
        /// There is none.
        Idle = "idle",
        /// One is being made: the agent is launched, or taken over, and does not take prompts yet.
        Starting = "starting",
        /// The agent brings its own session back.
        Loading = "loading",
        /// The agent works on a prompt.
        Running = "running",
        /// It takes prompts.
        Ready = "ready",
        /// It was lost in the middle of something.
        Interrupted = "interrupted",
        /// It could not be made.
        Error = "error",
    }
}

words! {
    /// How a run stands.
    pub enum RunState {
        /// Its agent works.
        Running = "running",
        /// It waits for an answer.
        Waiting = "waiting",
        /// Its end was asked for.
        Cancelling = "cancelling",
        /// It did what it was asked.
        Completed = "completed",
        /// It went wrong.
        Failed = "failed",
        /// It was ended as someone wanted.
        Cancelled = "cancelled",
        /// It was cut.
        Interrupted = "interrupted",
    }
}

words! {
    /// What a wait is for.
    pub enum WaitKind {
        /// May the agent do this?
        Permission = "permission",
        /// The agent asks.
        Question = "question",
        /// A tool outside has the answer.
        ToolResult = "tool_result",
        /// Anything else outside.
        External = "external",
    }
}

words! {
    /// How a wait stands.
    pub enum WaitState {
        /// It can be answered as it was asked.
        Open = "open",
        /// Whoever asked is gone: the answer to an agent's question becomes a message.
        Void = "void",
        /// It is over; lists do not have it.
        Ended = "ended",
    }
}

words! {
    /// Whether a session is whole.
    pub enum HealthState {
        /// It is.
        Ok = "ok",
        /// Its log is damaged: nothing can be added to it.
        Damaged = "damaged",
        /// Its files cannot be read, or not be written, just now.
        Degraded = "degraded",
    }
}

words! {
    /// How a session was continued.
    pub enum ResumeMethod {
        /// What was interrupted goes on.
        Continue = "continue",
        /// A wait was answered.
        Answer = "answer",
    }
}

words! {
    /// What a holder's directory tells.
    pub enum HolderState {
        /// Its lock is held.
        Lives = "lives",
        /// Its lock is held, and it does not answer.
        Silent = "silent",
        /// Nobody has its lock.
        Dead = "dead",
        /// It is a copy, or was made for another place.
        Copied = "copied",
        /// Its lock cannot be read.
        Unreadable = "unreadable",
    }
}

impl From<event::WaitKind> for WaitKind {
    fn from(kind: event::WaitKind) -> WaitKind {
        match kind {
            event::WaitKind::Permission => WaitKind::Permission,
            event::WaitKind::Question => WaitKind::Question,
            event::WaitKind::ToolResult => WaitKind::ToolResult,
            event::WaitKind::External | event::WaitKind::Unknown => WaitKind::External,
        }
    }
}

impl From<projector::WaitState> for WaitState {
    fn from(state: projector::WaitState) -> WaitState {
        match state {
            projector::WaitState::Open => WaitState::Open,
            projector::WaitState::Void => WaitState::Void,
        }
    }
}

/// A session.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
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
    pub connection: Connection,
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
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Run")]
pub struct RunView {
    /// The run.
    pub run_id: RunId,
    /// How it stands.
    pub state: RunState,
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
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Uncertain")]
pub struct UncertainView {
    /// Nothing is known of the end of the turn, as after a loss of power.
    pub turn: bool,
    /// The tool calls that had begun and not ended.
    pub tool_calls: Vec<UncertainCall>,
}

/// A tool call that may or may not have had its effect.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Wait")]
pub struct WaitView {
    /// The wait.
    pub wait_id: WaitId,
    /// Its session.
    pub session_id: SessionId,
    /// Its run.
    pub run_id: RunId,
    /// What for.
    pub kind: WaitKind,
    /// `open`; `void` if its agent is gone: an answer then becomes a message; `ended`, which lists do not have.
    pub state: WaitState,
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

impl WaitView {
    /// Returns what was asked, to be looked into; null if that is not known.
    pub fn asked(&self) -> serde_json::Value {
        let request = self.request.as_deref().map(|request| serde_json::from_str(request.get()));
        request.and_then(Result::ok).unwrap_or_default()
    }
}

/// Whether a session is whole.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    /// Whether it is.
    pub state: HealthState,
    /// What is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// A page of sessions.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SessionList {
    /// The sessions; the one that was made last comes first.
    pub sessions: Vec<SessionView>,
    /// The cursor of the next page; null if this is the last.
    pub next: Option<String>,
}

/// A page of waits.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct WaitList {
    /// The waits; the one that waits longest comes first.
    pub waits: Vec<WaitView>,
    /// The cursor of the next page; null if this is the last.
    pub next: Option<String>,
}

/// A page of holders.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct HolderList {
    /// The holders, by id.
    pub holders: Vec<HolderView>,
    /// The cursor of the next page; null if this is the last.
    pub next: Option<String>,
}

/// A message that was taken.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AnswerTaken {
    /// The run that goes on.
    pub run_id: RunId,
    /// The token that was consumed.
    pub resume_token_id: Option<TokenId>,
}

/// A continuation that was begun.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Resumed {
    /// The new run.
    pub run_id: RunId,
    /// How.
    pub method: ResumeMethod,
    /// Which attempt.
    pub attempt: u32,
}

/// A token, shown once.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TokenShown {
    /// The token with its secret.
    pub token: String,
    /// Until when it is good.
    pub expires_at: Timestamp,
}

/// A holder.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Holder")]
pub struct HolderView {
    /// The holder.
    pub id: String,
    /// Its session, by its own word.
    pub session_id: Option<String>,
    /// What its directory tells.
    pub state: HolderState,
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
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct About {
    /// The version.
    pub version: Cow<'static, str>,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_they_are_written_and_new_ones_do_no_harm() {
        for state in RunState::ALL {
            let written = serde_json::to_value(state).expect("a word");
            assert_eq!(written, state.as_str());
            assert_eq!(serde_json::from_value::<RunState>(written).ok(), Some(*state));
        }
        assert_eq!(serde_json::from_str::<RunState>(r#""dreaming""#).ok(), Some(RunState::Unknown));
    }

    #[test]
    fn a_word_that_no_daemon_says_is_in_no_schema() {
        let schema = schemars::schema_for!(WaitState).to_value();
        let words: Vec<&str> = schema["oneOf"]
            .as_array()
            .expect("words")
            .iter()
            .filter_map(|one| one["const"].as_str())
            .collect();
        assert_eq!(words, ["open", "void", "ended"]);
    }
}
