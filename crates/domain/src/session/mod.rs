//! The state of a session: the fold of its log, and exactly what a snapshot file says.
//!
//! The fold joins events to state and refuses illegal ones. Status is not here: the projector derives it.

mod checkpoints;
mod fold;
mod fold_checkpoint;
mod idempotency_key;
mod legacy;
mod plan;
mod replay;
mod restored_files;
mod run;
mod usage;
mod worktree;

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

pub use checkpoints::{Checkpoint, Checkpoints, OwedEnd, Touched};
pub use idempotency_key::MessageKey;
pub use legacy::LegacySnapshot;
pub use plan::PlanProgress;
pub use replay::{Problem, Replay};
pub use restored_files::RestoredFiles;
pub use run::{End, Run, Wait};
pub use usage::{Context, SessionUsage, UsageShown};

use crate::budget::Used;
use crate::chain::ChainHash;
pub use crate::chain::Position;
pub use crate::event::IllegalTransition;
use crate::event::{
    ForkedFrom, InterruptReason, Options, ParentStep, ProcessIdentity, Provider, Restoring, UncertainTool,
    Worktree,
};
use crate::id::{BootId, HolderId, MessageId, RunId, SessionId, WaitId};
use crate::line::Source;
use crate::time::{Now, Timestamp};

/// The version of the snapshot format this code writes.
pub const SNAPSHOT_VERSION: u32 = 1;

/// Most prompts that may wait in a session's queue: enough for any person, a bound for any program.
pub const MAX_QUEUED: usize = 64;

/// Keys of messages that are remembered. A sender repeats what was not answered, within hours; ten thousand newer messages
/// with keys in one session take a program weeks, and cost 16 bytes of memory each.
pub const MAX_MESSAGE_KEYS: usize = 10_000;

/// Keys of waits of programs that are remembered; a run has 64 open at most.
pub const MAX_WAIT_KEYS: usize = 1_000;

/// Milliseconds between a journal's time and that of writing which are no difference: what a reader takes who keeps up.
pub const SAME_TIME_MILLIS: u64 = 100;

/// A point to go back to without having copied the whole state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    position: Position,
    updated_at: Timestamp,
    agent: Option<(Journal, Option<Timestamp>)>,
}

/// A session as of some record of its log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionState {
    /// The format's version, first in the file so that a reader can stop there.
    pub version: u32,
    /// The session.
    pub id: SessionId,
    /// A short title for lists.
    pub title: String,
    /// Where the agent works.
    pub working_dir: String,
    /// Who answers.
    pub provider: Provider,
    /// Its settings.
    #[serde(default)]
    pub options: Options,
    /// Names of the agent's environment variables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env_names: Vec<String>,
    /// When it was created.
    pub created_at: Timestamp,
    /// The newest time at which any record was written; never goes back. Whether a clock was set back is told by this,
    /// so it is not the time at which what a record says has happened.
    pub updated_at: Timestamp,
    /// The last record taken in.
    pub last_seq: u64,
    /// The byte of the log after it.
    pub log_offset: u64,
    /// Its hash.
    pub last_hash: Option<ChainHash>,
    /// The latest run, ended or not.
    pub run: Option<Run>,
    /// The run before the latest, if its checkpoint at its end is not recorded and still can be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owed_end: Option<OwedEnd>,
    /// Prompts that wait for their turn, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queue: Vec<MessageId>,
    /// The latest agent process and where its conversation picks up.
    pub agent: Option<Agent>,
    /// Tokens and money so far.
    #[serde(default)]
    pub usage: SessionUsage,
    /// What recovery knows.
    pub recovery: Recovery,
    /// How many records about tokens there are: none means that the token index is empty.
    #[serde(default)]
    pub token_records: u64,
    /// The lasting name that callers gave it: unique among sessions that are not closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The key of the caller who made it, so that the same request is known again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by_key: Option<String>,
    /// The keys of its newest messages, oldest first, for the same reason.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub message_keys: VecDeque<MessageKey>,
    /// The keys of the newest waits that programs opened, for the same reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wait_keys: Vec<WaitKey>,
    /// Where it goes on from the history of another session, if it is a fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<ForkedFrom>,
    /// Its files are being restored: nothing begins before that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restoring: Option<Restoring>,
    /// Files that were put back since its agent last ended a turn, of which it is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored_files: Option<Box<RestoredFiles>>,
    /// The worktree that it works in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Box<Worktree>>,
    /// The step of a pipeline run that it is an attempt at, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Box<ParentStep>>,
    /// It takes no more prompts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub closed: bool,
    /// The session that took its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<SessionId>,
    /// It is being removed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
    /// What a newer version keeps in a snapshot; kept when rewritten.
    #[serde(flatten)]
    pub extra: serde_json::Map<String, serde_json::Value>,
}

