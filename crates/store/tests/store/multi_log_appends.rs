//! Appends to several logs at once, all or none, and those who are told of them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use rekindle_domain::id::{SessionId, StreamId};
use rekindle_domain::line::peek_seq;
use rekindle_store::Observer;
use rekindle_store::commit::{Append, Expect, Receipt};
use rekindle_testkit::clock::SimClock;
use rekindle_testkit::rng::Rng;
use rekindle_testkit::sim::{Fault, FaultKind, Faults, OpKind};

use crate::common::{Home, created, marked, markers, open, pictures};

/// Counts the records that it was told of.
#[derive(Default)]
struct Counts(Mutex<BTreeMap<StreamId, Vec<u64>>>);

impl Observer for Counts {
    fn committed(&self, stream: StreamId, receipt: &Receipt) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.entry(stream).or_default().extend(receipt.first_seq..=receipt.last_seq);
    }

    fn answered(&self, _: StreamId, _: &Receipt) {}
}

#[test]
fn every_observer_is_told_of_every_append_and_one_that_comes_late_reads_the_rest() {
    let home = Home::with_sessions(2, 1);
    let [a, b] = [home.sessions[0], home.sessions[1]];
    let (early, late) = (Arc::new(Counts::default()), Arc::new(Counts::default()));
    home.store.observe(early.clone());
    let shared = |marker| {
        Append::durable(a, vec![marked(marker, 5, None)])
            .and(b, vec![marked(marker, 5, None), marked(marker + 1, 5, None)])
    };
    let receipts = home.store.append_together(shared(10)).expect("appended");
    assert_eq!((receipts.first.last_seq, receipts.more[0].first_seq, receipts.more[0].last_seq), (3, 3, 4));
    home.store.observe(late.clone());
    home.store.append(shared(20)).expect("appended");
    let seen = |counts: &Counts| counts.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert_eq!(seen(&early), BTreeMap::from([(a.into(), vec![3, 4]), (b.into(), vec![3, 4, 5, 6])]));
    assert_eq!(seen(&late), BTreeMap::from([(a.into(), vec![4]), (b.into(), vec![5, 6])]));
    // What it has missed is in the log, behind the last number that it knows.
    let reader = home.store.reader(b).expect("a log");
    let mut lines = reader.forward(reader.find(3).expect("readable").expect("it is there"));
    let mut missed = Vec::new();
    while let Some(line) = lines.next().expect("readable") {
        missed.extend(peek_seq(line.bytes).filter(|seq| *seq < 5));
    }
    assert_eq!(missed, [3, 4]);
}

#[test]
fn of_an_append_to_several_logs_nothing_is_left_when_one_refuses() {
    let home = Home::with_sessions(2, 1);
    let [a, b] = [home.sessions[0], home.sessions[1]];
    let before = |session| home.store.open_session(session).expect("open").state.position();
    let known = [before(a), before(b)];
    let unknown = SessionId::mint(99, 99);
    let record = || vec![marked(7, 5, None)];
    for bad in [
        // A session that is not open, one made twice, one whose last record is another, an empty list.
        Append::durable(a, record()).and(b, record()).and(unknown, record()),
        Append::durable(a, record()).and(b, vec![created()]),
        Append { expect: Expect::LastSeq(9), ..Append::durable(a, record()).and(b, record()) },
        Append::durable(a, record()).and(a, record()).and(b, Vec::new()),
    ] {
        home.store.append_together(bad).expect_err("refused");
        assert_eq!([before(a), before(b)], known);
    }
    home.store.append_together(Append::durable(a, record()).and(b, record())).expect("appended");
    assert_eq!([before(a).last_seq, before(b).last_seq], [3, 3]);
}

// I3: the daemon dies while it makes a segment in the place of one that could not be synced; the power goes while the next one
// recovers.
#[test]
fn an_append_to_several_logs_is_whole_after_a_death_and_a_power_cut_in_the_recovery() {
    let home = Home::with_sessions(3, 1);
    let [a, b, c] = [home.sessions[0], home.sessions[1], home.sessions[2]];
    home.disk.set_faults(Faults::none().with(Fault::once(FaultKind::Eio, 0).on(&[OpKind::Sync]).at("wal/")));
    let part = |marker| vec![marked(marker, 5, None)];
    let append = Append::durable(a, part(70)).and(b, part(71)).and(c, part(72));
    let appended = pictures(&home.disk, || drop(home.store.append_together(append)));
    let mut rng = Rng::new(1);
    let (mut points, mut whole) = (0, 0);
    for (death, picture) in appended {
        let killed = picture.process_kill(&mut rng);
        let clock = Arc::new(SimClock::default());
        let recovering = pictures(&killed, || drop(open(&killed, &clock)));
        for (cut, picture) in recovering {
            for _ in 0..4 {
                let disk = picture.power_cut(&mut rng);
                drop(open(&disk, &clock).expect("it opens"));
                let has = |session, marker| markers(&disk, session).contains(&marker);
                let there = [has(a, 70), has(b, 71), has(c, 72)];
                assert!(
                    there.iter().all(|part| *part == there[0]),
                    "killed before {death}, cut before {cut}: {there:?}"
                );
                points += 1;
                whole += usize::from(there[0]);
            }
        }
    }
    assert!(whole > 50 && whole < points, "{whole} of {points}");
}
