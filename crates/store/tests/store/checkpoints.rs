//! Checkpoints while work goes on: appends do not wait for the logs that are being synced, and nothing that happens meanwhile
//! is taken for durable before it is.

use std::sync::{Arc, Mutex, mpsc};

use rekindle_domain::event::SessionDeleted;
use rekindle_domain::id::{BootId, SessionId};
use rekindle_domain::line::Draft;
use rekindle_store::commit::{Append, Commits};
use rekindle_store::{LoadError, Opener, Store, Want};
use rekindle_testkit::clock::SimClock;
use rekindle_testkit::gated::{DEADLINE, GatedDisk};
use rekindle_testkit::rng::Rng;
use rekindle_testkit::sim::{Fault, FaultKind, Op, OpKind, SimDisk};

use crate::common::{Home, created, marked, markers, open};

/// A store with a committer of its own on a gated disk, and some sessions with a record each.
fn gated(sessions: u64) -> (GatedDisk, Store, Vec<SessionId>) {
    let disk = GatedDisk::new(3);
    let store = start(&disk);
    let sessions: Vec<_> = (1..=sessions).map(|n| SessionId::mint(n, n.into())).collect();
    for session in &sessions {
        store.create(*session).expect("new");
        append(&store, *session, vec![created(), marked(0, 10, None)]);
    }
    (disk, store, sessions)
}

fn start(disk: &GatedDisk) -> Store {
    let opener = Opener { pid: 1, boot_id: BootId::mint(1, 1) };
    Store::open(Arc::new(disk.clone()), "/home", opener, Arc::new(SimClock::default())).expect("a home")
}

/// Appends, and gives up if there is no answer.
fn append(store: &Store, session: SessionId, records: Vec<Draft>) {
    let (tell, told) = mpsc::channel();
    store.append_with(Append::durable(session, records), move |outcome| drop(tell.send(outcome)));
    told.recv_timeout(DEADLINE).expect("appends are answered").expect("recorded");
}

fn segments(disk: &SimDisk) -> Vec<String> {
    let paths = disk.paths().into_iter().filter(|path| path.starts_with("/home/wal"));
    paths.map(|path| path.to_string_lossy().into_owned()).collect()
}

/// Checks what a session has on every one of many disks that lost power.
fn assert_kept(disk: &SimDisk, session: SessionId, expected: &[u64]) {
    for seed in 0..50 {
        let image = disk.power_cut(&mut Rng::new(seed));
        open(&image, &Arc::default()).expect("the home opens");
        assert_eq!(markers(&image, session), expected, "seed {seed}");
    }
}

// I1
#[test]
fn appends_go_on_while_the_logs_are_synced_for_a_checkpoint() {
    let (disk, store, sessions) = gated(3);
    let before = segments(&disk.disk);
    let (tell, told) = mpsc::channel();
    std::thread::scope(|scope| {
        let closed = disk.gate.close(OpKind::Sync, &format!("{}.messages", sessions[0]));
        scope.spawn(|| tell.send(store.committer().checkpoint()));
        disk.gate.await_waiting(1);
        for session in &sessions {
            append(&store, *session, vec![marked(1, 10, None)]);
        }
        assert!(told.try_recv().is_err(), "it is not over");
        assert_eq!(segments(&disk.disk), before, "nothing is dropped before the logs are durable");
        assert_kept(&disk.disk, sessions[0], &[0, 1]);
        drop(closed);
        told.recv_timeout(DEADLINE).expect("it is over").expect("a checkpoint");
    });
    assert_ne!(segments(&disk.disk), before);
    sessions.iter().for_each(|session| assert_kept(&disk.disk, *session, &[0, 1]));
}

#[test]
fn a_store_that_is_closed_during_a_checkpoint_waits_for_it() {
    let (disk, store, sessions) = gated(2);
    let (tell, told) = mpsc::channel();
    let store = Arc::new(store);
    let closed = disk.gate.close(OpKind::Sync, &format!("{}.messages", sessions[0]));
    let asking = store.clone();
    let asked = std::thread::spawn(move || tell.send(asking.committer().checkpoint()));
    disk.gate.await_waiting(1);
    append(&store, sessions[0], vec![marked(1, 10, None)]);
    drop(closed);
    drop(store);
    asked.join().expect("no panic").expect("somebody waits");
    told.recv_timeout(DEADLINE).expect("it is over").expect("a checkpoint");
    let again = start(&disk);
    assert!(again.recovered().wal_damage.is_empty());
    assert_eq!(again.open_session(sessions[0]).expect("opens").state.last_seq, 3);
    assert_kept(&disk.disk, sessions[0], &[0, 1]);
}

