//! A crash at every operation of batches, commits, merges and collections.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use rekindle_store::blobs::{BlobId, Blobs};
use rekindle_store::check::{Holding, check};
use rekindle_testkit::rng::Rng;
use rekindle_testkit::sim::{Faults, SimDisk};

use super::{content, much_later, other_process};
use crate::common::Home;

/// What must be there, and of what bytes; and everything that was ever put.
#[derive(Clone, Default)]
struct Ledger {
    promised: BTreeMap<BlobId, Arc<Vec<u8>>>,
    put: BTreeMap<BlobId, Arc<Vec<u8>>>,
}

type Shared = Arc<Mutex<Ledger>>;

fn with<T>(ledger: &Shared, change: impl FnOnce(&mut Ledger) -> T) -> T {
    change(&mut ledger.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Puts some new objects, reuses old ones, and commits or not.
fn capture(blobs: &Blobs, ledger: &Shared, rng: &mut Rng, next: &mut u64) {
    let Ok(batch) = blobs.batch() else { return };
    let mut mine = BTreeMap::new();
    let known: Vec<(BlobId, Arc<Vec<u8>>)> =
        with(ledger, |ledger| ledger.put.iter().map(|(id, bytes)| (*id, bytes.clone())).collect());
    for (id, bytes) in known.into_iter().filter(|_| rng.chance(1, 3)) {
        if batch.reuse(&id).unwrap_or_default() {
            mine.insert(id, bytes);
        }
    }
    for _ in 0..rng.below(4) {
        *next += 1;
        let len = if rng.chance(1, 8) { 140_000 } else { rng.below(9_000) as usize };
        let bytes = Arc::new(content(*next, len));
        with(ledger, |ledger| ledger.put.insert(BlobId::of(&bytes), bytes.clone()));
        if let Ok(id) = batch.put(&bytes) {
            mine.insert(id, bytes);
        }
    }
    if rng.chance(1, 10) {
        return;
    }
    if let Ok(pins) = batch.commit() {
        with(ledger, |ledger| ledger.promised.extend(mine));
        drop(pins);
    }
}

/// Forgets some of what was promised, and collects it.
fn collect(blobs: &Blobs, ledger: &Shared, rng: &mut Rng) {
    let Ok(collection) = blobs.begin_collection() else { return };
    let named: HashSet<BlobId> = with(ledger, |ledger| {
        ledger.promised.retain(|_, _| rng.chance(1, 3));
        ledger.promised.keys().copied().collect()
    });
    // A failing disk may stop it anywhere.
    let _ = collection.collect_packs(&named, much_later());
    let _ = collection.collect_blobs(&named, much_later());
}

/// Judges a disk after a crash: everything promised is there, nothing is damaged, and work goes on; then once more after the power
/// goes behind that.
fn judge(image: &SimDisk, ledger: &Ledger, rng: &mut Rng) -> Result<(), String> {
    let all_there = |blobs: &Blobs, promised: &BTreeMap<BlobId, Arc<Vec<u8>>>| {
        for (id, bytes) in promised {
            let mut copied = Vec::new();
            blobs.copy_to(id, &mut copied).map_err(|error| error.to_string())?;
            if copied != **bytes {
                return Err(format!("{id} has other bytes"));
            }
        }
        Ok(())
    };
    let blobs = other_process(image);
    all_there(&blobs, &ledger.promised)?;
    let report = check(Arc::new(image.clone()), "/home", Holding::Nothing, &mut |_| {})
        .map_err(|error| error.to_string())?;
    if !report.is_healthy() {
        return Err(format!("{:?}", report.findings));
    }
    // Whatever is seen now may be relied on, also what the dead one had not synced yet.
    let batch = blobs.batch().map_err(|error| error.to_string())?;
    let mut promised = ledger.promised.clone();
    for (id, bytes) in &ledger.put {
        if batch.reuse(id).map_err(|error| error.to_string())? {
            promised.insert(*id, bytes.clone());
        } else if ledger.promised.contains_key(id) {
            return Err(format!("{id} was promised and cannot be reused"));
        }
    }
    batch.commit().map(drop).map_err(|error| error.to_string())?;
    drop(blobs);
    let leftovers = super::files(image, ".tmp");
    if leftovers.iter().any(|path| path.starts_with("/home/blobs/packs")) {
        return Err(format!("{leftovers:?}"));
    }
    all_there(&other_process(&image.power_cut(rng)), &promised)
        .map_err(|why| format!("after it went on: {why}"))
}

fn run(seed: u64, faults_per_mille: u64) -> usize {
    let mut rng = Rng::new(seed);
    let home = Home::with_sessions(0, 0);
    let ledger = Shared::default();
    let points = Arc::new(Mutex::new(Vec::new()));
    let (seen, handle, told) = (points.clone(), home.disk.clone(), ledger.clone());
    home.disk.set_observer(Box::new(move |op| {
        let point = (op.to_string(), handle.fork(), with(&told, |ledger| ledger.clone()));
        seen.lock().unwrap_or_else(PoisonError::into_inner).push(point);
    }));
    if faults_per_mille > 0 {
        home.disk.set_faults(Faults::random(rng.next_u64(), faults_per_mille));
    }
    let blobs = home.store.blobs();
    let mut next = seed << 20;
    for _ in 0..24 {
        if rng.chance(1, 8) {
            collect(&blobs, &ledger, &mut rng);
        } else {
            capture(&blobs, &ledger, &mut rng, &mut next);
        }
    }
    home.disk.clear_observer();
    let points = std::mem::take(&mut *points.lock().unwrap_or_else(PoisonError::into_inner));
    let count = points.len();
    for (index, (op, point, ledger)) in points.into_iter().enumerate() {
        let power = rng.chance(1, 2);
        let image = if power { point.power_cut(&mut rng) } else { point.process_kill(&mut rng) };
        if let Err(why) = judge(&image, &ledger, &mut rng) {
            let kind = if power { "power" } else { "kill" };
            panic!("seed {seed}, crash {index} ({kind}) before {op}: {why}");
        }
    }
    count
}

fn campaign(first_seed: u64, faults_per_mille: u64, wanted: usize) {
    let (mut points, mut seed) = (0, first_seed);
    while points < wanted {
        points += run(seed, faults_per_mille);
        seed += 1;
    }
    println!("{points} crash points, seeds {first_seed}..{seed}");
}

// I1, I12
#[test]
fn a_crash_at_any_operation_on_packs_loses_nothing_promised() {
    campaign(5_000, 0, 1_500);
}

// I1, I12
#[test]
fn a_crash_after_failing_calls_on_packs_loses_nothing_promised() {
    campaign(6_000, 20, 1_500);
}
