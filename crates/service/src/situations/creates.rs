//! Sessions that are made with keys, many at the same time.

use std::collections::HashSet;

use rekindle_domain::id::SessionId;
use rekindle_testkit::sim::OpKind;
use rekindle_wire::code::Code;
use rekindle_wire::request::{AgentChoice, NewSession};

use super::home::Home;
use crate::commands::{Locks, sessions};
use crate::error::Result;
use crate::idempotency::Key;

const AT_ONCE: u32 = 32;

fn new() -> NewSession {
    let agent = AgentChoice::Command { profile: "acp".into(), command: vec!["agent".into()] };
    NewSession::new("/".into(), agent)
}

/// Has sessions made, each on a thread of its own, by these keys with these bodies, while the disk lets nobody through until so
/// many have come to it; returns what came of each, and how often the write-ahead log was synced.
fn make_at_once(home: &Home, keys: &[Key], come: u32) -> (Vec<Result<SessionId>>, u64) {
    let (store, views, locks) = (home.store(), home.views(), Locks::default());
    let synced = store.meter().syncs.read().count;
    home.arrivals.reset();
    let made = std::thread::scope(|scope| {
        let closed = home.disk.gate.close(OpKind::Sync, ".wal");
        let make = |key: &Key| sessions::create(&views, &locks, new(), Some(key));
        let making: Vec<_> = keys.iter().map(|key| scope.spawn(move || make(key))).collect();
        home.arrivals.await_count(come);
        drop(closed);
        making.into_iter().map(|one| one.join().expect("no panic")).collect()
    });
    (made, store.meter().syncs.read().count - synced)
}

fn key(number: u32, body: u8) -> Key {
    Key { key: format!("key-{number}"), body: [body; 32] }
}

#[test]
fn sessions_with_different_keys_are_made_side_by_side_and_synced_together() {
    let home = Home::new(&[]);
    let keys: Vec<Key> = (0..AT_ONCE).map(|number| key(number, 1)).collect();
    let (made, syncs) = make_at_once(&home, &keys, AT_ONCE);
    let made: HashSet<SessionId> = made.into_iter().map(|made| made.expect("made")).collect();
    assert_eq!(made.len(), keys.len());
    assert!(syncs < u64::from(AT_ONCE) / 4, "{syncs} syncs for {AT_ONCE} sessions");
}

// I3: what is asked for with one key happens once.
#[test]
fn requests_with_the_same_key_at_the_same_time_make_one_session() {
    let home = Home::new(&[]);
    let keys: Vec<Key> = (0..AT_ONCE).map(|number| key(1, u8::from(number == 7))).collect();
    let (made, _) = make_at_once(&home, &keys, 1);
    let (made, refused): (Vec<_>, Vec<_>) = made.into_iter().partition(Result::is_ok);
    let made: HashSet<SessionId> = made.into_iter().flatten().collect();
    assert_eq!(made.len(), 1);
    let codes: HashSet<Code> = refused.into_iter().filter_map(Result::err).map(|error| error.code).collect();
    assert_eq!(codes, HashSet::from([Code::KeyReused]), "one key for two requests");
}
