//! Logs that are written behind the answers: nobody who appends waits for them, everybody who reads does, and nothing is lost
//! if the daemon dies in between or a log cannot be written.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rekindle_domain::id::{BootId, SessionId};
use rekindle_domain::line::Line;
use rekindle_store::commit::{Append, Commits};
use rekindle_store::log::Cursor;
use rekindle_store::{AppendError, Opener, Store};
use rekindle_testkit::clock::SimClock;
use rekindle_testkit::gated::{DEADLINE, GatedDisk};
use rekindle_testkit::sim::{Fault, FaultKind, OpKind};

use crate::common::{Home, created, marked, markers, open};

/// As long as something has to stay as it is before a test believes it.
const A_WHILE: Duration = Duration::from_millis(50);

/// Sessions in one group: enough for a helper thread.
const MANY: u64 = 12;

/// A home with some sessions, on a disk with a gate.
struct Gated {
    disk: GatedDisk,
    store: Store,
    sessions: Vec<SessionId>,
}

impl Gated {
    fn new() -> Gated {
        let (disk, opener) = (GatedDisk::new(3), Opener { pid: 1, boot_id: BootId::mint(1, 1) });
        let clock = Arc::new(SimClock::default());
        let store = Store::open(Arc::new(disk.clone()), "/home", opener, clock).expect("a home");
        let sessions: Vec<_> = (1..=MANY).map(|n| SessionId::mint(n, n.into())).collect();
        for session in &sessions {
            store.create(*session).expect("new");
            store.append(Append::durable(*session, vec![created()])).expect("recorded");
        }
        // Whoever closes the gate now finds nothing on its way to a log.
        sessions.iter().for_each(|session| assert_eq!(read(&store, *session), 1));
        Gated { disk, store, sessions }
    }

    /// Appends a record to every session, all in one group.
    fn append_to_all(&self, marker: u64) {
        let append = |session: &SessionId| Append::durable(*session, vec![marked(marker, 10, None)]);
        let answers = self.store.committer().append_all(self.sessions.iter().map(append).collect());
        assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    }

    fn log(session: SessionId) -> String {
        format!("{session}.messages")
    }
}

/// Returns how many records a reader gets.
fn read(store: &Store, session: SessionId) -> usize {
    let reader = store.reader(session).expect("it can be read");
    let (mut lines, mut count) = (reader.forward(Cursor::START), 0);
    while let Some(line) = lines.next().expect("it can be read") {
        assert!(line.whole && Line::parse(line.bytes).is_ok());
        count += 1;
    }
    count
}

// I1
#[test]
fn an_append_is_answered_while_its_log_hangs_and_readers_of_that_log_wait() {
    let home = Gated::new();
    let [stuck, other] = [home.sessions[0], home.sessions[1]];
    std::thread::scope(|scope| {
        let closed = home.disk.gate.close(OpKind::Write, &Gated::log(stuck));
        home.store.append(Append::durable(stuck, vec![marked(1, 10, None)])).expect("it does not wait");
        home.disk.gate.await_waiting(1);
        assert_eq!(read(&home.store, other), 1, "another log is read at once");
        let (tell, told) = channel();
        let store = &home.store;
        scope.spawn(move || tell.send(read(store, stuck)));
        assert_eq!(told.recv_timeout(A_WHILE), Err(RecvTimeoutError::Timeout), "it would miss a record");
        drop(closed);
        assert_eq!(told.recv_timeout(DEADLINE), Ok(2));
    });
}

// I1, I3
#[test]
fn appends_go_on_beside_a_log_that_hangs_until_too_much_is_unwritten() {
    let home = Gated::new();
    let [stuck, other] = [home.sessions[0], home.sessions[1]];
    // The marker is in each; five of them are more than may be on its way.
    let append = |marker| Append::durable(other, vec![marked(marker, 900 << 10, None)]);
    let (tell, told) = channel();
    std::thread::scope(|scope| {
        let closed = home.disk.gate.close(OpKind::Write, &Gated::log(stuck));
        home.append_to_all(1);
        home.disk.gate.await_waiting(1);
        let store = &home.store;
        scope.spawn(move || {
            (2..12).for_each(|marker| {
                let _ = tell.send(store.append(append(marker)).is_ok());
            });
        });
        for _ in 0..5 {
            assert_eq!(told.recv_timeout(DEADLINE), Ok(true), "it waits for a log that is not its own");
        }
        let more = std::iter::repeat_with(|| told.recv_timeout(A_WHILE)).take_while(Result::is_ok).count();
        assert!(more < 5, "memory is not bounded");
        drop(closed);
        assert!(told.iter().all(|ok| ok));
    });
    assert_eq!((read(&home.store, stuck), read(&home.store, other)), (2, 12));
    assert_eq!(markers(&home.disk.disk, other), (1..12).collect::<Vec<_>>());
}

// I1
#[test]
fn a_session_is_let_go_of_while_the_log_of_another_hangs() {
    let home = Gated::new();
    let [stuck, other] = [home.sessions[0], home.sessions[1]];
    let unused = SessionId::mint(MANY + 1, 0);
    home.store.create(unused).expect("new");
    let append = |session| Append::durable(session, vec![marked(1, 10, None)]);
    let (tell, told) = channel();
    std::thread::scope(|scope| {
        let closed = home.disk.gate.close(OpKind::Write, &Gated::log(stuck));
        home.append_to_all(1);
        home.disk.gate.await_waiting(1);
        let store = &home.store;
        scope.spawn(move || {
            [unused, other].into_iter().for_each(|session| store.close_session(session));
            let _ = tell.send((store.append(append(other)), store.append(append(unused))));
        });
        let (of_other, of_unused) =
            told.recv_timeout(DEADLINE).expect("it waits for a log that is not its own");
        assert!(of_other.is_ok(), "what is on its way to its log keeps it open: {of_other:?}");
        assert!(matches!(of_unused, Err(AppendError::NotOpen(_))), "{of_unused:?}");
        drop(closed);
    });
}

