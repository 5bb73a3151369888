//! Homes that something happened to while no daemon was there: what is lost is only what was a cache.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};

use crate::lab::{Lab, Reply, wait_for};

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
    assert!(lab.daemon_log().contains("is rewritten"), "it is said");
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
    wait_for("why it is held", || lab.show(id)["held"].as_str()?.contains("your decision").then_some(()));
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

/// The log of a session whose byte in the middle is about to rot.
fn rot(lab: &Lab, id: &str) -> u64 {
    let log = lab.home().join(format!("sessions/{id}.messages.jsonl"));
    let bytes = std::fs::read(&log).expect("a log");
    // Within a word of the second record: it stays a record, and only its hash tells.
    let line = bytes.iter().position(|byte| *byte == b'\n').expect("a line") + 1;
    let word = bytes[line..].windows(4).position(|four| four == b"say ").expect("words") + line;
    corrupt(&log, |bytes| bytes[word] ^= 1);
    line as u64
}

fn hint(reply: &Reply) -> &str {
    reply.body["error"]["hint"].as_str().unwrap_or_default()
}

// I2, I12: what a snapshot has passed is read again before anything is added behind it.
#[test]
fn a_byte_that_rotted_behind_a_snapshot_is_found_before_anything_is_added_and_the_session_can_be_set_aside() {
    let mut lab = Lab::new();
    let [whole, rotten] = ["say whole", "say rotten"].map(|prompt| lab.run(prompt));
    for id in [&whole, &rotten] {
        lab.wait_end(id);
    }
    lab.leave();
    let sessions = lab.home().join("sessions");
    assert!(sessions.join(format!("{rotten}.json")).exists(), "there is a snapshot");
    assert!(sessions.join("index.json").exists(), "and a list");
    let at = rot(&lab, &rotten);
    let log = sessions.join(format!("{rotten}.messages.jsonl"));
    let before = std::fs::read(&log).expect("a log");
    lab.start();
    let path = format!("/api/sessions/{rotten}");
    for (method, path, body) in [
        ("POST", format!("{path}/messages"), json!({"content": "say more"})),
        ("POST", format!("{path}/resume"), json!({})),
        ("PATCH", path.clone(), json!({"title": "another"})),
        ("POST", format!("{path}/close"), json!({})),
        ("DELETE", path.clone(), Value::Null),
    ] {
        let reply = lab.ask(method, &path, &body);
        let code = &reply.body["error"]["code"];
        assert_eq!((reply.status, code), (409, &json!("session_damaged")), "{method} {path}");
        assert!(hint(&reply).contains("DELETE /api/sessions/{id}?force=1"), "{}", reply.body);
        assert_eq!(reply.body["error"]["advice"]["kind"], "set_aside", "{}", reply.body);
    }
    lab.ran(&["send", &rotten, "say more"]).exits(1).tells("rekindle rm --force");
    assert_eq!(std::fs::read(&log).expect("a log"), before, "nothing was added");
    let shown = lab.show(&rotten);
    let detail = shown["health"]["detail"].as_str().unwrap_or_default();
    assert!(detail.contains(&format!("at byte {at}:")), "{shown}");
    // Whoever reads it gets what is whole, and is told that it ends there.
    let page = lab.get(&format!("{path}/log"));
    assert_eq!(page["records"].as_array().map(Vec::len), Some(1), "{page}");
    assert_eq!(page["damage"]["offset"], at, "{page}");
    let log_command = lab.rekindle(&["log", "-f", &rotten]).output().expect("it runs");
    let words = String::from_utf8_lossy(&log_command.stderr).into_owned();
    assert!(!log_command.status.success() && words.contains("damaged at byte"), "{words}");
    // The others go on.
    lab.post(&format!("/api/sessions/{whole}/messages"), &json!({"content": "say again"}));
    wait_for("an answer", || lab.said(&whole).contains("again").then_some(()));
    let removed = lab.rekindle(&["rm", "--force", &rotten]).output().expect("it runs");
    let words = String::from_utf8_lossy(&removed.stdout).into_owned();
    assert!(removed.status.success() && words.contains("set aside"), "{words}");
    let aside = lab.home().join(format!("damaged/{rotten}.1/{rotten}.messages.jsonl"));
    assert_eq!(std::fs::read(aside).expect("kept"), before);
    for _ in 0..2 {
        assert_eq!(lab.ask("GET", &path, &Value::Null).status, 404);
        assert_eq!(lab.get("/api/sessions")["sessions"].as_array().map(Vec::len), Some(1));
        lab.restart();
    }
}

