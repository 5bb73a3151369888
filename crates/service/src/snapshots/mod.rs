//! The manager of kept snapshots: takes them at the end of runs, now and then while something happens, when the daemon leaves, and
//! when somebody asks; and lets go of old ones. On a thread of its own, from what is in memory: nobody who appends or asks for
//! anything else waits for it, and one that fails is told and tried again.

mod inbox;
mod metrics;
#[cfg(test)]
mod tests;
mod unsaved;
mod view;

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use rekindle_domain::blob_id::BlobId;
use rekindle_domain::event::{Compression, SnapshotFailed};
use rekindle_domain::id::SessionId;
use rekindle_domain::kept_snapshot::{KeptSnapshot, Policy, SnapshotName, SnapshotReason};
use rekindle_domain::session::SessionState;
use rekindle_domain::time::{Clock, Timestamp};
use rekindle_store::commit::{Append, Current};
use rekindle_store::kept_snapshots::{Kept, KeptSnapshots, SnapshotError, SnapshotFile};
use rekindle_store::{KeepError, Store};

pub(crate) use self::inbox::SnapshotInbox;
pub(crate) use self::metrics::SnapshotCounts;
use self::unsaved::{Due, Unsaved};
pub use self::view::{snapshot_detail, snapshot_list, snapshot_view};
use crate::error::{Result, ServiceError, chain};
use crate::lock::locked;
use crate::session_span::session_span;
use crate::test_knobs::{crash_point, hurried};
use crate::ticks;

/// How long after the end of a run its snapshot is taken: what belongs to the end is recorded by then, and so are the ends of other
/// runs, which share a sync. Before the state cache is written, so that this has the record of the snapshot too.
const SETTLED_AFTER: Duration = Duration::from_millis(500);

/// Snapshots that are taken together, and share a sync of the write-ahead log.
const AT_ONCE: usize = 64;

/// How long to rest after some were taken, in what that took: a twentieth of the time is theirs, which whoever appends hardly notices.
const REST: u32 = 19;

/// How long a daemon that leaves goes on taking snapshots: a thousand take a second or two on a usual disk.
const LEFT_WITHIN: Duration = Duration::from_secs(5);

/// The manager of the kept snapshots of a home.
pub(crate) struct Snapshots {
    store: Arc<Store>,
    clock: Arc<dyn Clock>,
    policy: Policy,
    inbox: Arc<SnapshotInbox>,
    pub(crate) counts: SnapshotCounts,
    /// What was told of sessions whose snapshot failed: the same is not told again.
    told: Mutex<HashMap<SessionId, String>>,
    /// Held by whoever takes those that are due: whoever leaves waits for it.
    working: Mutex<()>,
}

impl Snapshots {
    /// Makes the manager of a home's snapshots; from now on what is appended is noted.
    pub(crate) fn new(store: Arc<Store>, clock: Arc<dyn Clock>, policy: Policy) -> Snapshots {
        let inbox: Arc<SnapshotInbox> = Arc::default();
        store.observe(inbox.clone());
        let (counts, told, working) = Default::default();
        Snapshots { store, clock, policy, inbox, counts, told, working }
    }

    /// Begins to take snapshots by itself; returns at once.
    pub(crate) fn begin(self: &Arc<Snapshots>) -> io::Result<()> {
        let (weak, inbox) = (Arc::downgrade(self), self.inbox.clone());
        let work = move || {
            while inbox.wait() {
                let Some(snapshots) = weak.upgrade() else { return };
                let begun = Instant::now();
                if snapshots.work(ticks::now()) {
                    drop(snapshots);
                    inbox.rest(begun.elapsed() * REST);
                }
            }
        };
        std::thread::Builder::new().name("snapshots".into()).spawn(work).map(drop)
    }

    /// Takes a snapshot at once.
    pub(crate) fn take_now(
        &self,
        session: SessionId,
        reason: SnapshotReason,
    ) -> Result<(SnapshotFile, KeptSnapshot)> {
        self.take_sparing(session, reason, None)
    }

    /// Takes a snapshot of a session that is about to be taken back to another one, which is not let go of. That none can be taken
    /// is told, and holds nobody up: the session's log has everything.
    pub(crate) fn take_before_restore(&self, session: SessionId, restored: SnapshotName) {
        let taken = self.take_sparing(session, SnapshotReason::BeforeRestore, Some(restored));
        if let Err(error) = taken {
            session_span(session)
                .in_scope(|| tracing::warn!("no snapshot was taken before a restore: {}", error.text()));
        }
    }

