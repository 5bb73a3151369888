//! Crashes while a bundle is imported: the session is there whole, or not at all.

use std::sync::Mutex;

use rekindle_domain::event::Compression;
use rekindle_domain::kept_snapshot::{KeptSnapshot, SnapshotReason};
use rekindle_testkit::rng::Rng;

use super::super::import::collect_leftovers;
use super::*;

/// Imports a bundle; returns the disk as it was before each operation.
fn disks_during_import(disk: &SimDisk, bundle: &[u8]) -> Vec<SimDisk> {
    let seen: Arc<Mutex<Vec<SimDisk>>> = Arc::default();
    let (points, handle) = (seen.clone(), disk.clone());
    disk.set_observer(Box::new(move |_| points.lock().expect("no panic").push(handle.fork())));
    imported(disk, bundle).expect("imported");
    disk.clear_observer();
    std::mem::take(&mut *seen.lock().expect("no panic"))
}

// I12: the log of a session is the last of it to get its place.
#[test]
fn a_crash_while_a_bundle_is_imported_leaves_the_session_whole_or_absent() {
    let bundle = exported(&home_with_session());
    let disk = SimDisk::new(2);
    drop(open(&disk));
    let points = disks_during_import(&disk, &bundle);
    let whole = log(&disk, session());
    assert!(points.len() > 20, "{} operations are too few to die between", points.len());
    let (mut rng, mut there, mut absent) = (Rng::new(7), 0, 0);
    for (index, point) in points.iter().enumerate() {
        for power in [true, false] {
            let image = if power { point.power_cut(&mut rng) } else { point.process_kill(&mut rng) };
            assert_eq!(errors(&image), Vec::<String>::new(), "at {index}");
            drop(open(&image));
            let found = image.stat(&Layout::new(HOME).log(session())).is_ok();
            if found {
                there += 1;
                assert_eq!(log(&image, session()), whole, "at {index}");
            } else {
                absent += 1;
            }
            // Whoever comes next has no trouble with what was left.
            let again = imported(&image, &bundle).expect("imported again");
            assert_eq!(again[0].id == session(), !found, "at {index}");
            assert_eq!(errors(&image), Vec::<String>::new(), "at {index}");
            let left = rekindle_store::staging::leftovers(&image, &Layout::new(HOME)).expect("a list");
            assert!(left.is_empty(), "{left:?} at {index}");
        }
    }
    assert!(there > 0 && absent > 0, "{there} times there, {absent} times not");
}

/// Returns the base files and kept snapshots of sessions that have no log.
fn strays(disk: &SimDisk) -> Vec<String> {
    use rekindle_store::layout::{SessionFile, session_file};
    let layout = Layout::new(HOME);
    let entries = disk.list(&layout.sessions()).expect("a list");
    let stray = entries.into_iter().filter(|entry| match session_file(&entry.name) {
        SessionFile::Base(id) | SessionFile::History(id) => disk.stat(&layout.log(id)).is_err(),
        _ => false,
    });
    stray.map(|entry| entry.name).collect()
}

// I12: what got its place before the log did is nobody's, and goes.
#[test]
fn a_crash_while_a_bundle_is_imported_leaves_no_base_file_behind() {
    let from = home_with_session();
    let store = open(&from);
    let state = (*store.open_session(session()).expect("open").state).clone();
    let (reason, now) = (SnapshotReason::Request, Timestamp::from_millis(1_000));
    let snapshot = KeptSnapshot::new(state, reason, now, None);
    store.keep_snapshots(&[(snapshot, Compression::None)]).pop().expect("one").expect("kept");
    drop(store);
    let bundle = exported(&from);
    // The id is taken in one home and free in the other: a base file, and a kept snapshot.
    for disk in [from, SimDisk::new(2)] {
        drop(open(&disk));
        let points = disks_during_import(&disk, &bundle);
        let (mut rng, mut left) = (Rng::new(7), 0);
        for (index, point) in points.iter().enumerate() {
            for image in [point.power_cut(&mut rng), point.process_kill(&mut rng)] {
                drop(open(&image));
                left += usize::from(!strays(&image).is_empty());
                collect_leftovers(&shared(&image), &Layout::new(HOME), false).expect("collected");
                assert_eq!(strays(&image), Vec::<String>::new(), "at {index}");
                assert_eq!(errors(&image), Vec::<String>::new(), "at {index}");
            }
        }
        assert!(left > 0, "nothing was ever left");
    }
}

#[test]
fn a_full_disk_leaves_a_home_without_the_session() {
    let bundle = exported(&home_with_session());
    let disk = SimDisk::new(2);
    drop(open(&disk));
    let used: u64 = files(&disk, Path::new(HOME)).values().map(|bytes| bytes.len() as u64).sum();
    disk.set_capacity(Some(used + 500));
    assert!(imported(&disk, &bundle).is_err());
    disk.set_capacity(None);
    assert!(disk.stat(&Layout::new(HOME).log(session())).is_err());
    assert_eq!(imported(&disk, &bundle).expect("imported")[0].id, session());
}
