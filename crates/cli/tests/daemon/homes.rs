//! Homes that something happened to while no daemon was there: what is lost is only what was a cache.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};

use crate::lab::{Lab, wait_for};

fn epoch(lab: &Lab) -> u64 {
    lab.get("/api/version")["epoch"].as_u64().expect("a number")
}

// I9: nobody ever commands under a number that was used before.
#[test]
fn the_epoch_rises_although_the_holders_are_gone_and_its_file_is_damaged() {
    let mut lab = Lab::new();
    assert_eq!(epoch(&lab), 1);
    let id = lab.run("say one");
    lab.wait_end(&id);
    lab.restart();
    assert_eq!(epoch(&lab), 2);
    // Its agent is warm, and commanded under this one.
    wait_for("the adoption", || (lab.get("/api/holders")["holders"][0]["epoch"] == 2).then_some(()));
    lab.restart();
    assert_eq!(epoch(&lab), 3);
    let file = lab.home().join("epoch");
    let mode = std::fs::metadata(&file).expect("a file").permissions().mode();
    assert_eq!(
        (mode & 0o777, std::fs::read_to_string(&file).expect("text").as_str()),
        (0o600, "{\"epoch\":3}")
    );
    lab.post("/api/shutdown", &json!({"agents": true}));
    lab.died();
    assert_eq!(lab.living_holders(), []);
    std::fs::remove_dir_all(lab.home().join("holders")).expect("removed");
    lab.start();
    assert_eq!(epoch(&lab), 4);
    // Without a readable file the holders' own are what is left.
    let id = lab.run("say two");
    lab.wait_end(&id);
    lab.kill();
    std::fs::write(&file, "rubbish").expect("written");
    lab.start();
    assert_eq!(epoch(&lab), 5);
    assert!(lab.daemon_log().contains("is written anew"), "it is said");
    assert_eq!(std::fs::read_to_string(&file).expect("text"), "{\"epoch\":5}");
}

fn corrupt(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(path).expect("a file");
    change(&mut bytes);
    std::fs::write(path, bytes).expect("written");
}

// I2, I10, I12: everything at once that may befall a home.
#[test]
fn a_home_without_caches_with_a_torn_tail_a_flipped_byte_and_rubbish_is_served_and_says_what_is_wrong() {
    let mut lab = Lab::new();
    let [whole, torn, flipped] = ["say whole", "say torn", "say flipped"].map(|prompt| lab.run(prompt));
    for id in [&whole, &torn, &flipped] {
        lab.wait_end(id);
    }
    let before = [&whole, &torn].map(|id| lab.log(id));
    // In order: what was just written would be mended from the write-ahead log.
    lab.leave();
    let sessions = lab.home().join("sessions");
    for entry in std::fs::read_dir(&sessions).expect("a directory").flatten() {
        if entry.path().extension().is_some_and(|end| end == "json") {
            std::fs::remove_file(entry.path()).expect("a cache goes");
        }
    }
    let log = |id: &str| sessions.join(format!("{id}.messages.jsonl"));
    corrupt(&log(&torn), |bytes| bytes.extend(b"{\"seq\":99,\"ts\":\"20"));
    corrupt(&log(&flipped), |bytes| bytes[300] ^= 1);
    for rubbish in
        ["sessions/rubbish", "sessions/sess_nonsense.json", "holders/h_nonsense", "wal/notes", "stray"]
    {
        std::fs::write(lab.home().join(rubbish), "\0rubbish").expect("written");
    }
    std::fs::create_dir(lab.home().join("holders/h_0123456789abcdef0123456789abcdef")).expect("made");
    lab.start();
    for (id, before) in [&whole, &torn].into_iter().zip(before) {
        assert_eq!(lab.log(id)[..before.len()], before, "every record is there");
        lab.post(&format!("/api/sessions/{id}/messages"), &json!({"content": "say again"}));
        wait_for("an answer", || lab.said(id).contains("again").then_some(()));
    }
    let shown = lab.show(&flipped);
    assert_eq!(shown["health"]["state"], "damaged", "{shown}");
    assert!(shown["health"]["detail"].as_str().is_some_and(|words| words.contains("byte")), "{shown}");
    let listed = lab.get("/api/sessions")["sessions"].as_array().map(Vec::len);
    assert_eq!(listed, Some(3), "the damaged one too");
    let reply = lab.ask("POST", &format!("/api/sessions/{flipped}/messages"), &json!({"content": "say x"}));
    assert_eq!((reply.status, &reply.body["error"]["code"]), (409, &json!("session_damaged")));
    assert!(reply.body["error"]["hint"] != Value::Null, "{}", reply.body);
    let doctor = lab.rekindle(&["doctor"]).output().expect("it runs");
    let words = String::from_utf8_lossy(&[doctor.stdout, doctor.stderr].concat()).into_owned();
    assert!(!doctor.status.success() && words.contains(&flipped) && words.contains("stray"), "{words}");
}

/// Waits until a session that does not go on by itself was found interrupted, and returns how.
fn wait_cut(lab: &Lab, id: &str) -> Vec<Value> {
    lab.wait_status(id, "interrupted_startup");
    wait_for("why it is held", || lab.show(id)["held"].as_str()?.contains("your word").then_some(()));
    lab.log(id).into_iter().filter(|record| record["kind"] == "run.interrupted").collect()
}

// I6, I12: what only a restart of the machine explains is told from the death of processes.
#[test]
fn a_restart_of_the_machine_is_told_from_the_death_of_a_holder() {
    for (rebooted, reason) in [(true, "machine_restart"), (false, "holder_lost")] {
        let mut lab = Lab::new();
        let mut body = lab.session("say before\nbarrier here\nsay after");
        body["resume"] = json!("ask");
        let id = lab.create(&body);
        lab.reach("here");
        lab.kill();
        lab.kill_holders();
        if rebooted {
            lab.as_if_rebooted();
        }
        for _ in 0..2 {
            lab.start();
            let cuts = wait_cut(&lab, &id);
            assert_eq!((cuts.len(), &cuts[0]["reason"]), (1, &json!(reason)));
            assert_eq!(cuts[0]["uncertain_turn"].as_bool().unwrap_or(false), rebooted);
            lab.kill();
        }
        lab.start();
    }
}

// I6: without a directory to read only the processes tell, and then whose death it was.
#[test]
fn an_agent_of_which_nothing_is_left_is_buried_once() {
    let mut lab = Lab::new();
    let mut body = lab.session("say before\nbarrier here\nsay after");
    body["resume"] = json!("ask");
    let id = lab.create(&body);
    lab.reach("here");
    lab.kill();
    lab.kill_holders();
    let agent = lab.agents()[0];
    wait_for("the agent to go", || (!Path::new(&format!("/proc/{agent}")).exists()).then_some(()));
    std::fs::remove_dir_all(lab.home().join("holders")).expect("removed");
    for _ in 0..2 {
        lab.start();
        let cuts = wait_cut(&lab, &id);
        assert_eq!((cuts.len(), &cuts[0]["reason"]), (1, &json!("process_restart")));
        lab.kill();
    }
    lab.start();
}
