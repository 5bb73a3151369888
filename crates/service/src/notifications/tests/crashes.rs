//! Kills and power cuts: what was recorded is told at least once, and what was written down as delivered is not told again.

use std::sync::Arc;

use rekindle_notify::outbox::Outbox;
use rekindle_store::disk::SharedDisk;
use rekindle_testkit::clock::SimClock;
use rekindle_testkit::rng::Rng;
use rekindle_testkit::sim::SimDisk;

use super::lab::*;

const OUTBOX: &str = "/home/notify/outbox.jsonl";

fn open(disk: &SimDisk, clock: &Arc<SimClock>) -> Lab {
    Lab::open(Arc::new(disk.clone()), clock)
}

/// Two restarts tell nothing twice.
#[test]
fn what_was_delivered_is_not_delivered_again_by_the_next_daemons() {
    let (disk, clock) = (SimDisk::new(1), Arc::new(SimClock::default()));
    let mut lab = open(&disk, &clock);
    lab.begin(session());
    lab.append(session(), vec![asks(run(1), wait(1))]);
    lab.pass(2_000);
    assert_eq!(lab.got(), ["waiting 3"]);
    let mut disk = disk;
    for _ in 0..2 {
        drop(lab);
        disk = disk.process_kill(&mut Rng::new(1));
        lab = open(&disk, &clock);
        lab.pass(10_000);
        assert!(lab.got().is_empty(), "{:?}", lab.got());
    }
    lab.append(session(), vec![answered(run(1), wait(1)), completed(run(1))]);
    lab.work();
    assert_eq!(lab.got(), ["completed 5"]);
}

/// Killed between the record and the outbox: the log has it.
#[test]
fn what_nobody_had_found_yet_is_found_by_the_next_daemon() {
    let (disk, clock) = (SimDisk::new(1), Arc::new(SimClock::default()));
    let mut lab = open(&disk, &clock);
    lab.begin(session());
    lab.work();
    lab.append(session(), vec![completed(run(1))]);
    drop(lab);
    let disk = disk.process_kill(&mut Rng::new(1));
    let mut lab = open(&disk, &clock);
    lab.work();
    assert_eq!(lab.got(), ["completed 3"]);
}

/// Most of a pipeline run's budget is used, and the daemon is killed before anybody looks: the ledger has it, once.
#[test]
fn the_budget_of_a_pipeline_run_is_told_once_whoever_comes_next() {
    let (disk, clock) = (SimDisk::new(1), Arc::new(SimClock::default()));
    let mut lab = open(&disk, &clock);
    let run = lab.begin_pipeline();
    lab.work();
    lab.append_to_pipeline(run, vec![most_of_the_budget()]);
    let mut disk = disk;
    for told in [&["budget 3"][..], &[], &[]] {
        drop(lab);
        disk = disk.process_kill(&mut Rng::new(1));
        lab = open(&disk, &clock);
        lab.pass(10_000);
        assert_eq!(lab.got(), told);
    }
}

/// Killed between the outbox and the delivery, or while it settles: the outbox has it.
#[test]
fn what_was_found_and_not_delivered_is_delivered_by_the_next_daemon() {
    let (disk, clock) = (SimDisk::new(1), Arc::new(SimClock::default()));
    let mut lab = open(&disk, &clock);
    lab.begin(session());
    lab.append(session(), vec![asks(run(1), wait(1))]);
    lab.observe();
    drop(lab);
    let disk = disk.process_kill(&mut Rng::new(1));
    let mut lab = open(&disk, &clock);
    lab.work();
    assert!(lab.got().is_empty(), "it settles with the start");
    clock.advance(2_000);
    lab.observe();
    drop(lab);
    let disk = disk.process_kill(&mut Rng::new(1));
    let mut lab = open(&disk, &clock);
    lab.work();
    assert_eq!(lab.got(), ["waiting 3"]);
}

/// However much of the outbox is left, everything is told, and what is left of it counts.
#[test]
fn an_outbox_that_is_cut_anywhere_tells_everything_at_least_once() {
    let (disk, clock) = (SimDisk::new(1), Arc::new(SimClock::default()));
    let mut lab = open(&disk, &clock);
    lab.begin(session());
    lab.append(session(), vec![completed(run(1)), started(run(2), None), asks(run(2), wait(1))]);
    lab.pass(2_000);
    assert_eq!(lab.got(), ["completed 3", "waiting 5"]);
    let path = lab.store.layout().outbox();
    drop(lab);
    let disk = disk.process_kill(&mut Rng::new(1));
    let whole = disk.read_file(&path).expect("an outbox");
    let first = whole.iter().position(|byte| *byte == b'\n').expect("a line") + 1;
    // Every seventh byte, and the ends of lines.
    let ends = whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at);
    let cuts: Vec<usize> =
        (first..whole.len()).step_by(7).chain(ends.clone()).chain(ends.map(|at| at + 1)).collect();
    for cut in cuts.into_iter().filter(|cut| *cut >= first) {
        let torn = disk.fork();
        torn.truncate_file(&path, cut as u64);
        let mut lab = open(&torn, &clock);
        lab.pass(2_000);
        let (mut told, recent): (Vec<String>, Outbox) =
            (lab.got(), lab.on_disk(&(Arc::new(torn.clone()) as SharedDisk)));
        told.extend(recent.recent().map(|told| {
            let seq = told.event_id.rsplit('.').next().unwrap_or_default();
            format!("{} {seq}", told.kind.map_or("", |kind| kind.name()))
        }));
        for event in ["completed 3", "waiting 5"] {
            assert!(told.iter().any(|told| told == event), "cut at {cut}: {event} is not in {told:?}");
        }
    }
}

/// A power cut takes what an agent said; the numbers are used again, for what must be told.
#[test]
fn records_in_the_place_of_lost_ones_are_told() {
    let mut lost = 0;
    for seed in 0..8 {
        let (disk, clock) = (SimDisk::new(1), Arc::new(SimClock::default()));
        let mut lab = open(&disk, &clock);
        lab.begin(session());
        lab.append(session(), vec![asks(run(1), wait(1))]);
        lab.append(session(), vec![answered(run(1), wait(1))]);
        lab.append(session(), vec![said("one")]);
        lab.append(session(), vec![said("two")]);
        lab.pass(60_000);
        // How far it was read is on disk, as if the log were.
        lab.leave();
        let outbox = disk.read_file(OUTBOX).expect("an outbox");
        let cut = disk.power_cut(&mut Rng::new(seed));
        drop(lab);
        cut.write_file(OUTBOX, &outbox);
        let mut lab = open(&cut, &clock);
        let left = lab.store.open_session(session()).expect("open").state.last_seq;
        lost += u64::from(left < 6);
        // As many as were there, and more.
        lab.append(session(), vec![completed(run(1))]);
        lab.append(session(), vec![said("three")]);
        lab.append(session(), vec![said("four")]);
        lab.pass(1_000);
        assert_eq!(lab.got(), [format!("completed {}", left + 1)], "behind {left}");
    }
    assert!(lost > 0, "nothing was ever lost");
}
