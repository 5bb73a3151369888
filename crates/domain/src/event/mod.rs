//! Every kind of thing a stream's log may hold, and how each is written: one flat JSON object a record.
//!
//! The kinds are one table. Payloads borrow from the line they were read from. A kind this version does not
//! know is kept as [`Event::Unknown`] and survives: a newer version wrote it.

mod agent;
mod budget;
mod checkpoint;
mod drift;
pub(crate) mod legacy;
mod persistence;
mod pipeline;
mod raw;
mod restore;
mod run;
mod session;
mod task;
mod token;
mod upkeep;
mod worktree;

pub use agent::{
    AgentExited, AgentLaunching, AgentNotice, AgentReady, AgentStarted, InputKind, InputQueued, ModeUpdated,
    PlanUpdated, ProcessIdentity, ToolCall, ToolUpdate, Usage, UsageUpdated,
};
pub use budget::{Budget, BudgetNotice, BudgetPart, BudgetScope, RunBudget};
pub use checkpoint::{
    ChangedFile, ChangedFiles, CheckpointAt, CheckpointHow, DirectoryIdentity, FileChange, FilesTouched,
    GitState, NotTaken, NotTakenReason, RunCheckpoint, SkippedPath, SkippedPaths, TouchedFile,
};
pub use drift::{AgentDrift, DirectoryChange, DirectoryDrift, Drift, GitDrift, RunDrift, SettingDrift};
pub use persistence::{BadCompression, Compression, Persistence};
pub use pipeline::{
    AgentConfig, AgentIdentity, BlobRef, DEFAULT_HEARTBEAT_S, DEFAULT_PIPELINE, DEFAULT_ROUNDS,
    DEFAULT_STALLED_AFTER_S, InputValue, OnCut, OnDrift, PathList, PipelineAborted, PipelineBudget,
    PipelineCompleted, PipelineConfig, PipelineDrift, PipelineFailed, PipelineImported, PipelineReopened,
    PipelineStarted, ProjectConfig, StageConfig, StepBegan, StepCounts, StepCut, StepFinished, StepIntended,
    StepInterrupted, TaskConfig, UnknownKeys,
};
pub use raw::Raw;
pub use restore::{SessionFilesRestored, SessionFilesRestoring};
pub use run::{
    CancelReason, InterruptReason, ResumeHow, RunAdopted, RunCancelRequested, RunCancelled, RunCompleted,
    RunFailed, RunInterrupted, RunResumed, RunStarted, RunWaiting, UncertainTool, WaitKind, is_usual_stop,
    tool_label,
};
pub use session::{
    CheckpointMode, ForkedFrom, Imported, MessageAgent, MessageUser, OnUncertain, Options, ParentStep,
    Permissions, Provider, Restoring, ResumePolicy, SessionClosed, SessionCreated, SessionDeleted,
    SessionUpdated,
};
pub use task::{
    DEFAULT_ATTEMPTS, Dependency, DependencyCondition, EndedTask, TaskCancelRequested, TaskChanged,
    TaskClaimed, TaskCreated, TaskEnded, TaskKind, TaskRequeued, TaskResumed, TaskRetried, TaskSpec,
    TaskStatus, TaskWaiting,
};
pub use token::{TokenConsumed, TokenExpired, TokenMinted, TokenRevoked, TokenScope};
pub use upkeep::{
    LogRepaired, RestoredCounts, SessionRestored, SnapshotCreated, SnapshotFailed, SnapshotReason,
    SnapshotRestored, StatusDerived,
};
pub use worktree::{
    DirtyPolicy, GitWorktree, MergeMethod, SessionWorktree, SessionWorktreeAdded, SessionWorktreeMerged,
    SessionWorktreeRemoved, Worktree, WorktreeSetup,
};

