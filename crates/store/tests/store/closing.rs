//! The end of a store, whoever is the last to have it.

use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use rekindle_domain::id::{BootId, SessionId};
use rekindle_store::commit::Append;
use rekindle_store::{Opener, Store};
use rekindle_testkit::clock::SimClock;
use rekindle_testkit::sim::SimDisk;

use crate::common::created;

#[test]
fn a_store_that_is_closed_by_whoever_is_told_of_an_append_can_be_opened_again() {
    let disk = SimDisk::new(1);
    let open = || {
        let opener = Opener { pid: 1, boot_id: BootId::mint(1, 1) };
        Store::open(Arc::new(disk.clone()), "/home", opener, Arc::new(SimClock::default()))
    };
    let (store, session) = (Arc::new(open().expect("a home")), SessionId::mint(1, 1));
    store.create(session).expect("made");
    store.open_session(session).expect("open");
    let (tell, told) = mpsc::sync_channel(0);
    let (last, go) = mpsc::sync_channel(0);
    let (outlived, over) = mpsc::sync_channel(1);
    let its = store.clone();
    store.append_with(Append::durable(session, vec![created()]), move |outcome| {
        tell.send(outcome.is_ok()).expect("somebody waits");
        go.recv().expect("somebody lets go");
        drop(its);
        outlived.send(()).expect("somebody waits");
    });
    assert_eq!(told.recv(), Ok(true));
    drop(store);
    last.send(()).expect("it waits");
    assert_eq!(over.recv(), Ok(()), "the thread outlives the store that it is of");
    // The committer's thread lets go of the home when it ends.
    let begin = Instant::now();
    let store = loop {
        match open() {
            Ok(store) => break store,
            Err(error) => assert!(begin.elapsed() < Duration::from_secs(20), "{error}"),
        }
        std::thread::yield_now();
    };
    assert_eq!(store.open_session(session).expect("open").state.last_seq, 1);
}
