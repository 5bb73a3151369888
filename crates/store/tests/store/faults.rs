//! Failing calls, one rule a test: each fails when its rule is taken out.

use std::io;

use rekindle_domain::event::{CancelReason, RunCancelRequested, SessionDeleted};
use rekindle_store::AppendError;
use rekindle_store::commit::{Append, Commits, Limits};
use rekindle_store::offline::Offline;
use rekindle_testkit::rng::Rng;
use rekindle_testkit::sim::{Fault, FaultKind, Faults, OpKind};
use std::sync::Arc;

use crate::common::{Home, LIMITS, marked, markers, open};

/// Cuts the power many times and returns the markers of the first session each time.
fn after_power_cuts(home: &Home, check: impl Fn(Vec<u64>)) {
    for seed in 0..200 {
        let image = home.disk.power_cut(&mut Rng::new(seed));
        open(&image, &home.clock).expect("the home opens after a power cut");
        check(markers(&image, home.sessions[0]));
    }
}

// I1
#[test]
fn a_failed_sync_is_not_asked_again_but_written_anew() {
    let home = Home::with_sessions(1, 2);
    home.disk.inject(Fault::once(FaultKind::Eio, 0).on(&[OpKind::Sync]).at("/wal/"));
    home.append(100).expect("a new segment takes it");
    home.append(101).expect("and goes on");
    after_power_cuts(&home, |markers| assert_eq!(markers, [0, 1, 100, 101]));
}

#[test]
fn a_disk_that_cannot_sync_at_all_says_so_and_recovers_without_a_restart() {
    let home = Home::with_sessions(1, 1);
    home.disk.inject(Fault::sticky(FaultKind::Eio, 0).on(&[OpKind::Sync, OpKind::SyncDir]));
    let error = home.append(100).expect_err("nothing can be made durable");
    assert!(matches!(error, AppendError::OutcomeUnknown(_)), "{error}");
    assert!(matches!(home.append(101), Err(AppendError::Storage(_))), "later ones never reach the disk");
    home.disk.clear_faults();
    home.append(102).expect("the disk is back");
    // What was refused is gone for good, and so is what was unknown: the new segment leaves it out.
    after_power_cuts(&home, |markers| assert_eq!(markers, [0, 102]));
}

// I12
#[test]
fn a_full_disk_refuses_and_goes_on_when_there_is_room() {
    let home = Home::with_sessions(1, 1);
    home.disk.set_capacity(Some(0));
    let mut refused = Vec::new();
    let mut accepted = Vec::new();
    for marker in 100..200 {
        match home.store.append(Append::durable(home.sessions[0], vec![marked(marker, 300, None)])) {
            Ok(_) => accepted.push(marker),
            Err(AppendError::StorageFull(_)) => refused.push(marker),
            Err(other) => panic!("a full disk is not {other}"),
        }
    }
    assert!(!refused.is_empty(), "the reserved room of a segment is not endless");
    assert!(refused.len() + accepted.len() == 100);
    home.disk.set_capacity(None);
    home.store.committer().tick();
    home.append(999).expect("there is room again");
    let expected: Vec<u64> = [0].into_iter().chain(accepted).chain([999]).collect();
    after_power_cuts(&home, |markers| assert_eq!(markers, expected));
}

// I13
#[test]
fn cancel_and_deletion_go_through_on_a_full_disk() {
    let home = Home::with_sessions(2, 1);
    home.disk.set_capacity(Some(0));
    let fill = |marker| home.store.append(Append::durable(home.sessions[0], vec![marked(marker, 300, None)]));
    assert!((100..200).any(|marker| fill(marker).is_err()), "the disk is full");
    let cancel =
        RunCancelRequested { run_id: None, by: None, why: CancelReason::StopAll, dropped: Vec::new() };
    home.disk.set_capacity(Some(
        home.disk.paths().iter().map(|path| home.disk.read_file(path).unwrap_or_default().len() as u64).sum(),
    ));
    home.store.append(Append::durable(home.sessions[0], vec![cancel.into()])).expect("a cancel goes through");
    assert!(fill(300).is_err(), "other records still do not");
    let deleted = SessionDeleted::default().into();
    home.store.append(Append::durable(home.sessions[1], vec![deleted])).expect("a deletion goes through");
}

#[test]
fn short_writes_are_finished() {
    let home = Home::with_sessions(1, 0);
    for marker in 0..40 {
        home.disk.inject(Fault::once(FaultKind::ShortWrite, marker % 3));
        home.append(marker).expect("the rest is written");
    }
    let expected: Vec<u64> = (0..40).collect();
    after_power_cuts(&home, |markers| assert_eq!(markers, expected));
}

