//! Restores, with real daemons and agents: files put back while a session goes on, forks with files, sessions that go on from a
//! kept snapshot; and daemons that are killed in the middle of it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::lab::{Lab, wait_for};

/// Returns what is in a directory: names and contents.
fn files(root: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(root).expect("a directory").map(|entry| entry.expect("an entry").path());
    let read = |path: &Path| fs::read_to_string(path).expect("text");
    entries.map(|path| (path.file_name().expect("a name").display().to_string(), read(&path))).collect()
}

/// Has a session do something, and waits until its directory is captured.
fn told(lab: &Lab, id: &str, words: &str) {
    let checkpoints = lab.count(id, "run.checkpoint") + 2;
    lab.post(&format!("/api/sessions/{id}/messages"), &json!({ "content": words }));
    settled(lab, id, checkpoints);
}

fn settled(lab: &Lab, id: &str, checkpoints: usize) {
    wait_for("the checkpoints", || (lab.count(id, "run.checkpoint") >= checkpoints).then_some(()));
}

fn restored(lab: &Lab, id: &str) -> Value {
    wait_for("the files", || {
        lab.log(id).into_iter().find(|record| record["kind"] == "session.files_restored")
    })
}

// I12: the agent, which lives, is told what was put back behind its back; the way back is told, and leads back.
#[test]
fn files_are_put_back_and_the_session_goes_on() {
    let lab = Lab::new();
    let work = lab.path("work");
    fs::write(work.join("old.txt"), "one\n").expect("written");
    let id = lab.run("say first");
    settled(&lab, &id, 2);
    told(&lab, &id, "write new.txt hello\nappend old.txt two");
    let after = files(&work);
    assert_eq!(after.len(), 2);
    let ran = lab.ran(&["rewind", &id, "--files-only", "--yes"]).exits(0);
    assert_eq!(files(&work), BTreeMap::from([("old.txt".to_owned(), "one\n".to_owned())]));
    assert!(ran.out.contains("deleted   new.txt") && ran.out.contains("2 files put back"), "{ran:?}");
    assert_eq!((lab.count(&id, "session.closed"), lab.count(&id, "session.files_restored")), (0, 1));
    told(&lab, &id, "say third");
    let prompt = lab.record().into_iter().find(|line| line.contains("say third")).expect("its prompt");
    assert!(prompt.contains("Files Restored") && prompt.contains("- new.txt (deleted)"), "{prompt}");
    assert_eq!(lab.agents().len(), 1, "the same agent");
    let (_, command) = ran.out.split_once("to undo it: rekindle ").expect("told");
    let words: Vec<&str> = command.split_whitespace().chain(["--yes"]).collect();
    lab.ran(&words).exits(0);
    assert_eq!(files(&work), after);
    // What there is nothing of, and what is in use, is refused with what to do.
    lab.ran(&["rewind", &id, "--files-only", "--conversation-only"]).exits(2);
    let other = lab.run("barrier here");
    lab.reach("here");
    lab.ran(&["rewind", &id, "--files-only", "--yes"]).exits(1).tells("--force");
    let ran = lab.ran(&["rewind", &id, "--files-only", "--force", "--json"]).exits(0).json();
    assert_eq!((&ran["error"], ran["undo"].is_string()), (&Value::Null, true), "{ran}");
    lab.pass("here");
    lab.wait_end(&other);
}

#[test]
fn a_fork_gets_the_files_of_its_cut_in_a_directory_of_its_own() {
    let lab = Lab::new();
    let (work, copy) = (lab.path("work"), lab.path("copy"));
    let id = lab.run("write a.txt one");
    settled(&lab, &id, 2);
    let run = lab.show(&id)["run"]["run_id"].as_str().expect("a run").to_owned();
    told(&lab, &id, "write a.txt two\nwrite b.txt b");
    let before = files(&work);
    let place = copy.display().to_string();
    let fork = ["fork", &id, "--at", &run, "--files", "--cwd", &place];
    let forked = lab.ran(&fork).exits(0).tells("put back in");
    let child = forked.out.trim().to_owned();
    assert_eq!((restored(&lab, &child)["changed"].as_u64(), files(&work)), (Some(1), before));
    assert_eq!(files(&copy).keys().collect::<Vec<_>>(), ["a.txt"]);
    assert!(files(&copy)["a.txt"].starts_with("one"));
    lab.ran(&fork).exits(1).tells("--force");
    lab.ran(&["fork", &id, "--files"]).exits(2);
}

