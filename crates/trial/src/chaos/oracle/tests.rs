//! The oracle can say no: a round that went well is falsified in one thing after the other, and exactly the promise that is
//! broken says so.

use rekindle_domain::chain::Link;
use rekindle_domain::id::SessionId;
use rekindle_domain::line::Line;
use serde_json::json;

use super::super::ledger::Write;
use super::*;

const ID: &str = "sess_01jt0000000000000000000000";

/// Writes records as a log would, each with its number and a hash over it and the one before.
fn log(records: &[Value]) -> Vec<String> {
    let session: SessionId = ID.parse().expect("an id");
    let mut lines: Vec<String> = Vec::new();
    for (at, record) in records.iter().enumerate() {
        let last = lines.last().and_then(|line| Line::parse(line.as_bytes()).expect("a record").hash);
        let mut text = format!("{{\"seq\":{},\"ts\":\"2026-01-01T00:00:00.000Z\",", at + 1);
        text += record.to_string().trim_start_matches('{').trim_end_matches('}');
        let hash = Link::new(session, last).hash(text.as_bytes()).to_hex();
        lines.push(format!("{text},\"h\":\"{}\"}}", String::from_utf8_lossy(&hash)));
    }
    lines
}

/// A session whose agent died once, was gone on with, and asked something.
struct Case {
    records: Vec<Value>,
    evidence: Evidence,
}

const PROMPTS: [&str; 2] =
    ["think a\nwords 3 every 1ms\nsay a-is-done", "think b\nask may I?\nsay b-is-done"];

fn told(prompt: &str) -> String {
    let prompt = json!([{"type": "text", "text": prompt}]);
    json!({"id": 3, "method": "session/prompt", "params": {"prompt": prompt}}).to_string()
}

fn good() -> Case {
    let kind = |kind: &str, run: &str| json!({"kind": kind, "run_id": run});
    let say = |text: &str, run: &str| json!({"kind": "message.agent", "run_id": run, "content": text});
    let records = vec![
        json!({"kind": "session.created", "title": "t"}),
        json!({"kind": "message.user", "message_id": "m_a", "content": PROMPTS[0]}),
        json!({"kind": "run.started", "run_id": "run_1", "message_id": "m_a"}),
        say("w1 w2 w3", "run_1"),
        say("a-is-done", "run_1"),
        kind("run.completed", "run_1"),
        json!({"kind": "message.user", "message_id": "m_b", "content": PROMPTS[1]}),
        json!({"kind": "run.started", "run_id": "run_2", "message_id": "m_b"}),
        json!({"kind": "run.waiting", "run_id": "run_2", "wait_id": "wait_1", "resume_token_id": "rt_1"}),
        json!({"kind": "token.consumed", "wait_id": "wait_1", "resume_token_id": "rt_1"}),
        json!({"kind": "run.resumed", "run_id": "run_2", "wait_id": "wait_1"}),
        kind("run.interrupted", "run_2"),
        json!({"kind": "run.started", "run_id": "run_3", "continues": "run_2"}),
        json!({"kind": "agent.ready", "holder_id": "h_2"}),
        json!({"kind": "session.restored", "verdict": "continued"}),
        kind("run.completed", "run_3"),
        json!({"kind": "session.updated", "title": "another"}),
        json!({"kind": "run.cancel_requested", "run_id": null, "why": "user", "dropped": ["m_c"]}),
    ];
    let answer = json!({"id": 0, "result": {"outcome": {"outcome": "selected", "optionId": "x"}}});
    let told = format!("pid 1\n{}\n{}\n{answer}\npid 2\n", told(PROMPTS[0]), told(PROMPTS[1]));
    let message = |tag: &str, message_id: &str, prompt: &str| Write::Message {
        tag: tag.into(),
        message_id: message_id.into(),
        prompt: prompt.into(),
    };
    let token = Some("rt_1".to_owned());
    let writes = vec![
        message("a", "m_a", PROMPTS[0]),
        message("b", "m_b", PROMPTS[1]),
        Write::Again { tag: "a".into(), message_id: "m_a".into(), first: "m_a".into() },
        Write::Title { title: "another".into() },
        Write::Answer { wait_id: "wait_1".into(), token: token.clone() },
        Write::AnswerAgain { wait_id: "wait_1".into(), token: token.clone(), first: token },
        Write::Cancel { run_id: None },
    ];
    let view = json!({"status": "idle", "since": "t", "evidence": {}, "last_seq": records.len()});
    let evidence = Evidence {
        id: ID.into(),
        lines: Vec::new(),
        told,
        ledger: Ledger { writes, ..Ledger::default() },
        heard: Vec::new(),
        witnesses: Vec::new(),
        view,
        holder_lives: true,
        hits: 1,
        power_cut: false,
        after_restart: None,
    };
    let mut case = Case { records, evidence };
    case.write();
    case
}

