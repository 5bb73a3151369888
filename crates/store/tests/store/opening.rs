//! Sessions and streams that are opened at the same time: each is loaded once, and nobody waits for another's disk.

use std::sync::{Arc, mpsc};

use rekindle_domain::id::{BootId, SessionId};
use rekindle_store::commit::Append;
use rekindle_store::{Opener, Store};
use rekindle_testkit::clock::SimClock;
use rekindle_testkit::gated::{DEADLINE, GatedDisk};
use rekindle_testkit::sim::OpKind;

use crate::common::{created, marked};

fn start(disk: &GatedDisk) -> Store {
    let opener = Opener { pid: 1, boot_id: BootId::mint(1, 1) };
    Store::open(Arc::new(disk.clone()), "/home", opener, Arc::new(SimClock::default())).expect("a home")
}

/// A home that was closed and opened again: none of its two sessions is loaded, and the first ends in half a record.
fn reopened() -> (GatedDisk, Store, [SessionId; 2]) {
    let disk = GatedDisk::new(5);
    let store = start(&disk);
    let sessions = [SessionId::mint(1, 1), SessionId::mint(2, 2)];
    for session in sessions {
        store.create(session).expect("new");
        let records = vec![created(), marked(0, 10, None)];
        store.append(Append::durable(session, records)).expect("recorded");
    }
    let log = store.layout().log(sessions[0]);
    drop(store);
    let torn = [disk.disk.read_file(&log).expect("a log"), b"{".to_vec()].concat();
    disk.disk.write_file(&log, &torn);
    let store = start(&disk);
    (disk, store, sessions)
}

// I10
#[test]
fn a_session_is_opened_while_the_disk_hangs_in_the_log_of_another() {
    let (disk, store, [stuck, other]) = reopened();
    let (tell, told) = mpsc::channel();
    std::thread::scope(|scope| {
        let closed = disk.gate.close(OpKind::Read, &format!("{stuck}.messages"));
        let opening = scope.spawn(|| store.open_session(stuck).map(|current| current.state.last_seq));
        disk.gate.await_waiting(1);
        scope.spawn(|| tell.send(store.open_session(other).map(|current| current.state.last_seq)));
        let opened = told.recv_timeout(DEADLINE).expect("it does not wait for the other");
        assert_eq!(opened.expect("it opens"), 2);
        assert!(!opening.is_finished(), "the other still waits for its disk");
        drop(closed);
        assert_eq!(opening.join().expect("no panic").expect("it opens"), 3, "with the note of its repair");
    });
}

// I12
#[test]
fn a_session_that_many_open_at_once_is_loaded_and_repaired_once() {
    let (disk, store, [torn, _]) = reopened();
    std::thread::scope(|scope| {
        let closed = disk.gate.close(OpKind::Read, &format!("{torn}.messages"));
        let opening = [(); 4].map(|()| scope.spawn(|| store.open_session(torn).is_ok()));
        disk.gate.await_waiting(1);
        drop(closed);
        assert!(opening.into_iter().all(|opened| opened.join().expect("no panic")), "everyone has it");
    });
    assert_eq!(store.current(torn).expect("open").state.last_seq, 3, "its repair is told once");
}