    fn take_sparing(
        &self,
        session: SessionId,
        reason: SnapshotReason,
        spared: Option<SnapshotName>,
    ) -> Result<(SnapshotFile, KeptSnapshot)> {
        self.inbox.with(|unsaved| unsaved.forget(session));
        let current = self.store.open_session(session)?;
        if let Some(damage) = &current.damage {
            return Err(ServiceError::damaged(damage));
        }
        let snapshot = self.snapshot(&current.state, reason);
        let policy = self.policy_of(&current.state);
        let pair = [(snapshot, policy.compression)];
        let outcome = self.store.keep_snapshots(&pair).pop();
        let [(snapshot, _)] = pair;
        match outcome {
            Some(Ok(kept)) => {
                self.note_kept((session, reason), &kept, policy, spared);
                Ok((kept.file, snapshot))
            }
            Some(Err(error)) => {
                self.counts.failed.inc();
                // What has happened is kept when there is room again.
                self.put_back(session, SnapshotReason::Interval, ticks::after(ticks::now(), policy.interval));
                Err(error.into())
            }
            None => Err(ServiceError::leaving()),
        }
    }

    /// Takes a snapshot of every session in which something has happened since its last one, as far as that is wanted and time
    /// allows. From here on none are taken by themselves.
    pub(crate) fn leave(&self) {
        self.inbox.close();
        let _nobody_else = locked(&self.working);
        let mut due = self.inbox.with(Unsaved::take_all);
        for one in due.iter_mut().filter(|one| one.reason != SnapshotReason::RunEnd) {
            one.reason = SnapshotReason::Exit;
        }
        let begun = Instant::now();
        let mut left = due.len();
        for some in chunks(due) {
            if begun.elapsed() >= LEFT_WITHIN {
                tracing::warn!(
                    left,
                    "some sessions were left without a snapshot: taking them would have taken too long"
                );
                return;
            }
            left -= some.len();
            self.take(some, begun);
        }
    }

    /// Does what is to be done at a moment: looks at sessions in which something has happened, and takes some of the snapshots that are
    /// due; tells whether there were any.
    fn work(&self, now: Instant) -> bool {
        let _one_at_a_time = locked(&self.working);
        for (session, reason) in self.inbox.with(|unsaved| unsaved.unseen()) {
            let Some(current) = self.look(session) else {
                self.inbox.with(|unsaved| unsaved.forget(session));
                continue;
            };
            let soon = reason != SnapshotReason::Interval;
            let patience = match soon {
                true => hurried("SNAPSHOT_AFTER", SETTLED_AFTER),
                false => hurried("SNAPSHOT_EVERY", self.policy_of(&current.state).interval),
            };
            let at_rest = (soon && current.state.open_run().is_none()).then_some(current.state);
            self.inbox.with(|unsaved| unsaved.schedule(session, ticks::after(now, patience), at_rest));
        }
        let due = self.inbox.with(|unsaved| unsaved.take_due(now, AT_ONCE));
        let any = !due.is_empty();
        self.take(due, now);
        any
    }

    /// Returns a session of which a snapshot can be taken.
    fn look(&self, session: SessionId) -> Option<Current> {
        let current = self.store.open_session(session);
        current.ok().filter(|current| !current.state.deleted && current.damage.is_none())
    }

    /// Takes snapshots that are due, where they are wanted.
    fn take(&self, due: Vec<Due>, now: Instant) {
        let mut snapshots: Vec<(KeptSnapshot, Compression)> = Vec::with_capacity(due.len());
        let mut policies = Vec::with_capacity(due.len());
        for Due { session, reason, at_rest } in due {
            let Some(current) = self.look(session) else { continue };
            let policy = self.policy_of(&current.state);
            if !policy.enabled || reason == SnapshotReason::Exit && !policy.on_exit {
                continue;
            }
            // In the middle of the next run it is worth less than before it.
            let state = at_rest.filter(|_| current.state.open_run().is_some()).unwrap_or(current.state);
            snapshots.push((self.snapshot(&state, reason), policy.compression));
            policies.push(policy);
        }
        if snapshots.is_empty() {
            return;
        }
        crash_point("snapshot.before");
        let kept = self.store.keep_snapshots(&snapshots);
        crash_point("snapshot.after");
        for ((kept, (snapshot, _)), policy) in kept.into_iter().zip(snapshots).zip(policies) {
            let (session, reason) = (snapshot.session_id, snapshot.reason);
            match kept {
                Ok(kept) => self.note_kept((session, reason), &kept, policy, None),
                // It is going, or nothing can be added to it.
                Err(KeepError::Unusable(_)) => {}
                Err(error) => {
                    self.put_back(session, reason, ticks::after(now, policy.interval));
                    self.note_failed(session, reason, &error);
                }
            }
        }
    }