// I12: nobody has to ask for a session by its name to be told.
#[test]
fn a_look_at_one_session_reads_its_log_from_the_beginning() {
    let mut lab = Lab::new();
    let id = lab.run("say rotten");
    lab.wait_end(&id);
    lab.leave();
    rot(&lab, &id);
    let offline = lab.rekindle(&["status", "--json", &id]).output().expect("it runs");
    let offline: Value = serde_json::from_slice(&offline.stdout).expect("JSON");
    assert_eq!(offline["health"]["state"], "damaged", "{offline}");
    lab.start();
    assert_eq!(lab.show(&id)["health"]["state"], "damaged");
    let listed = lab.get("/api/sessions");
    assert_eq!(listed["sessions"][0]["health"]["state"], "damaged", "from then on the list says so too");
}

// I6, I12: an agent whose words cannot be recorded works on until someone says otherwise.
#[test]
fn an_agent_of_a_damaged_session_lives_until_it_is_set_aside_or_everything_stops() {
    for all in [false, true] {
        let mut lab = Lab::new();
        let id = lab.run("say rotten\nbarrier here\nsay after");
        lab.reach("here");
        lab.leave();
        rot(&lab, &id);
        lab.start();
        wait_for("why nothing happens", || lab.show(&id)["held"].as_str()?.contains("damaged").then_some(()));
        assert_eq!((lab.living_holders().len(), lab.count(&id, "run.adopted")), (1, 0));
        if all {
            let stopped = lab.rekindle(&["stop", "--all"]).output().expect("it runs");
            assert!(stopped.status.success(), "{stopped:?}");
            lab.died();
        } else {
            assert_eq!(lab.ask("DELETE", &format!("/api/sessions/{id}?force=1"), &Value::Null).status, 204);
        }
        assert_eq!(lab.living_holders(), []);
        let agent = lab.agents()[0];
        wait_for("the agent to go", || (!Path::new(&format!("/proc/{agent}")).exists()).then_some(()));
    }
}

// I12: dying over it leaves a damaged session, or one that is set aside.
#[test]
fn a_daemon_that_dies_over_setting_a_session_aside_leaves_it_damaged_or_gone() {
    for place in ["aside.before_stop", "aside.after_stop", "aside.before", "aside.after"] {
        let mut lab = Lab::new();
        let id = lab.run("say rotten\nbarrier here\nsay after");
        lab.reach("here");
        lab.leave();
        rot(&lab, &id);
        lab.start_with(&[], &[("REKINDLE_CRASH_AT", place)]);
        let path = format!("/api/sessions/{id}?force=1");
        assert!(lab.try_ask("DELETE", &path, "", &Value::Null).is_none(), "{place}: it died");
        lab.died();
        lab.start();
        let again = lab.ask("DELETE", &path, &Value::Null).status;
        assert_eq!(again, if place == "aside.after" { 404 } else { 204 }, "{place}");
        assert_eq!(lab.living_holders(), [], "{place}");
        assert!(lab.home().join(format!("damaged/{id}.1/{id}.messages.jsonl")).exists(), "{place}");
        lab.restart();
        assert_eq!(lab.get("/api/sessions")["sessions"].as_array().map(Vec::len), Some(0), "{place}");
    }
}

