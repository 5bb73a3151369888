//! The store on a simulated disk, crashed at every operation.
//!
//! Each seed is one workload. At every operation that changes the disk a picture of it is taken, together with
//! what had been acknowledged; afterwards each picture suffers a power cut or the death of the process, is
//! opened and judged. `REKINDLE_SEED=n` repeats one seed; `REKINDLE_TEST_LONG=1` runs a million crash points.

mod judge;
mod ledger;
mod workload;

use std::sync::{Arc, Mutex, PoisonError};

use judge::judge;
use ledger::Ledger;
use rekindle_testkit::clock::SimClock;
use rekindle_testkit::rng::Rng;
use rekindle_testkit::sim::{Faults, Physics, SimDisk};
use workload::Workload;

use crate::common::open;

/// What a run of many seeds did.
#[derive(Default)]
struct Tally {
    points: usize,
    faults: u64,
}

/// Runs one seed: the workload, then every crash in it.
fn run(seed: u64, steps: usize, faults_per_mille: u64) -> Result<Tally, String> {
    let mut rng = Rng::new(seed);
    let disk = SimDisk::new(rng.next_u64());
    let clock = Arc::new(SimClock::default());
    let ledger = Ledger::default();
    let points = Arc::new(Mutex::new(Vec::new()));
    let (seen, handle, told) = (points.clone(), disk.clone(), ledger.clone());
    disk.set_observer(Box::new(move |op| {
        let point = (op.to_string(), handle.fork(), told.len());
        seen.lock().unwrap_or_else(PoisonError::into_inner).push(point);
    }));
    let store = open(&disk, &clock).map_err(|error| format!("cannot open an empty home: {error:?}"))?;
    if faults_per_mille > 0 {
        disk.set_faults(Faults::random(rng.next_u64(), faults_per_mille));
    }
    Workload::new(&store, &ledger, &clock, rng.fork()).run(steps);
    let faults = disk.faults_struck();
    disk.clear_observer();
    let mut points = std::mem::take(&mut *points.lock().unwrap_or_else(PoisonError::into_inner));
    points.push(("the end".into(), disk.fork(), ledger.len()));
    let count = points.len();
    let mut told_before = 0;
    for (index, (op, picture, told)) in points.into_iter().enumerate() {
        let power = rng.chance(4, 5);
        // A kill tears only the write it strikes: one after which nobody was told anything.
        let striking = std::mem::replace(&mut told_before, told) == told;
        let told = ledger.first(told);
        if !striking {
            picture.set_physics(Physics { torn_by_kill: 0, ..Physics::default() });
        }
        let image = if power { picture.power_cut(&mut rng) } else { picture.process_kill(&mut rng) };
        judge(&image, &told, power, &mut rng).map_err(|why| {
            format!("crash {index} ({}) before {op}: {why}", if power { "power" } else { "kill" })
        })?;
    }
    Ok(Tally { points: count, faults })
}

/// Runs seeds until enough crash points were judged; a failure names the seed that repeats it.
fn campaign(name: &str, first_seed: u64, steps: usize, faults_per_mille: u64, points: usize) {
    let only =
        std::env::var("REKINDLE_SEED").ok().map(|seed| seed.parse().expect("REKINDLE_SEED is a number"));
    let long = std::env::var_os("REKINDLE_TEST_LONG").is_some();
    let wanted = if long { points * 100 } else { points };
    let mut total = Tally::default();
    let mut seed = only.unwrap_or(first_seed);
    while total.points < wanted {
        match run(seed, steps, faults_per_mille) {
            Ok(tally) => {
                total.points += tally.points;
                total.faults += tally.faults;
            }
            Err(why) => panic!(
                "{why}\nrepeat with: REKINDLE_SEED={seed} cargo test -p rekindle-store --test store {name}"
            ),
        }
        if only.is_some() {
            break;
        }
        seed += 1;
    }
    println!(
        "{name}: {} crash points, {} injected faults, seeds {first_seed}..{seed}",
        total.points, total.faults
    );
    assert!(faults_per_mille == 0 || total.faults > 0 || only.is_some(), "no fault was injected");
}

// I1, I2, I3, I14
#[test]
fn a_crash_at_any_operation_loses_nothing_acknowledged() {
    campaign("a_crash_at_any_operation_loses_nothing_acknowledged", 1_000, 60, 0, 6_000);
}

// I1, I3, I12
#[test]
fn a_crash_after_failing_calls_loses_nothing_acknowledged() {
    campaign("a_crash_after_failing_calls_loses_nothing_acknowledged", 2_000, 60, 15, 5_000);
}

// I1, I3, I12
#[test]
fn a_crash_on_a_disk_that_fails_all_the_time_loses_nothing_acknowledged() {
    campaign("a_crash_on_a_disk_that_fails_all_the_time_loses_nothing_acknowledged", 3_000, 60, 50, 4_000);
}
