//! What crashes and faults leave of a simulated disk, over many seeds.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use rekindle_store::disk::{Disk, DiskFile, OpenMode, RetryDisk, replace, write_all_at};
use rekindle_testkit::rng::Rng;
use rekindle_testkit::sim::{Fault, FaultKind, Faults, OpKind, Physics, SimDisk};

type Outcome = io::Result<()>;

fn open(disk: &SimDisk, path: &str) -> io::Result<Box<dyn DiskFile>> {
    disk.open(Path::new(path), OpenMode::Create)
}

/// Returns what different power cuts leave of a file.
fn images(disk: &SimDisk, path: &str) -> BTreeSet<Option<Vec<u8>>> {
    (0..1_000).map(|seed| disk.power_cut(&mut Rng::new(seed)).read_file(path)).collect()
}

/// Returns everything on a disk, in order.
fn contents(disk: &SimDisk) -> Vec<(std::path::PathBuf, Option<Vec<u8>>)> {
    disk.paths().into_iter().map(|path| (path.clone(), disk.read_file(path))).collect()
}

#[test]
fn synced_bytes_and_names_never_vanish() -> Outcome {
    let disk = SimDisk::new(1);
    replace(&disk, Path::new("/f"), &[7; 10_000])?;
    assert!(disk.is_settled());
    assert_eq!(images(&disk, "/f"), BTreeSet::from([Some(vec![7; 10_000])]));

    // Nor do they when something else is pending, also in the same file.
    let file = open(&disk, "/f")?;
    file.write_at(&[8; 5_000], 10_000)?;
    disk.rename(Path::new("/f"), Path::new("/g"))?;
    for seed in 0..1_000 {
        let after = disk.power_cut(&mut Rng::new(seed));
        let left = after.read_file("/f").or(after.read_file("/g")).expect("one of the names is there");
        assert_eq!(left[..10_000], [7; 10_000], "seed {seed}");
        assert!(after.is_settled() && after.ops() == 0);
    }
    Ok(())
}

#[test]
fn unsynced_bytes_may_vanish_survive_or_mix() -> Outcome {
    let disk = SimDisk::new(1);
    disk.write_file("/f", &[1; 8_192]);
    let file = open(&disk, "/f")?;
    file.write_at(&[2; 8_192], 0)?;
    file.write_at(&[3; 8_192], 4_096)?;
    let images: BTreeSet<_> = images(&disk, "/f").into_iter().flatten().collect();
    assert!(images.contains(&vec![1; 8_192]), "nothing survived");
    assert!(images.contains(&[vec![2; 4_096], vec![3; 8_192]].concat()), "everything survived");
    let some = |found: &dyn Fn(&[u8]) -> bool| images.iter().any(|image| found(image));
    assert!(
        some(&|bytes| bytes.len() == 12_288 && bytes[8_192..].contains(&0)),
        "grown before it was written"
    );
    assert!(
        some(&|bytes| bytes[..4_096].contains(&1) && bytes[4_096..].contains(&3)),
        "the later write only"
    );
    assert!(some(&|bytes| bytes.iter().any(|byte| *byte > 3)), "stale blocks");

    disk.set_physics(Physics { stale: 0, ..Physics::default() });
    for seed in 0..1_000 {
        let left = disk.power_cut(&mut Rng::new(seed)).read_file("/f").expect("its name is durable");
        assert!([8_192, 12_288].contains(&left.len()), "seed {seed}");
        assert!(left[..8_192].iter().all(|byte| (1..=3).contains(byte)), "seed {seed}");
    }
    Ok(())
}

