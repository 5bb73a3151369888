//! The evidence by which a pipeline run goes on: what was found of the agent, of the files, of the cache, and what a person said.

use std::time::Duration;

use crate::blob_id::BlobId;
use crate::event::{BudgetPart, OnDrift};
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
    /// The attempt goes on in the session of the one before, and its agent has come back without that: it was told what happened, or
    /// nobody can tell what it remembers.
    pub has_forgotten: bool,
    /// The attempt has taken longer than it may. What it waited for people does not count.
    pub is_overdue: bool,
    /// What is heard of whoever works at it.
    pub signs: SignsOfLife,
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
    /// Another attempt may run beside those that do.
    pub has_place: bool,
    /// The part of the run's budget of which nothing is left.
    pub spent: Option<BudgetPart>,
    /// How long the next attempt is still to wait.
    pub retry_in: Duration,
    /// An earlier daemon left the run with nobody at work, and nobody has said since that it is to go on.
    pub is_left: bool,
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

/// Whether anything is heard of whoever works at a step. Nobody is ended for silence (I9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SignsOfLife {
    /// It was heard not long ago.
    #[default]
    Heard,
    /// Its heartbeats are missing.
    Missing,
    /// Nothing was heard for so long that somebody should look.
    Stalled,
}

/// Heartbeats in a row that must be missing: one that is late says nothing.
pub const MISSED_HEARTBEATS: u32 = 3;

impl SignsOfLife {
    /// Returns what an agent that was last heard so long ago gives of signs, and in how long that may be another thing.
    pub fn of(
        silent_for: Duration,
        heartbeat: Option<Duration>,
        stalled_after: Duration,
    ) -> (SignsOfLife, Option<Duration>) {
        let missing_after = heartbeat.map(|every| every.saturating_mul(MISSED_HEARTBEATS));
        let is_missing = missing_after.is_some_and(|after| silent_for >= after);
        if silent_for >= stalled_after {
            return (SignsOfLife::Stalled, None);
        }
        let until_stalled = stalled_after - silent_for;
        match missing_after.filter(|_| !is_missing) {
            Some(after) => (SignsOfLife::Heard, Some(until_stalled.min(after - silent_for))),
            None if is_missing => (SignsOfLife::Missing, Some(until_stalled)),
            None => (SignsOfLife::Heard, Some(until_stalled)),
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_heartbeats_must_be_missing_and_then_it_stalls() {
        let seconds = Duration::from_secs;
        let of = |silent, heartbeat: Option<u64>, stalled| {
            let (signs, changes) = SignsOfLife::of(seconds(silent), heartbeat.map(seconds), seconds(stalled));
            (signs, changes.map(|in_time| in_time.as_secs()))
        };
        for (silent, heartbeat, stalled, expected) in [
            (0, None, 1800, (SignsOfLife::Heard, Some(1800))),
            (1799, None, 1800, (SignsOfLife::Heard, Some(1))),
            (1800, None, 1800, (SignsOfLife::Stalled, None)),
            (0, Some(30), 1800, (SignsOfLife::Heard, Some(90))),
            (89, Some(30), 1800, (SignsOfLife::Heard, Some(1))),
            (90, Some(30), 1800, (SignsOfLife::Missing, Some(1710))),
            (1800, Some(30), 1800, (SignsOfLife::Stalled, None)),
            // Whoever is content with less hears of it first.
            (50, Some(30), 60, (SignsOfLife::Heard, Some(10))),
            (60, Some(30), 60, (SignsOfLife::Stalled, None)),
        ] {
            assert_eq!(of(silent, heartbeat, stalled), expected, "{silent} {heartbeat:?} {stalled}");
        }
    }
}
