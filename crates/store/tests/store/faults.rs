//! Failing calls, one rule a test: each fails when its rule is taken out.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use rekindle_domain::event::{CancelReason, RunCancelRequested, RunCancelled, RunStarted, SessionDeleted};
use rekindle_domain::id::{BootId, HolderId, RunId, SessionId};
use rekindle_domain::line::{Draft, Source};
use rekindle_store::commit::{Append, Commits, Limits};
use rekindle_store::disk::Disk;
use rekindle_store::offline::Offline;
use rekindle_store::{AppendError, Completion, LoadError, Want};
use rekindle_testkit::rng::Rng;
use rekindle_testkit::sim::{Fault, FaultKind, Faults, OpKind, SimDisk};
use std::sync::Arc;

use crate::common::{Home, LIMITS, created, marked, markers, open};

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
    home.store
        .append(Append::quick(home.sessions[0], vec![marked(99, 30, None)]))
        .expect("the kernel has it");
    home.disk.inject(Fault::once(FaultKind::Eio, 0).on(&[OpKind::Sync]).at("/wal/"));
    home.append(100).expect("a new segment takes it, and what was not on disk before it");
    home.append(101).expect("and goes on");
    after_power_cuts(&home, |markers| assert_eq!(markers, [0, 1, 99, 100, 101]));
}

