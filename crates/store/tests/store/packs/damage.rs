//! Damage: an index can be made again, a pack says what it has lost, and `doctor` names every byte.

use std::path::Path;
use std::sync::Arc;

use rekindle_store::blobs::{BlobError, BlobId};
use rekindle_store::check::{Finding, Holding, check};
use rekindle_testkit::sim::SimDisk;

use super::{content, files, keep, other_process};
use crate::common::Home;

fn home_with_a_pack() -> (SimDisk, Vec<BlobId>) {
    let home = Home::with_sessions(1, 1);
    let ids = keep(&home.store.blobs(), &(0..6).map(|n| content(n, 40 + 9 * n as usize)).collect::<Vec<_>>());
    let disk = home.disk.fork();
    (disk, ids)
}

fn pack_and_index(disk: &SimDisk) -> (std::path::PathBuf, std::path::PathBuf) {
    let (mut packs, mut indexes) = (files(disk, ".pack"), files(disk, ".idx"));
    (packs.remove(0), indexes.remove(0))
}

fn findings(disk: &SimDisk) -> Vec<Finding> {
    let report = check(Arc::new(disk.clone()), "/home", Holding::Nothing, &mut |_| {}).expect("checked");
    let about_packs = |finding: &Finding| finding.code.as_str().starts_with("pack_");
    report.findings.into_iter().filter(about_packs).collect()
}

/// Where each object begins, from the format as it is documented.
fn offsets(pack: &[u8]) -> Vec<(u64, BlobId)> {
    let (mut found, mut at) = (Vec::new(), 8);
    while at < pack.len() {
        let id = BlobId::from_bytes(pack[at..at + 32].try_into().expect("32 bytes"));
        let stored = u32::from_le_bytes(pack[at + 40..at + 44].try_into().expect("4 bytes"));
        found.push((at as u64, id));
        at += 48 + stored as usize;
    }
    found
}

#[test]
fn an_index_that_is_missing_or_damaged_is_made_again_to_the_byte() {
    let (disk, ids) = home_with_a_pack();
    let (_, index) = pack_and_index(&disk);
    let bytes = disk.read_file(&index).expect("an index");
    for damage in [
        (|disk, index| disk.remove(index)) as fn(&SimDisk, &Path) -> bool,
        |disk, index| disk.flip_byte(index, 30),
        |disk, index| disk.truncate_file(index, 20),
        |disk, index| disk.truncate_file(index, 0),
    ] {
        let damaged = disk.fork();
        assert!(damage(&damaged, &index));
        let blobs = other_process(&damaged);
        for (number, id) in ids.iter().enumerate() {
            assert_eq!(blobs.get(id).expect("there"), content(number as u64, 40 + 9 * number));
        }
        drop(blobs.batch().expect("a batch"));
        assert_eq!(damaged.read_file(&index).as_ref(), Some(&bytes), "written down by whoever writes next");
        assert_eq!(findings(&damaged), []);
    }
}

#[test]
fn a_pack_that_ends_anywhere_gives_all_whole_objects() {
    let (disk, ids) = home_with_a_pack();
    let (pack, index) = pack_and_index(&disk);
    let bytes = disk.read_file(&pack).expect("a pack");
    disk.remove(&index);
    let mut ends: Vec<u64> = offsets(&bytes).into_iter().map(|(offset, _)| offset).skip(1).collect();
    ends.push(bytes.len() as u64);
    for len in 0..bytes.len() as u64 {
        let cut = disk.fork();
        assert!(cut.truncate_file(&pack, len));
        let blobs = other_process(&cut);
        for (id, end) in ids.iter().zip(&ends) {
            assert_eq!(blobs.get(id).is_ok(), *end <= len, "cut to {len}");
        }
        let told = findings(&cut);
        assert!(told.iter().any(|finding| finding.code.as_str() == "pack_damaged"), "cut to {len}: {told:?}");
        // It stays as it is: somebody may have the rest.
        drop(blobs.batch().expect("a batch"));
        let done = blobs.begin_collection().expect("begun");
        let done = done.collect_packs(&Default::default(), super::much_later()).expect("collected");
        assert_eq!((done.removed.len(), done.damaged.len()), (0, 1));
    }
}

