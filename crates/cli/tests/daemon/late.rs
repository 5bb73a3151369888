//! What happened while no daemon ran has the time at which it happened, not that of whoever read of it later.

use std::time::{SystemTime, UNIX_EPOCH};

use rekindle_domain::time::Timestamp;
use serde_json::{Value, json};

use crate::lab::{Lab, holds, wait_for};

const HOUR: i64 = 3_600_000;

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("later than 1970");
    Timestamp::from_millis(i64::try_from(since.as_millis()).expect("not too late"))
}

fn time(value: &Value) -> Timestamp {
    value.as_str().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{value} is no time"))
}

/// Begins a run, kills the daemon in the middle of it, lets the agent go on until `over` says that it is done, and starts
/// another daemon an hour later. Returns the lab, the session, and the time before and after what happened in between.
fn an_hour_later(script: &str, over: impl Fn(&Lab) -> bool) -> (Lab, String, Timestamp, Timestamp) {
    let mut lab = Lab::new();
    let mut body = lab.session(&format!("say before\nbarrier here\n{script}"));
    body["resume"] = json!("never");
    let id = lab.create(&body);
    lab.reach("here");
    lab.kill();
    let begin = now();
    lab.pass("here");
    wait_for("the agent to be done", || over(&lab).then_some(()));
    let end = now();
    lab.set_millis("REKINDLE_CLOCK_AHEAD", HOUR);
    lab.start();
    lab.wait_end(&id);
    (lab, id, begin, end)
}

fn check_times(lab: &Lab, id: &str, begin: Timestamp, end: Timestamp, kind: &str) {
    let session = lab.show(id);
    for at in ["/run/ended_at", "/since", "/evidence/last_output_at"] {
        let found = time(session.pointer(at).unwrap_or(&Value::Null));
        assert!(
            begin <= found && found <= end,
            "{at} is {found}, not between {begin} and {end}: {session:#}"
        );
    }
    let log = lab.log(id);
    let record =
        log.iter().find(|record| record["kind"] == kind).unwrap_or_else(|| panic!("no {kind}: {log:#?}"));
    let (at, ts) = (time(&record["at"]), time(&record["ts"]));
    assert_eq!(Some(at), session["run"]["ended_at"].as_str().and_then(|text| text.parse().ok()));
    assert!(ts.millis_since(at) >= HOUR as u64 - 1000, "it was written an hour later: {record}");
}

#[test]
fn a_turn_that_ended_without_a_daemon_ended_when_it_did() {
    let done = |lab: &Lab| holds(&lab.home().join("holders"), "end_turn");
    let (mut lab, id, begin, end) = an_hour_later("say after", done);
    check_times(&lab, &id, begin, end, "run.completed");
    // The same from the log alone.
    lab.kill();
    std::fs::remove_file(lab.home().join(format!("sessions/{id}.json"))).ok();
    std::fs::remove_file(lab.home().join("sessions/index.json")).ok();
    lab.start();
    check_times(&lab, &id, begin, end, "run.completed");
}

#[test]
fn an_agent_that_died_without_a_daemon_was_cut_when_it_died() {
    let (lab, id, begin, end) =
        an_hour_later("crash 1", |lab| holds(&lab.home().join("holders"), r#""ctl":"exit""#));
    check_times(&lab, &id, begin, end, "run.interrupted");
}

#[test]
fn an_agent_lost_without_a_daemon_was_last_alive_when_it_last_spoke() {
    // What its holder has not heard yet would be lost with it.
    let heard = |lab: &Lab| holds(&lab.home().join("holders"), r#""text":"after"#);
    let gone = |lab: &Lab| {
        lab.is_reached("there") && heard(lab) && {
            lab.kill_holders();
            lab.living_holders().is_empty()
        }
    };
    let (lab, id, begin, end) = an_hour_later("say after\nbarrier there", gone);
    check_times(&lab, &id, begin, end, "run.interrupted");
}
