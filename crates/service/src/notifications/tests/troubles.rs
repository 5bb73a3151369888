//! Disks that are full or hang, sessions that cannot be read, and outboxes that are not.

use std::sync::Arc;

use rekindle_domain::event::SessionDeleted;
use rekindle_domain::id::SessionId;
use rekindle_store::disk::SharedDisk;
use rekindle_testkit::clock::SimClock;
use rekindle_testkit::gated::GatedDisk;
use rekindle_testkit::rng::Rng;
use rekindle_testkit::sim::{Fault, FaultKind, OpKind, SimDisk};

use super::lab::*;

#[test]
fn a_disk_that_takes_nothing_keeps_nobody_from_being_told() {
    let (disk, clock) = (SimDisk::new(1), Arc::new(SimClock::default()));
    let mut lab = Lab::open(Arc::new(disk.clone()), &clock);
    lab.begin(session());
    lab.work();
    disk.inject(Fault::sticky(FaultKind::NoSpace, 0).on(&[OpKind::Write]).at("outbox.jsonl"));
    lab.append(session(), vec![completed(run(1))]);
    lab.work();
    assert_eq!(lab.got(), ["completed 3"]);
    let on_disk = lab.on_disk(&(Arc::new(disk.clone()) as SharedDisk));
    assert_eq!(on_disk.recent().count(), 0, "nothing of it is on disk");
    disk.clear_faults();
    lab.pass(1_000);
    drop(lab);
    let disk = disk.process_kill(&mut Rng::new(1));
    let mut lab = Lab::open(Arc::new(disk.clone()), &clock);
    lab.pass(10_000);
    assert!(lab.got().is_empty(), "it was written when there was room again");
}

#[test]
fn a_log_that_hangs_keeps_no_other_session_from_being_told() {
    let (disk, clock) = (GatedDisk::new(1), Arc::new(SimClock::default()));
    let mut lab = Lab::open(Arc::new(disk.clone()), &clock);
    let other = SessionId::mint(1, 2);
    lab.begin(session());
    lab.begin(other);
    lab.work();
    let closed = disk.gate.close(OpKind::Read, &format!("{}.messages", session()));
    lab.append(session(), vec![completed(run(1))]);
    lab.append(other, vec![completed(run(1))]);
    lab.observe_until(|lab| {
        lab.hub.with(|outbox| outbox.waiting_for("phone").is_some_and(|queue| !queue.is_empty()))
    });
    lab.deliver();
    assert_eq!(lab.got(), ["completed 3"]);
    drop(closed);
    lab.work();
    assert_eq!(lab.got(), ["completed 3", "completed 3"], "the other when its disk answers");
}

#[test]
fn a_session_that_is_removed_or_unreadable_is_passed_over() {
    let (disk, clock) = (SimDisk::new(1), Arc::new(SimClock::default()));
    let mut lab = Lab::open(Arc::new(disk.clone()), &clock);
    let other = SessionId::mint(1, 2);
    lab.begin(session());
    lab.begin(other);
    lab.append(session(), vec![asks(run(1), wait(1))]);
    lab.observe();
    lab.append(session(), vec![SessionDeleted::default().into()]);
    lab.pass(5_000);
    assert!(lab.got().is_empty(), "nobody can answer that any more");
    drop(lab);
    let disk = disk.process_kill(&mut Rng::new(1));
    disk.write_file(format!("/home/sessions/{other}.messages.jsonl"), b"this is no log\n");
    let mut lab = Lab::open(Arc::new(disk.clone()), &clock);
    let third = SessionId::mint(1, 3);
    lab.begin(third);
    lab.append(third, vec![completed(run(1))]);
    lab.work();
    assert_eq!(lab.got(), ["completed 3"]);
}

#[test]
fn an_outbox_with_other_lines_in_it_is_read_as_far_as_it_makes_sense() {
    let (disk, clock) = (SimDisk::new(1), Arc::new(SimClock::default()));
    let mut lab = Lab::open(Arc::new(disk.clone()), &clock);
    lab.begin(session());
    lab.append(session(), vec![completed(run(1))]);
    lab.work();
    assert_eq!(lab.got(), ["completed 3"]);
    drop(lab);
    let disk = disk.process_kill(&mut Rng::new(1));
    let path = "/home/notify/outbox.jsonl";
    let mut bytes = disk.read_file(path).expect("an outbox");
    bytes.extend_from_slice(b"{\"entry\":\"of tomorrow\",\"x\":1}\n");
    let good = bytes.len();
    bytes.extend_from_slice(b"\0\0\0\0\n{\"entry\":\"told\"}\n");
    disk.write_file(path, &bytes);
    let mut lab = Lab::open(Arc::new(disk.clone()), &clock);
    lab.pass(5_000);
    assert!(lab.got().is_empty());
    lab.append(session(), vec![started(run(2), None), completed(run(2))]);
    lab.work();
    assert_eq!(lab.got(), ["completed 5"]);
    let now = disk.read_file(path).expect("an outbox");
    assert!(now.len() < good + 4096 && !now.contains(&0), "what made no sense is gone");
}

#[test]
fn without_anything_to_tell_little_is_written() {
    let (disk, clock) = (SimDisk::new(1), Arc::new(SimClock::default()));
    let mut lab = Lab::open(Arc::new(disk.clone()), &clock);
    lab.begin(session());
    lab.work();
    let before = disk.read_file("/home/notify/outbox.jsonl").map_or(0, |bytes| bytes.len());
    for n in 0..200 {
        lab.append(session(), vec![said(&format!("word {n}"))]);
        lab.observe();
    }
    let after = disk.read_file("/home/notify/outbox.jsonl").map_or(0, |bytes| bytes.len());
    assert_eq!(before, after, "what is no news costs nothing");
}
