//! Kept snapshots: a session as of one record, kept on purpose. When one is due, which ones go, and what one says.
//!
//! Messages are in the log, up to the record that a snapshot names, so a snapshot is small. The state cache beside the log is
//! another thing: it is replaced all the time, and nobody misses it.

mod policy;

use std::collections::HashSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::blob_id::BlobId;
use crate::chain::ChainHash;
use crate::event::Event;
pub use crate::event::SnapshotReason;
use crate::id::SessionId;
use crate::session::SessionState;
pub use crate::snapshot_name::{BadSnapshotName, SnapshotName};
use crate::time::Timestamp;
pub use policy::{Activity, Policy};

/// The version of the format that this code writes.
pub const KEPT_SNAPSHOT_VERSION: u32 = 1;

/// A session as of one record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeptSnapshot {
    /// The format's version, first in the file so that a reader can stop there.
    pub version: u32,
    /// The session.
    pub session_id: SessionId,
    /// The last record it has taken in.
    pub seq: u64,
    /// That record's hash: it names the history up to there.
    pub h: Option<ChainHash>,
    /// Why it was taken.
    pub reason: SnapshotReason,
    /// When.
    pub created_at: Timestamp,
    /// The files of the working directory at that time, if they were captured.
    pub tree: Option<BlobId>,
    /// What the session was: who answers, where its conversation picks up, settings, the run under way, waits, usage.
    pub state: SessionState,
    /// What a newer version keeps in a snapshot; kept when rewritten.
    #[serde(flatten)]
    pub extra: serde_json::Map<String, serde_json::Value>,
}

impl KeptSnapshot {
    /// Returns the snapshot of a session as it is.
    pub fn new(
        state: SessionState,
        reason: SnapshotReason,
        now: Timestamp,
        tree: Option<BlobId>,
    ) -> KeptSnapshot {
        KeptSnapshot {
            version: KEPT_SNAPSHOT_VERSION,
            session_id: state.id,
            seq: state.last_seq,
            h: state.last_hash,
            reason,
            created_at: now,
            tree,
            state,
            extra: serde_json::Map::new(),
        }
    }
}

/// How long snapshots are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// The newest so many; never less than one.
    pub keep: usize,
    /// Those younger than this; all, if nothing is said.
    pub max_age: Option<Duration>,
}

impl Default for Retention {
    fn default() -> Retention {
        Retention { keep: 10, max_age: None }
    }
}

impl Retention {
    /// Returns those of a session's snapshots that are to go: beyond the number, or too old, and named by nobody. The newest one
    /// stays whatever its age: it may be all there is.
    pub fn expired(
        &self,
        snapshots: &[(SnapshotName, Timestamp)],
        named: &HashSet<SnapshotName>,
        now: Timestamp,
    ) -> Vec<SnapshotName> {
        let mut newest_first: Vec<_> = snapshots.to_vec();
        newest_first.sort_unstable_by_key(|(name, _)| std::cmp::Reverse(*name));
        let is_old = |taken: Timestamp| {
            self.max_age.is_some_and(|most| u128::from(now.millis_since(taken)) > most.as_millis())
        };
        let is_expired = |(index, (_, taken)): &(usize, (SnapshotName, Timestamp))| {
            *index >= self.keep.max(1) || (*index > 0 && is_old(*taken))
        };
        let expired = newest_first.into_iter().enumerate().filter(is_expired);
        expired.map(|(_, (name, _))| name).filter(|name| !named.contains(name)).collect()
    }
}

/// Kinds of records that say nothing of the session that a snapshot would have to keep.
const NOT_WORTH_KEEPING: [&str; 5] =
    ["snapshot.created", "snapshot.failed", "snapshot.restored", "run.checkpoint", "status.derived"];

/// Tells whether a record gives a reason to take another snapshot: records about snapshots themselves do not, or a session in which
/// nothing goes on would be kept for ever anew.
pub fn is_worth_keeping(event: &Event<'_>) -> bool {
    !NOT_WORTH_KEEPING.contains(&event.name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{SnapshotCreated, StatusDerived};

    fn name(seq: u64, number: u32) -> SnapshotName {
        SnapshotName { seq, number }
    }

    fn minutes(minutes: i64) -> Timestamp {
        Timestamp::from_millis(minutes * 60_000)
    }

    #[test]
    fn snapshots_go_when_they_are_too_many_or_too_old_but_never_the_newest() {
        let taken: Vec<_> = (1..=5).map(|n| (name(10 * n, 1), minutes(10 * n as i64))).collect();
        let nobody = HashSet::new();
        let expired = |keep, max_age: Option<u64>, now| {
            let retention = Retention { keep, max_age: max_age.map(|age| Duration::from_secs(age * 60)) };
            retention.expired(&taken, &nobody, minutes(now)).iter().map(|name| name.seq).collect::<Vec<_>>()
        };
        for (keep, max_age, now, gone) in [
            (10, None, 1_000_000, vec![]),
            (3, None, 50, vec![20, 10]),
            (0, None, 50, vec![40, 30, 20, 10]),
            (10, Some(25), 50, vec![20, 10]),
            (10, Some(30), 50, vec![10]),
            (2, Some(30), 50, vec![30, 20, 10]),
            (10, Some(1), 1_000_000, vec![40, 30, 20, 10]),
            // The clock was set back: nothing is older than it is young.
            (10, Some(1), 0, vec![]),
        ] {
            assert_eq!(expired(keep, max_age, now), gone, "keep {keep}, age {max_age:?}, at {now}");
        }
        let named = HashSet::from([name(10, 1)]);
        let retention = Retention { keep: 3, max_age: None };
        assert_eq!(retention.expired(&taken, &named, minutes(50)), [name(20, 1)], "a named one stays");
        assert!(retention.expired(&[], &named, minutes(50)).is_empty());
    }

    #[test]
    fn a_snapshot_is_no_reason_for_the_next() {
        assert!(!is_worth_keeping(&SnapshotCreated::default().into()));
        assert!(!is_worth_keeping(&StatusDerived { status: "idle".into() }.into()));
        assert!(is_worth_keeping(&crate::event::SessionClosed::default().into()));
    }

    #[test]
    fn a_snapshot_says_what_the_session_was_and_keeps_what_it_does_not_know() {
        let state = SessionState::empty("sess_1".parse().expect("an id"));
        let snapshot = KeptSnapshot::new(state, SnapshotReason::Request, minutes(1), None);
        let text = serde_json::to_string(&snapshot).expect("text");
        assert!(
            text.starts_with(r#"{"version":1,"session_id":"sess_1","seq":0,"h":null,"reason":"request","#),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<KeptSnapshot>(&text).expect("a snapshot"), snapshot);
        let newer = text.replacen(r#""reason":"request""#, r#""reason":"whim","mood":"fine""#, 1);
        let read: KeptSnapshot = serde_json::from_str(&newer).expect("a snapshot");
        assert_eq!((read.reason, read.extra["mood"].as_str()), (SnapshotReason::Unknown, Some("fine")));
    }
}
