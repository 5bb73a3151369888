//! Forks: a session that goes on from a record of another, its history read through that, and kept when that goes.

use std::sync::Arc;

use rekindle_domain::event::{ForkedFrom, SessionClosed, SessionCreated, SessionDeleted};
use rekindle_domain::fork::{Wishes, fork};
use rekindle_domain::id::SessionId;
use rekindle_domain::line::{Draft, Line, peek_seq};
use rekindle_store::check::{Code, Holding, check};
use rekindle_store::commit::{Append, Commits, Inline};
use rekindle_store::layout::Layout;
use rekindle_store::log::Cursor;
use rekindle_store::{ForkError, History, Store, Want, keep_forked_history};
use rekindle_testkit::clock::SimClock;
use rekindle_testkit::rng::Rng;
use rekindle_testkit::sim::SimDisk;

use crate::common::{Home, created, marked, markers, open, pictures};

fn fork_id(number: u64) -> SessionId {
    SessionId::mint(1_000 + number, number.into())
}

/// Returns the first record of a fork of a session behind a record.
fn beginning(store: &Store<Inline>, parent: SessionId, seq: u64) -> Draft {
    let point = store.fork_point(parent, seq).expect("readable").expect("there is such a record");
    let state = store.open_session(parent).expect("a session").state;
    fork(&state, point, Wishes::default()).into()
}

/// Forks a session behind a record.
fn forked(store: &Store<Inline>, parent: SessionId, seq: u64, number: u64) -> SessionId {
    let child = fork_id(number);
    store.fork(Append::durable(child, vec![beginning(store, parent, seq)])).expect("forked");
    child
}

fn lines(history: &History) -> Vec<Vec<u8>> {
    let (mut forward, mut lines) = (history.reader.forward(Cursor::START), Vec::new());
    while let Some(raw) = forward.next().expect("readable") {
        lines.push(raw.bytes.to_vec());
    }
    lines
}

fn history(store: &Store<Inline>, session: SessionId) -> Vec<Vec<u8>> {
    let history = store.history(session).expect("a history");
    assert_eq!(history.missing, None);
    lines(&history)
}

fn seqs(lines: &[Vec<u8>]) -> Vec<u64> {
    lines.iter().filter_map(|line| peek_seq(line)).collect()
}

fn delete(store: &Store<Inline>, session: SessionId) {
    store.open_session(session).expect("a session");
    store.append(Append::durable(session, vec![SessionDeleted::default().into()])).expect("recorded");
    store.remove(session).expect("removed");
}

/// Returns what a check of a disk finds wrong.
fn errors(disk: &SimDisk) -> Vec<(Code, Option<SessionId>)> {
    let report = check(Arc::new(disk.clone()), "/home", Holding::Nothing, &mut |_| {}).expect("a home");
    let wrong = report.findings.iter().filter(|found| found.code.severity().as_str() == "error");
    wrong.map(|found| (found.code, found.session)).collect()
}