#[test]
fn names_are_lost_or_kept_in_order_and_renames_whole() -> Outcome {
    type Work = fn(&SimDisk) -> Outcome;
    let rename: Work = |disk| disk.rename(Path::new("/a/new"), Path::new("/a/old"));
    let across: Work = |disk| disk.rename(Path::new("/a/new"), Path::new("/b/new"));
    let remove: Work = |disk| disk.remove_file(Path::new("/a/old"));
    let both: Work = |disk| {
        disk.remove_file(Path::new("/a/old"))?;
        disk.rename(Path::new("/a/new"), Path::new("/a/old"))
    };
    let across_last: Work = |disk| {
        open(disk, "/b/z")?;
        disk.rename(Path::new("/a/new"), Path::new("/b/new"))
    };
    let across_first: Work = |disk| {
        disk.rename(Path::new("/a/new"), Path::new("/b/new"))?;
        open(disk, "/b/z").map(drop)
    };
    let before = "/a/new=N /a/old=O";
    let moved = "/a/old=O /b/new=N";
    let moved_z = "/a/old=O /b/new=N /b/z=";
    // Each case: the work, all possible outcomes, and the outcome once a directory is synced.
    let cases = [
        (rename, vec![before, "/a/old=N"], "/a", "/a/old=N"),
        (rename, vec![before, "/a/old=N"], "/b", ""),
        (across, vec![before, moved], "/a", moved),
        (across, vec![before, moved], "/b", moved),
        (across_last, vec![before, "/a/new=N /a/old=O /b/z=", moved_z], "/a", moved_z),
        (across_first, vec![before, moved, moved_z], "/b", moved_z),
        (remove, vec!["/a/new=N", before], "/a", "/a/new=N"),
        (both, vec!["/a/new=N", before, "/a/old=N"], "/a", "/a/old=N"),
    ];
    for (at, (work, possible, synced, certain)) in cases.into_iter().enumerate() {
        let disk = SimDisk::new(1);
        disk.write_file("/a/old", b"O");
        disk.write_file("/a/new", b"N");
        disk.write_file("/b/other", b"");
        disk.remove("/b/other");
        work(&disk)?;
        let outcomes = || -> BTreeSet<String> {
            let text = |disk: SimDisk| {
                let files = contents(&disk).into_iter().map(|(path, bytes)| {
                    format!("{}={}", path.display(), String::from_utf8_lossy(&bytes.unwrap_or_default()))
                });
                files.collect::<Vec<_>>().join(" ")
            };
            (0..200).map(|seed| text(disk.power_cut(&mut Rng::new(seed)))).collect()
        };
        let possible: BTreeSet<String> = possible.into_iter().map(str::to_owned).collect();
        assert_eq!(outcomes(), possible, "case {at}");
        disk.sync_dir(Path::new(synced))?;
        let expected = if certain.is_empty() { possible } else { BTreeSet::from([certain.to_owned()]) };
        assert_eq!(outcomes(), expected, "case {at} after a sync of {synced}");
    }
    Ok(())
}

#[test]
fn a_synced_file_may_lose_its_name_and_a_named_file_its_bytes() -> Outcome {
    let disk = SimDisk::new(1);
    let file = open(&disk, "/f")?;
    file.write_at(b"bytes", 0)?;
    let unnamed = disk.fork();
    let copy = open(&unnamed, "/f")?;
    copy.sync()?;
    assert_eq!(images(&unnamed, "/f"), BTreeSet::from([None, Some(b"bytes".to_vec())]));
    disk.sync_dir(Path::new("/"))?;
    let left = images(&disk, "/f");
    assert!(left.contains(&Some(Vec::new())) && left.contains(&Some(b"bytes".to_vec())), "{left:?}");
    assert!(!left.contains(&None));
    Ok(())
}

#[test]
fn new_directories_may_vanish_with_all_they_hold() -> Outcome {
    let disk = SimDisk::new(1);
    disk.create_dir(Path::new("/d"))?;
    replace(&disk, Path::new("/d/f"), b"synced")?;
    assert_eq!(images(&disk, "/d/f"), BTreeSet::from([None, Some(b"synced".to_vec())]));
    disk.sync_dir(Path::new("/"))?;
    assert_eq!(images(&disk, "/d/f"), BTreeSet::from([Some(b"synced".to_vec())]));
    Ok(())
}

