//! Homes of earlier formats, as binaries of their time left them: opened, worked on, killed on the way, and checked.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rekindle_domain::id::SessionId;
use rekindle_store::check::{Holding, Severity, check};
use rekindle_store::commit::{Append, Inline};
use rekindle_store::{Store, Want};
use rekindle_testkit::clock::SimClock;
use rekindle_testkit::rng::Rng;
use rekindle_testkit::sim::SimDisk;

use crate::common::{marked, open};

/// The sessions of the home of format 1: title, records, tokens.
const SESSIONS: [(&str, &str, u64, usize); 5] = [
    ("sess_01m7hx3ja059cz98ktczyea6ck", "a finished turn", 19, 0),
    ("sess_01m7hx3kh7ry96zyypy5sm2qxz", "a request in a blob", 12, 0),
    ("sess_01m7hx3mh0qc0et5rz866j2cpy", "asks and is answered", 19, 1),
    ("sess_01m7hx3pq4yc50e8qjyqtw0n71", "waits when everything dies", 14, 1),
    ("sess_01m7hx3pqbx3xstx34jrtrx7st", "cut in a tool", 10, 0),
];

fn files(below: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(below).expect("a directory").flatten() {
        match entry.file_type().expect("a kind").is_dir() {
            true => files(&entry.path(), found),
            false => found.push(entry.path()),
        }
    }
}

/// Puts the home of format 1 on a simulated disk.
fn home_1() -> SimDisk {
    fixture("home-1")
}

/// Puts a home of an earlier time on a simulated disk.
fn fixture(name: &str) -> SimDisk {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name);
    let (disk, mut found) = (SimDisk::new(5), Vec::new());
    files(&fixture, &mut found);
    for path in found {
        let name = path.strip_prefix(&fixture).expect("below it");
        disk.write_file(Path::new("/home").join(name), &std::fs::read(&path).expect("readable"));
    }
    disk
}

fn id(text: &str) -> SessionId {
    text.parse().expect("an id")
}

fn log(session: &str) -> String {
    format!("/home/sessions/{session}.messages.jsonl")
}

/// Holds every session against what it was, with what was added since.
fn assert_whole(store: &Store<Inline>, added: u64) {
    for (session, title, records, tokens) in SESSIONS {
        let loaded = store.load(id(session), Want::Everything).expect("it loads");
        assert_eq!((loaded.damage, loaded.torn), (None, None), "{session}");
        assert_eq!((loaded.state.title.as_str(), loaded.state.last_seq), (title, records + added));
        assert_eq!(loaded.tokens.tokens.len(), tokens, "{session}");
        let end = store.reader(id(session)).expect("a log").end();
        assert_eq!(store.broken_before(id(session), end).expect("readable"), None, "{session}");
    }
}

fn work(store: &Store<Inline>) {
    for (session, ..) in SESSIONS {
        store.open_session(id(session)).expect("it opens");
        let append = Append::durable(id(session), vec![marked(1, 30, None), marked(2, 30, None)]);
        store.append(append).expect("appended");
    }
}

fn assert_healthy(disk: &SimDisk) {
    let report = check(Arc::new(disk.clone()), "/home", Holding::Nothing, &mut |_| {}).expect("checked");
    let bad: Vec<_> = report.findings.iter().filter(|one| one.severity == Severity::Error).collect();
    assert!(bad.is_empty(), "{bad:#?}");
}