// I3: the numbers go on without a gap, and what was written does not change.
#[test]
fn a_fork_has_its_parents_history_byte_for_byte_and_goes_its_own_way() {
    let home = Home::with_sessions(1, 9);
    let parent = home.sessions[0];
    let before = history(&home.store, parent);
    let child = forked(&home.store, parent, 5, 1);
    home.store.append(Append::durable(child, vec![marked(77, 5, None)])).expect("appended");
    home.append(88).expect("the parent goes on too");
    let check_all = |home: &Home| {
        let found = history(&home.store, child);
        assert_eq!(seqs(&found), [1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(found[..5], before[..5]);
        let own = home.store.history(child).expect("a history").own();
        assert_eq!(
            home.store.history(child).expect("a history").reader.find(6).expect("readable"),
            Some(own)
        );
        let loaded = home.store.load(child, Want::Everything).expect("a session");
        assert_eq!((loaded.state.last_seq, loaded.oddities.len(), loaded.damage), (7, 0, None));
        assert_eq!(markers(&home.disk, child), [77], "nothing was copied");
        assert_eq!(errors(&home.disk), []);
    };
    check_all(&home);
    let home = home.reopen_same();
    check_all(&home);
    // From caches, and in another start without the write-ahead log.
    home.store.snapshot(child).expect("cached");
    home.store.committer().checkpoint().expect("checkpointed");
    let home = home.reopen_same();
    check_all(&home);
    home.store.append(Append::durable(child, vec![marked(99, 5, None)])).expect_err("it is not open");
    home.store.open_session(child).expect("opened");
    home.store.append(Append::durable(child, vec![marked(99, 5, None)])).expect("appended");
    assert_eq!(history(&home.store, child).len(), 8);
    assert_eq!(history(&home.store, parent).len(), 11);
}

#[test]
fn what_cannot_be_forked_is_refused_and_leaves_nothing() {
    let home = Home::with_sessions(1, 3);
    let (parent, child) = (home.sessions[0], fork_id(1));
    assert_eq!(home.store.fork_point(parent, 5).expect("readable"), None);
    let first = beginning(&home.store, parent, 3);
    let refused =
        |records: Vec<Draft>| home.store.fork(Append::durable(child, records)).expect_err("refused");
    assert!(matches!(refused(vec![created()]), ForkError::NoFork));
    assert!(matches!(refused(vec![marked(1, 1, None)]), ForkError::NoFork));
    let wrong = |change: fn(&mut ForkedFrom)| {
        let state = home.store.open_session(parent).expect("a session").state;
        let mut point = home.store.fork_point(parent, 3).expect("readable").expect("a record");
        change(&mut point);
        Draft::from(fork(&state, point, Wishes::default()))
    };
    assert!(matches!(refused(vec![wrong(|point| point.seq = 2)]), ForkError::NoSuchRecord { .. }));
    assert!(matches!(refused(vec![wrong(|point| point.h = None)]), ForkError::NoSuchRecord { .. }));
    assert!(matches!(refused(vec![first.clone(), created()]), ForkError::Append(_)));
    assert!(home.store.history(child).is_err());
    home.store.fork(Append::durable(child, vec![first.clone()])).expect("forked");
    assert!(matches!(refused(vec![first.clone()]), ForkError::Exists(_)));
    home.store.append(Append::durable(parent, vec![SessionDeleted::default().into()])).expect("recorded");
    let late = home.store.fork(Append::durable(fork_id(2), vec![first])).expect_err("refused");
    assert!(matches!(late, ForkError::ParentGone(_)));
}

#[test]
fn a_fork_of_a_fork_outlives_parent_and_grandparent() {
    for first_gone in [0, 1] {
        let home = Home::with_sessions(1, 6);
        let first = home.sessions[0];
        let second = forked(&home.store, first, 4, 1);
        home.store.append(Append::durable(second, vec![marked(50, 5, None)])).expect("appended");
        let third = forked(&home.store, second, 6, 2);
        home.store.append(Append::durable(third, vec![marked(60, 5, None)])).expect("appended");
        // Below the second one's own beginning: through it, in the first one's.
        let fourth = forked(&home.store, second, 2, 3);
        let (whole, short) = (history(&home.store, third), history(&home.store, fourth));
        assert_eq!(seqs(&whole), [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(seqs(&short), [1, 2, 3]);
        let mut home = home;
        let gone = [first, second];
        for index in [first_gone, 1 - first_gone] {
            delete(&home.store, gone[index]);
            assert_eq!(
                (history(&home.store, third), history(&home.store, fourth)),
                (whole.clone(), short.clone())
            );
            assert_eq!(errors(&home.disk), []);
            home = home.reopen_same();
            assert_eq!(
                (history(&home.store, third), history(&home.store, fourth)),
                (whole.clone(), short.clone())
            );
        }
        let base = home.disk.read_file(Layout::new("/home").base(third)).expect("a base file");
        let expected: Vec<u8> =
            whole[..6].iter().flat_map(|line| [line.as_slice(), b"\n"].concat()).collect();
        assert_eq!(base, expected);
        // The last one goes with everything that was kept for it.
        delete(&home.store, third);
        assert!(home.disk.read_file(Layout::new("/home").base(third)).is_none());
        assert_eq!(errors(&home.disk), []);
    }
}

/// Returns a home with a session, one fork of it and the first record of another fork that is to be made.
fn family() -> (Home, SessionId, SessionId, Draft) {
    let home = Home::with_sessions(1, 8);
    let parent = home.sessions[0];
    let child = forked(&home.store, parent, 4, 1);
    home.store.append(Append::durable(child, vec![marked(70, 5, None)])).expect("appended");
    let next = beginning(&home.store, parent, 6);
    (home, parent, child, next)
}

fn crashed(picture: &SimDisk, rng: &mut Rng) -> SimDisk {
    if rng.chance(1, 2) { picture.power_cut(rng) } else { picture.process_kill(rng) }
}

// I1, I3: a crash at any operation leaves a fork whole, or none.
#[test]
fn a_crash_at_any_operation_of_a_fork_leaves_it_whole_or_not_there() {
    let (home, parent, _, next) = family();
    let whole = history(&home.store, parent);
    let fork = fork_id(2);
    let points = pictures(&home.disk, || {
        home.store.fork(Append::durable(fork, vec![next, marked(71, 5, None)])).expect("forked");
        home.store.committer().checkpoint().expect("checkpointed");
    });
    let (mut rng, clock) = (Rng::new(3), Arc::new(SimClock::default()));
    let (mut made, mut tried) = (0, 0);
    for (op, picture) in &points {
        for _ in 0..8 {
            let disk = crashed(picture, &mut rng);
            let store = open(&disk, &clock).expect("it opens");
            assert_eq!(errors(&disk), [], "before {op}");
            if store.open_session(fork).is_ok() {
                let found = history(&store, fork);
                assert_eq!(seqs(&found), [1, 2, 3, 4, 5, 6, 7, 8], "before {op}");
                assert_eq!(found[..6], whole[..6], "before {op}");
                made += 1;
            } else {
                // It can be made again.
                let again = beginning(&store, parent, 6);
                store.fork(Append::durable(fork, vec![again])).expect("forked");
            }
            assert_eq!(history(&store, parent), whole, "before {op}");
            tried += 1;
        }
    }
    let disk = home.disk.power_cut(&mut rng);
    assert!(open(&disk, &clock).expect("it opens").open_session(fork).is_ok(), "what was answered is there");
    assert!(made > 0 && made < tried, "{made} of {tried}");
}

/// Checks that a history has all that it had; a repair may have been told in it since.
#[track_caller]
fn assert_begins_with(store: &Store<Inline>, session: SessionId, lines: &[Vec<u8>], op: &str) {
    let found = store.history(session).expect("a history");
    assert_eq!(found.missing, None, "{session} before {op}");
    let found = self::lines(&found);
    assert!(found.starts_with(lines), "{session} before {op}: {:?}", seqs(&found));
}

// I1, I12: a history is never in neither place.
#[test]
fn a_crash_at_any_operation_of_a_parents_removal_loses_no_history() {
    let (home, parent, child, next) = family();
    let (fork, grandchild) = (fork_id(2), fork_id(3));
    home.store.fork(Append::durable(fork, vec![next])).expect("forked");
    home.store.fork(Append::durable(grandchild, vec![beginning(&home.store, child, 6)])).expect("forked");
    let known = [child, fork, grandchild].map(|session| (session, history(&home.store, session)));
    let points = pictures(&home.disk, || {
        delete(&home.store, parent);
        home.store.committer().checkpoint().expect("checkpointed");
        delete(&home.store, child);
    });
    let (mut rng, clock) = (Rng::new(4), Arc::new(SimClock::default()));
    for (op, picture) in &points {
        for _ in 0..6 {
            let disk = crashed(picture, &mut rng);
            let store = open(&disk, &clock).expect("it opens");
            // Whoever comes next finishes what was begun.
            for session in [parent, child] {
                if store.open_session(session).is_ok_and(|current| current.state.deleted) {
                    store.remove(session).expect("removed");
                }
            }
            for (session, lines) in &known {
                if *session != child || store.open_session(child).is_ok() {
                    assert_begins_with(&store, *session, lines, op);
                }
            }
            assert_eq!(errors(&disk), [], "before {op}");
            // Once more, behind what was finished.
            drop(store);
            let cut = disk.power_cut(&mut rng);
            let store = open(&cut, &clock).expect("it opens");
            for (session, lines) in known.iter().filter(|(session, _)| *session != child) {
                assert_begins_with(&store, *session, lines, &format!("{op}, later"));
            }
        }
    }
    assert!(points.len() > 20, "{}", points.len());
}

// I3: both or neither.
#[test]
fn a_fork_that_closes_its_parent_does_both_or_neither_whenever_it_crashes() {
    let (home, parent, _, next) = family();
    let fork = fork_id(2);
    let points = pictures(&home.disk, || {
        let closed = vec![SessionClosed::default().into()];
        home.store.fork(Append::durable(fork, vec![next]).and(parent, closed)).expect("forked");
        home.store.committer().checkpoint().expect("checkpointed");
    });
    let (mut rng, clock) = (Rng::new(5), Arc::new(SimClock::default()));
    let mut outcomes = [0, 0];
    for (op, picture) in &points {
        for _ in 0..8 {
            let disk = crashed(picture, &mut rng);
            let store = open(&disk, &clock).expect("it opens");
            let made = store.open_session(fork).is_ok();
            let closed = store.open_session(parent).expect("the parent").state.closed;
            assert_eq!(made, closed, "before {op}");
            assert_eq!(errors(&disk), [], "before {op}");
            outcomes[usize::from(made)] += 1;
        }
    }
    assert!(outcomes[0] > 0 && outcomes[1] > 0, "{outcomes:?}");
}

// I10, I12: what is lost is told, and the fork works on.
#[test]
fn a_fork_whose_history_is_lost_says_so_and_works_on() {
    let (home, parent, child, _) = family();
    home.store.committer().checkpoint().expect("checkpointed");
    let log = Layout::new("/home").log(parent);
    let bytes = home.disk.read_file(&log).expect("a log");
    // Gone, cut off before the fork, and with another record there.
    let cut: Vec<u8> = bytes.split_inclusive(|byte| *byte == b'\n').take(3).flatten().copied().collect();
    for (name, left) in [("gone", None), ("shorter", Some(cut))] {
        let disk = home.disk.fork();
        disk.write_file(&log, left.as_deref().unwrap_or_default());
        if left.is_none() {
            disk.remove(&log);
        }
        let clock = Arc::new(SimClock::default());
        let store = open(&disk, &clock).expect("it opens");
        let found = store.history(child).expect("what is there");
        assert!(found.missing.is_some(), "{name}");
        assert_eq!(seqs(&lines(&found)), [5, 6], "{name}");
        store.open_session(child).expect("it can be used");
        store.append(Append::durable(child, vec![marked(71, 5, None)])).expect("it goes on");
        assert!(errors(&disk).contains(&(Code::HistoryMissing, Some(child))), "{name}");
    }
    // A byte that rotted: the lines are read as they are, and the doctor names both sessions.
    let disk = home.disk.fork();
    assert!(disk.flip_byte(&log, 200));
    let store = open(&disk, &Arc::new(SimClock::default())).expect("it opens");
    assert_eq!(store.history(child).expect("a history").missing, None);
    let found = errors(&disk);
    assert!(found.contains(&(Code::HistoryDamaged, Some(child))), "{found:?}");
    assert!(found.iter().any(|(_, session)| *session == Some(parent)), "{found:?}");
    // Setting the parent aside keeps its bytes, damaged or not, for the fork.
    drop(store);
    keep_forked_history(&(Arc::new(disk.clone()) as _), "/home".as_ref(), parent).expect("kept");
    let base = disk.read_file(Layout::new("/home").base(child)).expect("a base file");
    let damaged = disk.read_file(&log).expect("a log");
    assert_eq!(base, damaged[..base.len()]);
    assert_eq!(
        Line::parse(base.trim_ascii_end().rsplit(|byte| *byte == b'\n').next().expect("a line"))
            .map(|line| line.seq),
        Ok(4)
    );
}

#[test]
fn forks_of_forks_have_no_end_and_are_read_through_few_logs() {
    let home = Home::with_sessions(1, 2);
    let mut at = (home.sessions[0], 3);
    let mut whole = history(&home.store, at.0);
    for number in 1..=70 {
        let child = forked(&home.store, at.0, at.1, number);
        let found = history(&home.store, child);
        assert_eq!(found[..whole.len()], whole[..], "{number}");
        (at, whole) = ((child, at.1 + 1), found);
    }
    assert_eq!(seqs(&whole), (1..=73).collect::<Vec<u64>>());
    let layout = Layout::new("/home");
    let bases =
        (1..=70).filter(|number| home.disk.read_file(layout.base(fork_id(*number))).is_some()).count();
    assert_eq!(bases, 2);
    assert_eq!(errors(&home.disk), []);
}

#[test]
fn a_first_record_that_claims_a_fork_is_no_way_around_the_chain() {
    let home = Home::with_sessions(1, 2);
    let state = home.store.open_session(home.sessions[0]).expect("a session").state;
    let point = home.store.fork_point(state.id, 2).expect("readable").expect("a record");
    let claimed = SessionCreated { title: "x".into(), ..fork(&state, point, Wishes::default()) };
    let other = fork_id(9);
    home.store.create(other).expect("a new session");
    home.store.append(Append::durable(other, vec![claimed.into()])).expect_err("it would be record 1");
}
