//! What a store counts: everything that became part of a log, once, and nothing that did not; and how its write-ahead log
//! and its disk stand.

use rekindle_domain::event::Kind;
use rekindle_domain::time::Clock;
use rekindle_store::AppendError;
use rekindle_store::commit::{Append, Commits, Expect};
use rekindle_testkit::sim::{Fault, FaultKind, OpKind};

use crate::common::{Home, created, marked, markers};

// I12
#[test]
fn what_was_committed_is_counted_once_and_what_was_refused_is_not() {
    let home = Home::with_sessions(2, 3);
    let (meter, session) = (home.store.meter(), home.sessions[0]);
    let counted = || [Kind::SessionCreated, Kind::AgentNotice].map(|kind| meter.records.of(kind));
    assert_eq!(counted(), [2, 6]);
    let refused = home.store.append(Append::durable(session, vec![marked(50, 10, None), created()]));
    assert!(matches!(refused, Err(AppendError::IllegalTransition(_))), "{refused:?}");
    let moved = Append { expect: Expect::LastSeq(99), ..Append::quick(session, vec![marked(51, 10, None)]) };
    assert!(home.store.append(moved).is_err());
    assert_eq!(counted(), [2, 6], "nothing of a list that was refused is counted");
    home.store
        .append(Append::quick(session, vec![marked(52, 10, None), marked(53, 10, None)]))
        .expect("taken");
    assert_eq!(counted(), [2, 8]);
    home.disk.set_capacity(Some(0));
    let mut taken = 0;
    for marker in 100..200 {
        let outcome = home.store.append(Append::durable(session, vec![marked(marker, 300, None)]));
        taken += u64::from(outcome.is_ok());
    }
    assert!(taken < 100 && meter.full.get() > 0, "the disk is full");
    assert_eq!(counted(), [2, 8 + taken]);
    // A log that found no room is behind, and catches up.
    home.disk.set_capacity(None);
    home.store.committer().tick();
    home.store.committer().checkpoint().expect("there is room again");
    assert_eq!(markers(&home.disk, session).len() as u64, 3 + 2 + taken, "as many as the log has");
}

#[test]
fn the_write_ahead_log_is_measured_from_its_last_checkpoint() {
    let home = Home::with_sessions(1, 0);
    let meter = home.store.meter();
    home.store.committer().checkpoint().expect("made");
    let (checkpoints, empty) = (meter.checkpoints.read().count, meter.wal_bytes.get());
    home.clock.advance(5_000);
    home.append(1).expect("appended");
    assert_eq!((meter.wal_segments.get(), meter.checkpoint_age(home.clock.now())), (1, 5_000));
    let one = meter.wal_bytes.get();
    assert!(one > empty && meter.syncs.read().count > 0);
    home.disk.inject(Fault::once(FaultKind::Eio, 0).on(&[OpKind::Sync]).at("/wal/"));
    home.append(2).expect("in a new segment");
    assert_eq!(meter.wal_segments.get(), 2);
    assert!(meter.wal_bytes.get() > one, "both are counted");
    home.store.committer().checkpoint().expect("made");
    assert_eq!((meter.wal_segments.get(), meter.checkpoint_age(home.clock.now())), (1, 0));
    assert_eq!((meter.checkpoints.read().count, meter.failed_checkpoints.get()), (checkpoints + 1, 0));
}

#[test]
fn trouble_of_the_disk_is_told_apart() {
    let home = Home::with_sessions(1, 1);
    let meter = home.store.meter();
    assert_eq!(meter.reserve_kept.get(), 1);
    home.disk.inject(Fault::sticky(FaultKind::Eio, 0).on(&[OpKind::Sync, OpKind::SyncDir]));
    assert!(matches!(home.append(10), Err(AppendError::OutcomeUnknown(_))));
    assert!(matches!(home.append(11), Err(AppendError::Storage(_))));
    assert!(home.store.committer().checkpoint().is_err());
    assert_eq!((meter.unknown.get(), meter.failed.get(), meter.full.get()), (1, 1, 0));
    assert_eq!(meter.failed_checkpoints.get(), 1);
    home.disk.clear_faults();
    home.append(12).expect("the disk is back");
    assert_eq!((meter.unknown.get(), meter.failed.get()), (1, 1));
}
