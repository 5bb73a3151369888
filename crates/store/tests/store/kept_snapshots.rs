//! Kept snapshots: written whole or not at all, found damaged where they are, and gone with their session.

use std::sync::{Arc, Mutex};

use rekindle_domain::event::{Compression, SessionDeleted};
use rekindle_domain::id::SessionId;
use rekindle_domain::kept_snapshot::{KeptSnapshot, SnapshotName, SnapshotReason};
use rekindle_domain::time::Timestamp;
use rekindle_store::check::{Code, Holding, check};
use rekindle_store::commit::{Append, Commits};
use rekindle_store::disk::Disk;
use rekindle_store::kept_snapshots::{KeptSnapshots, SnapshotError};
use rekindle_store::layout::Layout;
use rekindle_testkit::rng::Rng;
use rekindle_testkit::sim::SimDisk;

use crate::common::{Home, marked, open};

fn snapshots(disk: &SimDisk) -> KeptSnapshots {
    KeptSnapshots::new(Arc::new(disk.clone()), Layout::new("/home"))
}

fn taken(home: &Home, session: SessionId, minute: i64) -> KeptSnapshot {
    let state = (*home.store.current(session).expect("open").state).clone();
    KeptSnapshot::new(state, SnapshotReason::Request, Timestamp::from_millis(minute * 60_000), None)
}

#[test]
fn snapshots_are_listed_by_record_and_number_and_read_back() {
    let home = Home::with_sessions(1, 2);
    let (session, kept) = (home.sessions[0], snapshots(&home.disk));
    assert!(kept.list(session).expect("none yet").is_empty());
    let first = taken(&home, session, 1);
    let names = [Compression::Zstd, Compression::Gzip, Compression::None]
        .map(|compression| kept.write(&first, compression).expect("written").name);
    home.store.append(Append::durable(session, vec![marked(1, 5, None)])).expect("recorded");
    let later = taken(&home, session, 2);
    let last = kept.write(&later, Compression::Zstd).expect("written");
    assert_eq!(names.map(|name| (name.seq, name.number)), [1, 2, 3].map(|number| (first.seq, number)));
    assert_eq!(last.name, SnapshotName { seq: later.seq, number: 1 });
    let listed = kept.list(session).expect("a list");
    assert_eq!(listed.iter().map(|file| file.name).collect::<Vec<_>>(), [&names[..], &[last.name]].concat());
    assert!(listed.iter().all(|file| file.size > 0));
    for name in names {
        assert_eq!(kept.read(session, name).expect("a snapshot"), first);
    }
    assert_eq!(kept.read(session, last.name).expect("a snapshot"), later);
    kept.remove(session, names[1]).expect("removed");
    assert!(matches!(kept.read(session, names[1]), Err(SnapshotError::NotFound { .. })));
    assert!(matches!(kept.remove(session, names[1]), Err(SnapshotError::NotFound { .. })));
    assert_eq!(kept.list(session).expect("a list").len(), 3);
}

// I12
#[test]
fn a_snapshot_that_somebody_changed_is_named_and_kept() {
    let home = Home::with_sessions(2, 2);
    let (session, kept) = (home.sessions[0], snapshots(&home.disk));
    let file = kept.write(&taken(&home, session, 1), Compression::None).expect("written");
    let text = String::from_utf8(home.disk.read_file(&file.path).expect("a file")).expect("text");
    for (changed, newer) in [
        (text.replacen("request", "restore", 1), false),
        (text[..text.len() / 2].to_owned(), false),
        (String::new(), false),
        (text.replacen("\"version\":1", "\"version\":9", 1), true),
    ] {
        home.disk.write_file(&file.path, changed.as_bytes());
        let error = kept.read(session, file.name).expect_err("it is not what was written");
        assert!(error.to_string().contains(&file.path.display().to_string()), "{error}");
        assert_eq!(matches!(error, SnapshotError::Version { found: 9, .. }), newer, "{error}");
        assert_eq!(matches!(error, SnapshotError::Corrupted { .. }), !newer, "{error}");
        assert_eq!(home.disk.read_file(&file.path).expect("it is kept"), changed.as_bytes());
    }
    // Another session's, under our name.
    let other = kept.write(&taken(&home, home.sessions[1], 1), Compression::None).expect("written");
    home.disk.write_file(&file.path, &home.disk.read_file(&other.path).expect("a file"));
    assert!(matches!(kept.read(session, file.name), Err(SnapshotError::Corrupted { .. })));
}

