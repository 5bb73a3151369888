//! Writing and reading: what is put comes out, once, from packs and files of their own.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use rekindle_store::blobs::{BlobError, BlobId, Blobs, MAX_CONTENT};
use rekindle_store::disk::RealDisk;
use rekindle_store::layout::Layout;
use rekindle_testkit::rng::Rng;
use rekindle_testkit::sim::{Fault, FaultKind, OpKind};

use super::{content, files, keep, other_process};
use crate::common::Home;

/// Large enough for a file of its own.
const LARGE: usize = 300_000;

#[test]
fn a_batch_is_invisible_until_it_is_committed_and_then_everywhere() {
    let home = Home::with_sessions(0, 0);
    let blobs = home.store.blobs();
    let objects: Vec<Vec<u8>> = (0..40).map(|n| content(n, n as usize * 97)).collect();
    let batch = blobs.batch().expect("a batch");
    let ids: Vec<BlobId> = objects.iter().map(|object| batch.put(object).expect("put")).collect();
    let large = content(1, LARGE);
    let (large_id, size) = batch.put_reader(&mut &large[..]).expect("put");
    let (small_id, small_size) = batch.put_reader(&mut &objects[7][..]).expect("put");
    assert_eq!((large_id, size), (BlobId::of(&large), LARGE as u64));
    assert_eq!((small_id, small_size), (ids[7], objects[7].len() as u64));
    assert!(batch.reuse(&ids[3]).expect("looked"), "what was put into the same batch");
    assert!(!batch.reuse(&BlobId::of(b"unknown")).expect("looked"));
    assert!(batch.reuse_all(&[ids[3], large_id, ids[9]]).expect("looked"));
    assert!(!batch.reuse_all(&[ids[3], BlobId::of(b"unknown"), ids[9]]).expect("looked"));
    assert!(!blobs.contains(&ids[3]).expect("looked") && !blobs.contains(&large_id).expect("looked"));
    let pins = batch.commit().expect("committed");
    for reader in [blobs.clone(), other_process(&home.disk)] {
        for (id, object) in ids.iter().zip(&objects) {
            assert_eq!(&reader.get(id).expect("there"), object);
            assert!(reader.contains(id).expect("looked"));
        }
        let mut copied = Vec::new();
        assert_eq!(reader.copy_to(&large_id, &mut copied).expect("there"), LARGE as u64);
        assert_eq!(copied, large);
        copied.clear();
        reader.copy_to(&ids[5], &mut copied).expect("there");
        assert_eq!(copied, objects[5]);
        assert!(matches!(reader.get(&BlobId::of(b"unknown")), Err(BlobError::Missing(_))));
    }
    drop(pins);
    assert_eq!((files(&home.disk, ".pack").len(), files(&home.disk, ".idx").len()), (1, 1));
    assert_eq!(files(&home.disk, ".tmp"), [] as [std::path::PathBuf; 0]);
}

#[test]
fn what_is_there_already_costs_no_bytes() {
    let home = Home::with_sessions(0, 0);
    let blobs = home.store.blobs();
    let mut objects: Vec<Vec<u8>> = (0..10).map(|n| content(n, 500)).collect();
    objects.push(content(4, LARGE));
    keep(&blobs, &objects);
    let (written, paths) = (home.disk.bytes_written(), home.disk.paths());
    let again: Vec<Vec<u8>> = objects.iter().chain(&objects).cloned().collect();
    let ids = keep(&blobs, &again);
    assert_eq!((home.disk.bytes_written(), home.disk.paths()), (written, paths.clone()));
    let batch = blobs.batch().expect("a batch");
    assert!(ids.iter().all(|id| batch.reuse(id).expect("looked")));
    drop(batch.commit().expect("committed"));
    let twice = blobs.batch().expect("a batch");
    for _ in 0..3 {
        twice.put(b"new, and more than once in one batch").expect("put");
    }
    drop(twice.commit().expect("committed"));
    assert_eq!(home.disk.paths().len(), paths.len() + 2, "a pack and its index");
}