#[test]
fn a_short_write_and_then_no_room_leaves_no_half_record() {
    let home = Home::with_sessions(1, 1);
    home.disk.inject(Fault::once(FaultKind::ShortThenNoSpace, 0).at("/wal/"));
    let error = home.append(100).expect_err("no room");
    assert!(matches!(error, AppendError::StorageFull(_)), "{error}");
    home.append(101).expect("the next one fits");
    after_power_cuts(&home, |markers| assert_eq!(markers, [0, 101]));
}

#[test]
fn interrupted_calls_are_made_again() {
    let home = Home::with_sessions(1, 0);
    for after in 0..12 {
        home.disk.inject(Fault::once(FaultKind::Interrupted, after).with_reads());
    }
    for marker in 0..12 {
        home.append(marker).expect("a signal is no failure");
    }
    assert_eq!(home.disk.faults_struck(), 12);
    home.store.snapshot(home.sessions[0]).expect("nor here");
}

#[test]
fn a_file_system_gone_read_only_refuses_writes_and_serves_reads() {
    let home = Home::with_sessions(1, 3);
    home.disk.inject(Fault::sticky(FaultKind::ReadOnly, 0));
    let error = home.append(100).expect_err("nothing can be written");
    assert!(matches!(error, AppendError::OutcomeUnknown(_) | AppendError::Storage(_)), "{error}");
    let reader = home.store.reader(home.sessions[0]).expect("reading works");
    assert_eq!(reader.last(reader.len(), 2).expect("reading works").len(), 2);
    let offline = Offline::open(Arc::new(home.disk.clone()), "/home").expect("looking works");
    assert_eq!(offline.sessions().expect("listing works"), home.sessions);
}

// I1, I2
#[test]
fn a_session_log_that_cannot_be_written_is_behind_and_served_from_the_write_ahead_log() {
    let home = Home::with_sessions(2, 1);
    let path = format!("{}.messages", home.sessions[0]);
    home.disk.set_faults(Fault::sticky(FaultKind::Eio, 0).at(&path));
    for marker in 100..105 {
        home.append(marker).expect("the write-ahead log has it");
    }
    assert_eq!(markers(&home.disk, home.sessions[0]), [0], "the file could not be written");
    let offline = Offline::open(Arc::new(home.disk.clone()), "/home").expect("looking works");
    let loaded = offline.load(home.sessions[0], rekindle_store::Want::Status).expect("it is served");
    assert_eq!(loaded.state.last_seq, 7);
    home.store.committer().checkpoint().expect_err("no checkpoint passes it");
    after_power_cuts(&home, |markers| assert_eq!(markers, [0, 100, 101, 102, 103, 104]));
    home.disk.clear_faults();
    home.store.committer().tick();
    home.store.committer().checkpoint().expect("it is rewritten");
    assert_eq!(markers(&home.disk, home.sessions[0]), [0, 100, 101, 102, 103, 104]);
    after_power_cuts(&home, |markers| assert_eq!(markers, [0, 100, 101, 102, 103, 104]));
}

// I1
// I12
#[test]
fn of_very_many_logs_written_at_once_only_those_that_fail_are_behind() {
    const LOGS: u64 = 300;
    let home = Home::with_limits(Limits { group_bytes: 1 << 20, ..LIMITS }, LOGS, 1);
    for failing in 0..5 {
        home.disk
            .inject(Fault::once(FaultKind::Eio, failing * 50).on(&[OpKind::Write]).at(".messages.jsonl"));
    }
    let append = |marker| move |session: &_| Append::durable(*session, vec![marked(marker, 20, None)]);
    for marker in [100, 101] {
        let outcomes = home.store.committer().append_all(home.sessions.iter().map(append(marker)).collect());
        assert!(outcomes.iter().all(Result::is_ok), "the write-ahead log has them all");
    }
    assert_eq!(home.disk.faults_struck(), 5);
    let image = home.disk.power_cut(&mut Rng::new(1));
    open(&image, &home.clock).expect("the home opens after a power cut");
    for session in &home.sessions {
        assert_eq!(markers(&image, *session), [0, 100, 101], "{session}");
    }
}

#[test]
fn a_session_log_that_cannot_be_synced_keeps_the_write_ahead_log() {
    let home = Home::with_sessions(1, 1);
    let path = format!("{}.messages", home.sessions[0]);
    home.append(100).expect("fine");
    home.disk.set_faults(Fault::once(FaultKind::Eio, 0).on(&[OpKind::Sync]).at(&path));
    home.store.committer().checkpoint().expect("rewritten into a new file");
    home.append(101).expect("fine");
    after_power_cuts(&home, |markers| assert_eq!(markers, [0, 100, 101]));
}