    fn snapshot(&self, state: &SessionState, reason: SnapshotReason) -> KeptSnapshot {
        KeptSnapshot::new(state.clone(), reason, self.clock.now(), tree_of(state))
    }

    fn policy_of(&self, state: &SessionState) -> Policy {
        self.policy.for_session(state.options.persistence.as_ref())
    }

    /// Notes one that was kept, and lets go of old ones, but for one that is spared.
    fn note_kept(
        &self,
        (session, reason): (SessionId, SnapshotReason),
        kept: &Kept,
        policy: Policy,
        spared: Option<SnapshotName>,
    ) {
        self.counts.add(reason, kept.file.size, kept.took);
        locked(&self.told).remove(&session);
        if let Err(error) = self.let_go(session, policy, spared) {
            let _in_session = session_span(session).entered();
            tracing::warn!("old snapshots cannot be removed: {}", chain(&error));
        }
    }

    /// Tells of a snapshot that could not be kept, unless the same was told before.
    fn note_failed(&self, session: SessionId, reason: SnapshotReason, error: &KeepError) {
        self.counts.failed.inc();
        // Its words name another file each time.
        let trouble = error.io().map_or_else(|| error.to_string(), |error| error.kind().to_string());
        let before = locked(&self.told).insert(session, trouble.clone());
        if before.is_some_and(|before| before == trouble) {
            return;
        }
        let error = chain(error);
        session_span(session).in_scope(|| tracing::warn!("no snapshot could be kept: {error}"));
        // On a full disk there may be no room for this either; the daemon's log has it.
        let failed = SnapshotFailed { error: error.into(), reason: Some(reason) };
        let _ = self.store.append(Append::quick(session, vec![failed.into()]));
    }

    /// Has a snapshot that failed tried again.
    fn put_back(&self, session: SessionId, reason: SnapshotReason, due: Instant) {
        self.inbox.with(|unsaved| unsaved.put_back(session, reason, due));
    }

    /// Removes snapshots that are too many or too old.
    fn let_go(
        &self,
        session: SessionId,
        policy: Policy,
        spared: Option<SnapshotName>,
    ) -> Result<(), SnapshotError> {
        let files = self.store.kept_snapshots().list(session)?;
        let taken: Vec<_> = files.iter().map(|file| (file.name, timestamp(file.modified))).collect();
        let now = self.clock.now();
        let expired = |named: &HashSet<SnapshotName>| policy.retention.expired(&taken, named, now);
        // Most have nothing to let go of: then nobody has to know who names what.
        if expired(&HashSet::new()).is_empty() {
            return Ok(());
        }
        let Some(mut named) = self.named(session) else { return Ok(()) };
        named.extend(spared);
        let expired = expired(&named);
        if !expired.is_empty() {
            self.store.remove_snapshots(session, &expired)?;
        }
        Ok(())
    }

    /// Returns the snapshots of a session that a fork names: they stay, however old they are. None if that cannot be told.
    fn named(&self, session: SessionId) -> Option<HashSet<SnapshotName>> {
        let forked = self.store.forked_snapshots(session);
        forked.inspect_err(|error| tracing::warn!("forks cannot be searched for: {}", chain(error))).ok()
    }

    /// Returns the snapshots, to be looked at.
    pub(crate) fn kept(&self) -> KeptSnapshots {
        self.store.kept_snapshots()
    }

    /// Removes a snapshot.
    pub(crate) fn remove(&self, session: SessionId, name: SnapshotName) -> Result<()> {
        match self.store.remove_snapshots(session, &[name])? {
            0 => Err(SnapshotError::NotFound { session, name }.into()),
            _ => Ok(()),
        }
    }
}

impl Drop for Snapshots {
    fn drop(&mut self) {
        self.inbox.close();
    }
}

/// Returns the files of the working directory as of a state, if they were captured at the end of its latest run.
fn tree_of(state: &SessionState) -> Option<BlobId> {
    let ended = state.run.as_ref().filter(|run| run.end.is_some());
    ended?.checkpoints.end?.tree
}

/// Returns the parts of a list that are taken together.
fn chunks(due: Vec<Due>) -> impl Iterator<Item = Vec<Due>> {
    let mut due = due.into_iter();
    std::iter::from_fn(move || {
        let some: Vec<Due> = due.by_ref().take(AT_ONCE).collect();
        (!some.is_empty()).then_some(some)
    })
}

/// Returns a time of a file as ours.
fn timestamp(at: SystemTime) -> Timestamp {
    let millis = at.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_millis());
    Timestamp::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
}
