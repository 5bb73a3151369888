//! Rewinds, with real daemons and agents: the conversation and the files go back, whoever dies on the way.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::lab::{Lab, wait_for};
use crate::pty::Pty;
use crate::ran::{Stdin, ran};

/// Returns what is in a directory: names and contents.
fn files(root: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(root).expect("a directory").map(|entry| entry.expect("an entry").path());
    let read = |path: &Path| fs::read_to_string(path).expect("text");
    entries.map(|path| (path.file_name().expect("a name").display().to_string(), read(&path))).collect()
}

/// Waits until a session's run has ended and its directory is captured.
fn settled(lab: &Lab, id: &str, checkpoints: usize) {
    wait_for("the checkpoints", || (lab.count(id, "run.checkpoint") >= checkpoints).then_some(()));
}

// I12, I13: what was undone is said to be, the agent is told the story up to there, and the key goes on to what takes its place.
#[test]
fn a_turn_is_undone_in_the_files_and_in_the_conversation() {
    let mut lab = Lab::new();
    let work = lab.path("work");
    fs::write(work.join("old.txt"), "one\n").expect("written");
    let mut body = lab.session("say first");
    body["key"] = json!("my-project");
    let id = lab.create(&body);
    settled(&lab, &id, 2);
    lab.post(
        &format!("/api/sessions/{id}/messages"),
        &json!({"content": "write new.txt hello\nappend old.txt two"}),
    );
    settled(&lab, &id, 4);
    assert_eq!(files(&work).len(), 2);
    let rewound = lab.ran(&["rewind", &id, "--yes"]).exits(0);
    let child = rewound.out.trim().to_owned();
    // When it has ended they are there.
    assert!(rewound.err.contains("2 files put back in"), "{rewound:?}");
    assert_eq!(lab.count(&child, "session.files_restored"), 1);
    assert_eq!(files(&work), BTreeMap::from([("old.txt".to_owned(), "one\n".to_owned())]));
    assert_eq!(lab.count(&id, "session.closed"), 1);
    // What is closed says so, and is not what a command without a name means, whatever is still recorded of it.
    lab.ran(&["snapshot", "create", &id]).exits(0);
    lab.ran(&["status", &id]).exits(0).shows("closed").shows(&format!("{child} replaced it"));
    lab.ran(&["resume", &id]).exits(1).tells("closed");
    lab.ran(&["send", &id, "more"]).exits(1).tells(&format!("{child} replaced it"));
    lab.ran(&["log", &id]).exits(0).shows(&format!("{child} replaced it"));
    let here = ran(lab.rekindle(&["status"]).current_dir(&work), Stdin::Nothing).exits(0);
    assert!(here.out.contains(&child), "{here:?}");
    // Whoever asks for the key is given what took its place.
    let known = lab.ask("POST", "/api/sessions", &{
        let mut again = lab.session("say more");
        again["key"] = json!("my-project");
        again
    });
    assert_eq!((known.status, &known.body["id"]), (200, &json!(child)), "{}", known.body);
    wait_for("the next turn", || (lab.count(&child, "run.completed") == 2).then_some(()));
    let prompt = lab.record().into_iter().find(|line| line.contains("say more")).expect("its prompt");
    assert!(prompt.contains("say first") && !prompt.contains("new.txt"), "{prompt}");
    // The way back is in the log.
    let log = lab.log(&child);
    let restored = log.iter().find(|record| record["kind"] == "session.files_restored").expect("told");
    let undo = restored["undo"].as_str().expect("a tree").to_owned();
    lab.leave();
    let place = work.display().to_string();
    lab.ran(&["workspace", "restore", &undo, "--yes", "--directory", &place]).exits(0);
    assert_eq!(files(&work).len(), 2);
    lab.ran(&["doctor"]).exits(0);
}

