//! Views of sessions and their runs.

use rekindle_domain::blob_id::BlobId;
use rekindle_domain::event::{BudgetNotice, CheckpointHow, Drift, NotTakenReason, ParentStep, UncertainTool};
use rekindle_domain::id::{RunId, RunName, SessionId, StepId, TaskId};
use rekindle_domain::projector::{Evidence, SessionStatus};
use rekindle_domain::session::UsageShown;
use rekindle_domain::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MessageTaken, WaitView};
use crate::string_enum::string_enums;

string_enums! {
    /// How a daemon stands with a session's agent: in its memory only, and never taken for the session's status.
    #[derive(Default)]
    pub enum Connection {
        /// There is none.
        #[default]
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

    /// How a run stands.
    pub enum RunState {
        /// Its directory is captured, and its prompt waits for that.
        Checkpointing = "checkpointing",
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

    /// Whether a session is whole.
    pub enum HealthState {
        /// It is.
        Ok = "ok",
        /// Its log is damaged: nothing can be added to it.
        Damaged = "damaged",
        /// It made the daemon crash: it is left alone until it is released.
        Quarantined = "quarantined",
        /// Its files cannot be read, or not be written, just now.
        Degraded = "degraded",
        /// The daemon has just begun, and its log is so long that it is still being read: it is shown as it began, and its status
        /// is not known.
        Reading = "reading",
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
    /// The lasting name that callers gave it: `POST /api/sessions` with this key finds it, until it is closed.
    pub key: Option<String>,
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
    /// It takes no more messages: somebody ended it, or another took its place. Its log stays.
    pub closed: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// When anything last happened.
    pub updated_at: Timestamp,
    /// The end of the last thing its agent said, in one line.
    pub last_words: Option<String>,
    /// Whether it is whole.
    pub health: Health,
    /// What it was forked from, if it is a fork.
    pub forked_from: Option<ForkView>,
    /// The session that took its place, if one did: it was rewound, or a snapshot of it was restored in place.
    pub replaced_by: Option<SessionId>,
    /// The worktree of git that it works in: made for it, or to be made, or taken over from the session whose place it took.
    pub worktree: Option<WorktreeView>,
    /// The step of a pipeline run that it is an attempt at, if it is one.
    #[serde(default)]
    pub parent: Option<SessionParentView>,
}

/// What a session is a part of: a step of a pipeline run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SessionParent")]
pub struct SessionParentView {
    /// The name of the run.
    #[schemars(extend("examples" = ["run-20251020-140818-4f9f29a1"]))]
    pub run_id: String,
    /// The task that the run is, as `/api/tasks` lists it.
    pub task_id: Option<TaskId>,
    /// The step.
    #[schemars(with = "String")]
    pub step_id: StepId,
}

impl SessionParentView {
    /// Returns what is shown of a step.
    pub fn of(parent: &ParentStep) -> SessionParentView {
        let run = parent.pipeline_id;
        SessionParentView {
            run_id: RunName::of(run).map_or_else(|| run.to_string(), |name| name.to_string()),
            task_id: run.to_ulid().map(TaskId::from_ulid),
            step_id: parent.step_id.clone(),
        }
    }
}

/// The worktree that a session works in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Worktree")]
pub struct WorktreeView {
    /// The directory that it was asked for in.
    pub origin: String,
    /// Its root.
    pub directory: String,
    /// Its branch.
    pub branch: String,
    /// The commit that the branch stood at when it was made; null until then.
    pub commit: Option<String>,
    /// The session merges and removes it. Another one does if that took its place, or if this is a fork that works there too.
    #[serde(default = "is_owned")]
    pub owned: bool,
    /// The branch that it was last merged into.
    #[serde(default)]
    pub merged_into: Option<String>,
    /// It was removed.
    #[serde(default)]
    pub removed: bool,
}

/// Of a daemon that does not say so, every worktree belongs to the session that has it.
fn is_owned() -> bool {
    true
}

/// What a session was forked from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ForkedFrom")]
pub struct ForkView {
    /// The other session; it may be gone.
    pub session_id: SessionId,
    /// Its last record that belongs to the history of both.
    pub seq: u64,
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
    /// What its directory contained, before and after.
    #[serde(default)]
    pub checkpoints: CheckpointsView,
    /// How many files are not what they were before, and lines in them; null while that is not known.
    #[serde(default)]
    pub files_touched: Option<TouchedView>,
    /// What was not as the turn before had left it when its prompt was given to an agent that was not there; null if nothing was, or
    /// if the agent was there. Ten of its files at most: the record `run.drift` has more.
    #[serde(default)]
    pub drift: Option<Drift>,
    /// A budget that it has used up, or nearly so; null if there is enough of everything.
    #[serde(default)]
    pub budget: Option<BudgetNotice>,
}

/// The checkpoints of a run, as far as they are recorded.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Checkpoints")]
pub struct CheckpointsView {
    /// Before its prompt was given to its agent.
    pub start: Option<CheckpointView>,
    /// After its end.
    pub end: Option<CheckpointView>,
}

/// A checkpoint of a run's directory.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Checkpoint")]
pub struct CheckpointView {
    /// The snapshot's name for people; null if it was not taken.
    pub snapshot: Option<String>,
    /// The tree.
    pub tree: Option<BlobId>,
    /// `live`, or `late`: taken by whoever came later, so that what changed need not be the agent's work.
    pub how: CheckpointHow,
    /// Why it was not taken.
    pub not_taken: Option<NotTakenReason>,
}

/// How many files were touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Touched")]
pub struct TouchedView {
    /// Files.
    pub files: u64,
    /// Lines that came.
    pub lines_added: u64,
    /// Lines that went.
    pub lines_removed: u64,
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

/// How the detail of a session's health ends that cannot be loaded, and is left alone.
pub const LEFT_ALONE: &str = "nothing can be added to it";

/// Whether a session is whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    /// Whether it is.
    pub state: HealthState,
    /// What is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// A session that was found by its key, and what became of the prompt.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct KeyedSession {
    /// The session.
    #[serde(flatten)]
    pub session: SessionView,
    /// The prompt as a message of the session; null if there was none.
    #[serde(default)]
    pub message: Option<MessageTaken>,
}

/// A page of sessions.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SessionList {
    /// The sessions; the one that was made last comes first.
    pub sessions: Vec<SessionView>,
    /// The cursor of the next page; null if this is the last.
    pub next: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_they_are_written_and_new_ones_do_no_harm() {
        for state in [
            RunState::Checkpointing,
            RunState::Running,
            RunState::Waiting,
            RunState::Cancelling,
            RunState::Completed,
            RunState::Failed,
            RunState::Cancelled,
            RunState::Interrupted,
        ] {
            let written = serde_json::to_value(state).expect("a word");
            assert_eq!(written, state.as_str());
            assert_eq!(serde_json::from_value::<RunState>(written).ok(), Some(state));
        }
        assert_eq!(serde_json::from_str::<RunState>(r#""dreaming""#).ok(), Some(RunState::Unknown));
    }
}