// I3, I12: whatever a crash leaves, each snapshot is whole or not there, and those before it are untouched.
#[test]
fn a_crash_at_any_write_leaves_a_snapshot_whole_or_not_at_all() {
    let home = Home::with_sessions(1, 2);
    let session = home.sessions[0];
    let first = snapshots(&home.disk).write(&taken(&home, session, 1), Compression::Zstd).expect("written");
    let second = taken(&home, session, 2);
    let points: Arc<Mutex<Vec<SimDisk>>> = Arc::default();
    let (seen, handle) = (points.clone(), home.disk.clone());
    home.disk.set_observer(Box::new(move |_| seen.lock().expect("one thread").push(handle.fork())));
    let written = snapshots(&home.disk).write(&second, Compression::Zstd).expect("written");
    home.disk.clear_observer();
    let mut points = std::mem::take(&mut *points.lock().expect("one thread"));
    points.push(home.disk.fork());
    let (last, mut rng) = (points.len() - 1, Rng::new(5));
    assert!(last >= 4, "{last} operations are too few to die between");
    for (index, point) in points.into_iter().enumerate() {
        for round in 0..8 {
            let disk = if round % 2 == 0 { point.power_cut(&mut rng) } else { point.process_kill(&mut rng) };
            let kept = snapshots(&disk);
            let names: Vec<_> = kept.list(session).expect("a list").iter().map(|file| file.name).collect();
            assert!(names == [first.name] || names == [first.name, written.name], "{names:?} at {index}");
            assert!(names.len() == 2 || index < last, "what was acknowledged is there");
            for name in names {
                kept.read(session, name).unwrap_or_else(|error| panic!("at {index}: {error}"));
            }
            // The next one has a name of its own.
            let again = kept.write(&second, Compression::Zstd).expect("written");
            assert_eq!(kept.read(session, again.name).expect("a snapshot"), second);
        }
    }
}

#[test]
fn snapshots_go_with_their_session() {
    let home = Home::with_sessions(1, 2);
    let (session, kept) = (home.sessions[0], snapshots(&home.disk));
    kept.write(&taken(&home, session, 1), Compression::Zstd).expect("written");
    home.store.append(Append::durable(session, vec![SessionDeleted::default().into()])).expect("recorded");
    home.store.remove(session).expect("removed");
    assert!(kept.list(session).expect("a list").is_empty());
    assert!(home.disk.list(&home.store.layout().history(session)).is_err(), "its directory is gone too");
}

// I10: whatever is left of a session when its removal is cut short, the next start and the next try take all of it.
#[test]
fn a_removal_that_is_cut_short_takes_the_snapshots_in_the_end() {
    let home = Home::with_sessions(2, 2);
    let session = home.sessions[0];
    for minute in 1..4 {
        snapshots(&home.disk).write(&taken(&home, session, minute), Compression::Zstd).expect("written");
    }
    home.store.append(Append::durable(session, vec![SessionDeleted::default().into()])).expect("recorded");
    let points: Arc<Mutex<Vec<SimDisk>>> = Arc::default();
    let (seen, handle) = (points.clone(), home.disk.clone());
    home.disk.set_observer(Box::new(move |_| seen.lock().expect("one thread").push(handle.fork())));
    home.store.remove(session).expect("removed");
    home.disk.clear_observer();
    let points = std::mem::take(&mut *points.lock().expect("one thread"));
    assert!(points.len() > 5, "{} operations are too few to die between", points.len());
    let mut rng = Rng::new(9);
    for (index, point) in points.into_iter().enumerate() {
        for round in 0..4 {
            let disk = if round % 2 == 0 { point.power_cut(&mut rng) } else { point.process_kill(&mut rng) };
            let store = open(&disk, &home.clock).expect("the home opens");
            store.remove(session).expect("it can be removed again");
            let left: Vec<_> = disk.paths();
            let left = left.iter().filter(|path| path.to_string_lossy().contains(session.as_str()));
            assert_eq!(left.collect::<Vec<_>>(), Vec::<&std::path::PathBuf>::new(), "at {index}");
            assert!(store.open_session(home.sessions[1]).is_ok(), "the other one is not concerned");
        }
    }
}