// I1, I2, I3: what was written in the past is read, kept to the byte, and gone on with.
#[test]
fn a_home_of_format_1_opens_and_goes_on() {
    let disk = home_1();
    let before: Vec<Vec<u8>> =
        SESSIONS.iter().map(|(session, ..)| disk.read_file(log(session)).expect("a log")).collect();
    assert_healthy(&disk);
    let clock = Arc::new(SimClock::default());
    for round in 0..3 {
        let store = open(&disk, &clock).expect("it opens");
        assert_whole(&store, 2 * round);
        work(&store);
        assert_whole(&store, 2 * (round + 1));
        for (session, ..) in SESSIONS {
            store.snapshot(id(session)).expect("a cache");
        }
        drop(store);
        assert_healthy(&disk);
    }
    assert_eq!(disk.read_file("/home/home.json").as_deref(), Some(&br#"{"format":2}"#[..]));
    for ((session, ..), before) in SESSIONS.iter().zip(before) {
        let after = disk.read_file(log(session)).expect("a log");
        let whole = before.iter().rposition(|byte| *byte == b'\n').expect("lines") + 1;
        assert_eq!(after[..whole], before[..whole], "{session}: old records keep every byte");
    }
    // A byte of an old record is still missed.
    let (session, ..) = SESSIONS[0];
    assert!(disk.flip_byte(log(session), 700));
    let store = open(&disk, &clock).expect("it opens");
    let end = store.reader(id(session)).expect("a log").end();
    assert!(store.broken_before(id(session), end).expect("readable").is_some());
}

// I1, I3, I14: a crash at any operation of the first opening, or of the first work after it.
#[test]
fn a_crash_while_a_home_of_format_1_is_taken_over_loses_nothing() {
    let disk = home_1();
    let clock = Arc::new(SimClock::default());
    let (seen, handle) = (Arc::new(Mutex::new(Vec::new())), disk.clone());
    let points = seen.clone();
    disk.set_observer(Box::new(move |_| {
        points.lock().unwrap_or_else(PoisonError::into_inner).push(handle.fork());
    }));
    let store = open(&disk, &clock).expect("it opens");
    work(&store);
    drop(store);
    disk.clear_observer();
    let mut rng = Rng::new(11);
    let points = std::mem::take(&mut *seen.lock().unwrap_or_else(PoisonError::into_inner));
    assert!(points.len() > 10, "{}", points.len());
    for (index, picture) in points.into_iter().enumerate() {
        let image = if index % 2 == 0 { picture.power_cut(&mut rng) } else { picture.process_kill(&mut rng) };
        for _ in 0..2 {
            let store = open(&image, &clock).expect("it opens");
            for (session, title, records, tokens) in SESSIONS {
                let loaded = store.load(id(session), Want::Everything).expect("it loads");
                assert_eq!(loaded.damage, None, "crash {index}: {session}");
                assert_eq!((loaded.state.title.as_str(), loaded.tokens.tokens.len()), (title, tokens));
                let added = loaded.state.last_seq.checked_sub(records).expect("nothing is lost");
                assert!(added == 0 || added == 2, "crash {index}: {added} of {session}: all or none");
            }
        }
        assert_healthy(&image);
    }
}

/// The sessions of the home of format 2: title, records, tokens, kept snapshots.
const SESSIONS_2: [(&str, &str, u64, usize, usize); 5] = [
    ("sess_01m7m2p3zd6h5n2wv8jjkdp0v7", "a finished turn", 21, 0, 1),
    ("sess_01m7m2p44gngphp2c96vpjvdbp", "a request in a blob", 13, 0, 0),
    ("sess_01m7m2p6s2r3zecwajpat60dsq", "asks and is answered", 25, 1, 4),
    ("sess_01m7m2p86bgv79vsygkec62y50", "waits when everything dies", 14, 1, 0),
    ("sess_01m7m2p86tzap32g69qr09xbg1", "cut in a tool", 10, 0, 0),
];

// I1, I2, I3: also what stands beside the logs on purpose: kept snapshots, however they are compressed, and packs.
#[test]
fn a_home_of_format_2_opens_with_its_snapshots_and_packs_and_goes_on() {
    let disk = fixture("home-2");
    assert_healthy(&disk);
    let clock = Arc::new(SimClock::default());
    for round in 0..2 {
        let store = open(&disk, &clock).expect("it opens");
        for (session, title, records, tokens, kept) in SESSIONS_2 {
            let loaded = store.load(id(session), Want::Everything).expect("it loads");
            assert_eq!((loaded.damage, loaded.torn), (None, None), "{session}");
            assert_eq!((loaded.state.title.as_str(), loaded.state.last_seq), (title, records + round));
            assert_eq!(loaded.tokens.tokens.len(), tokens, "{session}");
            let snapshots = store.kept_snapshots();
            let files = snapshots.list(id(session)).expect("a list");
            assert_eq!(files.len(), kept, "{session}");
            for file in files {
                let snapshot = snapshots.read(id(session), file.name).expect("it can be read");
                assert_eq!((snapshot.state.title.as_str(), snapshot.seq), (title, file.name.seq));
            }
            store.open_session(id(session)).expect("it opens");
            store.append(Append::durable(id(session), vec![marked(round, 30, None)])).expect("appended");
        }
        let tree = "5977021a9b003259fae97bacc1e0091ab39ea5f6e439e1bb639d86bac29a17bb";
        assert!(
            store.blobs().get(&tree.parse().expect("a name")).expect("in a pack").starts_with(b"rktree1\n")
        );
        drop(store);
        assert_healthy(&disk);
    }
}