// At a terminal nothing is done before what would be done is shown, and somebody says yes to it.
#[test]
fn a_rewind_shows_what_would_change_and_asks() {
    let lab = Lab::new();
    let work = lab.path("work");
    fs::write(work.join("old.txt"), "one\n").expect("written");
    let id = lab.run("write new.txt hello\nappend old.txt two");
    settled(&lab, &id, 2);
    let after = files(&work);
    let asked = |arguments: &[&str], question: &str, answer: &str| {
        let mut pty = Pty::start(&lab.rekindle(&[&["rewind", &id], arguments].concat()), 120);
        pty.see(question);
        let shown = pty.text();
        assert!(shown.contains("new.txt") && shown.contains("old.txt"), "{shown}");
        pty.press(&format!("{answer}\r"));
        assert_eq!(pty.end(), Some(0), "{}", pty.text());
        pty.text()
    };
    for answer in ["", "n", "what?"] {
        asked(&[], "go back? [y/N]", answer);
        asked(&["--files-only"], "put them back? [y/N]", answer);
    }
    assert_eq!((files(&work), lab.count(&id, "session.closed")), (after, 0), "nobody said yes");
    assert_eq!(lab.count(&id, "session.files_restoring"), 0);
    let told = asked(&["--files-only"], "put them back? [y/N]", "y");
    assert!(told.contains("to undo it"), "{told}");
    let before = BTreeMap::from([("old.txt".to_owned(), "one\n".to_owned())]);
    assert_eq!((files(&work), lab.count(&id, "session.closed")), (before, 0));
    // The files are as they were already; the conversation is not.
    let mut pty = Pty::start(&lab.rekindle(&["rewind", &id]), 120);
    pty.see("go back? [y/N]");
    pty.press("yes\r");
    pty.see("replaces it");
    assert_eq!((pty.end(), lab.count(&id, "session.closed")), (Some(0), 1));
}

// I13, I14: both sessions say what happened, or neither; the next daemon finishes the files.
#[test]
fn dying_in_the_middle_of_a_rewind_leaves_it_done_or_not_begun() {
    for (place, begun) in [
        ("rewind.before_record", false),
        ("rewind.after_record", true),
        ("rewind.before_files", true),
        ("rewind.after_files", true),
    ] {
        let mut lab = Lab::without_daemon();
        let work = lab.path("work");
        lab.start_to_die(place);
        let id = lab.run("write new.txt hello");
        settled(&lab, &id, 2);
        let _ = lab.try_ask("POST", &format!("/api/sessions/{id}/rewind"), "", &json!({}));
        lab.died();
        if begun {
            // Without a daemon too it is said what took its place, and that its files are not what they are to be.
            let closed = lab.ran(&["status", &id, "--json"]).exits(0).json();
            let child = closed["replaced_by"].as_str().expect(place);
            lab.ran(&["status", child]).exits(0).shows("its files are not all restored yet");
        }
        lab.start();
        let successor = || {
            let all = lab.get("/api/sessions")["sessions"].as_array().cloned().unwrap_or_default();
            all.into_iter().find(|one| one["forked_from"]["session_id"] == json!(id))
        };
        if !begun {
            assert!(successor().is_none() && work.join("new.txt").exists(), "{place}");
            assert_eq!(lab.count(&id, "session.closed"), 0, "{place}");
            continue;
        }
        let child = successor().expect(place)["id"].as_str().expect("an id").to_owned();
        wait_for("the files", || (lab.count(&child, "session.files_restored") == 1).then_some(()));
        assert!(!work.join("new.txt").exists(), "{place}");
        assert_eq!(lab.count(&id, "session.closed"), 1, "{place}");
    }
}

#[test]
fn a_turn_that_deleted_created_and_changed_a_thousand_files_is_undone() {
    let lab = Lab::new();
    let work = lab.path("work");
    for number in 0..1_000 {
        fs::write(work.join(format!("f{number}")), format!("content {number}\n")).expect("written");
    }
    let before = files(&work);
    let script = "for i in $(seq 0 333); do rm f$i; echo new > n$i; done; \
                  for i in $(seq 334 999); do echo changed >> f$i; done";
    let agent = json!({"profile": "exec", "command": ["sh", "-c", script]});
    let id = lab.create(&json!({"working_dir": work, "agent": agent, "prompt": "go"}));
    assert_eq!(lab.wait_end(&id), "completed");
    settled(&lab, &id, 2);
    assert_eq!(files(&work).len(), 1_000);
    assert_ne!(files(&work), before);
    let rewound = lab.post(&format!("/api/sessions/{id}/rewind"), &Value::Null);
    let child = rewound["session"]["id"].as_str().expect("an id").to_owned();
    wait_for("the files", || (lab.count(&child, "session.files_restored") == 1).then_some(()));
    assert_eq!(files(&work), before);
}
