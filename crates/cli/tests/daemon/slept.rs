//! A machine that slept: deadlines go on meanwhile, and none comes early; what an agent is allowed stands still. The sleep is
//! made in two ways. In a time namespace a real clock is ahead, but only of a daemon that starts there; a clock that a
//! test sets jumps while the daemon lives.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::lab::{Lab, wait_for};

const HOUR: i64 = 3600;

/// Returns the words before a command that has the machine's clock so many seconds ahead; none, and why, where the kernel
/// does not allow that.
fn ahead(seconds: i64) -> Option<Vec<String>> {
    let clock = ["--time".to_owned(), "--boottime".to_owned(), seconds.to_string()];
    for user in [&[][..], &["--user", "--map-current-user"]] {
        let words = ["unshare"].iter().chain(user).map(|word| (*word).to_owned());
        let words: Vec<String> = words.chain(clock.clone()).collect();
        let mut try_out = Command::new(&words[0]);
        try_out.args(&words[1..]).arg("true").stderr(Stdio::null());
        if try_out.status().is_ok_and(|status| status.success()) {
            return Some(words);
        }
    }
    eprintln!(
        "skipped: there are no time namespaces here (unshare --time), so that no clock can be set ahead"
    );
    None
}

/// Has the daemon die, and another begin on a machine that has slept meanwhile.
fn sleep_between_daemons(lab: &mut Lab, seconds: i64) -> Option<()> {
    let words = ahead(seconds)?;
    lab.kill();
    lab.start_by(&words.iter().map(String::as_str).collect::<Vec<_>>());
    Some(())
}

/// Makes a session that waits for an answer, for so long at most.
fn asking(lab: &Lab, seconds: Option<i64>) -> (String, String) {
    let mut body = lab.session("ask may I?\nsay thanks");
    if let Some(seconds) = seconds {
        body["wait_timeout_s"] = json!(seconds);
    }
    let id = lab.create(&body);
    let waiting = lab.wait_status(&id, "waiting");
    (id, waiting["wait"]["wait_id"].as_str().expect("a wait").to_owned())
}

fn token(lab: &Lab, wait: &str) -> Value {
    lab.post(&format!("/api/waits/{wait}/token"), &Value::Null)["token"].clone()
}

fn answer(lab: &Lab, wait: &str, token: &Value) -> (u16, Value) {
    wait_for("the agent to be met", || {
        let path = format!("/api/waits/{wait}/answer");
        let reply = lab.ask("POST", &path, &json!({"option": "allow_once", "token": token}));
        let code = reply.body["error"]["code"].clone();
        (code != "agent_unreachable").then_some((reply.status, code))
    })
}

/// Looks for longer than a worker waits before it looks at its deadlines again.
fn still_waits(lab: &Lab, id: &str) {
    let watched = Instant::now() + Duration::from_millis(2500);
    wait_for("the worker to look at its deadlines", || {
        assert_eq!((lab.status(id).as_str(), lab.count(id, "run.interrupted")), ("waiting", 0));
        (Instant::now() >= watched).then_some(())
    });
}

fn is_cut(lab: &Lab, id: &str) {
    lab.wait_status(id, "interrupted_waiting");
    wait_for("the record", || (lab.count(id, "run.interrupted") == 1).then_some(()));
}

// I7
#[test]
fn what_a_daemon_finds_after_a_sleep_has_expired_if_its_time_is_over_and_not_before() {
    let mut lab = Lab::new();
    let (long, _) = asking(&lab, Some(9 * HOUR));
    let (short, _) = asking(&lab, Some(7 * HOUR));
    let (soon, late) = (asking(&lab, None).1, asking(&lab, None).1);
    let tokens = [token(&lab, &soon), token(&lab, &late)];
    if sleep_between_daemons(&mut lab, 8 * HOUR).is_none() {
        return;
    }
    is_cut(&lab, &short);
    still_waits(&lab, &long);
    assert_eq!(answer(&lab, &soon, &tokens[0]), (202, Value::Null));
    sleep_between_daemons(&mut lab, 25 * HOUR).expect("as before");
    is_cut(&lab, &long);
    assert_eq!(answer(&lab, &late, &tokens[1]), (410, json!("token_expired")));
    // Of those that have no time of their own nothing is over.
    assert_eq!(answer(&lab, &late, &Value::Null), (202, Value::Null));
}

// I7
#[test]
fn a_sleep_in_the_life_of_a_daemon_counts_in_full() {
    let mut lab = Lab::without_daemon();
    let sleep = |lab: &mut Lab, hours: i64| {
        for clock in ["REKINDLE_SLEPT", "REKINDLE_CLOCK_AHEAD"] {
            lab.set_millis(clock, hours * HOUR * 1000);
        }
    };
    sleep(&mut lab, 0);
    lab.start();
    let (long, _) = asking(&lab, Some(9 * HOUR));
    let (short, _) = asking(&lab, Some(7 * HOUR));
    let (soon, late) = (asking(&lab, None).1, asking(&lab, None).1);
    let tokens = [token(&lab, &soon), token(&lab, &late)];
    sleep(&mut lab, 8);
    is_cut(&lab, &short);
    still_waits(&lab, &long);
    assert_eq!(answer(&lab, &soon, &tokens[0]), (202, Value::Null));
    sleep(&mut lab, 25);
    is_cut(&lab, &long);
    assert_eq!(answer(&lab, &late, &tokens[1]), (410, json!("token_expired")));
    assert_eq!(answer(&lab, &late, &Value::Null), (202, Value::Null));
}

// I4: an idle agent is kept for six hours and any for seven days, of which a sleep is no part.
#[test]
fn an_agent_that_nobody_needs_is_there_after_a_sleep() {
    let mut lab = Lab::new();
    let id = lab.run("say one");
    lab.wait_end(&id);
    let agents = lab.living_agents();
    if sleep_between_daemons(&mut lab, 8 * 24 * HOUR).is_none() {
        return;
    }
    lab.post(&format!("/api/sessions/{id}/messages"), &json!({"content": "say two"}));
    wait_for("the second turn", || (lab.count(&id, "run.completed") == 2).then_some(()));
    assert_eq!((lab.living_agents(), lab.said(&id).as_str()), (agents, "onetwo"));
    assert_eq!((lab.agents().len(), lab.count(&id, "agent.exited")), (1, 0));
}
