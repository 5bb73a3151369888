//! Holders and homes looked after: who lives is left alone, what is in a log may go, and a copy of a home touches nobody.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::lab::{Lab, REKINDLE, holds, wait_for};

fn json_of(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{error}: {text}{}", String::from_utf8_lossy(&output.stderr)))
}

fn ask(lab: &Lab, arguments: &[&str]) -> Value {
    json_of(&lab.rekindle(arguments).arg("--json").output().expect("it runs"))
}

fn ask_of(home: &Path, arguments: &[&str]) -> Value {
    let mut command = Command::new(REKINDLE);
    command.arg("--home").arg(home).args(arguments).arg("--json");
    json_of(&command.output().expect("it runs"))
}

/// Returns the names of the directories that a finding of this kind is about.
fn found(report: &Value, code: &str) -> Vec<String> {
    let all = report["findings"].as_array().expect("findings");
    let of_code = all.iter().filter(|finding| finding["code"] == code);
    of_code.map(|finding| name(finding["path"].as_str().expect("a path"))).collect()
}

fn gone(freed: &Value, kind: &str) -> Vec<String> {
    let all = freed["gone"].as_array().expect("a list");
    let of_kind = all.iter().filter(|gone| gone["kind"] == kind);
    of_kind.map(|gone| name(gone["path"].as_str().expect("a path"))).collect()
}

fn name(path: &str) -> String {
    Path::new(path).file_name().expect("a name").to_string_lossy().into_owned()
}

fn holder_of(lab: &Lab, id: &str) -> String {
    let log = lab.log(id);
    let launching = log.iter().rev().find(|record| record["kind"] == "agent.launching").expect("a launch");
    launching["holder_id"].as_str().expect("an id").to_owned()
}

/// Makes the home forget every session, as one does that was restored from an old backup.
fn forget_sessions(lab: &Lab) {
    for directory in ["sessions", "wal"] {
        let directory = lab.home().join(directory);
        for entry in std::fs::read_dir(&directory).expect("a directory") {
            std::fs::remove_file(entry.expect("an entry").path()).expect("removed");
        }
    }
}

// I9, I12: what a directory of a holder is, by its lock and the log; and what may go goes.
#[test]
fn holders_are_told_apart_and_only_what_is_in_a_log_goes() {
    let mut lab = Lab::new();
    let ended = lab.run("say one");
    lab.wait_end(&ended);
    let (dead, said) = (holder_of(&lab, &ended), lab.said(&ended));
    lab.post(&format!("/api/sessions/{ended}/close"), &json!({}));
    wait_for("the agent's end", || (lab.count(&ended, "agent.exited") == 1).then_some(()));
    let lives = lab.run("say two\nbarrier here\nsay three");
    lab.reach("here");
    let living = holder_of(&lab, &lives);
    let half = lab.home().join("holders/h_00000000000000000000000000000001");
    std::fs::create_dir_all(half.join("journal")).expect("made");
    // Ready to be started from, and the daemon dies before it has recorded that.
    let ready = lab.home().join("holders/h_00000000000000000000000000000002");
    std::fs::create_dir_all(ready.join("journal")).expect("made");
    let launch = lab.home().join("holders").join(&living).join("launch.json");
    let launch = std::fs::read_to_string(launch).expect("a launch");
    let launch = launch.replace(&living, &name(&ready.to_string_lossy()));
    std::fs::write(ready.join("launch.json"), launch).expect("written");

    // Beside a daemon nothing is repaired, and what would be can be asked.
    let refused = lab.rekindle(&["doctor", "--repair"]).output().expect("it runs");
    assert_eq!(refused.status.code(), Some(1));
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(words.contains("run rekindle stop first, agents keep working"), "{words}");
    let dry = ask(&lab, &["doctor", "--repair", "--dry-run"]);
    assert_eq!(found(&dry, "holder_lives"), [living.as_str()], "{dry}");
    assert_eq!(found(&dry, "holder_ingested"), [dead.as_str()], "{dry}");

    // It is removed beside a daemon as without one, by the same proof; programs are the daemon's.
    let dry = ask(&lab, &["gc", "--dry-run"]);
    assert_eq!(gone(&dry, "holder"), [dead.as_str()], "{dry}");
    assert!(lab.home().join("holders").join(&dead).exists());
    let freed = ask(&lab, &["gc"]);
    assert_eq!((gone(&freed, "holder"), gone(&freed, "executable")), (vec![dead.clone()], vec![]), "{freed}");
    assert!(!lab.home().join("holders").join(&dead).exists());
    assert_eq!(lab.said(&ended), said);

    lab.kill();
    let report = ask(&lab, &["doctor"]);
    let unused = [&half, &ready].map(|holder| name(&holder.to_string_lossy()));
    assert_eq!(found(&report, "holder_half_made"), unused, "{report}");
    assert_eq!(found(&report, "daemon_left"), ["daemon.json"], "{report}");
    let repaired = ask(&lab, &["doctor", "--repair", "--yes"]);
    assert!(!half.exists() && !ready.exists() && !lab.home().join("daemon.json").exists(), "{repaired}");
    assert_eq!(lab.living_agents().len(), 1, "the agent of a session is not an orphan: {repaired}");
    // The program that a living holder runs stays.
    let freed = ask(&lab, &["gc"]);
    assert_eq!((gone(&freed, "holder"), gone(&freed, "executable")), (vec![], vec![]), "{freed}");
    // What a dead agent said last, and no log has, is never removed.
    lab.kill_holders();
    let report = ask(&lab, &["doctor"]);
    assert_eq!(found(&report, "holder_unharvested"), [living.as_str()], "{report}");
    let freed = ask(&lab, &["gc", "--orphans-older-than", "0s"]);
    assert_eq!(gone(&freed, "holder"), Vec::<String>::new(), "{freed}");
    assert_eq!(gone(&freed, "executable").len(), 1, "nobody runs it: {freed}");
    lab.start();
    wait_for("its words", || lab.said(&lives).contains("two").then_some(()));
}