#[test]
fn a_commit_syncs_pack_index_and_directory_once_each() {
    let home = Home::with_sessions(0, 0);
    let blobs = home.store.blobs();
    keep(&blobs, &[content(1, 50)]);
    let syncs: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = syncs.clone();
    home.disk.set_observer(Box::new(move |op| {
        if matches!(op.kind, OpKind::Sync | OpKind::SyncDir) {
            let path = op.path.to_string_lossy();
            let kind = ["pack.tmp", "idx.tmp", "packs"].into_iter().find(|end| path.ends_with(end));
            seen.lock().expect("one thread").push(kind.unwrap_or(&path).to_owned());
        }
    }));
    keep(&blobs, &(0..1000).map(|n| content(n, 300)).collect::<Vec<_>>());
    assert_eq!(*syncs.lock().expect("one thread"), ["pack.tmp", "idx.tmp", "packs"]);
    syncs.lock().expect("one thread").clear();
    keep(&blobs, &[content(1, 300)]);
    home.disk.clear_observer();
    assert_eq!(*syncs.lock().expect("one thread"), [] as [String; 0], "nothing new, nothing to sync");
}

#[test]
fn a_dropped_batch_leaves_nothing_and_a_dead_ones_files_are_removed() {
    let home = Home::with_sessions(0, 0);
    let blobs = home.store.blobs();
    keep(&blobs, &[content(0, 100)]);
    let before = home.disk.paths();
    let batch = blobs.batch().expect("a batch");
    batch.put(&content(1, 5000)).expect("put");
    batch.put(&content(1, LARGE)).expect("put");
    assert_ne!(home.disk.paths(), before);
    drop(batch);
    assert_eq!(home.disk.paths(), before);
    for left in ["7.pack.tmp", "0.blob.tmp", "00000000000000000000000000000000.idx"] {
        home.disk.write_file(format!("/home/blobs/packs/{left}"), b"half");
    }
    home.disk.write_file("/home/blobs/packs/notes.txt", b"not ours");
    drop(blobs.batch().expect("a batch"));
    home.disk.remove("/home/blobs/packs/notes.txt");
    assert_eq!(home.disk.paths(), before, "what is not ours was still there to be removed");
}

#[test]
fn contents_are_limited_and_their_readers_errors_are_told() {
    let home = Home::with_sessions(0, 0);
    let blobs = home.store.blobs();
    let batch = blobs.batch().expect("a batch");
    let endless = batch.put_reader(&mut io::repeat(0));
    assert!(matches!(endless, Err(BlobError::ContentTooLarge)), "{endless:?}");
    let (largest, _) = batch.put_reader(&mut io::repeat(0).take(MAX_CONTENT)).expect("just fits");
    for good in [10, LARGE] {
        let bytes = content(2, good);
        let fails = batch.put_reader(&mut bytes.chain(Failing));
        assert!(matches!(fails, Err(BlobError::Source(_))), "{fails:?}");
    }
    drop(batch.commit().expect("the rest is kept"));
    assert_eq!(blobs.copy_to(&largest, &mut io::sink()).expect("there"), MAX_CONTENT);
    assert_eq!(files(&home.disk, ".tmp"), [] as [std::path::PathBuf; 0]);
}

struct Failing;

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::other("gone"))
    }
}

trait Chained {
    fn chain(&self, then: Failing) -> io::Chain<&[u8], Failing>;
}

impl Chained for Vec<u8> {
    fn chain(&self, then: Failing) -> io::Chain<&[u8], Failing> {
        Read::chain(&self[..], then)
    }
}