#[test]
fn every_changed_byte_is_found_and_named() {
    let (disk, _) = home_with_a_pack();
    let (pack, index) = pack_and_index(&disk);
    assert_eq!(findings(&disk), []);
    let objects = offsets(&disk.read_file(&pack).expect("a pack"));
    for byte in 0..disk.read_file(&pack).expect("a pack").len() as u64 {
        let damaged = disk.fork();
        assert!(damaged.flip_byte(&pack, byte));
        let told = findings(&damaged);
        assert_eq!(told.len(), 1, "byte {byte}: {told:?}");
        let [finding] = &told[..] else { continue };
        let (offset, id) = objects.iter().rev().find(|(offset, _)| *offset <= byte).copied().unzip();
        assert_eq!((finding.code.as_str(), &finding.path), ("pack_damaged", &pack));
        assert_eq!(finding.at.and_then(|place| place.byte), Some(offset.unwrap_or(0)), "byte {byte}");
        assert!(id.is_none_or(|id| finding.what.contains(&id.to_string())), "byte {byte}: {}", finding.what);
    }
    for byte in 0..disk.read_file(&index).expect("an index").len() as u64 {
        let damaged = disk.fork();
        assert!(damaged.flip_byte(&index, byte));
        let told = findings(&damaged);
        assert_eq!(told.len(), 1, "byte {byte}: {told:?}");
        assert_eq!((told[0].code.as_str(), &told[0].path), ("pack_index_damaged", &index));
        assert_eq!(told[0].at.and_then(|place| place.byte), Some(byte));
    }
    let longer = disk.fork();
    let mut bytes = disk.read_file(&pack).expect("a pack");
    bytes.push(0);
    longer.write_file(&pack, &bytes);
    assert_eq!(findings(&longer).len(), 1, "bytes behind the end");
    disk.remove(&index);
    assert_eq!(findings(&disk)[0].code.as_str(), "pack_index_missing");
}

#[test]
fn a_damaged_object_is_told_and_a_good_copy_is_found() {
    let (disk, ids) = home_with_a_pack();
    let (pack, _) = pack_and_index(&disk);
    let (offset, id) = offsets(&disk.read_file(&pack).expect("a pack"))[2];
    assert_eq!(id, ids[2]);
    disk.flip_byte(&pack, offset + 50);
    let blobs = other_process(&disk);
    let Err(BlobError::Damaged { path, detail, .. }) = blobs.get(&id) else { panic!("it is damaged") };
    assert_eq!(path, pack);
    assert!(detail.contains(&format!("at byte {offset}")), "{detail}");
    blobs.get(&ids[3]).expect("all others can be read");
    blobs.put(&content(2, 58)).expect("kept in a file of its own");
    assert_eq!(blobs.get(&id).expect("the good copy"), content(2, 58));
}

#[test]
fn an_object_that_was_found_damaged_is_brought_again_by_the_next_batch() {
    let (disk, ids) = home_with_a_pack();
    let (pack, _) = pack_and_index(&disk);
    let (offset, _) = offsets(&disk.read_file(&pack).expect("a pack"))[4];
    disk.flip_byte(&pack, offset + 60);
    let blobs = other_process(&disk);
    for _ in 0..2 {
        assert!(matches!(blobs.get(&ids[4]), Err(BlobError::Damaged { .. })));
    }
    let batch = blobs.batch().expect("a batch");
    assert!(!batch.reuse(&ids[4]).expect("looked") && batch.reuse(&ids[3]).expect("looked"));
    batch.put(&content(4, 76)).expect("put");
    drop(batch.commit().expect("committed"));
    for reader in [blobs, other_process(&disk)] {
        assert_eq!(reader.get(&ids[4]).expect("whole in another pack"), content(4, 76));
    }
}

/// The same objects make a pack of the same name: it takes the place of the damaged one.
#[test]
fn a_damaged_pack_is_replaced_by_one_with_the_same_objects() {
    for damage in [
        (|disk, pack, _| disk.flip_byte(pack, 60)) as fn(&SimDisk, &Path, &Path) -> bool,
        |disk, pack, _| disk.truncate_file(pack, 60),
        |disk, pack, index| disk.truncate_file(pack, 60) && disk.remove(index),
    ] {
        let home = Home::with_sessions(1, 1);
        let [id] = keep(&home.store.blobs(), &[content(1, 300)])[..] else { panic!("one object") };
        let (pack, index) = pack_and_index(&home.disk);
        assert!(damage(&home.disk, &pack, &index));
        let blobs = other_process(&home.disk);
        blobs.get(&id).expect_err("it is damaged");
        assert_eq!(keep(&blobs, &[content(1, 300)]), [id]);
        assert_eq!(blobs.get(&id).expect("whole again"), content(1, 300));
        assert_eq!((files(&home.disk, ".pack"), findings(&home.disk)), (vec![pack], vec![]));
    }
}