// I9: an orphan is ended when a person says so, and its journal stays until one says so too.
#[test]
fn an_agent_that_no_session_knows_is_ended_only_with_consent() {
    let mut lab = Lab::new();
    let id = lab.run("say one\nbarrier here");
    lab.reach("here");
    let holder = holder_of(&lab, &id);
    lab.leave();
    forget_sessions(&lab);
    let report = ask(&lab, &["doctor"]);
    assert_eq!(found(&report, "holder_orphan"), [holder.as_str()], "{report}");
    let repaired = ask(&lab, &["doctor", "--repair"]);
    assert_eq!(found(&repaired, "holder_orphan"), [holder.as_str()], "{repaired}");
    let freed = ask(&lab, &["gc", "--orphans-older-than", "0s"]);
    assert_eq!(gone(&freed, "holder"), Vec::<String>::new(), "{freed}");
    assert_eq!(lab.living_agents().len(), 1);

    // The home moved elsewhere and back would be another; a copy of it is never the reason for a signal.
    let copy = lab.path("copy");
    let copied = Command::new("cp").arg("-r").arg(lab.home()).arg(&copy).status().expect("cp runs");
    assert!(copied.success());
    let linked = lab.path("linked");
    // With links even the lock is the very same file.
    let done = Command::new("cp").arg("-rl").arg(lab.home()).arg(&linked).status().expect("cp runs");
    assert!(done.success());
    for home in [&copy, &linked] {
        let report = ask_of(home, &["doctor", "--repair", "--yes"]);
        assert_eq!(found(&report, "holder_copied"), [holder.as_str()], "{report}");
        ask_of(home, &["gc", "--orphans-older-than", "0s", "--repairs-older-than", "0s"]);
        assert_eq!(lab.living_agents().len(), 1, "{}", home.display());
    }

    let repaired = ask(&lab, &["doctor", "--repair", "--yes"]);
    assert!(
        repaired["done"].as_array().expect("a list").iter().any(|done| done["action"] == "ended"),
        "{repaired}"
    );
    assert_eq!(found(&repaired, "holder_unclaimed"), [holder.as_str()], "{repaired}");
    wait_for("the agent's end", || lab.living_agents().is_empty().then_some(()));
    let freed = ask(&lab, &["gc"]);
    assert_eq!(gone(&freed, "holder"), Vec::<String>::new(), "{freed}");
    let freed = ask(&lab, &["gc", "--orphans-older-than", "0s"]);
    assert_eq!(gone(&freed, "holder"), [holder.as_str()], "{freed}");
    assert!(!lab.home().join("holders").join(&holder).exists());
}

