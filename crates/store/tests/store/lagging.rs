//! Logs that could not be written once: what was acknowledged is read at once, by everyone and in every way, and the log has
//! it as soon as that can be done, without a restart and without another append.

use rekindle_domain::event::SessionDeleted;
use rekindle_domain::id::SessionId;
use rekindle_domain::line::Line;
use rekindle_store::commit::{Append, Commits, Inline};
use rekindle_store::log::Follow;
use rekindle_store::{AppendError, Store, Want};
use rekindle_testkit::rng::Rng;
use rekindle_testkit::sim::{Fault, FaultKind, OpKind, SimDisk};

use crate::common::{Home, created, marked, markers, open};

/// Everything that a log can fail with when it is opened or written.
const TROUBLE: [FaultKind; 4] =
    [FaultKind::NoSpace, FaultKind::Eio, FaultKind::NoDescriptors, FaultKind::ShortThenNoSpace];

/// Strikes every attempt to open or write session logs, and nothing else.
fn on_logs(kind: FaultKind) -> Fault {
    let writes = [OpKind::Create, OpKind::Truncate, OpKind::Write, OpKind::SetLen, OpKind::Rename];
    let fault = Fault::sticky(kind, 0).at(".messages.jsonl");
    match kind {
        FaultKind::NoDescriptors => fault.on(&[OpKind::Open, OpKind::Create, OpKind::Truncate]),
        _ => fault.on(&writes),
    }
}

/// Returns the numbers of the records that a reader gets.
fn read(store: &Store<Inline>, session: SessionId) -> Vec<u64> {
    let reader = store.reader(session).expect("it can be read");
    let mut lines = reader.forward(rekindle_store::log::Cursor::START);
    let mut seqs = Vec::new();
    while let Some(line) = lines.next().expect("it can be read") {
        assert!(line.whole);
        seqs.push(Line::parse(line.bytes).expect("a record").seq);
    }
    seqs
}

/// Checks that a session is read in full, in every way there is.
fn assert_served(home: &Home, session: SessionId, last: u64, what: &str) {
    assert_eq!(read(&home.store, session), (1..=last).collect::<Vec<_>>(), "{what}");
    let loaded = home.store.load(session, Want::Everything).expect("it loads");
    assert_eq!((loaded.state.last_seq, &loaded.damage, &loaded.torn), (last, &None, &None), "{what}");
    let Follow::Lines(lines) =
        home.store.follower(session, rekindle_store::log::Cursor::START).poll().expect("followed")
    else {
        panic!("{what}: nothing was lost");
    };
    assert_eq!(lines.len() as u64, last, "{what}");
    let mut seen = None;
    home.store
        .survey(|id, loaded| {
            if id == session {
                seen = loaded.ok().map(|loaded| loaded.state.last_seq);
            }
        })
        .expect("listed");
    assert_eq!(seen, Some(last), "{what}");
}

// I1, I12
#[test]
fn what_was_acknowledged_is_read_at_once_though_its_log_could_not_be_written() {
    for kind in TROUBLE {
        for touched in [true, false] {
            let home = Home::with_sessions(2, 1);
            let session = home.sessions[0];
            if !touched {
                home.store.committer().checkpoint().expect("the log is closed");
            }
            // Descriptors that are open work on.
            if kind == FaultKind::NoDescriptors && touched {
                continue;
            }
            let what = format!("{kind:?}, open before: {touched}");
            home.disk.set_faults(on_logs(kind));
            for marker in 100..105 {
                home.append(marker).expect("the write-ahead log has it");
            }
            assert_eq!(markers(&home.disk, session), [0], "{what}: the file does not");
            let why = home.store.lagging(session).expect("that is said");
            assert!(!why.is_empty() && home.store.lagging(home.sessions[1]).is_none(), "{what}");
            if kind != FaultKind::NoDescriptors {
                assert_served(&home, session, 7, &what);
            }
            home.store.committer().tick();
            assert!(home.store.lagging(session).is_some(), "{what}: it lasts");
            home.disk.clear_faults();
            assert_served(&home, session, 7, &what);
            home.store.committer().tick();
            assert_eq!(markers(&home.disk, session), [0, 100, 101, 102, 103, 104], "{what}: by itself");
            assert_eq!(home.store.lagging(session), None, "{what}");
            assert_served(&home, session, 7, &what);
            home.append(105).expect("and it goes on");
            assert_eq!(markers(&home.disk, session).last(), Some(&105), "{what}: in the file");
            for seed in 0..50 {
                let image = home.disk.power_cut(&mut Rng::new(seed));
                open(&image, &home.clock).expect("the home opens");
                assert_eq!(markers(&image, session), [0, 100, 101, 102, 103, 104, 105], "{what}");
            }
            home.store.committer().checkpoint().expect("a checkpoint");
            let image = home.disk.power_cut(&mut Rng::new(1));
            open(&image, &home.clock).expect("the home opens");
            assert_eq!(markers(&image, session), [0, 100, 101, 102, 103, 104, 105], "{what}");
        }
    }
}

