//! The outbox from its entries: what is read again is what was written, and a queue never takes more room than it may.

use rekindle_domain::id::{RunId, SessionId};

use super::*;
use crate::notice::{Message, NoticeKind};

fn at(second: i64) -> Timestamp {
    Timestamp::from_millis(1_771_668_000_000 + second * 1000)
}

fn notice(seq: u64) -> Notice {
    let session: SessionId = "sess_1".parse().expect("an id");
    Notice {
        event_id: format!("{session}.{seq}"),
        kind: NoticeKind::Completed,
        at: at(seq as i64),
        session_id: Some(session),
        run_id: None,
        task_id: None,
        title: "tidy up".into(),
        agent: None,
        directory: None,
        reason: None,
        question: None,
        last_words: None,
    }
}

fn begun() -> Outbox {
    let mut outbox = Outbox::default();
    outbox.apply(Entry::AsOf { at: at(0), next: 0 });
    outbox
}

fn to(now: &[&str]) -> Recipients {
    Recipients { now: now.iter().map(ToString::to_string).collect(), ..Recipients::default() }
}

fn noticed(n: u64, due: Option<Timestamp>, to: Recipients) -> Entry {
    let noticed = Noticed { n, at: at(0), notice: notice(n), due, told: Vec::new(), to };
    Entry::Step { cursors: Vec::new(), notices: vec![noticed] }
}

fn told(sink: &str, n: Option<u64>, outcome: Outcome) -> Entry {
    Entry::Told(Told::new(sink, n, &Message::Notice(notice(n.unwrap_or(0))), at(9), outcome))
}

/// Reads entries as their lines.
fn read_again(entries: impl Iterator<Item = Entry>) -> Outbox {
    let mut outbox = Outbox::default();
    for entry in entries {
        let line = serde_json::to_string(&entry).expect("JSON");
        assert!(!line.contains('\n'));
        outbox.apply(serde_json::from_str(&line).expect("an entry"));
    }
    outbox
}

fn next(outbox: &Outbox, sink: &str, now: Timestamp) -> Option<u64> {
    match outbox.waiting_for(sink)?.next(now) {
        Next::Notice(waiting) => Some(waiting.n),
        _ => None,
    }
}

#[test]
fn a_notice_waits_for_each_sink_until_that_is_told() {
    let mut outbox = begun();
    outbox.apply(noticed(0, None, to(&["a", "b"])));
    outbox.apply(noticed(1, None, to(&["a"])));
    assert_eq!((next(&outbox, "a", at(0)), next(&outbox, "b", at(0)), outbox.next()), (Some(0), Some(0), 2));
    outbox.apply(told("a", Some(0), Outcome::Delivered));
    assert_eq!((next(&outbox, "a", at(0)), next(&outbox, "b", at(0))), (Some(1), Some(0)));
    outbox.apply(told("b", Some(0), Outcome::Refused));
    assert_eq!(next(&outbox, "b", at(0)), None);
    assert!(outbox.waiting_for("b").is_some_and(Queue::is_empty));
    assert_eq!(outbox.recent().count(), 2);
}

#[test]
fn a_delivery_that_failed_keeps_its_place_and_waits() {
    let mut outbox = begun();
    outbox.apply(noticed(0, None, to(&["a"])));
    outbox.apply(noticed(1, None, to(&["a"])));
    let (sink, why) = ("a".to_owned(), "no answer".to_owned());
    outbox.apply(Entry::Attempt { sink, n: Some(0), at: at(1), failures: 1, next: at(6), why });
    let queue = outbox.waiting_for("a").expect("a queue");
    assert_eq!(queue.next(at(5)), Next::Rest(at(6)), "a target that is away is away for all");
    assert!(matches!(queue.next(at(6)), Next::Notice(Waiting { n: 0, failures: 1, .. })));
    assert_eq!(read_again(outbox.entries()), outbox);
}

#[test]
fn what_settles_is_decided_once_and_may_stay_open_for_others() {
    let mut outbox = begun();
    outbox.apply(noticed(0, Some(at(2)), Recipients::default()));
    outbox.apply(noticed(1, Some(at(2)), Recipients::default()));
    assert_eq!(outbox.settling().count(), 2);
    outbox.apply(Entry::Settled { n: 0, at: at(2), to: Recipients::default(), open: false });
    outbox.apply(Entry::Settled { n: 1, at: at(2), to: to(&["always"]), open: true });
    assert_eq!(next(&outbox, "always", at(2)), Some(1));
    let (n, settling) = outbox.settling().next().expect("one is open");
    assert_eq!((n, settling.told.as_slice()), (1, &["always".to_owned()][..]));
    assert_eq!(read_again(outbox.entries()), outbox);
    outbox.apply(Entry::Settled { n: 1, at: at(9), to: to(&["phone"]), open: false });
    assert_eq!((next(&outbox, "phone", at(9)), outbox.settling().count()), (Some(1), 0));
}