// I12: damage in a journal that no log has yet is told, and nothing of it is removed.
#[test]
fn a_damaged_journal_is_told_and_kept() {
    let mut lab = Lab::new();
    let id = lab.run("say one\nbarrier here");
    lab.reach("here");
    let holder = holder_of(&lab, &id);
    lab.kill();
    lab.kill_holders();
    let journal = lab.home().join("holders").join(&holder).join("journal/00000001.log");
    let mut bytes = std::fs::read(&journal).expect("a journal");
    // In the first record: there are good ones behind it.
    let at = bytes.iter().position(|byte| *byte == b'\n').expect("a line") + 12;
    bytes[at] ^= 1;
    std::fs::write(&journal, &bytes).expect("written");
    let report = ask(&lab, &["doctor", "--repair"]);
    assert_eq!(found(&report, "holder_journal_damaged"), [holder.as_str()], "{report}");
    ask(&lab, &["gc", "--orphans-older-than", "0s"]);
    assert_eq!(std::fs::read(&journal).expect("a journal"), bytes);
}

// I9, I12: whatever cannot be judged is named and left alone, with consent too, and so is the agent behind it.
#[test]
fn an_agent_behind_what_cannot_be_judged_is_left_alone() {
    let mut lab = Lab::new();
    let id = lab.run("say one\nbarrier here\nsay two");
    lab.reach("here");
    let holder = holder_of(&lab, &id);
    lab.leave();
    let launch = lab.home().join("holders").join(&holder).join("launch.json");
    let whole = std::fs::read(&launch).expect("a launch");
    let mut newer: Value = serde_json::from_slice(&whole).expect("JSON");
    newer["format"] = json!(999);
    let log = lab.home().join(format!("sessions/{id}.messages.jsonl"));
    let records = std::fs::read(&log).expect("a log");
    let mut flipped = records.clone();
    flipped[records.len() / 2] ^= 1;

    let check = |path: &Path, bytes: &[u8], code: &str| {
        let before = std::fs::read(path).expect("a file");
        std::fs::write(path, bytes).expect("written");
        for repair in [&["doctor"][..], &["doctor", "--repair"]] {
            let report = ask(&lab, repair);
            assert_eq!(found(&report, code), [holder.as_str()], "{report}");
        }
        let freed = ask(&lab, &["gc", "--orphans-older-than", "0s"]);
        assert_eq!(gone(&freed, "holder"), Vec::<String>::new(), "{code}: {freed}");
        assert_eq!(lab.living_agents().len(), 1, "{code}");
        std::fs::write(path, before).expect("written");
    };
    check(&launch, newer.to_string().as_bytes(), "holder_newer");
    check(&launch, b"rubbish", "holder_unreadable");
    check(&log, &flipped, "holder_quarantined");
    // Everything is as it was, and the work goes on.
    lab.start();
    lab.pass("here");
    assert_eq!(lab.wait_end(&id), "completed");
    assert_eq!((lab.said(&id).contains("one"), lab.said(&id).contains("two")), (true, true));
}

// I9: a directory in which someone is at work belongs to whoever has its lock.
#[test]
fn a_dead_holder_in_whose_directory_someone_works_is_left_alone() {
    let mut lab = Lab::new();
    let id = lab.run("say one\nbarrier here");
    lab.reach("here");
    let holder = holder_of(&lab, &id);
    lab.kill();
    lab.kill_holders();
    let directory = lab.home().join("holders").join(&holder);
    let lock = std::fs::File::open(directory.join("lock")).expect("a lock");
    lock.lock().expect("nobody else has it");
    let report = ask(&lab, &["doctor", "--repair"]);
    assert_eq!(found(&report, "holder_busy"), [holder.as_str()], "{report}");
    let freed = ask(&lab, &["gc", "--orphans-older-than", "0s"]);
    assert_eq!(gone(&freed, "holder"), Vec::<String>::new(), "{freed}");
    assert!(directory.exists());
    drop(lock);
    let report = ask(&lab, &["doctor"]);
    assert_eq!(found(&report, "holder_unharvested"), [holder.as_str()], "{report}");
}

// Whoever deletes a session means what its agents said too.
#[test]
fn what_a_deleted_session_said_is_in_no_journal() {
    let lab = Lab::new();
    for prompt in ["say secretword", "say secretword\nbarrier here"] {
        let id = lab.run(prompt);
        if prompt.contains("barrier") {
            lab.reach("here")
        } else {
            drop(lab.wait_end(&id))
        }
        let holder = lab.home().join("holders").join(holder_of(&lab, &id));
        assert!(holds(&holder, "secretword"));
        assert_eq!(lab.ask("DELETE", &format!("/api/sessions/{id}?force=1"), &Value::Null).status, 204);
        wait_for("the journal's end", || (!holder.exists()).then_some(()));
        wait_for("the log's end", || (!holds(&lab.home().join("sessions"), "secretword")).then_some(()));
    }
    wait_for("the agents' end", || lab.living_agents().is_empty().then_some(()));
}

