//! The evidence by which a pipeline run goes on: what was found of the agent, of the files, of the cache, and what a person said.

use std::time::Duration;

use crate::blob_id::BlobId;
use crate::event::OnDrift;
use crate::recovery::AgentPresence;

/// What was found of a run, beside its ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Evidence {
    /// Another process holds the run, or another resume of it is at work.
    pub is_held_elsewhere: bool,
    /// The agent of the current step.
    pub agent: AgentFound,
    /// The run of the current attempt, as its session has it.
    pub run: RunFound,
    /// The attempt has taken longer than it may. What it waited for people does not count.
    pub is_overdue: bool,
    /// The directory.
    pub tree: TreeFound,
    /// A restore of the directory to this tree was begun, and has not come to its end.
    pub restoring: Option<BlobId>,
    /// Everything is there that a restore to the tree needs with which the current step begins.
    pub has_manifest: bool,
    /// A result that was there before.
    pub cache: CacheFound,
    /// How the agent of a cut attempt can go on.
    pub continuation: Continuation,
    /// Nobody else works in the directory, in one above it or below it.
    pub is_directory_free: bool,
    /// Every variable that the agent needs is at hand.
    pub has_environment: bool,
    /// How long the next attempt is still to wait.
    pub retry_in: Duration,
    /// What a person said when they resumed the run. It counts until an attempt begins.
    pub word: Option<OnDrift>,
}

/// An agent, as it was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentFound {
    /// It lives, and what it says is taken in as it says it.
    Followed,
    /// It lives, and nobody listens.
    Lives,
    /// Nothing can be told of it: unknown is not dead (I9).
    Silent,
    /// It has ended, and what it left is to be read.
    Unread,
    /// It and all of its processes are proven gone, or there never was one.
    Gone,
}

impl From<AgentPresence> for AgentFound {
    /// A presence says nothing of whether somebody listens.
    fn from(presence: AgentPresence) -> AgentFound {
        match presence {
            AgentPresence::Lives => AgentFound::Lives,
            AgentPresence::Silent => AgentFound::Silent,
            // Its end is to be recorded by the session, whatever is left of it.
            AgentPresence::Dead | AgentPresence::Vanished { .. } => AgentFound::Unread,
            AgentPresence::Nobody => AgentFound::Gone,
        }
    }
}

/// The run of an attempt, as its session has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunFound {
    /// It goes on.
    Open,
    /// It waits for a person.
    WaitsForPerson,
    /// The agent ended its turn.
    Completed(Verdict),
    /// The agent said that it failed, or ended with an error.
    Failed,
    /// A rule ended it: its time or its budget was used up.
    EndedByRule,
    /// A person cancelled it.
    Cancelled,
    /// The agent was cut.
    Interrupted,
    /// It failed in a way that says that the same may succeed later.
    TryLater,
    /// Its agent could not be launched.
    NotLaunched,
}

/// Whether an agent that ended its turn said what came of it, as it was asked to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It did, or nothing was asked.
    Clear,
    /// It did not, or named what is no outcome, and may be asked again.
    Unclear,
    /// It did not, and cannot be asked again.
    Lost,
}

/// The directory of a run, as it was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TreeFound {
    /// Nobody has looked yet.
    NotCaptured,
    /// It is not there, or cannot be captured.
    Unreadable,
    /// It has this tree.
    Captured {
        /// The tree.
        tree: BlobId,
        /// How many of the files that the current step did not begin with were changed after its agent was proven dead.
        after_cut: u64,
        /// How many may have been changed by its agent or by anybody.
        unknown_author: u64,
    },
}

/// What a cache says of the key of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheFound {
    /// Nothing that may be used.
    Miss,
    /// A result that is whole, and left this tree.
    Hit(BlobId),
    /// Another run works at the same, and its result will do.
    BeingMade,
}

/// How an agent that was cut can go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Continuation {
    /// Not at all: it is a command.
    None,
    /// By an agent that is told what was done.
    Told,
    /// By itself: it brings its own session back, and says that it goes on.
    Native,
}