#[test]
fn many_threads_and_two_batches_write_at_once() {
    let home = Home::with_sessions(0, 0);
    let blobs = home.store.blobs();
    let batches = [blobs.batch().expect("one"), blobs.batch().expect("another")];
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let batches = &batches;
            scope.spawn(move || {
                for n in 0..200 {
                    // Half of them are put by everybody.
                    let number = if n % 2 == 0 { n } else { n + thread * 1000 };
                    let batch = &batches[(thread % 2) as usize];
                    batch.put(&content(number, 200 + n as usize)).expect("put");
                }
                batches[0].put_reader(&mut &content(thread / 2, LARGE)[..]).expect("put");
            });
        }
    });
    let pins = batches.map(|batch| batch.commit().expect("committed"));
    for thread in 0..4_u64 {
        for n in 0..200 {
            let number = if n % 2 == 0 { n } else { n + thread * 1000 };
            let object = content(number, 200 + n as usize);
            assert_eq!(blobs.get(&BlobId::of(&object)).expect("there"), object);
        }
    }
    drop(pins);
    assert_eq!(files(&home.disk, ".zst").len(), 2);
}

#[test]
fn large_contents_alone_are_durable_too() {
    for seed in 0..30 {
        let home = Home::with_sessions(0, 0);
        let ids = keep(&home.store.blobs(), &[content(1, LARGE), content(2, LARGE)]);
        let cut = other_process(&home.disk.power_cut(&mut Rng::new(seed)));
        assert!(ids.iter().all(|id| cut.copy_to(id, &mut io::sink()).is_ok()), "seed {seed}");
    }
}

/// Another process gave a pack its name and died before it synced the directory: whoever sees the pack may rely on it.
#[test]
fn what_a_dead_process_did_not_sync_is_synced_by_whoever_reuses_it() {
    for seed in 0..30 {
        let home = Home::with_sessions(0, 0);
        let (blobs, other) = (home.store.blobs(), other_process(&home.disk));
        keep(&blobs, &[content(0, 100)]);
        home.disk.inject(Fault::sticky(FaultKind::Interrupted, 0).on(&[OpKind::SyncDir]));
        let batch = other.batch();
        let batch = batch.or_else(|_| {
            // The directory is there, and only the pack's own name is not to be synced.
            home.disk.clear_faults();
            other.batch()
        });
        let batch = batch.expect("a batch");
        let id = batch.put(&content(1, 100)).expect("put");
        home.disk.inject(Fault::sticky(FaultKind::Interrupted, 0).on(&[OpKind::SyncDir]));
        batch.commit().map(drop).expect_err("it cannot be synced");
        home.disk.clear_faults();
        let batch = blobs.batch().expect("a batch");
        assert!(batch.reuse(&id).expect("looked"));
        drop(batch.commit().expect("committed"));
        let cut = other_process(&home.disk.power_cut(&mut Rng::new(seed)));
        assert_eq!(cut.get(&id).expect("there"), content(1, 100), "seed {seed}");
    }
}

/// On a real disk, whose locks keep processes apart: here two that do not know of each other.
#[test]
fn two_processes_that_write_take_turns() {
    let dir = tempfile::tempdir().expect("a directory");
    let layout = Layout::new(dir.path());
    std::fs::create_dir_all(layout.blobs()).expect("made");
    let process = || Blobs::reading(Arc::new(RealDisk), layout.clone());
    std::thread::scope(|scope| {
        for process in [0_u64, 1].map(|number| (number, process())) {
            scope.spawn(move || {
                let (number, blobs) = process;
                for round in 0..20 {
                    let shared = content(round, 400);
                    keep(&blobs, &[shared, content(1000 + number * 100 + round, 300)]);
                }
            });
        }
    });
    let reader = process();
    for object in (0..20).map(|n| content(n, 400)).chain((0..20).map(|n| content(1100 + n, 300))) {
        assert_eq!(reader.get(&BlobId::of(&object)).expect("there"), object);
    }
    let packed: usize = std::fs::read_dir(layout.packs()).expect("a directory").count();
    assert!(packed <= 32, "{packed} files: small packs are merged, and nothing is left over");
}

