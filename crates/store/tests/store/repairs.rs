//! What a repair takes away is somewhere at every moment, and said to be before it is moved.

use std::path::Path;
use std::sync::{Arc, Mutex};

use rekindle_domain::time::Timestamp;
use rekindle_store::layout::Layout;
use rekindle_store::repairs::{Reason, Repairs};
use rekindle_testkit::rng::Rng;
use rekindle_testkit::sim::SimDisk;

use crate::common::Home;

const REASON: Reason<'_> = Reason { code: "temporary_file", session: None, what: "it is left over" };

fn copies(disk: &SimDisk, bytes: &[u8]) -> usize {
    disk.paths().iter().filter(|path| disk.read_file(path).as_deref() == Some(bytes)).count()
}

// I12: a power cut in the middle of a repair loses nothing.
#[test]
fn what_is_taken_away_is_in_one_place_or_the_other_after_any_crash() {
    let home = Home::with_sessions(1, 3);
    let layout = Layout::new("/home");
    let path = layout.sessions().join("sess_1.json.tmp");
    home.disk.write_file(&path, b"precious");
    let points: Arc<Mutex<Vec<SimDisk>>> = Arc::default();
    let (seen, handle) = (points.clone(), home.disk.clone());
    home.disk.set_observer(Box::new(move |_| seen.lock().expect("one thread").push(handle.fork())));
    let mut repairs =
        Repairs::new(Arc::new(home.disk.clone()), layout.clone(), Timestamp::from_millis(0), |_| {});
    assert_eq!(repairs.dir(), None, "nothing is made before it is needed");
    let kept = repairs.move_away(&path, REASON).expect("taken away");
    home.disk.clear_observer();
    assert_eq!(home.disk.read_file(&kept).as_deref(), Some(&b"precious"[..]));
    assert!(kept.ends_with("sessions/sess_1.json.tmp"), "{}", kept.display());
    let manifest = repairs.dir().expect("a directory").join("manifest.jsonl");
    let mut rng = Rng::new(9);
    let points = std::mem::take(&mut *points.lock().expect("one thread"));
    assert!(points.len() > 8, "{}", points.len());
    for (index, point) in points.into_iter().enumerate() {
        for power in [true, false] {
            let image = if power { point.power_cut(&mut rng) } else { point.process_kill(&mut rng) };
            assert_eq!(copies(&image, b"precious"), 1, "point {index}");
            if image.read_file(&path).is_none() {
                let said = image.read_file(&manifest).expect("it was said before");
                assert!(String::from_utf8_lossy(&said).contains("sess_1.json.tmp"), "point {index}");
            }
        }
    }
    // A second thing of that name is kept beside the first.
    home.disk.write_file(&path, b"another");
    let second = repairs.move_away(&path, REASON).expect("taken away");
    assert_ne!(second, kept);
    assert_eq!((copies(&home.disk, b"precious"), copies(&home.disk, b"another")), (1, 1));
    assert!(repairs.move_away(Path::new("/elsewhere"), REASON).is_err(), "only what is in the home");
}

#[test]
fn the_end_of_a_file_is_copied_with_its_hash() {
    let home = Home::with_sessions(1, 3);
    let layout = Layout::new("/home");
    let log = layout.log(home.sessions[0]);
    let bytes = home.disk.read_file(&log).expect("a log");
    let mut repairs =
        Repairs::new(Arc::new(home.disk.clone()), layout.clone(), Timestamp::from_millis(0), |_| {});
    let kept = repairs.copy_tail(&log, 100, REASON).expect("copied");
    assert_eq!(home.disk.read_file(&kept).as_deref(), Some(&bytes[100..]));
    assert_eq!(home.disk.read_file(&log), Some(bytes.clone()));
    let manifest = home.disk.read_file(repairs.dir().expect("one").join("manifest.jsonl")).expect("a list");
    let hash = blake3::hash(&bytes[100..]).to_hex().to_string();
    let manifest = String::from_utf8_lossy(&manifest);
    assert!(manifest.contains(&hash) && manifest.contains("\"from\":100"), "{manifest}");
}
