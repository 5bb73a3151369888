//! Packs and batches, on a simulated disk: what is committed is there, what is not does no harm.

mod collecting;
mod crashes;
mod damage;
mod writing;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rekindle_store::blobs::{BlobId, Blobs, COLLECT_AFTER};
use rekindle_store::layout::Layout;
use rekindle_testkit::rng::Rng;
use rekindle_testkit::sim::SimDisk;

/// Another process's view of a home.
fn other_process(disk: &SimDisk) -> Blobs {
    Blobs::reading(Arc::new(disk.clone()), Layout::new("/home"))
}

/// A time at which everything on a simulated disk is old.
fn much_later() -> SystemTime {
    SystemTime::UNIX_EPOCH + COLLECT_AFTER + Duration::from_secs(1_000_000_000)
}

/// Bytes that can be told from all others: text, or noise that does not get smaller.
fn content(number: u64, len: usize) -> Vec<u8> {
    if number.is_multiple_of(3) {
        let mut noise = vec![0; len];
        Rng::new(number).fill(&mut noise);
        return noise;
    }
    format!("object {number} ").repeat(len / 9 + 1).into_bytes()[..len].to_vec()
}

/// Puts objects into one batch and returns their names, once they are durable and nothing is pinned any more.
fn keep(blobs: &Blobs, objects: &[Vec<u8>]) -> Vec<BlobId> {
    let batch = blobs.batch().expect("a batch");
    let ids = objects.iter().map(|object| batch.put(object).expect("put")).collect();
    drop(batch.commit().expect("committed"));
    ids
}

/// Returns the paths of files whose name ends so.
fn files(disk: &SimDisk, suffix: &str) -> Vec<std::path::PathBuf> {
    disk.paths().into_iter().filter(|path| path.to_string_lossy().ends_with(suffix)).collect()
}