/// The latest holder and the agent in it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Agent {
    /// The holder.
    pub holder_id: HolderId,
    /// The agent's own session id.
    pub cursor: Option<String>,
    /// What the agent says of itself.
    pub info: Option<Box<RawValue>>,
    /// What it can do.
    pub capabilities: Option<Box<RawValue>>,
    /// How far its journal is logged.
    pub journal: Journal,
    /// When it last said anything that was logged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_output_at: Option<Timestamp>,
    /// When its own session was last made or brought back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened_at: Option<Timestamp>,
    /// The number of the newest input queued for it.
    #[serde(default)]
    pub input_seq: u64,
    /// The record of its launch, from which on the log tells of it; 0 in caches of earlier versions, which did not keep it.
    #[serde(default)]
    pub launch_seq: u64,
    /// Its processes, once they ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<AgentProcess>,
    /// Its end was recorded: it is proven gone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exited: bool,
}

/// A cache that does not know where a launch is recorded says no less of the agent.
impl PartialEq for Agent {
    fn eq(&self, other: &Agent) -> bool {
        let raw = |value: &Option<Box<RawValue>>| value.as_ref().map(|raw| raw.get().to_owned());
        self.holder_id == other.holder_id
            && self.cursor == other.cursor
            && raw(&self.info) == raw(&other.info)
            && raw(&self.capabilities) == raw(&other.capabilities)
            && self.journal == other.journal
            && self.last_output_at == other.last_output_at
            && self.opened_at == other.opened_at
            && self.input_seq == other.input_seq
            && self.process == other.process
            && self.exited == other.exited
    }
}

/// The processes behind a holder, named so that reused pids are told apart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentProcess {
    /// The kernel's boot id.
    pub machine_boot: String,
    /// The holder.
    pub holder: ProcessIdentity,
    /// The agent.
    pub agent: ProcessIdentity,
}

/// The newest source of a holder's records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Journal {
    /// The journal record.
    pub seq: u64,
    /// Which of the records derived from it.
    pub n: u64,
    /// Where reading starts again.
    pub low: u64,
}

/// A wait that whoever opened it gave a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitKey {
    /// The key.
    pub key: String,
    /// The wait.
    pub wait_id: WaitId,
}

/// What recovery knows of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct Recovery {
    /// The newest daemon life that a run of this session saw.
    pub last_boot_seen: Option<BootId>,
    /// The interruption that nothing has followed yet.
    pub interruption: Option<Interruption>,
}

/// An interruption as recorded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Interruption {
    /// The run that was cut.
    pub run_id: RunId,
    /// By what.
    pub reason: InterruptReason,
    /// When.
    pub at: Timestamp,
    /// Tool calls that may or may not have had their effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncertain: Vec<UncertainTool>,
    /// Nothing is known of the whole turn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub uncertain_turn: bool,
}

impl SessionState {
    /// Returns the state before the first record.
    pub fn empty(id: SessionId) -> SessionState {
        SessionState {
            version: SNAPSHOT_VERSION,
            id,
            title: String::new(),
            working_dir: String::new(),
            provider: Provider::default(),
            options: Options::default(),
            env_names: Vec::new(),
            created_at: Timestamp::default(),
            updated_at: Timestamp::default(),
            last_seq: 0,
            log_offset: 0,
            last_hash: None,
            run: None,
            owed_end: None,
            queue: Vec::new(),
            agent: None,
            usage: SessionUsage::default(),
            recovery: Recovery::default(),
            token_records: 0,
            key: None,
            created_by_key: None,
            message_keys: VecDeque::new(),
            wait_keys: Vec::new(),
            forked_from: None,
            restoring: None,
            restored_files: None,
            worktree: None,
            parent: None,
            closed: false,
            replaced_by: None,
            deleted: false,
            extra: serde_json::Map::new(),
        }
    }