impl Case {
    /// Writes the log anew, and has everybody have seen it.
    fn write(&mut self) {
        let evidence = &mut self.evidence;
        evidence.lines = log(&self.records);
        let places: Vec<_> = evidence.lines.iter().filter_map(|line| place(line)).collect();
        evidence.view["last_seq"] = json!(evidence.lines.len());
        evidence.after_restart = places.last().cloned();
        evidence.witnesses = places.clone();
        let kind = |seq: u64| text(&self.records[seq as usize - 1]["kind"]).to_owned();
        let heard = |(seq, hash)| Heard::Record { seq, hash, kind: kind(seq) };
        evidence.heard = places.into_iter().map(heard).collect();
    }

    fn broken(&self) -> Vec<u8> {
        let mut broken: Vec<u8> = judge(&self.evidence)
            .into_iter()
            .filter(|check| check.wrong.is_some())
            .map(|check| check.promise)
            .collect();
        broken.sort_unstable();
        broken.dedup();
        broken
    }
}

/// Falsifies the records, and tells which promises are broken.
fn with_records(change: impl FnOnce(&mut Vec<Value>)) -> Vec<u8> {
    let mut case = good();
    change(&mut case.records);
    case.write();
    case.broken()
}

/// Falsifies anything else.
fn with(change: impl FnOnce(&mut Evidence)) -> Vec<u8> {
    let mut case = good();
    change(&mut case.evidence);
    case.broken()
}

#[test]
fn what_went_well_is_found_well() {
    let checks = judge(&good().evidence);
    assert_eq!(good().broken(), [0; 0], "{checks:?}");
    for promise in [1, 3, 4, 5, 6, 7, 8, 9, 12, 13, 14] {
        assert!(checks.iter().any(|check| check.promise == promise), "I{promise} was looked at");
    }
}

// I1
#[test]
fn an_acknowledged_record_that_is_lost_is_missed() {
    let lost =
        |kind: &'static str| with_records(move |records| records.retain(|record| record["kind"] != kind));
    assert!(lost("message.user").contains(&1));
    assert_eq!(lost("session.updated"), [1]);
    assert_eq!(lost("run.cancel_requested"), [1]);
    assert!(lost("token.consumed").contains(&1));
    assert_eq!(with_records(|records| records[1]["content"] = json!("something else")), [1]);
    let twice = |evidence: &mut Evidence| {
        evidence.ledger.writes[2] =
            Write::Again { tag: "a".into(), message_id: "m_x".into(), first: "m_a".into() };
    };
    assert_eq!(with(twice), [1], "a key that had two effects");
}

// I3
#[test]
fn a_log_that_is_no_chain_or_was_another_is_found() {
    assert_eq!(with(|evidence| evidence.lines[4] = evidence.lines[4].replace("\"run_1\"", "\"run_l\"")), [3]);
    let swapped = with(|evidence| evidence.lines.swap(3, 4));
    assert_eq!(swapped, [3]);
    assert!(with(|evidence| drop(evidence.lines.remove(6))).contains(&3), "a gap");
    assert_eq!(with(|evidence| evidence.witnesses[5].1 = "0000000000000000".into()), [3], "a record changed");
    assert_eq!(with(|evidence| drop(evidence.heard.remove(3))), [3], "a subscriber missed one");
    assert_eq!(
        with(|evidence| evidence.heard.insert(3, evidence.heard[2].clone())),
        [3],
        "or heard one twice"
    );
}

