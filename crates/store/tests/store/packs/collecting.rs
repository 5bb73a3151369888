//! Collecting: what nobody names goes, and nothing that somebody relies on.

use std::collections::HashSet;
use std::time::SystemTime;

use rekindle_store::blobs::{Batch, BlobError, BlobId, Blobs, CollectedPacks};
use rekindle_store::layout::Layout;

use super::{content, files, keep, much_later, other_process};
use crate::common::Home;

fn collect(blobs: &Blobs, named: &[BlobId]) -> CollectedPacks {
    let named: HashSet<BlobId> = named.iter().copied().collect();
    let collection = blobs.begin_collection().expect("begun");
    collection.collect_packs(&named, much_later()).expect("collected")
}

#[test]
fn dead_packs_go_and_mostly_dead_ones_are_written_anew() {
    let home = Home::with_sessions(0, 0);
    let blobs = home.store.blobs();
    let dead = keep(&blobs, &(0..5).map(|n| content(n, 400)).collect::<Vec<_>>());
    let mixed = keep(&blobs, &(10..30).map(|n| content(n, 400)).collect::<Vec<_>>());
    let live = keep(&blobs, &(40..45).map(|n| content(n, 400)).collect::<Vec<_>>());
    let named: Vec<BlobId> = mixed[..3].iter().chain(&live).copied().collect();
    let set: HashSet<BlobId> = named.iter().copied().collect();
    let collection = blobs.begin_collection().expect("begun");
    let young = collection.collect_packs(&set, SystemTime::UNIX_EPOCH).expect("collected");
    assert_eq!(young, CollectedPacks::default(), "too young");
    // What a dead writer left, and what is only asked for beside one that lives.
    home.disk.write_file(Layout::new("/home").packs().join("7.pack.tmp"), b"half");
    let before = home.disk.paths();
    let would = other_process(&home.disk).plan_packs(&set, much_later()).expect("looked");
    assert_eq!(would.removed.len(), 1);
    let would = blobs.plan_packs(&set, much_later()).expect("looked");
    assert_eq!(home.disk.paths(), before, "nothing is done when it is only asked");
    let done = collection.collect_packs(&set, much_later()).expect("collected");
    assert_eq!((done.removed.len(), done.rewritten.len(), done.damaged.len()), (1, 1, 0));
    assert_eq!(would, done);
    assert!(done.rewritten[0].1 > 0);
    assert_eq!((files(&home.disk, ".pack").len(), files(&home.disk, ".idx").len()), (2, 2));
    for reader in [blobs.clone(), other_process(&home.disk)] {
        assert!(named.iter().all(|id| reader.get(id).is_ok()));
        let gone = dead.iter().chain(&mixed[3..]);
        gone.for_each(|id| assert!(matches!(reader.get(id), Err(BlobError::Missing(_)))));
    }
    assert_eq!(collect(&blobs, &named), CollectedPacks::default(), "nothing is left to do");
}

#[test]
fn what_a_batch_wrote_or_reused_stays_while_it_is_pinned() {
    stays_while_pinned(|batch, ids| ids.iter().all(|id| batch.reuse(id).expect("looked")));
    stays_while_pinned(|batch, ids| batch.reuse_all(ids).expect("looked"));
}

fn stays_while_pinned(reuse: impl FnOnce(&Batch, &[BlobId]) -> bool) {
    let home = Home::with_sessions(0, 0);
    let blobs = home.store.blobs();
    let large = content(1, 200_000);
    let old = keep(&blobs, &[content(0, 400), large.clone()]);
    let batch = blobs.batch().expect("a batch");
    assert!(reuse(&batch, &old));
    let new = batch.put(&content(1, 400)).expect("put");
    let everything_stays = |blobs: &Blobs| {
        assert_eq!(collect(blobs, &[]), CollectedPacks::default());
        assert_eq!(
            blobs
                .begin_collection()
                .expect("begun")
                .collect_blobs(&HashSet::new(), much_later())
                .expect("collected"),
            []
        );
        assert!(old.iter().all(|id| blobs.copy_to(id, &mut std::io::sink()).is_ok()));
    };
    everything_stays(&blobs);
    let pins = batch.commit().expect("committed");
    everything_stays(&blobs);
    blobs.get(&new).expect("there");
    drop(pins);
    assert_eq!(collect(&blobs, &[]).removed.len(), 2);
    assert_eq!(
        blobs
            .begin_collection()
            .expect("begun")
            .collect_blobs(&HashSet::new(), much_later())
            .expect("collected"),
        [old[1]]
    );
}

/// The names were read, then somebody reused an old object, named it in a record and let go: the names are out of date.
#[test]
fn what_was_reused_since_a_collection_began_stays() {
    let home = Home::with_sessions(0, 0);
    let blobs = home.store.blobs();
    let old = keep(&blobs, &[content(0, 400), content(1, 200_000)]);
    let collection = blobs.begin_collection().expect("begun");
    let batch = blobs.batch().expect("a batch");
    assert!(old.iter().all(|id| batch.reuse(id).expect("looked")));
    drop(batch.commit().expect("committed"));
    let nothing_named = HashSet::new();
    let done = collection.collect_packs(&nothing_named, much_later()).expect("collected");
    assert_eq!(done, CollectedPacks::default());
    assert_eq!(collection.collect_blobs(&nothing_named, much_later()).expect("collected"), []);
    drop(collection);
    assert_eq!(collect(&blobs, &[]).removed.len(), 1, "the next one knows the record");
    assert_eq!(
        blobs
            .begin_collection()
            .expect("begun")
            .collect_blobs(&nothing_named, much_later())
            .expect("collected"),
        [old[1]]
    );
}

#[test]
fn another_process_collects_nothing_while_somebody_relies_on_something() {
    let home = Home::with_sessions(0, 0);
    let (blobs, other) = (home.store.blobs(), other_process(&home.disk));
    let pins = blobs.batch().expect("a batch").commit().expect("committed");
    let refused = other.begin_collection().map(drop).expect_err("it is kept out");
    assert!(matches!(refused, BlobError::Io(_)), "{refused}");
    drop(pins);
    other.begin_collection().map(drop).expect("nobody relies on anything");
    blobs.batch().map(drop).expect("and the first may write again");
}

/// A crash between the two leaves both: the one that is too many goes.
#[test]
fn an_object_that_is_in_two_packs_is_kept_once() {
    let home = Home::with_sessions(0, 0);
    let blobs = home.store.blobs();
    let objects: Vec<Vec<u8>> = (0..20).map(|n| content(n, 300)).collect();
    let ids = keep(&blobs, &objects);
    let [pack, index] = [".pack", ".idx"].map(|suffix| files(&home.disk, suffix).remove(0));
    let saved = [&pack, &index].map(|path| home.disk.read_file(path).expect("a file"));
    assert_eq!(collect(&blobs, &ids[..5]).rewritten.len(), 1);
    home.disk.write_file(&pack, &saved[0]);
    home.disk.write_file(&index, &saved[1]);
    let done = collect(&blobs, &ids[..5]);
    assert_eq!(files(&home.disk, ".pack").len(), 1, "{done:?}");
    ids[..5].iter().for_each(|id| drop(blobs.get(id).expect("there")));
}