// I12: what has rotted is found although nobody asks for it.
#[test]
fn logs_that_nobody_asks_for_are_read_in_the_background() {
    let mut lab = Lab::new();
    let ids = ["say whole", "say rotten"].map(|prompt| lab.run(prompt));
    for id in &ids {
        lab.wait_end(id);
    }
    // Without agents nobody opens the sessions either.
    lab.post("/api/shutdown", &json!({"agents": true}));
    lab.died();
    rot(&lab, &ids[1]);
    lab.start_with(&[], &[("REKINDLE_SWEEP_EVERY", "20")]);
    let damaged = || {
        let list = lab.get("/api/sessions");
        let sessions = list["sessions"].as_array().expect("a list").clone();
        let damaged = sessions.into_iter().filter(|one| one["health"]["state"] == "damaged");
        damaged.map(|one| one["id"].as_str().expect("an id").to_owned()).collect::<Vec<_>>()
    };
    let found = wait_for("the damage", || Some(damaged()).filter(|found| !found.is_empty()));
    assert_eq!(found, [ids[1].clone()]);
    assert!(lab.daemon_log().contains("its log is damaged at byte"), "{}", lab.daemon_log());
}

/// Returns what a command of ours prints.
fn printed(lab: &Lab, arguments: &[&str]) -> String {
    let output = lab.rekindle(arguments).output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// Checks that `status` speaks of the damage, and of nothing that would be refused for it.
fn assert_told_as_damaged(lab: &Lab, id: &str) {
    let told = printed(lab, &["status", id]);
    let next = told.split("\nnext ").nth(1).expect("what to do");
    assert!(told.contains("\nhealth    damaged at byte"), "{told}");
    assert_eq!(told.matches("damaged at byte").count(), 1, "once: {told}");
    assert!(next.contains("backup") && next.contains("rekindle doctor"), "{told}");
    for refused in [" resume ", " send ", " answer ", "removes it"] {
        assert!(!told.contains(refused), "{told}");
    }
}

/// Removes the caches that know of a session, whichever there are.
fn forget(lab: &Lab, id: &str) {
    for cache in [format!("sessions/{id}.json"), "sessions/index.json".into()] {
        if let Err(error) = std::fs::remove_file(lab.home().join(cache)) {
            assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
        }
    }
}

// I12: whoever asks is not sent to what would be refused.
#[test]
fn what_to_do_about_a_damaged_session_is_about_the_damage() {
    let mut lab = Lab::new();
    let finished = lab.run("say rotten");
    lab.wait_end(&finished);
    let mut body = lab.session("say rotten\nbarrier here\nsay after");
    body["resume"] = json!("ask");
    let cut = lab.create(&body);
    lab.reach("here");
    lab.leave();
    lab.kill_holders();
    for id in [&finished, &cut] {
        rot(&lab, id);
        assert_told_as_damaged(&lab, id);
    }
    lab.start();
    for id in [&finished, &cut] {
        assert_told_as_damaged(&lab, id);
    }
}

// I12: a list tells of damage too, whether a snapshot is before it or nothing at all can be read.
#[test]
fn a_list_without_a_daemon_tells_of_damage_behind_a_snapshot_and_of_sessions_nothing_is_known_of() {
    let mut lab = Lab::new();
    let [whole, rotten] = ["say whole", "say rotten"].map(|prompt| lab.run(prompt));
    for id in [&whole, &rotten] {
        lab.wait_end(id);
    }
    lab.post("/api/shutdown", &json!({"agents": true}));
    lab.died();
    let log = lab.home().join(format!("sessions/{rotten}.messages.jsonl"));
    corrupt(&log, |bytes| bytes[60] ^= 1);
    for arguments in [&["ps"][..], &["ps", "-a"]] {
        let listed = printed(&lab, arguments);
        assert_eq!(listed.matches("damaged at byte 0:").count(), 1, "{listed}");
        assert_eq!(listed.matches("idle").count(), 2, "its snapshot tells what it did: {listed}");
    }
    forget(&lab, &rotten);
    let check = |lab: &Lab| {
        let listed = printed(lab, &["ps"]);
        let line = listed.lines().find(|line| line.contains("  damaged")).expect(&listed);
        // A daemon finds the agent's last words in what is left of the log.
        let words: Vec<&str> = line.split_whitespace().skip(2).collect();
        assert!(words.is_empty() || words == ["rotten"], "no age, no agent, no place: {listed}");
        assert_eq!((listed.matches("damaged at byte 0:").count(), listed.matches("idle").count()), (1, 1));
        let told = printed(lab, &["status", &rotten]);
        assert!(told.contains("not even its first record can be read"), "{told}");
        assert!(!told.contains("1970") && !told.contains("not been given a prompt"), "{told}");
        assert_told_as_damaged(lab, &rotten);
    };
    check(&lab);
    lab.start();
    check(&lab);
}

/// Cuts bytes off the end of a session's log.
fn shorten(lab: &Lab, id: &str) {
    let log = lab.home().join(format!("sessions/{id}.messages.jsonl"));
    corrupt(&log, |bytes| bytes.truncate(bytes.len() - 20));
}

// I2, I12: a log that lost its end is told of as the next daemon will find it.
#[test]
fn a_log_that_lost_its_end_is_what_the_next_daemon_makes_of_it() {
    // The write-ahead log has it: nothing is missing.
    let mut lab = Lab::new();
    let id = lab.run("say kept");
    lab.wait_end(&id);
    let before = lab.log(&id);
    lab.kill();
    shorten(&lab, &id);
    let told = printed(&lab, &["status", &id]);
    assert!(told.contains("its last run completed"), "{told}");
    assert!(!told.contains("\ntail ") && !told.contains("\nhealth "), "{told}");
    lab.start();
    assert_eq!(lab.log(&id)[..before.len()], before);

    // It only knows that the log was longer: records are lost, and nothing is cut off.
    lab.kill();
    lab.start();
    lab.kill();
    forget(&lab, &id);
    shorten(&lab, &id);
    assert_told_as_damaged(&lab, &id);
    let listed = printed(&lab, &["ps"]);
    assert!(listed.contains("damaged at byte"), "{listed}");
    lab.start();
    assert_eq!(lab.show(&id)["health"]["state"], "damaged");
    assert_told_as_damaged(&lab, &id);
}

// I2: without anything that knows of an end there was, one that is torn is cut off, and its holder tells it again.
#[test]
fn a_torn_end_that_nobody_vouches_for_is_cut_off_and_told_again_by_the_holder() {
    let mut lab = Lab::new();
    let id = lab.run("say again");
    lab.wait_end(&id);
    lab.leave();
    forget(&lab, &id);
    shorten(&lab, &id);
    let told = printed(&lab, &["status", &id]);
    let words = told.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("the next use removes it, and records what the agent's holder"), "{told}");
    assert!(!words.contains("never became"), "{told}");
    lab.start();
    lab.wait_end(&id);
    assert_eq!(lab.said(&id), "again");
    assert_eq!(lab.show(&id)["health"]["state"], "ok");
}

