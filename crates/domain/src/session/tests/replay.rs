//! Reading a log: what breaks the chain stops it, what cannot follow is reported, old logs are understood.

use super::*;
use crate::chain::{ChainHash, Link};
use crate::line::{BadLine, Line};

/// Folds lines until one breaks the chain; the state is then as before that line.
fn fold<T: AsRef<str>>(lines: &[T]) -> (Replay, Option<Problem>) {
    let mut replay = Replay::new(session());
    let problem = push_all(&mut replay, lines);
    (replay, problem)
}

fn push_all<T: AsRef<str>>(replay: &mut Replay, lines: &[T]) -> Option<Problem> {
    let mut end = replay.position().log_offset;
    for text in lines.iter().map(AsRef::as_ref) {
        end += text.len() as u64 + 1;
        let line = match Line::parse(text.as_bytes()) {
            Ok(line) => line,
            Err(bad) => return Some(bad.into()),
        };
        let (before, checked) =
            (replay.clone(), replay.position().after(replay.state.id, &line, 0).map(drop));
        if let Err(problem) = replay.push(&line, end) {
            assert_eq!(checked, Err(problem.clone()), "checking says what pushing does");
            assert_eq!(
                (&replay.state, &replay.tokens),
                (&before.state, &before.tokens),
                "taken in nevertheless"
            );
            assert_eq!((replay.whole, replay.oddities.len()), (before.whole, before.oddities.len()));
            return Some(problem);
        }
        assert_eq!(checked, Ok(()));
    }
    None
}

fn lines(log: &Log) -> Vec<String> {
    String::from_utf8_lossy(&log.bytes).lines().map(str::to_owned).collect()
}

