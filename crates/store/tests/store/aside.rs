//! Setting a session aside: nothing of it is lost, it can be cut short anywhere, and the rest of the home is not concerned.

use std::sync::{Arc, Mutex};

use rekindle_domain::id::SessionId;
use rekindle_domain::time::Timestamp;
use rekindle_store::aside::{is_aside, keep_prefix, set_aside};
use rekindle_store::layout::Layout;
use rekindle_store::{LoadError, Want};
use rekindle_testkit::rng::Rng;
use rekindle_testkit::sim::SimDisk;

use crate::common::{Home, open};

/// A home with a session that is damaged in the middle, all of its files, and another one; nobody owns it.
fn damaged() -> (Home, SessionId) {
    let home = Home::with_sessions(2, 8);
    let session = home.sessions[0];
    home.store.snapshot(session).expect("a snapshot");
    // Opened again, the write-ahead log vouches for the logs and cannot heal them.
    let home = home.reopen_same();
    let sessions = Layout::new("/home").sessions();
    assert!(home.disk.flip_byte(sessions.join(format!("{session}.messages.jsonl")), 300));
    home.disk.write_file(
        sessions.join(format!("{session}.damaged.json")),
        br#"{"version":1,"offset":1,"detail":"x"}"#,
    );
    (home, session)
}

/// What there is of a session, wherever it is: file names with their bytes.
fn files_of(disk: &SimDisk, session: SessionId) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = disk
        .paths()
        .into_iter()
        .filter(|path| path.to_string_lossy().contains(&session.to_string()))
        .map(|path| {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            (name, disk.read_file(&path).expect("a file"))
        })
        .collect();
    files.sort();
    files
}

// I10, I12
#[test]
fn a_session_that_is_set_aside_is_whole_elsewhere_and_the_rest_goes_on() {
    let (home, session) = damaged();
    let layout = Layout::new("/home");
    let before = files_of(&home.disk, session);
    assert_eq!(before.len(), 3, "log, snapshot and note: {before:?}");
    let Home { disk, clock, store, sessions } = home;
    drop(store);
    let first = set_aside(&disk, &layout, session).expect("set aside");
    assert_eq!(first, layout.aside(session, 1));
    assert!(is_aside(&disk, &layout, session) && !is_aside(&disk, &layout, sessions[1]));
    assert_eq!(files_of(&disk, session), before);
    assert_eq!(set_aside(&disk, &layout, session).expect("again"), first, "there is nothing left to do");
    assert_eq!(files_of(&disk, session), before);
    // The write-ahead log still vouches for the session, and nobody misses it.
    let store = open(&disk, &clock).expect("opens");
    assert!(matches!(store.load(session, Want::Status), Err(LoadError::NotFound(_))));
    assert_eq!(store.load(sessions[1], Want::Status).expect("the other").damage, None);
    assert_eq!(files_of(&disk, session), before, "no note was left");
    assert!(!disk.paths().iter().any(|path| path.to_string_lossy().ends_with(".wal.damaged")));
    drop(store);
    // One that comes back and is damaged again goes elsewhere.
    disk.write_file(layout.log(session), b"x\n");
    assert!(!is_aside(&disk, &layout, session));
    assert_eq!(set_aside(&disk, &layout, session).expect("once more"), layout.aside(session, 2));
    let unknown = SessionId::mint(99, 99);
    assert_eq!(set_aside(&disk, &layout, unknown).expect_err("none").kind(), std::io::ErrorKind::NotFound);
}