// I9, I14: killed anywhere, gc has removed what it may and nothing else, and the next one goes on.
#[test]
fn gc_that_is_killed_anywhere_takes_nothing_that_is_needed() {
    let mut lab = Lab::new();
    let lives = lab.run("say two\nbarrier here\nsay three");
    lab.reach("here");
    let living = holder_of(&lab, &lives);
    let mut places = 0;
    for place in 1..20 {
        let ended = lab.run("say one");
        lab.wait_end(&ended);
        let dead = holder_of(&lab, &ended);
        lab.post(&format!("/api/sessions/{ended}/close"), &json!({}));
        wait_for("the agent's end", || (lab.count(&ended, "agent.exited") == 1).then_some(()));
        // While a daemon runs it does the work.
        lab.leave();
        let mut gc = lab.rekindle(&["gc"]);
        let output = gc.env("REKINDLE_CRASH_AT", format!("*#{place}")).output().expect("it runs");
        lab.start();
        if output.status.code().is_some() {
            break;
        }
        places = place;
        ask(&lab, &["gc"]);
        let holders = lab.home().join("holders");
        let left = std::fs::read_dir(&holders).expect("a list");
        let left: Vec<String> =
            left.map(|entry| name(&entry.expect("one").path().to_string_lossy())).collect();
        assert!(left.contains(&living) && !left.iter().any(|name| name.contains(&dead)), "{place}: {left:?}");
    }
    assert!(places >= 2, "only {places} places");
    lab.restart();
    lab.pass("here");
    lab.wait_end(&lives);
    assert!(lab.said(&lives).contains("three"));
    assert_eq!(lab.count(&lives, "run.interrupted"), 0);
}

/// Makes every blob look as if it were kept days ago, so that only what names it can save it.
fn make_blobs_old(home: &Path) {
    let then = SystemTime::now() - Duration::from_secs(3 * 86_400);
    let shards =
        std::fs::read_dir(home.join("blobs")).into_iter().flatten().flatten().map(|shard| shard.path());
    let blobs =
        shards.filter(|path| path.is_dir()).flat_map(|shard| std::fs::read_dir(shard).into_iter().flatten());
    let blobs: Vec<PathBuf> = blobs.flatten().map(|blob| blob.path()).collect();
    for blob in blobs.iter().filter(|path| path.extension().is_some_and(|end| end == "zst")) {
        // It may be on its way out.
        if let Ok(file) = std::fs::File::options().write(true).open(blob) {
            file.set_modified(then).expect("a time");
        }
    }
}

// I1, I12: gc beside a daemon that keeps large messages, some of them the same again and again, takes none that is named.
#[test]
fn gc_beside_a_daemon_that_keeps_blobs_takes_none_that_is_named() {
    let lab = Lab::new();
    // No collection is under way while blobs are made old: time does not jump in the middle of one.
    let (over, ages, turn) = (AtomicBool::new(false), AtomicBool::new(false), Mutex::new(()));
    let rounds = std::thread::scope(|scope| {
        let collecting = scope.spawn(|| {
            let mut rounds = 0;
            while !over.load(Ordering::Relaxed) {
                if ages.load(Ordering::Relaxed) {
                    std::thread::yield_now();
                    continue;
                }
                let _turn = turn.lock().expect("no panic");
                let output = lab.rekindle(&["gc", "--json"]).output().expect("it runs");
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
                rounds += 1;
            }
            rounds
        });
        for round in 0..12 {
            // Every second payload was kept before, and deleted with its session: nothing names it at this moment.
            let text = format!("{} {}", round % 2, "x".repeat(300 << 10));
            let body =
                json!({"working_dir": lab.path("work"), "agent": lab.session("")["agent"], "prompt": text});
            let id = lab.create(&body);
            lab.wait_end(&id);
            let log = lab.log(&id);
            let user = log.iter().find(|record| record["kind"] == "message.user").expect("a message");
            assert!(user["content"]["blob"].is_string(), "{user}");
            ages.store(true, Ordering::Relaxed);
            let aging = turn.lock().expect("no panic");
            make_blobs_old(&lab.home());
            drop(aging);
            ages.store(false, Ordering::Relaxed);
            if round % 3 == 0 {
                lab.ask("DELETE", &format!("/api/sessions/{id}?force=1"), &Value::Null);
            }
        }
        over.store(true, Ordering::Relaxed);
        collecting.join().expect("no panic")
    });
    assert!(rounds > 1, "{rounds}");
    let report = ask(&lab, &["doctor"]);
    assert_eq!(found(&report, "blob_missing"), Vec::<String>::new(), "{report}");
}