/// Returns a line with a fitting hash from whatever text.
fn hashed(body: &str, last: Option<ChainHash>) -> String {
    format!(r#"{body},"h":"{}"}}"#, Link::new(session(), last).hash(body.as_bytes()))
}

fn unhashed(line: &str) -> String {
    line.rsplit_once(r#","h":"#).map(|(body, _)| format!("{body}}}")).expect("a line with a hash")
}

// I3: numbers without gaps, and a written record never changes: whatever breaks that is found where it stands.
#[test]
fn a_broken_history_stops_the_fold_at_the_break() {
    type Tamper = fn(&mut Vec<String>);
    let cases: [(&str, Tamper, u64, Problem); 10] = [
        ("dropped", |all| drop(all.remove(1)), 1, Problem::Sequence { expected: 2, found: 3 }),
        ("the first dropped", |all| drop(all.remove(0)), 0, Problem::Sequence { expected: 1, found: 2 }),
        ("repeated", |all| all.insert(2, all[1].clone()), 2, Problem::Sequence { expected: 3, found: 2 }),
        ("swapped", |all| all.swap(1, 2), 1, Problem::Sequence { expected: 2, found: 3 }),
        ("edited", |all| all[1] = all[1].replace("two", "six"), 1, Problem::Hash { seq: 2 }),
        (
            "renumbered",
            |all| all[3] = all[3].replace("\"seq\":4", "\"seq\":5"),
            3,
            Problem::Sequence { expected: 4, found: 5 },
        ),
        (
            "renumbered to fit",
            |all| all[1] = all[2].replace("\"seq\":3", "\"seq\":2"),
            1,
            Problem::Hash { seq: 2 },
        ),
        ("without a hash", |all| all[2] = unhashed(&all[2]), 2, Problem::Unhashed { seq: 3 }),
        ("its predecessor without a hash", |all| all[0] = unhashed(&all[0]), 1, Problem::Hash { seq: 2 }),
        ("another session's", |all| all[0] = all[0].replace("one", "two"), 0, Problem::Hash { seq: 1 }),
    ];
    let log = Log::of(&[
        "session.created title=one",
        "session.updated title=two",
        "message.user",
        "session.closed",
    ]);
    assert_eq!(fold(&lines(&log)).1, None);
    for (name, tamper, last_seq, expected) in cases {
        let mut all = lines(&log);
        tamper(&mut all);
        let (replay, problem) = fold(&all);
        assert_eq!((problem, replay.position().last_seq), (Some(expected), last_seq), "{name}");
    }
    let (_, problem) = fold(&["no record"]);
    assert!(matches!(problem, Some(Problem::BadLine(BadLine::NotRecord(_)))), "{problem:?}");
    let foreign = Replay::new("sess_2".parse().expect("an id"));
    let all = lines(&log);
    let line = Line::parse(all[0].as_bytes()).expect("a record");
    assert_eq!(foreign.position().after(foreign.state.id, &line, 0).map(drop), Err(Problem::Hash { seq: 1 }));
}

fn legacy(seq: u64) -> String {
    format!(
        r#"{{"seq":{seq},"ts":"2026-02-21T10:01:10Z","kind":"message.user","message_id":"msg_1","content":"x"}}"#
    )
}

// I3: also without hashes numbers go up by one, from wherever an old log begins.
#[test]
fn lines_without_hashes_begin_anywhere_and_then_count() {
    for (numbers, expected) in [
        (&[145, 146, 147][..], None),
        (&[0, 1], None),
        (&[145, 147], Some(Problem::Sequence { expected: 146, found: 147 })),
        (&[145, 145], Some(Problem::Sequence { expected: 146, found: 145 })),
        (&[145, 1], Some(Problem::Sequence { expected: 146, found: 1 })),
        (&[0, 0], Some(Problem::Sequence { expected: 1, found: 0 })),
        (&[0, 145], Some(Problem::Sequence { expected: 1, found: 145 })),
        // Numbers from a disk are not to be trusted with arithmetic.
        (&[u64::MAX, 0], Some(Problem::Sequence { expected: u64::MAX, found: 0 })),
        (&[u64::MAX, u64::MAX], Some(Problem::Sequence { expected: u64::MAX, found: u64::MAX })),
    ] {
        let all: Vec<String> = numbers.iter().map(|seq| legacy(*seq)).collect();
        assert_eq!(fold(&all).1, expected, "{numbers:?}");
    }
    // Today's version goes on where the old one stopped, and from then on every line has a hash.
    let ours = hashed(r#"{"seq":147,"ts":"2026-02-21T10:03:14.000Z","kind":"session.closed""#, None);
    assert_eq!(fold(&[legacy(146), ours.clone()]).1, None);
    assert_eq!(fold(&[legacy(146), ours.clone(), legacy(148)]).1, Some(Problem::Unhashed { seq: 148 }));
    assert_eq!(fold(&[ours]).1, Some(Problem::Sequence { expected: 1, found: 147 }));
}

/// The end of an old log: no hashes, no names of waits, a reason that is no longer written.
const OLD_LOG: [&str; 4] = [
    r#"{"seq":145,"ts":"2026-02-21T10:01:10Z","kind":"message.user","message_id":"msg_u1","content":"run tests"}"#,
    r#"{"seq":146,"ts":"2026-02-21T10:01:25Z","kind":"run.waiting","run_id":"run_9f5","wait_kind":"tool_result","resume_token_id":"rt_5f0"}"#,
    r#"{"seq":147,"ts":"2026-02-21T10:02:02Z","kind":"run.interrupted","run_id":"run_9f5","reason":"process_exit"}"#,
    r#"{"seq":148,"ts":"2026-02-21T10:03:14Z","kind":"status.derived","status":"interrupted_waiting"}"#,
];
const OLD_RUN: &str = r#"{"seq":144,"ts":"2026-02-21T10:01:03Z","kind":"run.started","run_id":"run_9f5","boot_id":"boot_20260221_1"}"#;

#[test]
fn an_old_log_folds_to_its_wait_and_its_interruption() {
    let (mut replay, problem) = fold(&[&[OLD_RUN], &OLD_LOG[..2]].concat());
    assert_eq!((problem, replay.oddities.len(), replay.position().last_seq), (None, 0, 146));
    let run = replay.state.open_run().expect("an open run");
    assert_eq!((run.run_id.as_str(), run.boot_id.as_str()), ("run_9f5", "boot_20260221_1"));
    let wait = &run.waits[0];
    assert_eq!((wait.wait_id.as_str(), wait.resume_token_id.as_str()), ("wait_5f0", "rt_5f0"));
    assert_eq!((wait.since_seq, wait.kind), (146, crate::event::WaitKind::ToolResult));

    assert_eq!(push_all(&mut replay, &OLD_LOG[2..]), None);
    let end = replay.state.run.as_ref().and_then(|run| run.end);
    assert_eq!(end, Some(End::Interrupted { reason: InterruptReason::Unknown, waiting: true }));
    assert_eq!(
        (replay.oddities.len(), replay.position().last_seq, replay.position().last_hash),
        (0, 148, None)
    );
    assert_eq!(replay.state.created_at.to_string(), "2026-02-21T10:01:03.000Z");
    assert_eq!(replay.state.updated_at.to_string(), "2026-02-21T10:03:14.000Z");
}

#[test]
fn an_old_log_without_its_beginning_is_read_and_says_what_it_lacks() {
    let (replay, problem) = fold(&OLD_LOG);
    assert_eq!((problem, replay.position().last_seq), (None, 148));
    let odd: Vec<u64> = replay.oddities.iter().map(|(seq, _)| *seq).collect();
    assert_eq!(odd, [146]);
    assert!(replay.oddities[0].1.contains("not have the beginning of run_9f5"), "{:?}", replay.oddities);
    let run = replay.state.run.expect("the run that it is in the middle of");
    assert_eq!(run.end, Some(End::Interrupted { reason: InterruptReason::Unknown, waiting: true }));
    assert_eq!(run.ended_at.map(|at| at.to_string()).as_deref(), Some("2026-02-21T10:02:02.000Z"));
}

/// A snapshot of the earlier layout: what its log does not say.
const OLD_SNAPSHOT: &str = r#"{"id":"sess_1","title":"Fix flaky test","working_dir":"/repo",
    "provider":{"type":"native","model":"gpt-5.3-codex"},"created_at":"2026-02-21T10:00:00Z","last_seq":148}"#;

// I2: what stood beside a log alone is in it afterwards, once.
#[test]
fn a_snapshot_of_the_earlier_layout_becomes_a_record_of_the_log() {
    for (log, open) in [(&OLD_LOG[..], false), (&OLD_LOG[..2], true)] {
        let (mut replay, _) = fold(log);
        let snapshot = crate::session::LegacySnapshot::read(OLD_SNAPSHOT.as_bytes(), session()).expect("one");
        let records = snapshot.records(&replay.state, replay.tokens.as_ref().expect("wanted"));
        assert_eq!(records.len(), if open { 2 } else { 1 }, "a run that was left open was cut");
        for (seq, record) in (200..).zip(&records) {
            replay.state.apply(seq, at(seq as i64), &record.event).expect("legal");
        }
        let state = &replay.state;
        assert_eq!((state.title.as_str(), state.working_dir.as_str()), ("Fix flaky test", "/repo"));
        assert_eq!(state.created_at.to_string(), "2026-02-21T10:00:00.000Z");
        assert!(state.open_run().is_none() && state.recovery.interruption.is_some());
        assert_eq!(state.options.resume, crate::event::ResumePolicy::Ask);
        assert!(snapshot.records(state, replay.tokens.as_ref().expect("wanted")).is_empty(), "once");
        let again = replay.state.clone().apply(300, at(300), &records[0].event);
        assert!(again.is_err(), "a session is created once");
    }
    let other = "sess_2".parse().expect("an id");
    assert_eq!(crate::session::LegacySnapshot::read(OLD_SNAPSHOT.as_bytes(), other), None);
    let todays = OLD_SNAPSHOT.replacen('{', r#"{"version":1,"#, 1);
    assert_eq!(crate::session::LegacySnapshot::read(todays.as_bytes(), session()), None);
}

#[test]
fn the_tokens_of_an_old_log_open_the_wait_they_were_minted_for() {
    let minted = r#"{"seq":147,"ts":"2026-02-21T10:01:25Z","kind":"token.minted","token_id":"rt_5f0","secret_hash":"00","scope":{"session_id":"sess_1","run_id":"run_9f5","wait_kind":"tool_result"}}"#;
    let used = r#"{"seq":148,"ts":"2026-02-21T10:01:26Z","kind":"token.consumed","token_id":"rt_5f0"}"#;
    let resumed = r#"{"seq":149,"ts":"2026-02-21T10:01:26Z","kind":"run.resumed","run_id":"run_9f5","token_id":"rt_5f0"}"#;
    let (replay, problem) = fold(&[OLD_RUN, OLD_LOG[0], OLD_LOG[1], minted, used, resumed]);
    assert_eq!((problem, &replay.oddities[..]), (None, &[][..]));
    let token = replay.tokens.expect("wanted").tokens.into_values().next().expect("minted");
    assert_eq!(token.scope.wait_id.as_str(), "wait_5f0");
    assert!(!replay.state.has_waits());
}

#[test]
fn what_cannot_follow_is_reported_and_the_fold_carries_on() {
    let mut log = Log::of(&["session.created"]);
    log.append("run.completed; run.started; run.started run=2; run.waiting; token.minted");
    log.append("token.consumed; run.resumed");
    // I7: the second use of a token changes nothing, though it is in the log.
    log.append("token.consumed; run.resumed");
    log.append("run.completed; run.failed");
    let expected = [
        (2, "run.completed is not possible here: no run was started"),
        (4, "run.started is not possible here: run_1 has not ended"),
        (9, "token.consumed is not possible here: rt_1 is not active any more"),
        (10, "run.resumed is not possible here: wait_1 is not open"),
        (12, "run.failed is not possible here: run_1 has ended"),
    ];
    let found: Vec<_> = log.replay.oddities.iter().map(|(seq, why)| (*seq, why.as_str())).collect();
    assert_eq!(found, expected);
    assert_eq!(log.replay.state.run.as_ref().and_then(|run| run.end), Some(End::Completed));
    assert_eq!((log.replay.state.last_seq, log.replay.state.updated_at), (12, at(12)));
    let used = log.tokens().tokens.values().next().map(|token| token.state.clone());
    assert_eq!(used, Some(crate::token::TokenState::Consumed { seq: 7, answer_hash: None }));
}

#[test]
fn a_log_full_of_oddities_is_told_by_its_first_hundred() {
    let mut log = Log::of(&["session.created"]);
    (0..150).for_each(|_| log.append("run.completed"));
    let last = log.replay.oddities.last().map(|(seq, _)| *seq);
    assert_eq!((log.replay.oddities.len(), last, log.replay.state.last_seq), (100, Some(101), 151));
}

#[test]
fn an_unreadable_payload_is_an_oddity_and_an_unknown_kind_is_none() {
    let log = Log::of(&[STARTED, "agent.launching"]);
    let mut all = lines(&log);
    let bad = r#"{"seq":5,"ts":"2026-02-21T10:00:05.000Z","kind":"run.waiting","run_id":"run_1""#;
    all.push(hashed(bad, log.replay.position().last_hash));
    let last = fold(&all).0.position().last_hash;
    let new =
        r#"{"seq":6,"ts":"2026-02-21T10:00:06.000Z","kind":"galaxy.merged","stars":5,"src":["h_1",8,2,7]"#;
    all.push(hashed(new, last));
    let (replay, problem) = fold(&all);
    assert_eq!((problem, replay.oddities.len(), replay.position().last_seq), (None, 1, 6));
    let (seq, why) = &replay.oddities[0];
    assert!(*seq == 5 && why.starts_with("cannot read run.waiting: missing field"), "{why}");
    // Its place, time and source count like those of any other record.
    let agent = replay.state.agent.expect("launched");
    assert_eq!((agent.journal, agent.last_output_at), (Journal { seq: 8, n: 2, low: 7 }, Some(at(6))));
    assert_eq!(replay.state.updated_at, at(6));
}

#[test]
fn the_newest_time_never_goes_back() {
    let mut log = Log::of(&["session.created", "message.user"]);
    log.record(draft("session.updated title=late"), at(50), false);
    log.record(draft("status.derived"), at(3), false);
    assert_eq!((log.replay.state.updated_at, log.replay.state.created_at), (at(50), at(1)));
}

#[test]
fn tokens_ahead_of_the_state_are_not_taken_in_twice_and_may_be_left_out() {
    let log = Log::of(&[STARTED, WAIT, "token.consumed; run.resumed"]);
    let all = lines(&log);
    let (behind, _) = fold(&all[..4]);
    let mut replay = Replay::from(behind.state, log.replay.tokens.clone());
    assert_eq!(push_all(&mut replay, &all[4..]), None);
    assert_eq!((&replay.oddities[..], &replay.state), (&[][..], &log.replay.state));
    assert_eq!(replay.tokens, log.replay.tokens);

    let mut without = Replay::from(SessionState::empty(session()), None);
    assert_eq!(push_all(&mut without, &all), None);
    assert_eq!((without.state, without.tokens, without.oddities.len()), (log.replay.state, None, 0));
}