/// Declares the table of kinds: variant, payload, name on disk, whether the fold looks at it, and what it must survive.
macro_rules! kinds {
    ($($variant:ident($payload:ty) = $name:literal, $effect:ident, $durability:ident;)*) => {
        /// The name of an event kind.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Kind {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
        }

        impl Kind {
            /// Every kind this version knows.
            pub const ALL: &'static [Kind] = &[$(Kind::$variant,)*];

            /// Returns the name on disk.
            pub fn as_str(self) -> &'static str {
                match self { $(Kind::$variant => $name,)* }
            }

            /// Returns the kind with a name, if this version knows it.
            pub fn from_name(name: &str) -> Option<Kind> {
                match name { $($name => Some(Kind::$variant),)* _ => None }
            }

            /// Tells whether records of this kind change what a snapshot or token index says, beyond the
            /// position in the log; a replay need not look inside the others.
            pub fn effect(self) -> Effect {
                match self { $(Kind::$variant => Effect::$effect,)* }
            }

            /// Returns what a record of this kind must survive before anything follows from it.
            pub fn durability(self) -> Durability {
                match self { $(Kind::$variant => Durability::$durability,)* }
            }
        }

        /// One thing that happened.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Event<'a> {
            $(#[doc = concat!("`", $name, "`")] $variant($payload),)*
            /// A kind this version does not know: the whole record as it stands on disk.
            Unknown {
                /// The kind's name.
                kind: std::borrow::Cow<'a, str>,
                /// The whole record.
                record: Raw<'a>,
            },
        }

        impl<'a> Event<'a> {
            /// Returns the kind, if this version knows it.
            pub fn kind(&self) -> Option<Kind> {
                match self {
                    $(Event::$variant(_) => Some(Kind::$variant),)*
                    Event::Unknown { .. } => None,
                }
            }

            /// Returns what its record must survive before anything follows from it. Of a kind that this version does not know
            /// the most is asked.
            pub fn durability(&self) -> Durability {
                self.kind().map_or(Durability::Disk, Kind::durability)
            }

            /// Returns the kind's name on disk.
            pub fn name(&self) -> &str {
                match self {
                    $(Event::$variant(_) => $name,)*
                    Event::Unknown { kind, .. } => kind,
                }
            }

            /// Reads the payload of a record of the named kind; fields it does not have are ignored.
            pub fn read(kind: &'a str, record: &'a str) -> Result<Event<'a>, serde_json::Error> {
                Ok(match Kind::from_name(kind) {
                    $(Some(Kind::$variant) => Event::$variant(serde_json::from_str(record)?),)*
                    None => Event::Unknown { kind: kind.into(), record: serde_json::from_str(record)? },
                })
            }

            /// Appends the payload's fields as JSON object text, braces included.
            ///
            /// An unknown kind is never written anew, only kept.
            pub fn write_fields(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
                match self {
                    $(Event::$variant(payload) => serde_json::to_writer(out, payload),)*
                    Event::Unknown { .. } => {
                        Err(serde::ser::Error::custom("a record of an unknown kind cannot be written"))
                    }
                }
            }
        }

        $(impl<'a> From<$payload> for Event<'a> {
            fn from(payload: $payload) -> Event<'a> {
                Event::$variant(payload)
            }
        })*
    };
}

/// An illegal transition: an event that cannot follow what came before it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} is not possible here: {why}")]
pub struct IllegalTransition {
    /// The event's kind.
    pub kind: String,
    /// Why it cannot follow.
    pub why: String,
}

/// What a fold over the log has to do with a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Changes the session's state.
    State,
    /// Changes the token index.
    Token,
    /// Changes the tasks, whose stream is not a session's.
    Task,
    /// Changes a pipeline run, whose ledger is a stream of its own.
    Pipeline,
    /// Recorded for people and clients; only its position counts.
    Position,
}

impl Kind {
    /// Tells whether a record of this kind ends a run.
    pub fn ends_run(self) -> bool {
        matches!(self, Kind::RunCompleted | Kind::RunFailed | Kind::RunCancelled | Kind::RunInterrupted)
    }

    /// Tells whether people elsewhere may want to be told of a record of this kind. All of these survive a power cut, so that
    /// nobody is told of what is then not so.
    pub fn is_news(self) -> bool {
        self.ends_run()
            || matches!(
                self,
                Kind::RunStarted
                    | Kind::RunWaiting
                    | Kind::RunBudget
                    | Kind::TaskWaiting
                    | Kind::TaskEnded
                    | Kind::PipelineStarted
                    | Kind::PipelineDrift
                    | Kind::PipelineBudget
                    | Kind::StepInterrupted
                    | Kind::PipelineCompleted
                    | Kind::PipelineFailed
                    | Kind::PipelineAborted
            )
    }
}

/// What a record must survive before anything follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// A power cut: it is on disk before we act or answer. What people say, what is said to agents, and every decision about
    /// a session, a run or a token.
    Disk,
    /// The end of our process: it is with the kernel, and on disk soon. What an agent says; its journal has it too.
    Process,
}

