//! Crashes while a snapshot is kept or let go: what is listed is whole, always.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use rekindle_store::disk::Disk;
use rekindle_testkit::rng::Rng;
use rekindle_testkit::sim::SimDisk;
use rekindle_workspace::CaptureOptions;
use rekindle_workspace::tree::OwnedNode;

use super::*;

fn workspaces(disk: &SimDisk) -> Workspaces {
    Workspaces::new(Arc::new(disk.clone()), Layout::new("/home"))
}

/// Returns a disk with an empty home.
fn home() -> SimDisk {
    let disk = SimDisk::new(5);
    rekindle_store::home::prepare(&disk, &Layout::new("/home")).expect("a home");
    disk
}

/// Returns the disk as it was at each operation of some work, and at its end.
fn points(disk: &SimDisk, work: impl FnOnce(&Workspaces)) -> Vec<SimDisk> {
    let seen: Arc<Mutex<Vec<SimDisk>>> = Arc::default();
    let (points, handle) = (seen.clone(), disk.clone());
    disk.set_observer(Box::new(move |_| points.lock().expect("no panic").push(handle.fork())));
    work(&workspaces(disk));
    disk.clear_observer();
    let mut points = std::mem::take(&mut *seen.lock().expect("no panic"));
    points.push(disk.fork());
    points
}

/// Returns the trees that are listed, each of which can be read to its last byte.
fn verify_trees(disk: &SimDisk) -> Vec<BlobId> {
    let workspaces = workspaces(disk);
    let listed = workspaces.list().expect("a list");
    for kept in &listed {
        for entry in workspaces.walk(kept.manifest.tree) {
            if let OwnedNode::File { content, .. } = entry.expect("a tree").node {
                workspaces.source().read(&content, &mut std::io::sink()).expect("a content");
            }
        }
    }
    listed.iter().map(|kept| kept.manifest.tree).collect()
}

#[test]
fn directories_with_the_same_contents_are_kept_at_the_same_time() {
    let disk = home();
    let workspaces = workspaces(&disk);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let directory = tempfile::tempdir().expect("a directory");
                std::fs::write(directory.path().join("same"), "the same").expect("written");
                for _ in 0..20 {
                    let options =
                        CaptureOptions { threads: Some(1), ..CaptureOptions::new(directory.path()) };
                    workspaces.snapshot(options).expect("taken");
                }
            });
        }
    });
    assert_eq!(verify_trees(&disk).len(), 1);
}

// I12: a manifest is on disk after everything that it stands for.
#[test]
fn a_crash_while_a_snapshot_is_taken_leaves_it_whole_or_unnamed() {
    let (disk, directory) = (home(), tempfile::tempdir().expect("a directory"));
    std::fs::create_dir(directory.path().join("below")).expect("a directory");
    for index in 0..5 {
        std::fs::write(directory.path().join(format!("below/{index}")), [index; 300]).expect("written");
    }
    let options = || CaptureOptions { threads: Some(1), ..CaptureOptions::new(directory.path()) };
    let points = points(&disk, |workspaces| drop(workspaces.snapshot(options()).expect("taken")));
    let (last, mut rng) = (points.len() - 1, Rng::new(7));
    assert!(last > 6, "{last} operations are too few to die between");
    for (index, point) in points.iter().enumerate() {
        for round in 0..6 {
            let image = if round % 2 == 0 { point.power_cut(&mut rng) } else { point.process_kill(&mut rng) };
            let listed = verify_trees(&image);
            assert!(listed.len() <= 1 && (index < last || listed.len() == 1), "{listed:?} at {index}");
            // Whoever comes next takes it whole.
            workspaces(&image).snapshot(options()).expect("taken again");
            assert_eq!(verify_trees(&image), verify_trees(&disk), "at {index}");
        }
    }
}

#[test]
fn a_crash_while_a_snapshot_is_let_go_leaves_it_whole_or_gone() {
    let (disk, directory) = (home(), tempfile::tempdir().expect("a directory"));
    std::fs::write(directory.path().join("file"), "content").expect("written");
    workspaces(&disk).snapshot(CaptureOptions::new(directory.path())).expect("taken");
    let expire = |workspaces: &Workspaces| workspaces.expire(Duration::ZERO, SystemTime::now(), false);
    let points = points(&disk, |workspaces| assert_eq!(expire(workspaces).expect("let go").len(), 1));
    assert!(verify_trees(&disk).is_empty());
    let mut rng = Rng::new(8);
    for (index, point) in points.iter().enumerate() {
        for power in [true, false] {
            let image = if power { point.power_cut(&mut rng) } else { point.process_kill(&mut rng) };
            let left = verify_trees(&image).len();
            assert_eq!(expire(&workspaces(&image)).expect("let go").len(), left, "at {index}");
            // Nothing is left that would keep its objects.
            let names = image.list(&Layout::new("/home").workspaces()).expect("a directory");
            assert!(!names.iter().any(|entry| entry.name.ends_with(".json")), "{names:?} at {index}");
        }
    }
}