fn metric(lab: &Lab, name: &str) -> f64 {
    let (_, page) = lab.text("/metrics", "");
    let line = page.lines().find(|line| line.split(' ').next() == Some(name)).expect(name);
    line.rsplit(' ').next().and_then(|value| value.parse().ok()).expect("a number")
}

// I12: in one step, with the files, and what cannot be restored is left alone and named.
#[test]
fn a_session_is_taken_back_to_a_snapshot_with_its_files() {
    let lab = Lab::new();
    let work = lab.path("work");
    let mut body = lab.session("write a.txt one");
    body["key"] = json!("my-project");
    let id = lab.create(&body);
    settled(&lab, &id, 2);
    let taken = lab.post(&format!("/api/sessions/{id}/snapshots"), &json!({}));
    let name = taken["name"].as_str().expect("a name").to_owned();
    told(&lab, &id, "write a.txt two\nwrite b.txt b");
    let path = format!("/api/sessions/{id}/snapshots/{name}/restore");
    // Beside it: nothing but a fork.
    let beside = lab.post(&path, &json!({}));
    assert_eq!((&beside["replaces"], &beside["files"]), (&Value::Null, &json!("left")));
    assert_eq!(beside["warnings"][0]["code"], "agent_cannot_load", "{beside}");
    let ran =
        lab.ran(&["snapshot", "restore", &id, &name, "--in-place", "--files", "--json"]).exits(0).json();
    assert_eq!((&ran["replaces"], &ran["files"]), (&json!(id), &json!("restored")), "{ran}");
    let child = ran["session"]["id"].as_str().expect("an id").to_owned();
    restored(&lab, &child);
    assert!(files(&work).len() == 1 && files(&work)["a.txt"].starts_with("one"), "{:?}", files(&work));
    let record = lab.log(&child).into_iter().find(|record| record["kind"] == "snapshot.restored");
    assert_eq!(record.expect("told")["snapshot"], name.as_str());
    assert_eq!(lab.count(&id, "session.closed"), 1);
    assert_eq!(lab.show(&child)["key"], "my-project");
    let kept = lab.get(&format!("/api/sessions/{id}/snapshots"));
    let reasons = kept["snapshots"].as_array().expect("a list").iter().map(|one| &one["reason"]);
    assert!(reasons.into_iter().any(|reason| reason == "before_restore"), "{kept}");
    assert_eq!(metric(&lab, "rekindle_snapshot_restores_total"), 2.0);
    assert_eq!(metric(&lab, "rekindle_snapshot_restore_duration_seconds_count"), 2.0);
    for (snapshot, text, status, code) in [
        ("1-9", None, 404, "snapshot_not_found"),
        ("7-7", Some(r#"{"version":99}"#), 409, "snapshot_version"),
        ("7-8", Some("{"), 409, "snapshot_corrupted"),
    ] {
        if let Some(text) = text {
            let file = lab.home().join(format!("sessions/{id}.snapshots/{snapshot}.json"));
            fs::write(file, text).expect("written");
        }
        let path = format!("/api/sessions/{id}/snapshots/{snapshot}/restore");
        let refused = lab.ask("POST", &path, &json!({}));
        assert_eq!(refused.refusal(), (status, code), "{}", refused.body);
    }
    assert_eq!(metric(&lab, "rekindle_snapshot_restore_failures_total"), 2.0);
}

/// Has a daemon die at a place while it does something to a session whose directory has two files, and starts another.
fn killed_at(place: &str, path: &str, body: &Value) -> (Lab, String) {
    let mut lab = Lab::without_daemon();
    fs::write(lab.path("work").join("old.txt"), "one\n").expect("written");
    lab.start_to_die(place);
    let id = lab.run("write new.txt hello");
    settled(&lab, &id, 2);
    let _ = lab.try_ask("POST", &format!("/api/sessions/{id}/{path}"), "", body);
    lab.died();
    lab.start();
    (lab, id)
}

// I14: recorded and finished by the next daemon, or not begun.
#[test]
fn dying_while_files_are_put_back_leaves_it_done_or_not_begun() {
    for (place, begun) in [
        ("files.before_record", false),
        ("files.after_record", true),
        ("rewind.before_files", true),
        ("rewind.after_files", true),
        ("rewind.after_files_record", true),
    ] {
        let (lab, id) = killed_at(place, "restore-files", &json!({}));
        let new = lab.path("work").join("new.txt");
        if begun {
            let record = restored(&lab, &id);
            assert_eq!((&record["error"], new.exists()), (&Value::Null, false), "{place}");
            assert!(record["changed"] == 1 && record["undo"] != record["tree"], "{place}: {record}");
        } else {
            assert!(new.exists() && lab.count(&id, "session.files_restoring") == 0, "{place}");
        }
        told(&lab, &id, "say more");
        let prompt = lab.record().into_iter().find(|line| line.contains("say more")).expect("its prompt");
        assert_eq!(prompt.contains("Files Restored"), begun, "{place}: {prompt}");
    }
}

#[test]
fn dying_while_a_fork_with_files_is_made_leaves_it_done_or_not_begun() {
    for (place, begun) in
        [("fork.before_record", false), ("fork.after_record", true), ("rewind.before_files", true)]
    {
        let copy = tempfile::tempdir().expect("a directory");
        let body = json!({"files": true, "working_dir": copy.path()});
        let (lab, id) = killed_at(place, "fork", &body);
        let sessions = lab.get("/api/sessions")["sessions"].as_array().cloned().unwrap_or_default();
        let child = sessions.into_iter().find(|one| one["forked_from"]["session_id"] == json!(id));
        assert_eq!(child.is_some(), begun, "{place}");
        let Some(child) = child else { continue };
        restored(&lab, child["id"].as_str().expect("an id"));
        assert_eq!(files(copy.path()), files(&lab.path("work")), "{place}");
    }
}

// I14: a real kill in the middle of the work: some files are written, others not.
#[test]
fn a_daemon_killed_in_the_middle_of_a_restore_is_replaced_by_one_that_finishes_it() {
    let mut lab = Lab::new();
    let work = lab.path("work");
    for number in 0..3_000 {
        fs::write(work.join(format!("f{number}")), format!("content {number}\n")).expect("written");
    }
    let before = files(&work);
    let script =
        "for i in $(seq 0 999); do rm f$i; done; for i in $(seq 1000 2999); do echo changed >> f$i; done";
    let agent = json!({"profile": "exec", "command": ["sh", "-c", script]});
    let id = lab.create(&json!({"working_dir": work, "agent": agent, "prompt": "go"}));
    assert_eq!(lab.wait_end(&id), "completed");
    settled(&lab, &id, 2);
    lab.post(&format!("/api/sessions/{id}/restore-files"), &json!({}));
    let journals = lab.home().join("workspaces/restoring");
    let is_journal = |path: &Path| path.extension().is_some_and(|extension| extension == "json");
    let is_under_way = || {
        fs::read_dir(&journals).is_ok_and(|entries| entries.flatten().any(|entry| is_journal(&entry.path())))
    };
    while !is_under_way() {
        assert_eq!(lab.count(&id, "session.files_restored"), 0, "it was over before it could be killed");
    }
    lab.kill();
    assert!(is_under_way() && files(&work) != before, "it was over before it was killed");
    lab.start();
    let record = restored(&lab, &id);
    assert_eq!(files(&work), before);
    assert_eq!((record["changed"].as_u64(), record["left"].as_u64()), (Some(3_000), Some(0)), "{record}");
    assert!(!is_under_way());
    lab.leave();
    lab.ran(&["doctor"]).exits(0);
    // The way back is that of the first attempt.
    let (undo, place) = (record["undo"].as_str().expect("a tree"), work.display().to_string());
    lab.ran(&["workspace", "restore", undo, "--yes", "--directory", &place]).exits(0);
    assert!(!work.join("f0").exists() && files(&work)["f2999"].ends_with("changed\n"));
}
