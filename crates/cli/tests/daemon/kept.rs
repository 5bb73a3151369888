//! What a daemon keeps for the next one beside the logs: the comparison of the clocks, and the list of sessions.

use std::path::Path;

use serde_json::{Value, json};

use crate::lab::{Lab, wait_for};

const AHEAD: &str = "REKINDLE_CLOCK_AHEAD";
const SLEPT: &str = "REKINDLE_SLEPT";
const HOUR: i64 = 3_600_000;

/// So often a daemon looks around that is to write its list soon.
const OFTEN: (&str, &str) = ("REKINDLE_SWEEP_EVERY", "20");

// I7: whichever daemon has compared the clocks, and whatever the wall clock says since.
#[test]
fn dying_while_the_clocks_are_compared_leaves_deadlines_right() {
    for (place, kept) in [("clock.before", false), ("clock.after", true)] {
        let mut lab = Lab::without_daemon();
        lab.set_millis(AHEAD, 0);
        lab.set_millis(SLEPT, 0);
        lab.start_to_die(place);
        lab.died();
        let clock = lab.home().join("clock");
        let before = std::fs::read(&clock).ok();
        assert_eq!(before.is_some(), kept, "{place}");
        // What dying in the middle of it leaves, and someone sets the clock.
        std::fs::write(lab.home().join("clock.tmp"), "{\"machine_boot\":\"").expect("written");
        lab.set_millis(AHEAD, 48 * HOUR);
        lab.start();
        let after = std::fs::read(&clock).expect("kept");
        assert_eq!(before.unwrap_or_else(|| after.clone()), after, "{place}: the first of a life counts");
        let mut body = lab.session("ask may I?\nsay never");
        body["wait_timeout_s"] = json!(600);
        let id = lab.create(&body);
        lab.wait_status(&id, "waiting");
        for ahead in [96 * HOUR, 0, 96 * HOUR] {
            lab.set_millis(AHEAD, ahead);
            assert_eq!(lab.status(&id), "waiting", "{place}");
            lab.restart();
            lab.wait_status(&id, "waiting");
            assert_eq!(std::fs::read(&clock).expect("kept"), after, "{place}");
        }
        lab.set_millis(SLEPT, 599_000 - 60_000);
        assert_eq!(lab.status(&id), "waiting", "{place}");
        lab.set_millis(SLEPT, 601_000);
        lab.wait_status(&id, "interrupted_waiting");
        wait_for("the record", || (lab.count(&id, "run.interrupted") == 1).then_some(()));
    }
}

fn listed(list: &Path) -> Vec<Value> {
    let list = std::fs::read(list).ok().and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    list.and_then(|list| list["sessions"].as_array().cloned()).unwrap_or_default()
}

/// Makes a session that is over, and returns it with how far its log has come.
fn over(lab: &Lab, prompt: &str) -> (String, u64) {
    let id = lab.run(prompt);
    lab.wait_end(&id);
    lab.post(&format!("/api/sessions/{id}/close"), &Value::Null);
    // Its newest record: a log may be ahead of what is shown of its session for a moment.
    let seq = wait_for("the agent's end", || {
        let log = lab.log(&id);
        log.last().filter(|last| last["kind"] == "agent.exited").and_then(|last| last["seq"].as_u64())
    });
    (id, seq)
}

/// Returns the sessions as they are listed: title and newest record.
fn titles(lab: &Lab) -> Vec<(String, u64)> {
    let sessions = lab.get("/api/sessions")["sessions"].as_array().expect("a list").clone();
    let title = |one: &Value| {
        (one["title"].as_str().unwrap_or_default().to_owned(), one["last_seq"].as_u64().unwrap_or(0))
    };
    sessions.iter().map(title).collect()
}

fn has(list: &Path, id: &str, seq: u64) -> bool {
    listed(list).iter().any(|entry| entry["id"] == id && entry["last_seq"] == seq)
}

// I10: a daemon that is killed leaves a list, too; what it says counts only of logs that are as it knows them.
#[test]
fn a_list_is_written_while_the_daemon_lives_and_the_next_one_goes_by_it() {
    let mut lab = Lab::new();
    let (first, seq) = over(&lab, "say one");
    lab.leave();
    let list = lab.home().join("sessions/index.json");
    std::fs::remove_file(&list).expect("a daemon that leaves writes one");
    lab.start_with(&[], &[OFTEN]);
    let (second, more) = over(&lab, "say two");
    wait_for("the list", || (has(&list, &first, seq) && has(&list, &second, more)).then_some(()));
    lab.kill();
    // A list that says something else shows who goes by it.
    let text = std::fs::read_to_string(&list).expect("a list");
    assert!(text.contains("\"title\":\"say one\""), "{text}");
    std::fs::write(&list, text.replace("\"title\":\"say one\"", "\"title\":\"say eins\"")).expect("written");
    lab.start();
    let shown = titles(&lab);
    assert_eq!(shown, [("say two".to_owned(), more), ("say eins".to_owned(), seq)]);
    lab.kill();
    // One that is of a shorter log, or is no list at all, is passed over.
    for spoilt in [text.replace(&format!("\"last_seq\":{seq}"), "\"last_seq\":1"), "{".to_owned()] {
        std::fs::write(&list, spoilt.replace("\"log_offset\":", "\"log_offset\":1")).expect("written");
        lab.start();
        assert_eq!(titles(&lab), [("say two".to_owned(), more), ("say one".to_owned(), seq)]);
        lab.kill();
    }
}

// I10
#[test]
fn dying_while_the_list_is_written_loses_no_session() {
    for place in ["list.before", "list.after"] {
        let mut lab = Lab::new();
        let (first, seq) = over(&lab, "say one");
        lab.kill();
        lab.start_with(&[], &[OFTEN, ("REKINDLE_CRASH_AT", place)]);
        lab.died();
        let list = lab.home().join("sessions/index.json");
        assert_eq!(has(&list, &first, seq), place == "list.after", "{place}");
        lab.start();
        let (second, _) = over(&lab, "say two");
        lab.restart();
        let sessions = lab.get("/api/sessions")["sessions"].clone();
        let ids: Vec<&str> =
            sessions.as_array().expect("a list").iter().filter_map(|one| one["id"].as_str()).collect();
        assert_eq!(ids, [second.as_str(), first.as_str()], "{place}");
        assert_eq!(
            (lab.show(&first)["last_seq"].as_u64(), lab.said(&second).as_str()),
            (Some(seq), "two"),
            "{place}"
        );
    }
}