kinds! {
    SessionCreated(SessionCreated<'a>) = "session.created", State, Disk;
    SessionUpdated(SessionUpdated<'a>) = "session.updated", State, Disk;
    SessionClosed(SessionClosed<'a>) = "session.closed", State, Disk;
    SessionDeleted(SessionDeleted<'a>) = "session.deleted", State, Disk;
    SessionFilesRestoring(SessionFilesRestoring<'a>) = "session.files_restoring", State, Disk;
    SessionFilesRestored(SessionFilesRestored<'a>) = "session.files_restored", State, Disk;
    SessionWorktreeAdded(SessionWorktreeAdded<'a>) = "session.worktree_added", State, Disk;
    SessionWorktreeMerged(SessionWorktreeMerged<'a>) = "session.worktree_merged", State, Disk;
    SessionWorktreeRemoved(SessionWorktreeRemoved<'a>) = "session.worktree_removed", State, Disk;
    MessageUser(MessageUser<'a>) = "message.user", State, Disk;
    MessageAgent(MessageAgent<'a>) = "message.agent", Position, Process;
    MessageThought(MessageThought<'a>) = "message.thought", Position, Process;
    ToolCall(ToolCall<'a>) = "tool.call", State, Process;
    ToolUpdate(ToolUpdate<'a>) = "tool.update", State, Process;
    PlanUpdated(PlanUpdated<'a>) = "plan.updated", State, Process;
    UsageUpdated(UsageUpdated<'a>) = "usage.updated", State, Process;
    ModeUpdated(ModeUpdated<'a>) = "mode.updated", Position, Process;
    AgentNotice(AgentNotice<'a>) = "agent.notice", Position, Process;
    InputQueued(InputQueued<'a>) = "input.queued", State, Disk;
    AgentLaunching(AgentLaunching<'a>) = "agent.launching", State, Disk;
    AgentStarted(AgentStarted<'a>) = "agent.started", State, Disk;
    AgentReady(AgentReady<'a>) = "agent.ready", State, Disk;
    AgentExited(AgentExited<'a>) = "agent.exited", State, Process;
    RunStarted(RunStarted<'a>) = "run.started", State, Disk;
    RunCancelRequested(RunCancelRequested<'a>) = "run.cancel_requested", State, Disk;
    RunWaiting(RunWaiting<'a>) = "run.waiting", State, Disk;
    RunResumed(RunResumed<'a>) = "run.resumed", State, Disk;
    RunAdopted(RunAdopted) = "run.adopted", State, Disk;
    RunCompleted(RunCompleted<'a>) = "run.completed", State, Disk;
    RunFailed(RunFailed<'a>) = "run.failed", State, Disk;
    RunCancelled(RunCancelled<'a>) = "run.cancelled", State, Disk;
    RunInterrupted(RunInterrupted<'a>) = "run.interrupted", State, Disk;
    RunCheckpoint(RunCheckpoint) = "run.checkpoint", State, Process;
    RunDrift(RunDrift) = "run.drift", State, Disk;
    RunBudget(RunBudget) = "run.budget", State, Disk;
    TokenMinted(TokenMinted<'a>) = "token.minted", Token, Disk;
    TokenConsumed(TokenConsumed<'a>) = "token.consumed", Token, Disk;
    TokenRevoked(TokenRevoked<'a>) = "token.revoked", Token, Disk;
    TokenExpired(TokenExpired) = "token.expired", Token, Disk;
    SessionRestored(SessionRestored<'a>) = "session.restored", Position, Disk;
    SnapshotCreated(SnapshotCreated) = "snapshot.created", Position, Process;
    SnapshotFailed(SnapshotFailed<'a>) = "snapshot.failed", Position, Process;
    SnapshotRestored(SnapshotRestored<'a>) = "snapshot.restored", Position, Process;
    LogRepaired(LogRepaired<'a>) = "log.repaired", Position, Process;
    StatusDerived(StatusDerived<'a>) = "status.derived", Position, Process;
    TaskCreated(TaskCreated<'a>) = "task.created", Task, Disk;
    TaskClaimed(TaskClaimed<'a>) = "task.claimed", Task, Disk;
    TaskWaiting(TaskWaiting<'a>) = "task.waiting", Task, Disk;
    TaskResumed(TaskResumed<'a>) = "task.resumed", Task, Disk;
    TaskRequeued(TaskRequeued<'a>) = "task.requeued", Task, Disk;
    TaskChanged(TaskChanged<'a>) = "task.changed", Task, Disk;
    TaskCancelRequested(TaskCancelRequested<'a>) = "task.cancel_requested", Task, Disk;
    TaskRetried(TaskRetried<'a>) = "task.retried", Task, Disk;
    TaskEnded(TaskEnded<'a>) = "task.ended", Task, Disk;
    PipelineStarted(PipelineStarted<'a>) = "pipeline.started", Pipeline, Disk;
    StepIntended(StepIntended<'a>) = "step.intended", Pipeline, Disk;
    StepBegan(StepBegan) = "step.began", Pipeline, Disk;
    StepFinished(StepFinished<'a>) = "step.finished", Pipeline, Disk;
    StepInterrupted(StepInterrupted<'a>) = "step.interrupted", Pipeline, Disk;
    PipelineDrift(PipelineDrift<'a>) = "pipeline.drift", Pipeline, Disk;
    PipelineCompleted(PipelineCompleted<'a>) = "pipeline.completed", Pipeline, Disk;
    PipelineFailed(PipelineFailed<'a>) = "pipeline.failed", Pipeline, Disk;
    PipelineAborted(PipelineAborted<'a>) = "pipeline.aborted", Pipeline, Disk;
    PipelineReopened(PipelineReopened<'a>) = "pipeline.reopened", Pipeline, Disk;
    PipelineImported(PipelineImported<'a>) = "pipeline.imported", Pipeline, Disk;
    PipelineBudget(PipelineBudget) = "pipeline.budget", Pipeline, Disk;
}

/// What an agent thought aloud; written like what it said.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct MessageThought<'a>(#[serde(borrow)] pub MessageAgent<'a>);

#[cfg(test)]
mod tests;
