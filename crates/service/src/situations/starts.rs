//! Starts with a log that takes long to read: sessions become known as they are read, and nobody waits for one who did not ask for
//! it.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::Scope;
use std::time::Duration;

use rekindle_domain::compose::begin::{self, Life, NewMessage};
use rekindle_domain::event::{AgentNotice, Options, Provider, Raw, SessionCreated};
use rekindle_domain::id::{BootId, MessageId, RunId, SessionId, WaitId};
use rekindle_store::commit::Append;
use rekindle_testkit::gated::DEADLINE;
use rekindle_testkit::sim::OpKind;
use rekindle_wire::filter::Filter;
use rekindle_wire::view::{HealthState, SessionView};

use super::home::Home;
use crate::idempotency::Key;
use crate::show::Views;

/// A log of more than this, in no cache, is long; the first part of one is read whatever its length is.
const LONG: usize = 10 << 20;
const READ_AT_ONCE: u64 = 256 << 10;

fn key(name: &str) -> Key {
    Key { key: name.into(), body: [1; 32] }
}

/// Makes a session in which a run goes on, with so many bytes of words behind that.
fn add_session(home: &Home, number: u64, bytes: usize) -> SessionId {
    let session = SessionId::mint(number, number.into());
    let (message_id, run_id) = (MessageId::mint(1, number.into()), RunId::mint(1, number.into()));
    let created = SessionCreated {
        parent: None,
        title: format!("number {number}").into(),
        working_dir: "/".into(),
        provider: Provider {
            profile: "acp".into(),
            command: Some(vec!["agent".into()]),
            ..Provider::default()
        },
        options: Options::default(),
        env_names: Vec::new(),
        key: None,
        imported_from: None,
        idempotency_key: Some(key(&format!("key-{number}")).as_stored().into()),
        created_at: None,
        forked_from: None,
        restoring: None,
        worktree: None,
    };
    let content = Raw::text("do it").into_owned();
    let message = NewMessage { message_id, content, idempotency_key: None, wait_id: None };
    let life = Life { boot_id: BootId::mint(1, 1), machine_boot: None };
    let begun = begin::session(created, Some((message, run_id)), &life);
    let store = home.store();
    store.create(session).expect("new");
    store.append(Append::durable(session, begun)).expect("recorded");
    let text = "x".repeat(512 << 10);
    for _ in 0..bytes.div_ceil(text.len()) {
        let notice =
            AgentNotice { run_id: None, what: "words".into(), text: Some(text.clone().into()), raw: None };
        store.append(Append::quick(session, vec![notice.into()])).expect("recorded");
    }
    session
}

/// A home that was opened again, with sessions whose logs have so many bytes; nobody has read any.
fn restarted(bytes: &[usize]) -> (Home, Vec<SessionId>) {
    let mut home = Home::new(&[]);
    let sessions = (2..).zip(bytes).map(|(number, bytes)| add_session(&home, number, *bytes)).collect();
    home.daemon_ends();
    home.start();
    (home, sessions)
}

/// Does something on another thread; fails if it is not done in time.
fn within<'s, T: Send + 's>(scope: &'s Scope<'s, '_>, what: &str, work: impl FnOnce() -> T + Send + 's) -> T {
    let (tell, told) = channel();
    scope.spawn(move || drop(tell.send(work())));
    told.recv_timeout(DEADLINE).unwrap_or_else(|_| panic!("{what} waits"))
}

fn list(views: &Views, status: Option<&str>) -> Vec<SessionView> {
    let filter = Filter { status: status.map(str::to_owned), ..Filter::default() };
    views.list_sessions(&filter).expect("a list").sessions
}