// I12, I14
#[test]
fn setting_aside_can_be_cut_short_anywhere_and_done_again() {
    let (home, session) = damaged();
    let layout = Layout::new("/home");
    let before = files_of(&home.disk, session);
    let Home { disk, clock, store, sessions } = home;
    drop(store);
    let points: Arc<Mutex<Vec<SimDisk>>> = Arc::default();
    let (seen, handle) = (points.clone(), disk.clone());
    disk.set_observer(Box::new(move |_| seen.lock().expect("one thread").push(handle.fork())));
    set_aside(&disk, &layout, session).expect("set aside");
    disk.clear_observer();
    let points = std::mem::take(&mut *points.lock().expect("one thread"));
    assert!(points.len() > 10, "{}", points.len());
    let mut rng = Rng::new(5);
    for (index, point) in points.into_iter().enumerate() {
        for power in [true, false] {
            let image = if power { point.power_cut(&mut rng) } else { point.process_kill(&mut rng) };
            assert_eq!(files_of(&image, session), before, "point {index}: something is lost");
            // A daemon may come in between; it takes nobody for whole.
            let store = open(&image, &clock).expect("opens");
            match store.load(session, Want::Everything) {
                Ok(loaded) => assert!(loaded.damage.is_some(), "point {index}"),
                Err(error) => assert!(matches!(error, LoadError::NotFound(_)), "point {index}: {error}"),
            }
            assert_eq!(store.load(sessions[1], Want::Status).expect("the other").damage, None);
            drop(store);
            set_aside(&image, &layout, session).expect("done again");
            assert!(is_aside(&image, &layout, session), "point {index}");
            let there = |name: &str| image.read_file(layout.aside(session, 1).join(name));
            for (name, bytes) in &before {
                assert_eq!(there(name).as_ref(), Some(bytes), "point {index}: {name}");
            }
            assert!(open(&image, &clock).expect("opens").load(session, Want::Status).is_err());
        }
    }
}

// I12, I14: the good beginning comes back whole with the record that says so, or not at all.
#[test]
fn keeping_the_good_beginning_can_be_cut_short_anywhere_and_done_again() {
    let (home, session) = damaged();
    let layout = Layout::new("/home");
    let Home { disk, clock, store, sessions } = home;
    drop(store);
    let log = disk.read_file(layout.log(session)).expect("a log");
    set_aside(&disk, &layout, session).expect("set aside");
    // The write-ahead log forgets the session with the next start.
    drop(open(&disk, &clock).expect("opens"));
    let keep =
        |disk: &SimDisk| keep_prefix(disk, &layout, session, Timestamp::from_millis(1), |_, _| Vec::new());
    let points: Arc<Mutex<Vec<SimDisk>>> = Arc::default();
    let (seen, handle) = (points.clone(), disk.clone());
    disk.set_observer(Box::new(move |_| seen.lock().expect("one thread").push(handle.fork())));
    let kept = keep(&disk).expect("kept");
    disk.clear_observer();
    assert!(kept.records >= 1 && kept.left_bytes > 0, "{kept:?}");
    assert_eq!(keep(&disk).expect_err("it has a log").kind(), std::io::ErrorKind::AlreadyExists);
    let whole = disk.read_file(layout.log(session)).expect("a log");
    assert!(String::from_utf8_lossy(&whole).contains("prefix_kept"));
    let points = std::mem::take(&mut *points.lock().expect("one thread"));
    let mut rng = Rng::new(6);
    for (index, point) in points.into_iter().enumerate() {
        for power in [true, false] {
            let image = if power { point.power_cut(&mut rng) } else { point.process_kill(&mut rng) };
            let aside = layout.aside(session, 1).join(format!("{session}.messages.jsonl"));
            assert_eq!(image.read_file(aside).as_ref(), Some(&log), "point {index}");
            // A daemon may come in between; it knows the session as it will be, or not at all.
            let store = open(&image, &clock).expect("opens");
            match store.load(session, Want::Everything) {
                Ok(loaded) => assert_eq!((loaded.damage, loaded.state.last_seq), (None, kept.records + 1)),
                Err(error) => assert!(matches!(error, LoadError::NotFound(_)), "point {index}: {error}"),
            }
            drop(store);
            if image.read_file(layout.log(session)).is_none() {
                keep(&image).expect("done again");
            }
            assert_eq!(image.read_file(layout.log(session)).as_ref(), Some(&whole), "point {index}");
            let store = open(&image, &clock).expect("opens");
            assert_eq!(store.open_session(session).expect("opens").state.last_seq, kept.records + 1);
            assert_eq!(store.load(sessions[1], Want::Status).expect("the other").damage, None);
        }
    }
}