#[test]
fn a_session_may_be_removed_while_its_log_is_synced() {
    let (disk, store, sessions) = gated(2);
    let gone = sessions[0];
    let (tell, told) = mpsc::channel();
    std::thread::scope(|scope| {
        let closed = disk.gate.close(OpKind::Sync, &format!("{gone}.messages"));
        scope.spawn(|| tell.send(store.committer().checkpoint()));
        disk.gate.await_waiting(1);
        append(&store, gone, vec![SessionDeleted::default().into()]);
        store.remove(gone).expect("removed");
        drop(closed);
        told.recv_timeout(DEADLINE).expect("it is over").expect("a checkpoint");
    });
    assert_eq!(store.lagging(gone), None);
    assert!(matches!(store.load(gone, Want::Status), Err(LoadError::NotFound(_))));
    for seed in 0..20 {
        let image = disk.disk.power_cut(&mut Rng::new(seed));
        let store = open(&image, &Arc::default()).expect("the home opens");
        assert!(matches!(store.load(gone, Want::Status), Err(LoadError::NotFound(_))), "seed {seed}");
        assert_eq!(markers(&image, sessions[1]), [0]);
    }
}

/// A home in which a checkpoint has just begun: nothing is synced yet.
fn begun() -> Home {
    let home = Home::with_sessions(3, 0);
    home.store.committer().checkpoint().expect("a checkpoint");
    for session in &home.sessions {
        home.store.append(Append::durable(*session, vec![marked(0, 10, None)])).expect("recorded");
    }
    // The fourth log that is written to makes it due.
    let new = SessionId::mint(9, 9);
    home.store.create(new).expect("new");
    home.store.append(Append::durable(new, vec![created()])).expect("recorded");
    home
}

/// Appends to a session until the checkpoint that has begun is complete; returns the last marker.
fn append_until_complete(home: &Home, session: SessionId) -> u64 {
    let before = segments(&home.disk);
    for marker in 1..20 {
        home.store.append(Append::durable(session, vec![marked(marker, 10, None)])).expect("recorded");
        if segments(&home.disk) != before {
            return marker;
        }
    }
    panic!("the checkpoint is not completed");
}

// I1
#[test]
fn only_logs_that_were_written_again_are_synced_again() {
    let home = begun();
    let [busy, quiet, _] = home.sessions[..] else { panic!("three sessions") };
    let seen = Arc::new(Mutex::new(Vec::<(Op, SimDisk)>::new()));
    let (ops, handle) = (seen.clone(), home.disk.clone());
    home.disk.set_observer(Box::new(move |op| {
        ops.lock().expect("no panic").push((op.clone(), handle.fork()));
    }));
    let last = append_until_complete(&home, busy);
    home.disk.clear_observer();
    let ops = std::mem::take(&mut *seen.lock().expect("no panic"));
    let places = |kind: OpKind, part: &str| {
        let places = ops.iter().enumerate().filter(|(_, (op, _))| op.kind == kind && op.touches(part));
        places.map(|(place, _)| place).collect::<Vec<_>>()
    };
    let (log, other) = (format!("{busy}.messages"), format!("{quiet}.messages"));
    let (synced, written) = (places(OpKind::Sync, &log), places(OpKind::Write, &log));
    let segment = *places(OpKind::Rename, "/wal/").last().expect("a new segment");
    assert_eq!(places(OpKind::Sync, &other).len(), 1, "nothing was written to it since");
    assert!(written.iter().any(|place| *place > synced[0]), "appends went on between the syncs");
    let last_write = written.iter().copied().max().expect("it was written to");
    assert!(synced.iter().any(|place| (last_write..segment).contains(place)), "{synced:?} {written:?}");
    // Whenever the power goes, what was answered before is there.
    for (place, (_, picture)) in ops.iter().enumerate() {
        let image = picture.power_cut(&mut Rng::new(place as u64));
        open(&image, &home.clock).expect("the home opens");
        // The line of the append that is under way is written when it is in the write-ahead log.
        let answered = written.iter().filter(|write| **write < place).count() as u64;
        let found = markers(&image, busy);
        assert_eq!(found[..=answered as usize], (0..=answered).collect::<Vec<_>>(), "before {place}");
        assert_eq!(markers(&image, quiet), [0], "before {place}");
    }
    assert_kept(&home.disk, busy, &(0..=last).collect::<Vec<_>>());
}

// I1
#[test]
fn a_sync_that_failed_beside_appends_is_not_believed_when_it_succeeds_later() {
    for write_fails_too in [false, true] {
        let home = begun();
        let session = home.sessions[0];
        let log = format!("{session}.messages");
        // The kernel tells of it once; from then on it calls the pages clean.
        home.disk.inject(Fault::once(FaultKind::Eio, 0).on(&[OpKind::Sync]).at(&log));
        if write_fails_too {
            home.disk.inject(Fault::once(FaultKind::Eio, 1).on(&[OpKind::Write]).at(&log));
        }
        let last = append_until_complete(&home, session);
        assert_eq!(home.disk.faults_struck(), 1 + u64::from(write_fails_too));
        assert_eq!(home.store.lagging(session), None, "it was written anew");
        assert_kept(&home.disk, session, &(0..=last).collect::<Vec<_>>());
    }
}
