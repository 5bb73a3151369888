//! What is told when: at once, once it has settled, when nobody looks any more, or not at all.

use std::sync::Arc;

use rekindle_domain::id::SessionId;
use rekindle_notify::outbox::Outcome;
use rekindle_store::disk::SharedDisk;
use rekindle_testkit::clock::SimClock;
use rekindle_testkit::sim::SimDisk;

use super::lab::*;

fn lab() -> (SharedDisk, Lab) {
    let (disk, clock) = (Arc::new(SimDisk::new(1)) as SharedDisk, Arc::new(SimClock::default()));
    let lab = Lab::open(disk.clone(), &clock);
    lab.begin(session());
    (disk, lab)
}

#[test]
fn a_question_is_told_when_nobody_has_answered_it_at_once() {
    let (_, mut lab) = lab();
    lab.append(session(), vec![asks(run(1), wait(1))]);
    lab.pass(1_999);
    assert!(lab.got().is_empty(), "it has not settled");
    lab.append(session(), vec![answered(run(1), wait(1)), asks(run(1), wait(2))]);
    lab.pass(1);
    assert!(lab.got().is_empty(), "it was answered in time");
    lab.pass(2_000);
    assert_eq!(lab.got(), ["waiting 5"]);
    let got = lab.targets[0].got.lock().expect("what it got");
    assert!(got[0].1[0].ends_with(".phone.secret"), "it comes with a link for this target");
}

#[test]
fn an_end_is_told_at_once_and_once() {
    let (disk, mut lab) = lab();
    lab.append(session(), vec![said("all done"), completed(run(1))]);
    lab.work();
    assert_eq!(lab.got(), ["completed 4"]);
    lab.pass(3_600_000);
    assert_eq!(lab.got().len(), 1);
    let outbox = lab.on_disk(&disk);
    let told: Vec<_> =
        outbox.recent().map(|told| (told.sink.as_str(), told.outcome, told.event_id.clone())).collect();
    assert_eq!(told, [("phone", Outcome::Delivered, format!("{}.4", session()))]);
}

#[test]
fn an_interruption_that_mends_itself_is_told_to_nobody_and_one_that_does_not_with_its_end() {
    let (_, mut lab) = lab();
    lab.append(session(), vec![interrupted(run(1))]);
    lab.pass(1_000);
    lab.append(session(), vec![started(run(2), Some(run(1)))]);
    lab.pass(10_000);
    assert!(lab.got().is_empty(), "neither that it was cut nor that it goes on");
    lab.append(session(), vec![interrupted(run(2))]);
    lab.pass(2_000);
    assert_eq!(lab.got(), ["interrupted 5"]);
    lab.append(session(), vec![started(run(3), Some(run(2)))]);
    lab.work();
    assert_eq!(lab.got(), ["interrupted 5", "resumed 6"]);
}

#[test]
fn who_looks_at_a_session_is_not_told_what_it_shows() {
    let (_, mut lab) = lab();
    let looks = lab.attendance.attend(session(), lab.clock.clone());
    lab.append(session(), vec![asks(run(1), wait(1))]);
    lab.pass(60_000);
    assert!(lab.got().is_empty());
    // Whoever leaves without an answer is told: the question is still there.
    drop(looks);
    lab.pass(2_000);
    assert_eq!(lab.got(), ["waiting 3"]);
    lab.append(session(), vec![answered(run(1), wait(1))]);
    // An end is seen by whoever looked until then, although they have left when it is found.
    let looks = lab.attendance.attend(session(), lab.clock.clone());
    lab.append(session(), vec![completed(run(1))]);
    drop(looks);
    lab.pass(60_000);
    assert_eq!(lab.got().len(), 1);
}

#[test]
fn a_target_that_is_always_told_does_not_wait_for_those_who_look() {
    let (disk, clock) = (Arc::new(SimDisk::new(1)), Arc::new(SimClock::default()));
    let always = Scripted { always: true, ..Scripted::new("always") };
    let mut lab = Lab::with(disk, &clock, vec![Scripted::new("phone"), always]);
    lab.begin(session());
    let looks = lab.attendance.attend(session(), clock.clone());
    lab.append(session(), vec![asks(run(1), wait(1))]);
    lab.pass(2_000);
    assert_eq!((lab.targets[0].got().len(), lab.targets[1].got()), (0, vec!["waiting 3".to_owned()]));
    drop(looks);
    lab.pass(2_000);
    assert_eq!((lab.targets[0].got().len(), lab.targets[1].got().len()), (1, 1), "each once");
}

#[test]
fn a_run_of_which_nothing_is_heard_is_told_once() {
    let (_, mut lab) = lab();
    lab.pass(599_000);
    assert!(lab.got().is_empty());
    lab.pass(1_000);
    lab.pass(2_000);
    assert_eq!(lab.got(), ["stalled 2"]);
    lab.pass(7_200_000);
    assert_eq!(lab.got().len(), 1, "{:?}", lab.got());
}

#[test]
fn what_happened_long_before_it_is_found_becomes_one_summary() {
    let (disk, clock) = (Arc::new(SimDisk::new(1)) as SharedDisk, Arc::new(SimClock::default()));
    let mut lab = Lab::open(disk.clone(), &clock);
    lab.begin(session());
    lab.work();
    let others: Vec<SessionId> = (2..6).map(|n| SessionId::mint(1, n)).collect();
    // Nobody observes for two hours.
    for other in &others {
        lab.begin(*other);
        lab.append(*other, vec![completed(run(1))]);
    }
    clock.advance(2 * 3_600_000);
    lab.append(session(), vec![completed(run(1))]);
    lab.work();
    let got = lab.got();
    assert!(got.len() == 2 && got.contains(&"completed 3".to_owned()), "{got:?}");
    assert!(got.contains(&"summary of 4 completed".to_owned()), "{got:?}");
}