// I4, I5
#[test]
fn a_prompt_given_twice_and_words_lost_or_repeated_are_found() {
    assert_eq!(with(|evidence| evidence.told += &format!("{}\n", told(PROMPTS[0]))), [5]);
    let never = |evidence: &mut Evidence| evidence.told = evidence.told.replace("words 3", "words 4");
    assert_eq!(with(never), [5], "a turn that completed was never asked for");
    let twice = |evidence: &mut Evidence| {
        let answer =
            evidence.told.lines().find(|line| line.contains("outcome")).expect("an answer").to_owned();
        evidence.told = evidence.told.replace(&answer, &format!("{answer}\n{answer}"));
    };
    assert_eq!(with(twice), [5], "an answer given twice");
    assert_eq!(with_records(|records| records[3]["content"] = json!("w1 w3")), [4]);
    assert_eq!(with_records(|records| records.insert(5, records[4].clone())), [4], "said twice");
    assert_eq!(with(|evidence| evidence.hits = 0), [4, 6, 9], "nobody died, and it was cut");
}

// I4, I5: an agent that lacks what was said before is told that first, and does nothing of what follows; it is told it all the same.
#[test]
fn a_prompt_behind_what_happened_before_counts_and_part_of_one_does_not() {
    let primed = |words: &str| {
        let mut case = good();
        case.records.retain(|record| record["kind"] != "message.agent");
        case.evidence.told = case.evidence.told.replace(&told(PROMPTS[0]), &told(words));
        case.write();
        case.broken()
    };
    let before = "[Resume Context]\nWhat was said.\n[End of Resume Context]\n\n";
    assert_eq!(primed(&format!("{before}{}", PROMPTS[0])), [0; 0]);
    assert_eq!(primed(&format!("{before}{}", &PROMPTS[0][1..])), [4, 5]);
    assert_eq!(primed(before), [4, 5]);
}

// I6
#[test]
fn two_interruptions_and_two_ends_are_found() {
    assert_eq!(with_records(|records| records.insert(12, records[11].clone())), [6]);
    assert_eq!(
        with_records(|records| records.insert(6, json!({"kind": "run.failed", "run_id": "run_1"}))),
        [6]
    );
    assert_eq!(with_records(|records| drop(records.remove(15))), [6, 8], "and a run without an end");
}

// I7
#[test]
fn a_token_consumed_twice_and_an_answer_taken_twice_are_found() {
    assert_eq!(with_records(|records| records.insert(10, records[9].clone())), [7]);
    let another = |evidence: &mut Evidence| {
        let (token, first) = (Some("rt_2".into()), Some("rt_1".into()));
        evidence.ledger.writes[5] = Write::AnswerAgain { wait_id: "wait_1".into(), token, first };
    };
    assert_eq!(with(another), [7]);
    let otherwise = |evidence: &mut Evidence| {
        evidence.ledger.writes.push(Write::AnswerOtherwise { wait_id: "wait_1".into() });
    };
    assert_eq!(with(otherwise), [7]);
}

// I8
#[test]
fn a_status_that_lies_is_found() {
    assert_eq!(with(|evidence| evidence.view["status"] = json!("running")), [8]);
    assert_eq!(with(|evidence| evidence.view["evidence"] = json!(null)), [8]);
    assert_eq!(with(|evidence| evidence.view["last_seq"] = json!(3)), [8]);
    assert_eq!(with(|evidence| evidence.ledger.refused.push("no".into())), [8]);
    let mut case = good();
    case.records.truncate(11);
    case.write();
    case.evidence.view["status"] = json!("running");
    case.evidence.ledger.writes.truncate(2);
    assert_eq!(case.broken(), [6], "a run goes on, and that is said");
    case.evidence.holder_lives = false;
    assert_eq!(case.broken(), [6, 8], "nobody is there who could");
}