#[test]
fn a_hundred_small_batches_make_few_packs() {
    let home = Home::with_sessions(0, 0);
    let blobs = home.store.blobs();
    let mut all = Vec::new();
    for round in 0..100 {
        let objects: Vec<Vec<u8>> = (0..3).map(|n| content(round * 3 + n, 700)).collect();
        all.extend(keep(&blobs, &objects).into_iter().zip(objects));
        let packs = files(&home.disk, ".pack").len();
        assert!(packs < 17, "{packs} packs after {round} batches");
    }
    for reader in [blobs, other_process(&home.disk)] {
        for (id, object) in &all {
            assert_eq!(&reader.get(id).expect("there"), object);
        }
    }
    assert_eq!(files(&home.disk, ".pack").len(), files(&home.disk, ".idx").len());
}

#[test]
fn a_reader_without_the_lock_follows_what_a_writer_does() {
    let home = Home::with_sessions(0, 0);
    let (writer, reader) = (home.store.blobs(), other_process(&home.disk));
    let mut ids = Vec::new();
    for round in 0..40 {
        ids.extend(keep(&writer, &[content(round, 300)]));
        // Packs that the reader knows are merged into others and removed meanwhile.
        for (number, id) in ids.iter().enumerate() {
            assert_eq!(reader.get(id).expect("there"), content(number as u64, 300));
        }
    }
}

#[test]
fn a_failing_disk_fails_the_batch_and_the_next_one_succeeds() {
    let objects: Vec<Vec<u8>> = (0..5).map(|n| content(n, 3000)).chain([content(1, LARGE)]).collect();
    let mut failed = 0;
    for kind in [FaultKind::Eio, FaultKind::NoSpace, FaultKind::ShortThenNoSpace, FaultKind::NoDescriptors] {
        for nth in 0..40 {
            let home = Home::with_sessions(0, 0);
            let blobs = home.store.blobs();
            let old = keep(&blobs, &[content(100, 900)]);
            home.disk.inject(Fault::once(kind, nth).at("/blobs"));
            let outcome = (|| {
                let batch = blobs.batch()?;
                for object in &objects {
                    batch.put(object)?;
                }
                batch.commit().map(drop)
            })();
            home.disk.clear_faults();
            failed += u64::from(outcome.is_err());
            let cut = home.disk.power_cut(&mut Rng::new(nth));
            if outcome.is_ok() {
                let reader = other_process(&cut);
                for object in &objects {
                    let mut copied = Vec::new();
                    reader.copy_to(&BlobId::of(object), &mut copied).expect("it was said to be durable");
                    assert_eq!(&copied, object);
                }
            }
            assert_eq!(blobs.get(&old[0]).expect("there"), content(100, 900));
            for id in keep(&blobs, &objects) {
                blobs.copy_to(&id, &mut io::sink()).expect("there");
                let cut = home.disk.power_cut(&mut Rng::new(nth));
                other_process(&cut).copy_to(&id, &mut io::sink()).expect("durable");
            }
        }
    }
    assert!(failed > 30, "{failed}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn random_objects_come_out_as_they_went_in(
        batches in prop::collection::vec(
            prop::collection::vec((0_u64..60, prop_oneof![0_usize..400, 131_060_usize..131_090]), 0..12), 1..6,
        ),
    ) {
        let home = Home::with_sessions(0, 0);
        let blobs = home.store.blobs();
        let mut all = BTreeMap::new();
        for batch in batches {
            let objects: Vec<Vec<u8>> = batch.into_iter().map(|(n, len)| content(n, len)).collect();
            all.extend(keep(&blobs, &objects).into_iter().zip(objects));
        }
        for reader in [blobs, other_process(&home.disk)] {
            for (id, object) in &all {
                prop_assert_eq!(&reader.get(id).expect("there"), object);
            }
        }
    }
}