// I1, I10, I12
#[test]
fn a_session_made_while_no_log_can_be_made_is_there_and_gets_its_log() {
    for kind in [FaultKind::NoSpace, FaultKind::NoDescriptors, FaultKind::Eio] {
        let home = Home::with_sessions(1, 1);
        home.disk.set_faults(on_logs(kind));
        let new = SessionId::mint(77, 77);
        home.store.create(new).expect("new");
        let records = vec![created(), marked(1, 40, None)];
        home.store.append(Append::durable(new, records)).expect("the write-ahead log has it");
        assert!(home.disk.read_file(home.store.layout().log(new)).is_none_or(|log| log.is_empty()));
        assert_served(&home, new, 2, "nothing of its file is needed");
        assert!(home.store.create(new).is_err(), "it exists");
        home.disk.clear_faults();
        home.store.committer().tick();
        assert_eq!(markers(&home.disk, new), [1], "{kind:?}");
        assert_eq!(home.store.lagging(new), None);
    }
}

// I1
#[test]
fn a_full_disk_that_has_room_again_has_every_record_in_its_log() {
    for left in [0, 200, 500, 1000, 3000] {
        let home = Home::with_sessions(2, 1);
        let used: u64 = home
            .disk
            .paths()
            .iter()
            .map(|path| home.disk.read_file(path).map_or(0, |f| f.len() as u64))
            .sum();
        home.disk.set_capacity(Some(used + left));
        let mut accepted = vec![0];
        for marker in 100..140 {
            let append = Append::durable(home.sessions[0], vec![marked(marker, 90, None)]);
            match home.store.append(append) {
                Ok(receipt) => {
                    accepted.push(marker);
                    assert_served(&home, home.sessions[0], receipt.last_seq, "while the disk is full");
                }
                Err(AppendError::StorageFull(_)) => {}
                Err(other) => panic!("a full disk is not {other}"),
            }
            home.store.committer().tick();
        }
        home.disk.set_capacity(None);
        for _ in 0..10 {
            home.store.committer().tick();
        }
        assert_eq!(markers(&home.disk, home.sessions[0]), accepted, "{left}");
        home.store.committer().checkpoint().expect("a checkpoint passes");
    }
}

// I2, I13
#[test]
fn caches_and_deletions_of_a_log_that_is_behind_are_right() {
    let home = Home::with_sessions(2, 1);
    home.disk.set_faults(on_logs(FaultKind::NoSpace));
    for session in &home.sessions {
        home.store.append(Append::durable(*session, vec![marked(5, 30, None)])).expect("recorded");
        home.store.snapshot(*session).expect("a snapshot says more than the file has");
    }
    let [first, second] = home.sessions[..] else { panic!("two sessions") };
    assert_served(&home, first, 3, "with a snapshot");
    home.store.append(Append::durable(second, vec![SessionDeleted::default().into()])).expect("recorded");
    home.store.remove(second).expect("removed");
    assert_eq!(home.store.lagging(second), None);
    assert!(home.store.reader(second).is_err(), "nothing of it is shown any more");
    let image = home.disk.process_kill(&mut Rng::new(1));
    let again = open(&image, &home.clock).expect("the home opens");
    let loaded = again.load(first, Want::Status).expect("it loads");
    assert_eq!((loaded.state.last_seq, loaded.damage), (3, None));
}