// I12, I13, I14
#[test]
fn what_is_silently_lost_gone_on_with_or_done_without_need_is_found() {
    assert_eq!(with_records(|records| drop(records.remove(14))), [12]);
    assert_eq!(with(|evidence| evidence.heard.insert(0, Heard::Reset)), [12], "a reset without a power cut");
    let cancelled = json!({"kind": "run.cancel_requested", "run_id": "run_2", "why": "user"});
    assert_eq!(with_records(|records| records.insert(12, cancelled)), [13]);
    let dropped = |records: &mut Vec<Value>| {
        records.push(json!({"kind": "run.started", "run_id": "run_9", "message_id": "m_c"}));
        records.push(json!({"kind": "run.completed", "run_id": "run_9"}));
    };
    assert_eq!(with_records(dropped), [13]);
    assert_eq!(with(|evidence| evidence.after_restart = Some((99, "x".into()))), [14]);
    assert_eq!(with(|evidence| evidence.ledger.stuck = Some("no rest".into())), [14]);
}

// I1, I2, I9, I10, I12, I13, I14
#[test]
fn what_is_seen_of_homes_and_daemons_is_judged() {
    let broken = |sight: Sight| -> Vec<u8> {
        judge_sight(&sight)
            .into_iter()
            .filter(|check| check.wrong.is_some())
            .map(|check| check.promise)
            .collect()
    };
    assert_eq!(broken(Sight::Successor { before: 3, epoch: 4, ready_ms: 80 }), [0; 0]);
    assert_eq!(broken(Sight::Successor { before: 4, epoch: 4, ready_ms: 60_000 }), [9, 14]);
    assert_eq!(broken(Sight::SecondDaemon { refused: false, first_serves: false }), [9, 9]);
    assert_eq!(broken(Sight::SilentHolder { cut: true, replaced: false }), [9]);
    assert_eq!(broken(Sight::CachesLost { sessions: 3, kept: 2 }), [2]);
    assert_eq!(broken(Sight::Doctor(Err("bad".into()))), [2]);
    assert_eq!(broken(Sight::Removed { sessions: 2, left: 1 }), [13]);
    assert_eq!(broken(Sight::Left { processes: 1 }), [13]);
    assert_eq!(broken(Sight::NoDaemon { why: String::new() }), [10]);
    assert_eq!(broken(Sight::DiedByItself), [10]);
    let commands = || vec!["rm".to_owned()];
    let copy = |same, serves, alive| Sight::LivingCopy {
        commands: commands(),
        logs: 3,
        same,
        serves,
        agents: 2,
        alive,
    };
    assert_eq!(broken(copy(3, true, 2)), [0; 0]);
    assert_eq!(broken(copy(2, false, 1)), [9, 9, 9]);
    let damage = String::from("a byte");
    let copy =
        Copy { damage, starts: true, whole: 3, served: 3, must_say: true, says: true, takes_more: true };
    assert_eq!(broken(Sight::DamagedCopy(copy.clone())), [0; 0]);
    assert_eq!(
        broken(Sight::DamagedCopy(Copy { served: 2, says: false, takes_more: false, ..copy.clone() })),
        [10, 10, 12]
    );
    assert_eq!(broken(Sight::DamagedCopy(Copy { starts: false, ..copy })), [10]);
}

#[test]
fn after_a_power_cut_what_agents_said_may_be_gone_and_is_taken_back() {
    let cut = |power_cut: bool, kind: &'static str| {
        with(move |evidence| {
            let lost = |evidence: &mut Evidence| {
                let mut before = evidence.heard[..3].to_vec();
                before.push(Heard::Record { seq: 4, hash: "00".into(), kind: kind.into() });
                before.push(Heard::Reset);
                before
            };
            let mut heard = lost(evidence);
            heard.extend(evidence.heard.clone());
            (evidence.heard, evidence.power_cut) = (heard, power_cut);
        })
    };
    assert_eq!(cut(true, "message.agent"), [0; 0]);
    assert_eq!(cut(true, "run.completed"), [3], "what was durable is not taken back");
    assert_eq!(cut(false, "message.agent"), [3, 12]);
}