#[test]
fn a_failed_sync_loses_blocks_that_a_second_sync_does_not_bring_back() -> Outcome {
    let (mut lost, mut mixed) = (0, 0);
    for seed in 0..50 {
        let disk = SimDisk::new(seed);
        disk.write_file("/f", &[1; 4_096]);
        let file = open(&disk, "/f")?;
        write_all_at(&*file, &[2; 8_192], 0)?;
        disk.inject(Fault::once(FaultKind::Eio, 0).on(&[OpKind::Sync]));
        assert_eq!(file.sync().map_err(|error| error.raw_os_error()), Err(Some(5)));
        file.sync()?;
        assert_eq!(disk.read_file("/f"), Some(vec![2; 8_192]), "reads still see everything");
        assert!(disk.is_settled());
        let left = disk.power_cut(&mut Rng::new(0)).read_file("/f").expect("its name is durable");
        assert_eq!(left.len(), 8_192, "the length came along with the second sync");
        lost += u32::from(!left.contains(&2));
        mixed += u32::from(left.contains(&1) && left.contains(&2));

        write_all_at(&*file, &[2; 8_192], 0)?;
        file.sync()?;
        assert_eq!(images(&disk, "/f"), BTreeSet::from([Some(vec![2; 8_192])]), "written again");
    }
    assert!(lost > 0 && mixed > 0, "{lost} lost everything, {mixed} lost some");
    Ok(())
}

#[test]
fn faults_answer_with_their_error_and_leave_what_they_may() -> Outcome {
    let cases = [
        (FaultKind::Eio, Some(5), true),
        (FaultKind::NoSpace, Some(28), true),
        (FaultKind::Interrupted, Some(4), false),
        (FaultKind::ReadOnly, Some(30), false),
        (FaultKind::ShortWrite, None, true),
    ];
    for (kind, number, may_leave_some) in cases {
        let mut lens = BTreeSet::new();
        for seed in 0..50 {
            let disk = SimDisk::new(seed);
            let file = open(&disk, "/f")?;
            disk.set_faults(Fault::once(kind, 0));
            let outcome = file.write_at(&[1; 100], 0);
            let len = file.stat()?.len;
            assert_eq!(outcome.as_ref().err().and_then(io::Error::raw_os_error), number, "{kind:?}");
            assert_eq!(outcome.is_ok(), number.is_none(), "{kind:?}");
            if let Ok(taken) = outcome {
                assert!(taken as u64 == len && (1..100).contains(&taken), "{kind:?}: {taken}");
            }
            lens.insert(len);
            assert_eq!(disk.faults_struck(), 1);
            assert_eq!(file.write_at(&[1; 100], 0)?, 100, "{kind:?} strikes once");
        }
        assert_eq!(lens.len() > 1, may_leave_some, "{kind:?}: {lens:?}");
    }

    let disk = SimDisk::new(1);
    let file = open(&disk, "/f")?;
    disk.set_faults(Fault::sticky(FaultKind::ShortThenNoSpace, 0));
    assert!(file.write_at(&[1; 100], 0)? < 100);
    for _ in 0..3 {
        assert_eq!(file.write_at(&[1; 100], 0).map_err(|error| error.raw_os_error()), Err(Some(28)));
    }
    disk.clear_faults();
    file.sync()
}

#[test]
fn interrupted_calls_lose_nothing() -> Outcome {
    let disk = SimDisk::new(1);
    disk.write_file("/g", b"old");
    let file = open(&disk, "/g")?;
    file.write_at(b"new", 0)?;
    disk.inject(Fault::once(FaultKind::Interrupted, 0));
    assert!(file.sync().is_err() && !disk.is_settled(), "nothing happened");
    file.sync()?;
    assert_eq!(images(&disk, "/g"), BTreeSet::from([Some(b"new".to_vec())]));

    let disk = SimDisk::new(1);
    let per_call = Fault::once(FaultKind::Interrupted, 0);
    for kind in OpKind::MUTATING {
        disk.inject(per_call.clone().on(&[kind]));
    }
    disk.inject(per_call.on(&[OpKind::Read]));
    let steady = RetryDisk(std::sync::Arc::new(disk.clone()));
    replace(&steady, Path::new("/f"), &[1; 100])?;
    assert_eq!(disk.faults_struck(), 5);
    assert_eq!(images(&disk, "/f"), BTreeSet::from([Some(vec![1; 100])]));
    Ok(())
}