// I1
#[test]
fn a_session_with_an_append_under_way_is_not_let_go_of() {
    let home = Gated::new();
    home.store.committer().checkpoint().expect("nothing is on its way to a log");
    let [first, other] = [home.sessions[0], home.sessions[1]];
    let append = |session| Append::durable(session, vec![marked(1, 10, None)]);
    std::thread::scope(|scope| {
        let closed = home.disk.gate.close(OpKind::Sync, "wal");
        let store = &home.store;
        scope.spawn(move || store.append(append(first)).expect("recorded"));
        home.disk.gate.await_waiting(1);
        // All of it is taken together, once the first is on disk.
        let under_way = store.committer().submit(append(other));
        store.close_session(other);
        let behind = store.committer().submit(append(other));
        drop(closed);
        assert!(under_way.wait().is_ok() && behind.wait().is_ok());
    });
    assert_eq!(read(&home.store, other), 3);
}

// I1
#[test]
fn a_reader_gets_what_was_answered_while_appends_never_pause() {
    let home = Gated::new();
    let [read_one, busy] = [home.sessions[0], home.sessions[1]];
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (store, done) = (&home.store, &done);
        for _ in 0..2 {
            scope.spawn(move || {
                while !done.load(Ordering::SeqCst) {
                    store.append(Append::durable(busy, vec![marked(7, 10, None)])).expect("recorded");
                }
            });
        }
        for records in 2..100 {
            store.append(Append::durable(read_one, vec![marked(1, 10, None)])).expect("recorded");
            assert_eq!(read(store, read_one), records);
        }
        done.store(true, Ordering::SeqCst);
    });
}

// I1, I2
#[test]
fn whoever_dies_before_the_logs_are_written_has_lost_nothing() {
    let home = Gated::new();
    let died = {
        let _closed = home.disk.gate.close(OpKind::Write, ".messages.jsonl");
        home.append_to_all(1);
        home.disk.gate.await_waiting(1);
        home.disk.disk.fork()
    };
    assert!(home.sessions.iter().all(|session| markers(&died, *session).is_empty()), "no log has it");
    let store = open(&died, &Arc::new(SimClock::default())).expect("it opens");
    for session in &home.sessions {
        assert_eq!(markers(&died, *session), [1], "the write-ahead log had it");
        assert_eq!(store.open_session(*session).expect("it opens").state.last_seq, 2);
    }
}

// I1, I12
#[test]
fn a_log_that_cannot_be_written_beside_the_next_group_is_served_whole_and_catches_up() {
    let home = Gated::new();
    let (bad, good) = (home.sessions[3], home.sessions[4]);
    let fault = Fault::sticky(FaultKind::Eio, 0).on(&[OpKind::Write, OpKind::SetLen]).at(&Gated::log(bad));
    home.disk.disk.set_faults(fault);
    home.append_to_all(1);
    // Nobody asks the committer for anything meanwhile.
    assert_eq!((read(&home.store, bad), read(&home.store, good)), (2, 2));
    home.append_to_all(2);
    home.append_to_all(3);
    assert_eq!((read(&home.store, bad), read(&home.store, good)), (4, 4));
    assert!(home.store.lagging(bad).is_some() && home.store.lagging(good).is_none());
    assert!(markers(&home.disk.disk, bad).is_empty());
    home.disk.disk.clear_faults();
    let late = Instant::now() + DEADLINE;
    while home.store.lagging(bad).is_some() {
        assert!(Instant::now() < late, "it does not catch up");
        std::thread::yield_now();
    }
    assert_eq!(markers(&home.disk.disk, bad), [1, 2, 3]);
    assert_eq!(read(&home.store, bad), 4);
}

// I1, I3
#[test]
fn a_closed_log_to_which_one_group_adds_three_times_has_everything_once() {
    let faults = [
        None,
        Some(Fault::once(FaultKind::Eio, 0).on(&[OpKind::Open])),
        Some(Fault::once(FaultKind::Eio, 1).on(&[OpKind::Write])),
        Some(Fault::once(FaultKind::ShortWrite, 1).on(&[OpKind::Write])),
    ];
    for fault in faults {
        let home = Home::with_sessions(3, 1);
        home.store.committer().checkpoint().expect("the logs are closed");
        if let Some(fault) = fault.clone() {
            home.disk.set_faults(fault.at(".messages.jsonl"));
        }
        let append = |marker: u64| {
            let session = home.sessions[marker as usize % 3];
            Append::durable(session, vec![marked(marker, 10, None)])
        };
        let answers = home.store.committer().append_all((3..12).map(append).collect());
        assert!(answers.iter().all(Result::is_ok));
        home.disk.clear_faults();
        home.store.committer().tick();
        for (at, session) in home.sessions.iter().enumerate() {
            let at = at as u64;
            assert_eq!(markers(&home.disk, *session), [0, at + 3, at + 6, at + 9], "{fault:?}");
            assert_eq!(home.store.lagging(*session), None);
        }
    }
}