/// A session that was written to while its home lacked something: a title, and a message that was answered.
fn shown() -> Shown {
    let log = vec![
        json!({"seq": 1, "kind": "session.created", "title": "t"}),
        json!({"seq": 2, "kind": "session.updated", "title": "another"}),
        json!({"seq": 3, "kind": "message.user", "message_id": "m_a"}),
        json!({"seq": 4, "kind": "run.started", "run_id": "run_1", "message_id": "m_a"}),
        json!({"seq": 5, "kind": "run.completed", "run_id": "run_1"}),
    ];
    let message = Acknowledged::Message { message_id: "m_a".into(), told: 1 };
    let view = json!({"status": "idle", "last_seq": 5, "held": null, "health": {"state": "ok"}});
    let acknowledged = vec![Acknowledged::Title("another".into()), message];
    Shown { id: ID.into(), acknowledged, log, heard: 5, view, in_file: 5 }
}

fn short(moment: Moment, change: impl FnOnce(&mut Shown)) -> Vec<u8> {
    let mut one = shown();
    change(&mut one);
    short_of(Shortage { lack: "room", moment, sessions: vec![one], refusals: Vec::new() })
}

fn short_of(shortage: Shortage) -> Vec<u8> {
    let wrong = judge_sight(&Sight::Shortage(shortage)).into_iter().filter(|check| check.wrong.is_some());
    wrong.map(|check| check.promise).collect()
}

// I1, I5, I8, I12, I14
#[test]
fn what_is_not_served_told_or_done_when_something_runs_out_is_found() {
    use Moment::{During, Killed, Over, Restarted};
    let unanswered = |one: &mut Shown| {
        one.log.truncate(4);
        (one.heard, one.in_file) = (4, 4);
        one.view["last_seq"] = json!(4);
    };
    for moment in [During, Killed, Over, Restarted] {
        assert_eq!(short(moment, |_| {}), [0; 0], "{moment:?}");
        assert_eq!(short(moment, |one| one.log[1]["title"] = json!("t")), [1], "{moment:?}");
        assert_eq!(short(moment, |one| one.heard = 3), [12], "{moment:?}");
        assert_eq!(short(moment, |one| one.view["last_seq"] = json!(3)), [8], "{moment:?}");
        let failed = |one: &mut Shown| one.log[1]["kind"] = json!("run.failed");
        assert_eq!(short(moment, failed), [12], "{moment:?}: it failed");
        let twice = |one: &mut Shown| {
            one.acknowledged[1] = Acknowledged::Message { message_id: "m_a".into(), told: 2 };
        };
        assert_eq!(short(moment, twice), [5], "{moment:?}");
        assert_eq!(short(moment, |one| one.view = Value::Null).first(), Some(&8), "{moment:?}");
    }
    for moment in [During, Killed] {
        assert_eq!(short(moment, unanswered), [12], "{moment:?}: it waits, and nothing says why");
        let says = |one: &mut Shown| {
            unanswered(one);
            one.view["held"] = json!("the disk is full");
        };
        assert_eq!(short(moment, says), [0; 0], "{moment:?}");
        let degraded = |one: &mut Shown| {
            unanswered(one);
            one.in_file = 2;
            one.view["health"] = json!({"state": "degraded", "detail": "the disk is full"});
        };
        assert_eq!(short(moment, degraded), [0; 0], "{moment:?}");
    }
    for moment in [Over, Restarted] {
        assert_eq!(short(moment, unanswered), [14], "{moment:?}");
        assert_eq!(short(moment, |one| one.in_file = 4), [12], "{moment:?}");
        assert_eq!(short(moment, |one| one.view["health"] = json!({"state": "degraded"})), [8], "{moment:?}");
    }
    let refused = |status| {
        let refusals = vec![(status, "no".to_owned())];
        short_of(Shortage { lack: "room", moment: During, sessions: Vec::new(), refusals })
    };
    assert_eq!((refused(507), refused(503)), (vec![], vec![]));
    assert_eq!((refused(500), refused(404)), (vec![12], vec![12]));
    let named = vec![(500, "cannot open it: Too many open files (os error 24)".to_owned())];
    assert_eq!(
        short_of(Shortage { lack: "room", moment: During, sessions: Vec::new(), refusals: named }),
        [0; 0]
    );
}
