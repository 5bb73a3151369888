//! Forks: where a history may be cut, and what a session that goes on from there begins with.
//!
//! A cut is always between two runs: behind the append that ends one, or behind the beginning of a session. Half a turn is
//! nothing that another agent could go on from.

use crate::event::{ForkedFrom, Kind, Options, Provider, Restoring, SessionCreated};
use crate::id::RunId;
use crate::session::{Run, SessionState};
use crate::snapshot_name::SnapshotName;

/// The place at which a fork is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// Behind the newest run that has ended.
    End,
    /// Behind the end of this run.
    Run(RunId),
    /// Behind the last run that had ended by this record.
    Seq(u64),
}

/// What a record means for a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Whether a history may be cut here.
    pub boundary: Boundary,
    /// The next record belongs to the same append.
    pub more: bool,
}

/// A boundary between runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Boundary {
    /// A run ends: the cut is behind the append that says so.
    RunEnd,
    /// A session begins: the cut is right behind this record.
    Created,
    /// None.
    Within,
}

impl Mark {
    /// Returns the mark of a record of a kind.
    pub fn new(kind: &str, more: bool) -> Mark {
        let boundary = match Kind::from_name(kind) {
            Some(kind) if kind.ends_run() => Boundary::RunEnd,
            Some(Kind::SessionCreated) => Boundary::Created,
            _ => Boundary::Within,
        };
        Mark { boundary, more }
    }
}

/// Returns the record behind which a history is cut if it is to end at `through` at the latest; none if nothing of it is there.
///
/// A record in the middle of a run rounds down to the end of the run before. An append is never cut in half: the end of a run that is
/// at `through` brings the rest of its append along. `mark` tells of a record by its number, from `through` down.
pub fn cut_at<E>(
    through: u64,
    mut mark: impl FnMut(u64) -> Result<Option<Mark>, E>,
) -> Result<Option<u64>, E> {
    let mut oldest = None;
    for seq in (1..=through).rev() {
        let Some(mut found) = mark(seq)? else { break };
        match found.boundary {
            Boundary::Created => return Ok(Some(seq)),
            Boundary::RunEnd => {
                let mut end = seq;
                while found.more
                    && let Some(next) = mark(end + 1)?
                {
                    (end, found) = (end + 1, next);
                }
                return Ok(Some(end));
            }
            Boundary::Within => oldest = Some(seq),
        }
    }
    // A log of the earlier layout begins anywhere.
    Ok(oldest)
}

/// Tells whether a fork can go on from the own session of its parent's agent: the agent is the same, and its last turn was neither
/// cut nor cancelled, so that it remembers what the log has.
pub fn can_keep_agent_session(parent: &SessionState, fork: &Provider) -> bool {
    let own = &parent.provider;
    let is_same = (&own.profile, &own.agent, &own.command) == (&fork.profile, &fork.agent, &fork.command);
    let is_whole = |run: &Run| run.end.is_some() && run.cancel.is_none();
    let has_session = parent.agent.as_ref().is_some_and(|agent| agent.cursor.is_some());
    let is_there = !parent.deleted && parent.recovery.interruption.is_none();
    is_same && has_session && is_there && parent.run.as_ref().is_some_and(is_whole)
}

/// What a fork is to have that its parent has not; what is not named it takes over.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Wishes {
    /// Its title.
    pub title: Option<String>,
    /// Where its agent works.
    pub working_dir: Option<String>,
    /// Who answers.
    pub provider: Option<Provider>,
    /// Its settings.
    pub options: Option<Options>,
    /// Names of the variables that its agent gets.
    pub env_names: Option<Vec<String>>,
    /// The key of the caller who makes it.
    pub idempotency_key: Option<String>,
    /// The lasting name that it has from now on; a fork has none of its own.
    pub key: Option<String>,
    /// What its files are made before anything begins in it.
    pub restoring: Option<Restoring>,
    /// The kept snapshot that it goes on from, if one was named.
    pub snapshot: Option<SnapshotName>,
    /// It takes the parent's place, and the worktree that is the parent's with it.
    pub takes_place: bool,
}

/// Composes the first record of a fork: the parent's title, directory, agent, settings and names of variables as they are now,
/// unless something else is wished.
pub fn fork(parent: &SessionState, from: ForkedFrom, wishes: Wishes) -> SessionCreated<'static> {
    let root = parent.forked_from.map(|before| before.root());
    let stays_there = wishes.working_dir.as_ref().is_none_or(|place| *place == parent.working_dir);
    let worktree = stays_there.then(|| parent.worktree_of_fork(wishes.takes_place)).flatten();
    SessionCreated {
        parent: None,
        worktree: worktree.map(Box::new),
        title: wishes.title.unwrap_or_else(|| parent.title.clone()).into(),
        working_dir: wishes.working_dir.unwrap_or_else(|| parent.working_dir.clone()).into(),
        provider: wishes.provider.unwrap_or_else(|| parent.provider.clone()),
        options: wishes.options.unwrap_or_else(|| parent.options.clone()),
        env_names: wishes.env_names.unwrap_or_else(|| parent.env_names.clone()),
        idempotency_key: wishes.idempotency_key.map(Into::into),
        created_at: None,
        key: wishes.key.map(Into::into),
        imported_from: None,
        forked_from: Some(Box::new(ForkedFrom {
            root: root.filter(|root| *root != from.session_id),
            snapshot: wishes.snapshot,
            ..from
        })),
        restoring: wishes.restoring,
    }
}

#[cfg(test)]
mod tests;