// I10, I12: one long log keeps nobody waiting, and is neither missing nor shown as what it may not be.
#[test]
fn a_long_log_is_read_behind_all_others_and_keeps_nobody_waiting() {
    let (home, sessions) = restarted(&[0, LONG, 0]);
    let (long, views) = (sessions[1], home.unlisted_views());
    let (views, store, directory) = (&views, views.store(), &views.directory);
    let unfinished = directory.unfinished();
    std::thread::scope(|scope| {
        let closed = home.disk.gate.close_behind(OpKind::Read, &format!("{long}.messages"), READ_AT_ONCE);
        within(scope, "the start", || directory.survey(store)).expect("listed");
        assert!(directory.is_surveyed());
        let reading = scope.spawn(|| directory.read_large(store));
        home.disk.gate.await_waiting(1);
        // The others have what they need.
        let mut workers = [(); 2].map(|()| unfinished.recv_timeout(DEADLINE).expect("a worker"));
        workers.sort();
        assert_eq!(workers, [sessions[0], sessions[2]]);
        for status in [None, Some("interrupted_startup"), Some("waiting")] {
            let listed = within(scope, "a list", move || list(views, status));
            let seen: Vec<_> = listed.iter().filter(|one| sessions.contains(&one.id)).collect();
            let shown = seen.iter().find(|one| one.id == long).expect("it is not missing");
            assert_eq!((shown.health.state, shown.title.as_str()), (HealthState::Reading, "number 3"));
            let others = seen.iter().filter(|one| one.id != long);
            let others: Vec<_> = others.map(|one| (one.status.as_str(), one.health.state)).collect();
            let cut = if status == Some("waiting") { 0 } else { 2 };
            assert_eq!(others, [("interrupted_startup", HealthState::Ok); 2][..cut]);
        }
        let counted = directory.active_if_surveyed(store).expect("surveyed");
        assert_eq!((counted.active.len(), counted.quiet), (2, 1), "nobody knows what the third does");
        for session in [sessions[0], sessions[2]] {
            assert!(within(scope, "another session", move || directory.get(store, session)).is_some());
        }
        let made_by =
            |name: &'static str| within(scope, "a key", move || directory.made_by(store, &key(name)));
        assert_eq!(made_by("key-3"), Ok(Some(long)), "its first record has the key");
        assert_eq!(made_by("another"), Ok(None));
        // Who asks for this one, or for something that may be in it, waits.
        let asked = scope.spawn(|| directory.get(store, long).map(|entry| entry.state.last_seq));
        let searched = scope.spawn(|| directory.find_by_wait(store, WaitId::mint(1, 1)).is_some());
        assert_eq!(unfinished.recv_timeout(Duration::ZERO), Err(RecvTimeoutError::Timeout));
        assert!(!asked.is_finished() && !searched.is_finished() && !reading.is_finished());
        drop(closed);
        assert!(asked.join().expect("no panic").is_some_and(|last| last > 20), "all of it is known");
        assert!(!searched.join().expect("no panic"));
    });
    assert_eq!(unfinished.recv_timeout(DEADLINE), Ok(long), "it gets its worker when it is read");
    assert_eq!(unfinished.recv_timeout(DEADLINE), Err(RecvTimeoutError::Disconnected), "these were all");
    let shown = list(views, Some("interrupted_startup"));
    assert_eq!(shown.iter().filter(|one| one.health.state == HealthState::Ok).count(), 3);
}

// I10: a session is known when it is read, whatever becomes of the others.
#[test]
fn whoever_asks_for_one_session_at_a_start_waits_for_that_one_only() {
    let (home, sessions) = restarted(&[0, 0, 0]);
    let (stuck, views) = (sessions[0], home.unlisted_views());
    let (views, store, directory) = (&views, views.store(), &views.directory);
    let unfinished = directory.unfinished();
    std::thread::scope(|scope| {
        let closed = home.disk.gate.close(OpKind::Read, &format!("{stuck}.messages"));
        let surveying = scope.spawn(|| directory.survey(store));
        home.disk.gate.await_waiting(1);
        for session in [sessions[1], sessions[2]] {
            let entry = within(scope, "another session", move || directory.get(store, session));
            assert_eq!(entry.map(|entry| entry.state.id), Some(session));
            assert!(unfinished.recv_timeout(DEADLINE).is_ok(), "it gets a worker");
        }
        let strange = SessionId::mint(99, 99);
        assert!(within(scope, "an unknown session", move || directory.get(store, strange)).is_none());
        assert!(!directory.is_surveyed());
        // Somebody removes it, though it is still being read for the list.
        directory.forget(stuck);
        drop(closed);
        surveying.join().expect("no panic").expect("listed");
    });
    let listed: Vec<SessionId> = list(views, None).iter().map(|one| one.id).collect();
    assert!(listed.contains(&sessions[1]) && listed.contains(&sessions[2]) && !listed.contains(&stuck));
}
