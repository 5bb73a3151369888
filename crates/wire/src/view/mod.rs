//! Views: what the daemon shows, in the shapes that callers rely on. Fields may be added, none of these goes. One that is
//! added is read with a default: a daemon of an earlier version does not send it.

mod answer_link;
mod daemon;
mod diff;
mod fork;
mod gc;
mod import;
mod log;
mod notify;
mod pipeline;
mod receipt;
mod search;
mod session;
mod snapshot;
mod task;
mod wait;
mod worktree;

pub use answer_link::{AnswerLinkView, AnswerLinks, AskedView, OptionView, TokenStanding, TokenView};
pub use daemon::{About, HolderList, HolderState, HolderView};
pub use diff::{FileDiff, RunDiff};
pub use fork::{FilesOutcome, FilesRestoring, ForkVerdict, Forked, RewindPlan, Rewound};
pub use gc::{Collected, Gone, Left, Space};
pub use import::ImportedStaged;
pub use log::{HistoryMissing, LogDamage, LogPage};
pub use notify::SinkTested;
pub use pipeline::{
    PendingStep, PendingWhy, PipelineCounts, PipelineDriftView, PipelineList, PipelineResumed,
    PipelineStepView, PipelineView,
};
pub use receipt::{AnswerTaken, MessageTaken, ResumeMethod, Resumed, TokenShown};
pub use search::{SearchMatch, SearchPage};
pub use session::{
    CheckpointView, CheckpointsView, Connection, ForkView, Health, HealthState, KeyedSession, LEFT_ALONE,
    RunState, RunView, SessionList, SessionParentView, SessionView, TouchedView, UncertainCall,
    UncertainView, WorktreeView,
};
pub use snapshot::{
    RestoreWarning, RestoredSession, SnapshotDetail, SnapshotList, SnapshotProblem, SnapshotReason,
    SnapshotView,
};
pub use task::{
    DayView, TaskList, TaskProgress, TaskStatsView, TaskUsage, TaskView, TasksMade, TransitionList,
    TransitionView,
};
pub use wait::{WaitKind, WaitList, WaitState, WaitView};
pub use worktree::{WorktreeDiff, WorktreeFile, WorktreeMerged, WorktreeRemoved};
