//! Crashes while a bundle is imported: the session is there whole, or not at all.

use std::sync::Mutex;

use rekindle_testkit::rng::Rng;

use super::*;

// I12: the log of a session is the last of it to get its place.
#[test]
fn a_crash_while_a_bundle_is_imported_leaves_the_session_whole_or_absent() {
    let bundle = exported(&home_with_session());
    let disk = SimDisk::new(2);
    drop(open(&disk));
    let seen: Arc<Mutex<Vec<SimDisk>>> = Arc::default();
    let (points, handle) = (seen.clone(), disk.clone());
    disk.set_observer(Box::new(move |_| points.lock().expect("no panic").push(handle.fork())));
    imported(&disk, &bundle).expect("imported");
    disk.clear_observer();
    let whole = log(&disk, session());
    let points = std::mem::take(&mut *seen.lock().expect("no panic"));
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