/// Cuts a session's log in the middle.
fn cut(lab: &Lab, id: &str) {
    let path = lab.home().join(format!("sessions/{id}.messages.jsonl"));
    let log = std::fs::OpenOptions::new().write(true).open(path).expect("a log");
    let len = log.metadata().expect("a length").len();
    log.set_len(len / 2).expect("cut");
}

// I1: what the write-ahead log still has is not given up for a log that someone cut.
#[test]
fn a_log_that_is_cut_under_a_daemon_is_whole_again_when_it_leaves() {
    let mut lab = Lab::new();
    let id = lab.run("say one");
    lab.wait_end(&id);
    let before = lab.log(&id);
    cut(&lab, &id);
    lab.leave();
    lab.start();
    assert_eq!(lab.log(&id)[..before.len()], before);
    assert_eq!(lab.ran(&["doctor"]).exits(0).code, Some(0));
}

// I12: a log that was longer when a daemon left is no crash that was survived.
#[test]
fn a_log_that_is_cut_while_no_daemon_runs_is_said_to_have_lost_something() {
    let mut lab = Lab::new();
    let id = lab.run("say one");
    lab.wait_end(&id);
    lab.leave();
    let snapshot = lab.home().join(format!("sessions/{id}.json"));
    if snapshot.exists() {
        std::fs::remove_file(snapshot).expect("removed");
    }
    lab.ran(&["doctor"]).exits(0);
    cut(&lab, &id);
    let told = lab.ran(&["doctor", "--json"]).exits(1).json();
    assert!(told.to_string().contains("log_shorter_than_list"), "{told}");
}