#[test]
fn however_much_happens_a_queue_stays_small_and_nothing_is_forgotten() {
    let mut outbox = begun();
    (0..100_000).for_each(|n| outbox.apply(noticed(n, None, to(&["slow"]))));
    let queue = outbox.waiting_for("slow").expect("a queue");
    assert_eq!(queue.len(), 100_000);
    let written: usize =
        outbox.entries().map(|entry| serde_json::to_string(&entry).expect("JSON").len()).sum();
    assert!(written < 256 * 1024, "{written} bytes");
    assert_eq!(read_again(outbox.entries()), outbox);
    // What waited by itself is told first, then the sum of the rest.
    for n in 0..256 {
        assert_eq!(next(&outbox, "slow", at(0)), Some(n));
        outbox.apply(told("slow", Some(n), Outcome::Delivered));
    }
    let Next::Summary(held) = outbox.waiting_for("slow").expect("a queue").next(at(0)) else {
        panic!("no summary");
    };
    assert_eq!(held.summary.counts[&NoticeKind::Completed], 100_000 - 256);
    assert_eq!(held.summary.event_id, "sess_1.99999");
    // What is added while that is on its way is told with the next.
    let late = Recipients { later: [("slow".to_owned(), at(0))].into(), ..Recipients::default() };
    outbox.apply(noticed(100_000, None, late));
    let sum = Message::Summary(held.summary);
    outbox.apply(Entry::Told(Told::new("slow", None, &sum, at(9), Outcome::Delivered)));
    assert_eq!(outbox.waiting_for("slow").map(Queue::len), Some(1));
    assert_eq!(read_again(outbox.entries()), outbox);
    let Next::Summary(held) = outbox.waiting_for("slow").expect("a queue").next(at(9)) else {
        panic!("no summary");
    };
    let sum = Message::Summary(held.summary);
    outbox.apply(Entry::Told(Told::new("slow", None, &sum, at(9), Outcome::Delivered)));
    assert!(outbox.waiting_for("slow").is_some_and(Queue::is_empty));
    assert_eq!(outbox.recent().count(), 258);
}

#[test]
fn what_is_held_back_is_told_as_one_and_holds_nothing_urgent_back() {
    let mut outbox = begun();
    let night = Recipients { later: [("phone".to_owned(), at(100))].into(), ..Recipients::default() };
    outbox.apply(noticed(0, None, night.clone()));
    outbox.apply(noticed(1, None, night));
    assert_eq!(outbox.waiting_for("phone").expect("a queue").next(at(50)), Next::Rest(at(100)));
    outbox.apply(noticed(2, None, to(&["phone"])));
    assert_eq!(next(&outbox, "phone", at(50)), Some(2), "it is urgent");
    // A limit sums up what waits with what is held back already.
    outbox.apply(Entry::Held { sink: "phone".into(), until: at(60) });
    let queue = outbox.waiting_for("phone").expect("a queue");
    assert_eq!((queue.len(), queue.next(at(99))), (3, Next::Rest(at(100))));
    assert!(matches!(queue.next(at(100)), Next::Summary(held) if held.summary.event_id == "sess_1.1"));
    assert_eq!(read_again(outbox.entries()), outbox);
    outbox.keep_sinks(|sink| sink != "phone");
    assert!(outbox.waiting_for("phone").is_none(), "it is not configured any more");
}

#[test]
fn cursors_and_the_last_deliveries_are_kept() {
    let mut outbox = begun();
    let stream = "sess_1".parse::<SessionId>().expect("an id").into();
    let run: RunId = "run_1".parse().expect("an id");
    let cursor = Cursor { seq: 7, sure: 5, interrupted: Some(run), ..Cursor::new(stream) };
    let tasks = Cursor { seq: 3, ..Cursor::new(StreamId::tasks()) };
    outbox.apply(Entry::Step { cursors: vec![cursor.clone(), tasks], notices: Vec::new() });
    (0..1_500).for_each(|n| outbox.apply(told("a", Some(n), Outcome::Delivered)));
    assert_eq!(outbox.recent().count(), REMEMBERED);
    assert_eq!(outbox.recent().next().and_then(|told| told.n), Some(500), "the oldest go");
    assert_eq!(read_again(outbox.entries()), outbox);
    assert_eq!(outbox.cursor(stream), Some(&cursor));
    outbox.apply(Entry::Forgotten { stream });
    assert_eq!((outbox.cursor(stream), outbox.cursors().count(), outbox.as_of()), (None, 1, Some(at(0))));
}