/// A home whose session logs lack their last records, as a kill leaves it on a full disk.
fn killed_behind(home: &Home) -> SimDisk {
    home.disk.set_faults(on_logs(FaultKind::NoSpace));
    for session in &home.sessions {
        home.store.append(Append::durable(*session, vec![marked(100, 60, None)])).expect("recorded");
    }
    let image = home.disk.process_kill(&mut Rng::new(3));
    image.clear_faults();
    image
}

// I1, I10, I14
#[test]
fn a_home_opens_on_a_full_disk_and_serves_what_its_logs_lack() {
    for full in [FaultKind::NoSpace, FaultKind::NoDescriptors, FaultKind::Eio] {
        let home = Home::with_sessions(3, 1);
        let bad = home.sessions[0];
        let image = killed_behind(&home);
        // One log cannot be completed: the others are.
        let part = format!("{bad}.messages");
        let fault = match full {
            FaultKind::NoDescriptors => Fault::sticky(full, 0).on(&[OpKind::Open, OpKind::Create]),
            _ => Fault::sticky(full, 0).on(&[OpKind::Write]),
        };
        image.set_faults(fault.at(&part));
        let store = open(&image, &home.clock).expect("one log does not keep the home shut");
        let home = Home { disk: image, clock: home.clock.clone(), store, sessions: home.sessions.clone() };
        assert!(home.store.lagging(bad).is_some(), "{full:?}");
        assert_eq!(home.store.lagging(home.sessions[1]), None, "{full:?}");
        assert_served(&home, home.sessions[1], 3, "the others");
        if full != FaultKind::NoDescriptors {
            assert_served(&home, bad, 3, "from the write-ahead log");
            assert!(home.store.open_session(bad).expect("it opens").damage.is_none());
            home.append(101).expect("and takes more");
            assert_served(&home, bad, 4, "that too");
        }
        home.store.committer().checkpoint().expect_err("no checkpoint passes it");
        for seed in 0..30 {
            let image = home.disk.power_cut(&mut Rng::new(seed));
            open(&image, &home.clock).expect("the home opens");
            assert_eq!(markers(&image, bad)[..2], [0, 100], "{full:?}");
        }
        home.disk.clear_faults();
        for _ in 0..10 {
            home.store.committer().tick();
        }
        assert_eq!(home.store.lagging(bad), None, "{full:?}");
        assert_eq!(markers(&home.disk, bad)[..2], [0, 100], "{full:?}: by itself");
        home.store.committer().checkpoint().expect("a checkpoint passes");
        let image = home.disk.power_cut(&mut Rng::new(1));
        open(&image, &home.clock).expect("the home opens");
        assert_eq!(markers(&image, bad)[..2], [0, 100], "{full:?}");
    }
}

// I10, I14
#[test]
fn a_disk_without_any_room_keeps_no_home_shut() {
    let home = Home::with_sessions(2, 1);
    let image = killed_behind(&home);
    // The reserve is used up already.
    image.remove(home.store.layout().reserve());
    image.set_faults(Fault::sticky(FaultKind::NoSpace, 0));
    let store = open(&image, &home.clock).expect("it opens without a new segment too");
    let home = Home { disk: image, clock: home.clock.clone(), store, sessions: home.sessions.clone() };
    for session in &home.sessions {
        assert_served(&home, *session, 3, "everything is served");
        home.store.open_session(*session).expect("it opens");
    }
    let refused = home.append(101).expect_err("there is no room");
    assert!(matches!(refused, AppendError::StorageFull(_)), "{refused}");
    home.store.committer().tick();
    home.disk.clear_faults();
    for _ in 0..10 {
        home.store.committer().tick();
    }
    home.append(102).expect("there is room again");
    for session in &home.sessions {
        assert_eq!(home.store.lagging(*session), None);
        assert_eq!(markers(&home.disk, *session)[..2], [0, 100]);
    }
    assert_eq!(markers(&home.disk, home.sessions[0]), [0, 100, 102]);
    let again = home.reopen_same();
    assert_eq!(markers(&again.disk, again.sessions[0]), [0, 100, 102]);
    assert!(again.store.recovered().wal_damage.is_empty(), "{:?}", again.store.recovered());
}