#[test]
fn a_failed_sync_of_names_keeps_them_pending() -> Outcome {
    let mut outcomes = BTreeSet::new();
    for seed in 0..50 {
        let disk = SimDisk::new(seed);
        open(&disk, "/a")?;
        open(&disk, "/b")?;
        disk.set_physics(Physics { disk_keeps_nothing: 100, disk_keeps_all: 0, ..Physics::default() });
        disk.inject(Fault::once(FaultKind::Eio, 0));
        assert!(disk.sync_dir(Path::new("/")).is_err());
        outcomes.insert(disk.power_cut(&mut Rng::new(0)).paths().len());
        disk.sync_dir(Path::new("/"))?;
        assert_eq!(disk.power_cut(&mut Rng::new(0)).paths().len(), 2);
    }
    assert_eq!(outcomes, BTreeSet::from([0, 1, 2]));
    Ok(())
}

#[test]
fn a_kill_keeps_everything_but_the_end_of_the_last_write() -> Outcome {
    let disk = SimDisk::new(1);
    disk.write_file("/f", &[1; 6_000]);
    let file = open(&disk, "/f")?;
    let kills = |disk: &SimDisk| -> BTreeSet<_> {
        (0..100).filter_map(|seed| disk.process_kill(&mut Rng::new(seed)).read_file("/f")).collect()
    };
    let image = |kept: usize| {
        let whole = [vec![1; 100], vec![2; 10_000]].concat();
        if kept < 6_000 {
            [whole[..kept].to_vec(), vec![1; 6_000 - kept]].concat()
        } else {
            whole[..kept].to_vec()
        }
    };
    file.write_at(&[2; 10_000], 100)?;
    open(&disk, "/f")?.read_at(&mut [0; 10], 0)?;
    assert_eq!(kills(&disk), BTreeSet::from([image(4_096), image(8_192), image(10_100)]));

    let killed = disk.process_kill(&mut Rng::new(1));
    assert!(!killed.is_settled(), "a power cut may follow");
    assert!(images(&killed, "/f").contains(&Some(vec![1; 6_000])));

    // A write within a page is not torn, nor one that is not the last operation.
    file.write_at(&[3; 50], 100)?;
    let now = BTreeSet::from_iter(disk.read_file("/f"));
    assert_eq!(kills(&disk), now);
    file.write_at(&[4; 10_000], 100)?;
    open(&disk, "/other")?;
    assert_eq!(kills(&disk), BTreeSet::from_iter(disk.read_file("/f")));
    Ok(())
}

#[test]
fn the_same_seed_gives_the_same_image() -> Outcome {
    let work = |disk: &SimDisk| {
        disk.set_faults(Faults::random(9, 100));
        let mut rng = Rng::new(5);
        for n in 0..300 {
            let path = format!("/{}", rng.below(10));
            // Failures are part of the history.
            let _ = open(disk, &path).and_then(|file| {
                let bytes = vec![n as u8; rng.index(9_000)];
                write_all_at(&*file, &bytes, rng.below(5_000))?;
                if rng.chance(1, 3) { file.sync() } else { Ok(()) }
            });
            let _ = match rng.below(4) {
                0 => disk.rename(Path::new(&path), Path::new("/x")),
                1 => disk.sync_dir(Path::new("/")),
                _ => Ok(()),
            };
        }
    };
    let (one, two) = (SimDisk::new(4), SimDisk::new(4));
    work(&one);
    work(&two);
    assert!(one.faults_struck() > 10);
    assert_eq!(contents(&one), contents(&two));
    let mut differing = BTreeSet::new();
    for seed in 0..100 {
        let cut = contents(&one.power_cut(&mut Rng::new(seed)));
        assert_eq!(cut, contents(&two.fork().power_cut(&mut Rng::new(seed))), "seed {seed}");
        let killed = |disk: &SimDisk| contents(&disk.process_kill(&mut Rng::new(seed)));
        assert_eq!(killed(&one), killed(&two), "seed {seed}");
        differing.insert(cut);
    }
    assert!(differing.len() > 50, "seeds make a difference");
    Ok(())
}