// I1, I14
#[test]
fn a_log_whose_write_back_failed_before_a_restart_is_written_again() {
    let home = Home::with_sessions(1, 1);
    let path = format!("{}.messages", home.sessions[0]);
    home.append(100).expect("fine");
    // The sync fails, the rewriting too; the pages stay readable, and the kernel calls them clean.
    home.disk.set_faults(Fault::sticky(FaultKind::Eio, 0).on(&[OpKind::Sync]).at(&path));
    home.store.committer().checkpoint().expect_err("it stays behind");
    home.disk.clear_faults();
    let killed = home.disk.process_kill(&mut Rng::new(1));
    let home = home.reopen(killed);
    after_power_cuts(&home, |markers| assert_eq!(markers, [0, 100]));
}

#[test]
fn a_vanished_directory_of_sessions_loses_nothing_new() {
    let home = Home::with_sessions(1, 1);
    home.store.committer().checkpoint().expect("fine");
    for path in home.disk.paths() {
        if path.starts_with("/home/sessions") {
            home.disk.remove(path);
        }
    }
    let new = rekindle_domain::id::SessionId::mint(99, 99);
    home.store.create(new).expect("fine");
    home.store
        .append(Append::durable(new, vec![crate::common::created(), marked(1, 5, None)]))
        .expect("recorded");
    let home = home.reopen_same();
    assert_eq!(markers(&home.disk, new), [1], "what came after is there");
    let old = home.store.load(home.sessions[0], rekindle_store::Want::Status);
    let announced = match old {
        Ok(loaded) => loaded.damage.is_some(),
        Err(_) => home.store.recovered().sessions.iter().any(|(id, done)| {
            *id == home.sessions[0] && matches!(done, rekindle_store::Completion::Damaged(_))
        }),
    };
    assert!(announced, "what is missing is announced (I12)");
}

// I1
#[test]
fn a_session_log_that_someone_removed_is_written_anew() {
    let home = Home::with_sessions(1, 2);
    home.disk.remove(home.store.layout().log(home.sessions[0]));
    home.append(100).expect("the open file takes it");
    home.store.committer().checkpoint().expect("it is written anew before the write-ahead log goes");
    after_power_cuts(&home, |markers| assert_eq!(markers, [0, 1, 100]));
    // Once no descriptor and no write-ahead log has it, it is gone; nothing is made up in its place.
    home.disk.remove(home.store.layout().log(home.sessions[0]));
    home.append(101).expect("the write-ahead log takes it");
    home.store.committer().checkpoint().expect_err("but nothing can be brought up to date");
    let home = home.reopen_same();
    assert!(
        home.store
            .recovered()
            .sessions
            .iter()
            .any(|(_, done)| matches!(done, rekindle_store::Completion::Damaged(_)))
    );
}

#[test]
fn a_vanished_write_ahead_log_is_noticed_before_anything_is_acknowledged() {
    let home = Home::with_sessions(1, 1);
    for path in home.disk.paths() {
        if path.starts_with("/home/wal") {
            home.disk.remove(path);
        }
    }
    // The open descriptor still takes writes; nobody would ever read them.
    home.append(100).expect("a new segment takes it");
    after_power_cuts(&home, |markers| assert_eq!(markers.last(), Some(&100)));
}

#[test]
fn random_faults_never_make_a_store_panic_or_stick() {
    for seed in 0..60 {
        let home = Home::with_sessions(3, 1);
        home.disk.set_faults(Faults::random(seed, 300).with_reads());
        for marker in 0..40 {
            let _ = home.append(100 + marker);
            let _ = home.store.snapshot(home.sessions[1]);
            home.store.committer().tick();
        }
        home.disk.clear_faults();
        home.store.committer().tick();
        home.append(999).expect("it goes on once the disk is well");
        let image = home.disk.power_cut(&mut Rng::new(seed));
        open(&image, &home.clock).expect("the home opens");
        let markers = markers(&image, home.sessions[0]);
        assert_eq!((markers.first(), markers.last()), (Some(&0), Some(&999)), "seed {seed}");
    }
}

#[test]
fn errors_name_the_remedy() {
    let full = AppendError::StorageFull(Arc::new(io::ErrorKind::StorageFull.into()));
    assert!(full.to_string().contains("free some room"));
    let unknown = AppendError::OutcomeUnknown(Arc::new(io::ErrorKind::Other.into()));
    assert!(unknown.to_string().contains("idempotency key") && !unknown.is_certain());
}
