//! Targets that fail, are slow, or get more than they want.

use std::sync::Arc;

use rekindle_domain::id::SessionId;
use rekindle_notify::outbox::Outcome;
use rekindle_notify::{Delivery, RateLimit};
use rekindle_store::disk::SharedDisk;
use rekindle_testkit::clock::SimClock;
use rekindle_testkit::sim::SimDisk;

use super::lab::*;

fn retry() -> Delivery {
    Delivery::Retry { after: None, why: "https://example.org does not answer".into() }
}

#[test]
fn a_delivery_that_fails_is_repeated_until_it_is_given_up() {
    let (disk, clock) = (Arc::new(SimDisk::new(1)) as SharedDisk, Arc::new(SimClock::default()));
    let mut lab = Lab::open(disk.clone(), &clock);
    lab.begin(session());
    lab.targets[0].outcomes.lock().expect("a script").extend([retry(), retry()]);
    lab.append(session(), vec![completed(run(1))]);
    lab.work();
    assert!(lab.got().is_empty());
    assert_eq!((lab.hub.counts()[0].failed, lab.hub.counts()[0].waiting), (1, 1));
    lab.pass(60_000);
    lab.pass(60_000);
    assert_eq!(lab.got(), ["completed 3"]);
    // Another, that fails for more than a day.
    lab.targets[0].outcomes.lock().expect("a script").extend((0..200).map(|_| retry()));
    let other = SessionId::mint(1, 2);
    lab.begin(other);
    lab.append(other, vec![completed(run(1))]);
    lab.work();
    for _ in 0..26 * 6 {
        lab.pass(600_000);
    }
    let outbox = lab.on_disk(&disk);
    let last = outbox.recent().next_back().expect("it ended");
    assert_eq!(
        (last.outcome, last.why.as_deref()),
        (Outcome::GivenUp, Some("https://example.org does not answer"))
    );
    assert!(last.failures > 10, "{}", last.failures);
    let counts = &lab.hub.counts()[0];
    assert_eq!((counts.waiting, counts.oldest_ms), (0, 0));
}

#[test]
fn what_a_target_does_not_take_is_not_repeated() {
    let (disk, clock) = (Arc::new(SimDisk::new(1)) as SharedDisk, Arc::new(SimClock::default()));
    let mut lab = Lab::open(disk, &clock);
    lab.begin(session());
    let refused = Delivery::Refused { why: "404".into() };
    lab.targets[0].outcomes.lock().expect("a script").push_back(refused);
    lab.append(session(), vec![completed(run(1)), started(run(2), None), completed(run(2))]);
    lab.pass(3_600_000);
    assert_eq!(lab.got(), ["completed 5"], "only the other");
    assert!(lab.hub.counts()[0].ended.contains(&("refused", 1)));
}

#[test]
fn more_than_a_target_wants_is_told_as_one() {
    let (disk, clock) = (Arc::new(SimDisk::new(1)) as SharedDisk, Arc::new(SimClock::default()));
    let mut lab = Lab::with(disk, &clock, vec![Scripted { per_hour: 4, ..Scripted::new("phone") }]);
    for n in 1..=20 {
        let session = SessionId::mint(1, n);
        lab.begin(session);
        lab.append(session, vec![completed(run(1))]);
    }
    lab.work();
    assert_eq!(lab.got().len(), 4);
    lab.pass(15 * 60_000);
    assert_eq!(lab.got().last().map(String::as_str), Some("summary of 16 completed"));
    assert_eq!(lab.got().len(), 5);
}

#[test]
fn a_question_that_was_answered_while_its_target_was_away_is_not_told() {
    let (disk, clock) = (Arc::new(SimDisk::new(1)) as SharedDisk, Arc::new(SimClock::default()));
    let mut lab = Lab::open(disk.clone(), &clock);
    lab.begin(session());
    lab.targets[0].outcomes.lock().expect("a script").push_back(retry());
    lab.append(session(), vec![asks(run(1), wait(1))]);
    lab.pass(2_000);
    lab.append(session(), vec![answered(run(1), wait(1))]);
    lab.pass(60_000);
    assert!(lab.got().is_empty());
    assert_eq!(lab.on_disk(&disk).recent().next_back().map(|told| told.outcome), Some(Outcome::Outdated));
}

/// A target that hangs keeps neither those who append nor other targets.
#[test]
fn a_target_that_hangs_keeps_nobody_but_itself() {
    let (disk, clock) = (Arc::new(SimDisk::new(1)) as SharedDisk, Arc::new(SimClock::default()));
    let mut lab = Lab::with(disk, &clock, vec![Scripted::new("phone"), Scripted::new("slow")]);
    lab.begin(session());
    let slow = lab.targets[1].clone();
    // Whoever delivers to it has it locked for as long as it takes.
    let hanging = slow.got.lock().expect("what it got");
    lab.append(session(), vec![completed(run(1))]);
    lab.observe();
    let deliverer = lab.deliverer(1);
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || deliverer.deliver_due(&mut RateLimit::new(None)));
        lab.deliver_to(0);
        assert_eq!(lab.targets[0].got(), ["completed 3"]);
        drop(hanging);
        thread.join().expect("it does not panic");
    });
    assert_eq!(slow.got(), ["completed 3"]);
}