/// Returns what a check finds about kept snapshots, with what is advised.
/// A hash that no record of a test has.
const HASH: &str = "0000000000000000";

fn found(disk: &SimDisk) -> Vec<(Code, String)> {
    let report = check(Arc::new(disk.clone()), "/home", Holding::Nothing, &mut |_| {}).expect("checked");
    let kept = [Code::KeptSnapshotDamaged, Code::KeptSnapshotNewer, Code::LogDiffersFromKept];
    let about = report.findings.into_iter().filter(|finding| kept.contains(&finding.code));
    about.map(|finding| (finding.code, format!("{} {}", finding.what, finding.remedy))).collect()
}

// I12
#[test]
fn the_doctor_looks_at_every_snapshot_and_advises_nobody_to_delete_one() {
    let home = Home::with_sessions(2, 3);
    let (session, kept) = (home.sessions[0], snapshots(&home.disk));
    let file = kept.write(&taken(&home, session, 1), Compression::None).expect("written");
    let packed = kept.write(&taken(&home, session, 2), Compression::Zstd).expect("written");
    let other = KeptSnapshot { h: Some(HASH.parse().expect("a hash")), ..taken(&home, session, 3) };
    home.store.committer().sync().expect("synced");
    drop(home.store);
    assert_eq!(found(&home.disk), [], "all is well");
    let whole = home.disk.read_file(&file.path).expect("a file");
    let text = String::from_utf8(whole.clone()).expect("text");

    home.disk.write_file(&file.path, text.replacen("request", "restore", 1).as_bytes());
    home.disk.flip_byte(&packed.path, 20);
    let damaged = found(&home.disk);
    assert_eq!(damaged.iter().map(|(code, _)| *code).collect::<Vec<_>>(), [Code::KeptSnapshotDamaged; 2]);
    for (_, advice) in &damaged {
        assert!(
            advice.contains("backup") && !advice.contains("rm ") && !advice.contains("emove"),
            "{advice}"
        );
    }
    assert!(damaged[0].1.contains(&file.path.display().to_string()), "{damaged:?}");

    home.disk.remove(&packed.path);
    home.disk.write_file(&file.path, text.replacen("\"version\":1", "\"version\":9", 1).as_bytes());
    assert_eq!(found(&home.disk)[0].0, Code::KeptSnapshotNewer);

    // It was taken of another history than the log tells.
    home.disk.write_file(&file.path, &whole);
    let forged = kept.write(&other, Compression::None).expect("written");
    let differs = found(&home.disk);
    assert_eq!(differs.iter().map(|(code, _)| *code).collect::<Vec<_>>(), [Code::LogDiffersFromKept]);
    assert!(differs[0].1.contains(&forged.name.to_string()), "{differs:?}");
    home.disk.remove(&forged.path);

    // Records that were there when the snapshot was taken are not there any more.
    let log = Layout::new("/home").log(session);
    let bytes = home.disk.read_file(&log).expect("a log");
    let cut = bytes[..bytes.len() - 1].iter().rposition(|byte| *byte == b'\n').expect("a line") + 1;
    home.disk.write_file(&log, &bytes[..cut]);
    for path in home.disk.paths() {
        if path.starts_with("/home/wal") {
            home.disk.remove(path);
        }
    }
    let shorter = found(&home.disk);
    assert_eq!(shorter[0].0, Code::LogDiffersFromKept, "{shorter:?}");
}
