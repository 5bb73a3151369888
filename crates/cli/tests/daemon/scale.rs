//! Many holders at once, and bad ones among them: recovery that is killed at any moment, and nobody who waits for another.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rekindle_holder::identity::Identity;
use rekindle_holder::tree::signal_exactly;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::lab::{Lab, wait_for};

/// Agents that hang in their turn.
const MANY: usize = 200;

/// How often recovery is killed.
const KILLS: u32 = 8;

/// A moment that differs from run to run, below a bound.
fn some_moment(most: Duration) -> Duration {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let nanos = u64::from(now.subsec_nanos()).wrapping_mul(2_654_435_761);
    Duration::from_nanos(nanos % u64::try_from(most.as_nanos()).unwrap_or(u64::MAX))
}

/// Returns sessions by their ids.
fn all(lab: &Lab) -> BTreeMap<String, Value> {
    let page = lab.get("/api/sessions?limit=500");
    let sessions = page["sessions"].as_array().expect("a list").iter();
    sessions.map(|one| (one["id"].as_str().expect("an id").to_owned(), one.clone())).collect()
}

fn pids(lab: &Lab) -> BTreeMap<String, i64> {
    let list = lab.get("/api/holders")["holders"].as_array().expect("a list").clone();
    let lives = list.iter().filter(|one| one["state"] == "lives");
    let pid = |one: &Value| Some((one["session_id"].as_str()?.to_owned(), one["agent_pid"].as_i64()?));
    lives.filter_map(pid).collect()
}

// I4, I9, I10, I14
#[test]
fn two_hundred_agents_outlive_daemons_that_are_killed_while_they_recover_and_bad_ones_keep_nobody() {
    let mut lab = Lab::new();
    let begin = Instant::now();
    // Bad ones to be: damaged, silent, without a place to work in.
    let damaged = lab.run("say words");
    lab.wait_end(&damaged);
    let silent = lab.run("barrier silent\nsay late");
    lab.reach("silent");
    let gone = lab.path("gone");
    std::fs::create_dir(&gone).expect("a directory");
    let mut body = lab.session("barrier homeless");
    body["working_dir"] = json!(gone);
    let homeless = lab.create(&body);
    lab.reach("homeless");
    let many: Vec<String> = (0..MANY).map(|_| lab.run("hang")).collect();
    wait_for("all agents", || (lab.prompted("hang") == MANY).then_some(()));
    eprintln!("{MANY} agents after {:?}", begin.elapsed());
    let before = pids(&lab);
    // In order: what was just written would be mended from the write-ahead log.
    lab.leave();
    let log = lab.home().join(format!("sessions/{damaged}.messages.jsonl"));
    let mut bytes = std::fs::read(&log).expect("a log");
    bytes[300] ^= 1;
    std::fs::write(&log, bytes).expect("written");
    for cache in ["index".to_owned(), damaged.clone()] {
        let _ = std::fs::remove_file(lab.home().join(format!("sessions/{cache}.json")));
    }
    let of = |id: &str| before.get(id).copied().and_then(|pid| i32::try_from(pid).ok()).expect("an agent");
    signal_exactly(&Identity::of(of(&homeless)).expect("it lives"), Signal::KILL).expect("killed");
    std::fs::remove_dir_all(&gone).expect("removed");
    let quiet = holder_of(&lab, &silent);
    signal_exactly(&quiet, Signal::STOP).expect("stopped");

    for round in 0..KILLS {
        lab.start_unready();
        let most = Duration::from_millis(20) + some_moment(Duration::from_millis(700));
        std::thread::sleep(most);
        eprintln!("round {round}: killed after {most:?}");
        lab.kill();
    }
    let begin = Instant::now();
    lab.start();
    assert_eq!(all(&lab).len(), MANY + 3, "everyone is listed at once");
    // One that is in order is served while the others are still being looked at.
    let good = lab.run("say good");
    assert_eq!(lab.wait_end(&good), "completed");
    let served = begin.elapsed();
    let hasty = json!({"profile": "acp", "command": ["sh", "-c", "exit 3"]});
    let hasty = lab.create(&json!({"working_dir": lab.path("work"), "agent": hasty, "prompt": "hello"}));
    assert_eq!(lab.wait_end(&hasty), "failed");
    let adopted = || {
        let sessions = all(&lab);
        many.iter().all(|id| sessions[id]["evidence"]["holder"]["proof"] == "lock").then_some(())
    };
    wait_for("everyone to be adopted", adopted);
    eprintln!("served after {served:?}, all adopted after {:?}", begin.elapsed());

    // Nobody was interrupted, started again or told anything twice.
    let after = pids(&lab);
    for id in &many {
        assert_eq!((after.get(id), lab.status(id).as_str()), (before.get(id), "running"));
    }
    for id in many.iter().step_by(20) {
        let kinds = ["run.started", "run.interrupted", "agent.launching"];
        assert_eq!(kinds.map(|kind| lab.count(id, kind)), [1, 0, 1]);
    }
    assert_eq!(lab.prompted("hang"), MANY);
    // The bad ones are each what they are.
    assert_eq!(lab.show(&damaged)["health"]["state"], "damaged");
    let shown = wait_for("its silence to be known", || {
        Some(lab.show(&silent)).filter(|shown| shown["evidence"]["holder"]["proof"] == "unresponsive")
    });
    assert_eq!((&shown["status"], after.get(&silent)), (&json!("running"), before.get(&silent)));
    wait_for("the place to be missed", || {
        lab.show(&homeless)["held"].as_str()?.contains("directory").then_some(())
    });
    // And the silent one goes on when it can.
    signal_exactly(&quiet, Signal::CONT).expect("continued");
    lab.pass("silent");
    assert_eq!(lab.wait_end(&silent), "completed");
    assert_eq!(lab.count(&silent, "run.interrupted"), 0);
}

/// Returns the holder of a session.
fn holder_of(lab: &Lab, session: &str) -> Identity {
    let found = rekindle_holder::client::inspect_all(&lab.home().join("holders")).expect("holders");
    let is = |launch: &rekindle_holder::dir::Launch| launch.session_id == session;
    let one = found.iter().find(|one| one.launch.there().is_some_and(is)).expect("a holder");
    one.status.there().expect("a status").holder.clone()
}