    /// Returns the state of a fork before the first of its own records: of the history that it goes on from nothing is its own but
    /// the position. Settings come with its first record; queue, waits, tokens, runs, usage and the agent's session stay behind.
    pub fn forked(id: SessionId, from: &ForkedFrom) -> SessionState {
        let mut state = SessionState::empty(id);
        state.set_position(Position::forked(from));
        state
    }

    /// Returns how far into the log this state has come.
    pub fn position(&self) -> Position {
        Position { last_seq: self.last_seq, log_offset: self.log_offset, last_hash: self.last_hash }
    }

    /// Moves the state to a position without looking at the record there.
    pub fn set_position(&mut self, position: Position) {
        Position { last_seq: self.last_seq, log_offset: self.log_offset, last_hash: self.last_hash } =
            position;
    }

    /// Tells whether the session's beginning is known.
    pub fn is_created(&self) -> bool {
        self.created_at != Timestamp::default()
    }

    /// Takes a line without a hash for the beginning: older logs have no `session.created`.
    pub(crate) fn begin_legacy(&mut self, ts: Timestamp) {
        if !self.is_created() {
            self.created_at = ts;
        }
    }

    /// Returns the run that has not ended, if there is one.
    pub fn open_run(&self) -> Option<&Run> {
        self.run.as_ref().filter(|run| run.end.is_none())
    }

    /// Returns what all its runs have used.
    pub fn used(&self, now: &Now) -> Used {
        self.usage.used(self.open_run().map_or(0, |run| now.millis_since(run.started_at)))
    }

    /// Returns what its latest run has used, with all attempts at it.
    pub fn used_by_run(&self, now: &Now) -> Used {
        self.used(now).since(&self.usage.used_before_run())
    }

    /// Tells whether someone outside may still have to answer: an open wait, or one made void by the end
    /// of its agent.
    pub fn has_waits(&self) -> bool {
        self.run.as_ref().is_some_and(|run| !run.waits.is_empty())
    }

    /// Tells whether a boot has anything to do here beyond listing it.
    pub fn is_unfinished(&self) -> bool {
        self.deleted
            || self.open_run().is_some()
            || !self.queue.is_empty()
            || self.restoring.is_some()
            || self.recovery.interruption.is_some()
            || self.owed_end.is_some()
            || self.run.as_ref().and_then(Run::owed_end).is_some()
            || self.agent.as_ref().is_some_and(|agent| !agent.exited)
    }

    /// Remembers what records that only have a position change.
    pub fn mark(&self) -> Mark {
        let agent = self.agent.as_ref().map(|agent| (agent.journal, agent.last_output_at));
        Mark { position: self.position(), updated_at: self.updated_at, agent }
    }

    /// Goes back to a mark; nothing but records of [`crate::event::Effect::Position`] may have come since.
    pub fn rewind(&mut self, mark: &Mark) {
        self.set_position(mark.position);
        self.updated_at = mark.updated_at;
        if let (Some(agent), Some((journal, last_output_at))) = (&mut self.agent, mark.agent) {
            agent.journal = journal;
            agent.last_output_at = last_output_at;
        }
    }

    /// Returns when something happened that a journal has with the time `at` and that is written at `ts`; none if that
    /// is the time of writing.
    ///
    /// A time outside of what is possible, later than its reading or before the session or its latest run began, says
    /// that the clock was set in between: it is worth less than the time of writing, and is not used.
    pub fn happened_at(&self, at: Option<Timestamp>, ts: Timestamp) -> Option<Timestamp> {
        let begin = self.run.as_ref().map_or(self.created_at, |run| run.started_at.max(self.created_at));
        at.filter(|at| *at >= begin && ts.millis_since(*at) > SAME_TIME_MILLIS)
    }

    /// Takes in where a record came from, when it was written and when it happened, if that is another time; part of the
    /// fold for records of every kind.
    pub fn note(&mut self, ts: Timestamp, at: Option<Timestamp>, source: Option<Source>) {
        self.updated_at = self.updated_at.max(ts);
        if let (Some(Source(holder, seq, n, low)), Some(agent)) = (source, &mut self.agent)
            && agent.holder_id == holder
        {
            agent.journal = Journal { seq, n, low };
            agent.last_output_at = Some(at.unwrap_or(ts));
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
