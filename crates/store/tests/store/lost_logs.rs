//! Logs that somebody deleted after the home was left in order: the list tells of them, whoever comes next and however often
//! one dies on the way.

use std::collections::BTreeMap;
use std::sync::Arc;

use rekindle_domain::event::SessionDeleted;
use rekindle_domain::id::{BootId, SessionId};
use rekindle_store::commit::{Append, Commits, Inline};
use rekindle_store::disk::Disk;
use rekindle_store::layout::Layout;
use rekindle_store::{LoadError, Opener, Store, Want};
use rekindle_testkit::clock::SimClock;
use rekindle_testkit::sim::SimDisk;

use crate::common::created;

fn open(disk: &SimDisk, life: u128) -> Store<Inline> {
    let opener = Opener { pid: 1, boot_id: BootId::mint(1, life) };
    let (disk, clock) = (Arc::new(disk.clone()), Arc::new(SimClock::default()));
    Store::open_inline(disk, Layout::new("/home"), opener, clock, Default::default()).expect("a home")
}

/// Returns which sessions there are, and whether each is damaged.
fn surveyed(store: &Store<Inline>) -> BTreeMap<SessionId, bool> {
    let mut found = BTreeMap::new();
    let visit = |id, loaded: Result<rekindle_store::Loaded, LoadError>| {
        found.insert(id, loaded.map_or(true, |loaded| loaded.damage.is_some()));
    };
    store.survey(visit).expect("a list");
    found
}

/// Makes a home with two sessions that was left in order.
fn left_home() -> (SimDisk, [SessionId; 2]) {
    let (disk, sessions) = (SimDisk::new(7), [SessionId::mint(1, 1), SessionId::mint(2, 2)]);
    let store = open(&disk, 1);
    let mut states = Vec::new();
    for session in sessions {
        store.create(session).expect("new");
        store.append(Append::durable(session, vec![created()])).expect("recorded");
        states.push(store.current(session).expect("open").state);
    }
    store.survey(|_, _| ()).expect("a list");
    store.committer().checkpoint().expect("a checkpoint");
    store.write_index(states.iter().map(|state| &**state), true).expect("a list");
    drop(store);
    (disk, sessions)
}

// I12
#[test]
fn a_lost_log_is_found_also_by_whoever_follows_an_owner_that_never_looked() {
    for owners_that_die in 0..3 {
        let (disk, [lost, other]) = left_home();
        disk.remove_file(&Layout::new("/home").log(lost)).expect("a log");
        for life in 0..owners_that_die {
            drop(open(&disk, 10 + life));
        }
        let store = open(&disk, 20);
        let expected = BTreeMap::from([(lost, true), (other, false)]);
        assert_eq!(surveyed(&store), expected, "after {owners_that_die} owners that died");
        drop(store);
        assert_eq!(surveyed(&open(&disk, 21)), expected, "and it stays so");
    }
}

// I12
#[test]
fn a_lost_log_is_found_by_whoever_asks_for_that_session_before_anybody_has_listed_all() {
    let (disk, [lost, other]) = left_home();
    disk.remove_file(&Layout::new("/home").log(lost)).expect("a log");
    let store = open(&disk, 2);
    let found = store.load(lost, Want::Status);
    assert!(matches!(&found, Ok(loaded) if loaded.damage.is_some()), "{found:?}");
    let whole = store.load(other, Want::Status).expect("a session");
    assert!(whole.damage.is_none());
    let strange = store.load(SessionId::mint(3, 3), Want::Status);
    assert!(matches!(strange, Err(LoadError::NotFound(_))));
}

#[test]
fn a_session_that_was_removed_in_order_is_not_lost() {
    for looks_first in [true, false] {
        let (disk, [removed, other]) = left_home();
        let store = open(&disk, 2);
        if looks_first {
            surveyed(&store);
        }
        store.open_session(removed).expect("a session");
        store.append(Append::durable(removed, vec![SessionDeleted::default().into()])).expect("recorded");
        store.remove(removed).expect("removed");
        drop(store);
        let store = open(&disk, 3);
        assert_eq!(surveyed(&store), BTreeMap::from([(other, false)]), "looked first: {looks_first}");
    }
}