#[test]
fn a_disk_that_cannot_sync_at_all_says_so_and_recovers_without_a_restart() {
    let home = Home::with_sessions(1, 1);
    let mut expected = vec![0];
    // Each failed sync leaves something else on the disk: all of it, nothing, some blocks.
    for round in 1..12 {
        home.disk.inject(Fault::sticky(FaultKind::Eio, 0).on(&[OpKind::Sync, OpKind::SyncDir]));
        let error = home.append(round * 100).expect_err("nothing can be made durable");
        assert!(matches!(error, AppendError::OutcomeUnknown(_)), "{error}");
        let later = home.append(round * 100 + 1);
        assert!(matches!(later, Err(AppendError::Storage(_))), "later ones never reach the disk");
        home.disk.clear_faults();
        home.append(round * 100 + 2).expect("the disk is back");
        expected.push(round * 100 + 2);
        // What was refused is gone for good, and so is what was unknown: the new segment leaves it out.
        after_power_cuts(&home, |markers| assert_eq!(markers, expected));
    }
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
/// Wherever in a segment the disk becomes full.
#[test]
fn cancel_and_deletion_go_through_on_a_full_disk() {
    for size in 200..400 {
        end_work_on_a_full_disk(size);
    }
}

fn end_work_on_a_full_disk(size: usize) {
    let home = Home::with_sessions(2, 1);
    let run_id = RunId::mint(1, 1);
    let started = RunStarted {
        run_id,
        boot_id: BootId::mint(1, 1),
        machine_boot: None,
        message_id: None,
        attempt: 1,
        continues: None,
        origin_run_id: None,
        task_id: None,
    };
    home.store.append(Append::durable(home.sessions[0], vec![started.into()])).expect("started");
    home.disk.set_capacity(Some(0));
    let fill =
        |marker| home.store.append(Append::durable(home.sessions[0], vec![marked(marker, size, None)]));
    assert!((100..200).any(|marker| fill(marker).is_err()), "the disk is full");
    let cancel = RunCancelRequested {
        run_id: Some(run_id),
        by: None,
        why: CancelReason::StopAll,
        dropped: Vec::new(),
    };
    home.disk.set_capacity(Some(
        home.disk.paths().iter().map(|path| home.disk.read_file(path).unwrap_or_default().len() as u64).sum(),
    ));
    home.store.append(Append::durable(home.sessions[0], vec![cancel.into()])).expect("a cancel goes through");
    assert!(fill(300).is_err(), "other records still do not");
    let cancelled = Draft::from(RunCancelled { run_id, by: None });
    let agents = Draft { source: Some(Source(HolderId::mint(1, 1), 1, 0, 0)), ..cancelled.clone() };
    let outcome = home.store.append(Append::durable(home.sessions[0], vec![agents]));
    assert!(
        matches!(outcome, Err(AppendError::StorageFull(_))),
        "nor what an agent says: its journal has it"
    );
    home.store.append(Append::durable(home.sessions[0], vec![cancelled])).expect("the end of a run does");
    let deleted = SessionDeleted::default().into();
    home.store.append(Append::durable(home.sessions[1], vec![deleted])).expect("a deletion goes through");
    home.disk.set_capacity(None);
    fill(301).expect("with room everything does again");
    home.store.committer().tick();
    assert!(home.disk.read_file(home.store.layout().reserve()).is_some(), "and the reserve is back");
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

// I1
#[test]
fn a_write_that_cannot_be_taken_back_is_not_called_refused() {
    let home = Home::with_sessions(1, 1);
    home.disk.set_faults(Fault::sticky(FaultKind::Eio, 0).at("/wal/"));
    let error = home.append(100).expect_err("it cannot be written, nor cut off, nor left behind");
    assert!(matches!(error, AppendError::OutcomeUnknown(_)), "{error}");
    home.disk.clear_faults();
    home.append(101).expect("the disk is back");
    after_power_cuts(&home, |markers| assert_eq!(markers, [0, 101]));
}

// I1, I12
#[test]
fn of_a_group_that_did_not_fit_no_whole_append_is_left_either() {
    let home = Home::with_sessions(1, 1);
    let mut expected = vec![0];
    for round in 1..16 {
        let (session, marker) = (home.sessions[0], round * 100);
        home.store.append(Append::quick(session, vec![marked(marker, 5, None)])).expect("the kernel has it");
        expected.push(marker);
        // Some appends of the group are whole in the file when there is no more room.
        home.disk.set_faults(Fault::once(FaultKind::ShortThenNoSpace, 0).at("/wal/"));
        let append = |n| Append::durable(session, vec![marked(marker + n, 5, None)]);
        for outcome in home.store.committer().append_all((1..4).map(append).collect()) {
            assert!(matches!(outcome, Err(AppendError::StorageFull(_))), "{outcome:?}");
        }
        let image = home.disk.process_kill(&mut Rng::new(round));
        open(&image, &home.clock).expect("the home opens after a kill");
        assert_eq!(markers(&image, session), expected, "refused appends are not there");
        home.store.committer().sync().expect("the disk is well");
        after_power_cuts(&home, |markers| assert_eq!(markers, expected));
    }
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

/// Every file of a disk.
type Files = Vec<(PathBuf, Option<Vec<u8>>)>;

/// Everything a store does, with one call interrupted; returns what is on disk before and after a restart,
/// and whether a call was.
fn with_a_signal(after: u64) -> (Vec<Files>, bool) {
    let files = |disk: &SimDisk| -> Files {
        disk.paths().into_iter().map(|path| (path.clone(), disk.read_file(path))).collect()
    };
    let (disk, clock) = (SimDisk::new(7), Arc::default());
    disk.inject(Fault::once(FaultKind::Interrupted, after).with_reads());
    let store = open(&disk, &clock).expect("an empty home opens");
    let [kept, gone] = [SessionId::mint(1, 1), SessionId::mint(2, 2)];
    for session in [kept, gone] {
        store.create(session).expect("new");
        store.append(Append::durable(session, vec![created(), marked(1, 5, None)])).expect("recorded");
        store.snapshot(session).expect("a snapshot");
    }
    store.blobs().put(b"payload").expect("kept");
    disk.write_file(store.layout().history(gone).join("0.json"), b"{}");
    store.append(Append::quick(gone, vec![SessionDeleted::default().into()])).expect("recorded");
    store.remove(gone).expect("removed");
    store.committer().checkpoint().expect("a checkpoint");
    store.append(Append::durable(kept, vec![marked(2, 5, None)])).expect("recorded");
    let mut pictures = vec![files(&disk)];
    drop(store);
    let log = format!("/home/sessions/{kept}.messages.jsonl");
    let torn = [disk.read_file(&log).unwrap_or_default(), b"{".to_vec()].concat();
    disk.write_file(&log, &torn);
    let store = open(&disk, &clock).expect("it opens again");
    store.open_session(kept).expect("it opens");
    pictures.push(files(&disk));
    (pictures, disk.faults_struck() > 0)
}

#[test]
fn a_signal_at_any_call_changes_nothing() {
    let (expected, _) = with_a_signal(u64::MAX);
    for after in 0.. {
        let (found, struck) = with_a_signal(after);
        assert!(found == expected, "interrupted after {after} calls");
        if !struck {
            assert!(after > 100, "there are many calls");
            return;
        }
    }
}

#[test]
fn a_file_system_gone_read_only_refuses_writes_and_serves_reads() {
    let home = Home::with_sessions(1, 3);
    home.disk.inject(Fault::sticky(FaultKind::ReadOnly, 0));
    let error = home.append(100).expect_err("nothing can be written");
    assert!(matches!(error, AppendError::OutcomeUnknown(_) | AppendError::Storage(_)), "{error}");
    let reader = home.store.reader(home.sessions[0]).expect("reading works");
    assert_eq!(reader.last(reader.end(), 2).expect("reading works").len(), 2);
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
    let before = home.disk.ops();
    let offline = Offline::open(Arc::new(home.disk.clone()), "/home").expect("looking works");
    let loaded = offline.load(home.sessions[0], rekindle_store::Want::Status).expect("it is served");
    assert_eq!(loaded.state.last_seq, 7);
    assert_eq!(home.disk.ops(), before, "looking changes nothing");
    home.store.committer().checkpoint().expect_err("no checkpoint passes it");
    after_power_cuts(&home, |markers| assert_eq!(markers, [0, 100, 101, 102, 103, 104]));
    home.disk.clear_faults();
    let log = home.store.layout().log(home.sessions[0]);
    let short = home.disk.read_file(&log);
    home.append(105).expect("the write-ahead log has it");
    assert_eq!(home.disk.read_file(&log), short, "nothing is written behind a gap");
    home.store.committer().tick();
    home.store.committer().checkpoint().expect("it is rewritten");
    assert_eq!(markers(&home.disk, home.sessions[0]), [0, 100, 101, 102, 103, 104, 105]);
    after_power_cuts(&home, |markers| assert_eq!(markers, [0, 100, 101, 102, 103, 104, 105]));
}

// I1
// I12
#[test]
fn of_very_many_logs_written_at_once_only_those_that_fail_are_behind() {
    const LOGS: u64 = 300;
    let home = Home::with_limits(
        Limits { group_bytes: 1 << 20, segment_bytes: 1 << 20, open_logs: 1_000, ..LIMITS },
        LOGS,
        1,
    );
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
    let behind = home.sessions.iter().filter(|session| markers(&home.disk, **session) != [0, 100, 101]);
    assert_eq!(behind.count(), 5, "all others are written");
    let image = home.disk.power_cut(&mut Rng::new(1));
    open(&image, &home.clock).expect("the home opens after a power cut");
    for session in &home.sessions {
        assert_eq!(markers(&image, *session), [0, 100, 101], "{session}");
    }
    // Whichever thread a write failed on, no checkpoint passes it. The first to write waits, so that both do.
    let mut first = true;
    home.disk.set_observer(Box::new(move |op| {
        if op.touches(".messages.jsonl") && std::mem::take(&mut first) {
            std::thread::sleep(Duration::from_millis(50));
        }
    }));
    home.disk.set_faults(Fault::sticky(FaultKind::Eio, 0).on(&[OpKind::Write]).at(".messages.jsonl"));
    let outcomes = home.store.committer().append_all(home.sessions.iter().map(append(102)).collect());
    assert!(outcomes.iter().all(Result::is_ok), "the write-ahead log has them all");
    home.disk.clear_faults();
    home.store.committer().checkpoint().expect("all are rewritten");
    for session in &home.sessions {
        assert_eq!(markers(&home.disk, *session), [0, 100, 101, 102], "{session}");
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

// I1
#[test]
fn a_removal_that_failed_is_finished_and_no_checkpoint_passes_it() {
    let home = Home::with_sessions(2, 1);
    let session = home.sessions[0];
    home.store.snapshot(session).expect("a snapshot");
    home.store.append(Append::durable(session, vec![SessionDeleted::default().into()])).expect("recorded");
    home.disk.set_faults(Fault::once(FaultKind::Eio, 0).on(&[OpKind::Remove]).at("/home/sessions/"));
    home.store.remove(session).expect_err("a file cannot be removed");
    home.store.committer().checkpoint().expect_err("the write-ahead log is still needed");
    for seed in 0..100 {
        let store = open(&home.disk.power_cut(&mut Rng::new(seed)), &home.clock).expect("opens");
        match store.load(session, Want::Status) {
            Ok(loaded) => assert!(loaded.state.deleted && loaded.damage.is_none(), "{loaded:?}"),
            Err(error) => assert!(matches!(error, LoadError::NotFound(_)), "{error}"),
        }
    }
    home.store.committer().tick();
    home.store.committer().checkpoint().expect("it is removed");
    for seed in 0..100 {
        let image = home.disk.power_cut(&mut Rng::new(seed));
        drop(open(&image, &home.clock).expect("opens"));
        let name = session.to_string();
        assert!(!image.paths().iter().any(|path| path.to_string_lossy().contains(&name)), "nothing is left");
    }
}

#[test]
fn a_deletion_recorded_before_a_restart_is_finished_after_it() {
    let home = Home::with_sessions(2, 1);
    let [by_us, by_someone] = [home.sessions[0], home.sessions[1]];
    for session in [by_us, by_someone] {
        home.store.snapshot(session).expect("a snapshot");
        home.store
            .append(Append::durable(session, vec![SessionDeleted::default().into()]))
            .expect("recorded");
    }
    home.disk.remove(home.store.layout().log(by_someone));
    let home = home.reopen_same();
    home.store.remove(by_us).expect("removed");
    let home = home.reopen_same();
    let damaged = |(_, done): &(_, Completion)| matches!(done, Completion::Damaged(_));
    assert!(!home.store.recovered().streams.iter().any(damaged), "{:?}", home.store.recovered());
    let left = home.disk.paths();
    assert!(left.iter().all(|path| !path.to_string_lossy().contains("/sess_")), "{left:?}");
}

// I2
#[test]
fn what_a_cache_says_is_on_disk_first() {
    for listing in [false, true] {
        let home = Home::with_sessions(1, 1);
        home.store.append(Append::quick(home.sessions[0], vec![marked(10, 5, None)])).expect("recorded");
        if listing {
            let mut states = Vec::new();
            home.store.survey(|_, loaded| states.extend(loaded.map(|loaded| loaded.state))).expect("listed");
            home.store.write_index(states.iter(), false).expect("a list");
        } else {
            home.store.snapshot(home.sessions[0]).expect("a snapshot");
        }
        after_power_cuts(&home, |markers| assert_eq!(markers, [0, 10]));
    }
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
    home.disk.remove_dir("/home/sessions".as_ref()).expect("the directory too");
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
        Err(_) => home.store.recovered().streams.iter().any(|(id, done)| {
            *id == home.sessions[0] && matches!(done, rekindle_store::Completion::Damaged(_))
        }),
    };
    assert!(announced, "what is missing is announced (I12)");
}

// I1
#[test]
fn a_session_log_that_someone_removed_is_written_anew() {
    let home = Home::with_sessions(1, 1);
    home.store.committer().checkpoint().expect("the write-ahead log has nothing of it any more");
    home.append(1).expect("the log is open");
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
            .streams
            .iter()
            .any(|(_, done)| matches!(done, rekindle_store::Completion::Damaged(_)))
    );
}

// I12
#[test]
fn a_session_log_that_someone_added_to_is_not_written_to_but_anew() {
    let home = Home::with_sessions(1, 1);
    home.store.committer().checkpoint().expect("fine");
    let log = home.store.layout().log(home.sessions[0]);
    let longer = [home.disk.read_file(&log).expect("a log"), b"rubbish\n".repeat(100)].concat();
    home.disk.write_file(&log, &longer);
    home.append(100).expect("the write-ahead log takes it");
    assert_eq!(home.disk.read_file(&log), Some(longer), "it is left as it is");
    home.store.committer().checkpoint().expect("it is written anew");
    let loaded = home.store.load(home.sessions[0], Want::Status).expect("loads");
    assert!(loaded.damage.is_none() && loaded.torn.is_none());
    after_power_cuts(&home, |markers| assert_eq!(markers, [0, 100]));
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
        home.disk.set_faults(Faults::random(seed, 10 + 5 * seed).with_reads());
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
    assert!(full.to_string().contains("free some disk space"));
    let unknown = AppendError::OutcomeUnknown(Arc::new(io::ErrorKind::Other.into()));
    assert!(unknown.to_string().contains("idempotency key"));
}

#[test]
fn what_a_crash_left_of_a_rewriting_goes_with_its_session() {
    let home = Home::with_sessions(1, 1);
    let session = home.sessions[0];
    home.append(100).expect("fine");
    // The log cannot be synced and is written anew; the power goes before the new file has its name.
    home.disk.set_faults(Fault::once(FaultKind::Eio, 0).on(&[OpKind::Sync]).at(".messages.jsonl"));
    let images = Arc::new(std::sync::Mutex::new(Vec::new()));
    let (seen, handle) = (images.clone(), home.disk.clone());
    home.disk.set_observer(Box::new(move |op| {
        if op.kind == OpKind::Rename && op.touches(".messages.jsonl.tmp") {
            seen.lock().expect("no panic").push(handle.fork());
        }
    }));
    home.store.committer().checkpoint().expect("rewritten");
    home.disk.clear_observer();
    let image = images.lock().expect("no panic").pop().expect("it was written anew");
    let home = home.reopen(image.process_kill(&mut Rng::new(1)));
    home.store.open_session(session).expect("opens");
    home.store.append(Append::durable(session, vec![SessionDeleted::default().into()])).expect("recorded");
    home.store.remove(session).expect("removed");
    let home = home.reopen_same();
    let left: Vec<_> =
        home.disk.paths().into_iter().filter(|path| path.starts_with("/home/sessions/")).collect();
    assert!(left.is_empty(), "a deleted session's messages are still in {left:?}");
}
