//! Bundles, with real daemons and agents: a session goes to another home, and goes on there.

use std::fs;

use serde_json::json;

use crate::lab::{Lab, wait_for};
use crate::pty::{CTRL_C, Pty};

// I4: whoever answers there is told what happened, and the log says so.
#[test]
fn a_session_goes_to_another_home_and_goes_on_there() {
    let here = Lab::new();
    let id = here.run("say one");
    here.wait_end(&id);
    // Beside the daemon, while the agent lives.
    let bundle = here.home().with_file_name("session.rkb");
    let file = bundle.to_str().expect("text");
    let exported = here.ran(&["export", &id, "-o", file, "--json"]).exits(0).json();
    assert_eq!(exported["sessions"][0]["session_id"], json!(id));
    let again = here.ran(&["export", &id, "-o", file]).exits(2);
    assert!(again.err.contains("--force"), "{again:?}");

    let there = Lab::new();
    let work = there.home().with_file_name("elsewhere");
    std::fs::create_dir(&work).expect("a directory");
    let cwd = work.to_str().expect("text");
    let refused = there.ran(&["import", file, "--cwd", cwd]).exits(1);
    assert!(refused.err.contains("--trust-command"), "{refused:?}");
    let told = there.ran(&["import", file, "--cwd", cwd, "--trust-command", "--dry-run"]).exits(0);
    assert!(told.err.contains("would be imported"), "{told:?}");
    assert!(there.ran(&["status", &id]).err.contains("no session"));
    let imported = there.ran(&["import", file, "--cwd", cwd, "--trust-command"]).exits(0);
    assert_eq!(imported.out.trim(), id, "{imported:?}");
    // The daemon there knows it at once, and it is no other than it was.
    let (old, new) = (here.log(&id), there.log(&id));
    assert_eq!(new[..old.len()], old);
    assert_eq!(there.show(&id)["working_dir"], cwd);
    there.post(&format!("/api/sessions/{id}/messages"), &json!({"content": "say two"}));
    there.wait_end(&id);
    let restored = there.log(&id).into_iter().find(|record| record["kind"] == "session.restored");
    assert_eq!(restored.expect("it is told")["verdict"], "reprimed");
    // The agent's command came along, and with it where it writes down what it is told.
    let prompt = here.record().into_iter().find(|line| line.contains("say two")).expect("its prompt");
    assert!(prompt.contains("Resume Context") && prompt.contains("say one"), "{prompt}");
    // Once more: the id is taken, and the history is the same.
    let twice = there.ran(&["import", file, "--cwd", cwd, "--trust-command"]).exits(0);
    let other = twice.out.trim().to_owned();
    assert!(other != id && twice.err.contains("already exists here"), "{twice:?}");
    assert_eq!(there.log(&other)[..old.len()], old);
    there.ran(&["doctor"]).exits(0);
}

/// Waits until a session has so many checkpoints.
fn settled(lab: &Lab, id: &str, checkpoints: usize) {
    wait_for("the checkpoints", || (lab.count(id, "run.checkpoint") >= checkpoints).then_some(()));
}

// I13: what a turn did is undone elsewhere, in another directory, as it would have been where it was done.
#[test]
fn files_go_along_sealed_and_a_turn_is_undone_in_the_other_home() {
    let here = Lab::new();
    fs::write(here.path("work").join("old.txt"), "one\n").expect("written");
    let id = here.run("say first");
    settled(&here, &id, 2);
    let more = json!({"content": "write new.txt hello\nappend old.txt two"});
    here.post(&format!("/api/sessions/{id}/messages"), &more);
    settled(&here, &id, 4);
    let (bundle, secret) = (here.path("session.rkb"), here.path("passphrase"));
    fs::write(&secret, "four words of mine\n").expect("written");
    let (file, secret) = (bundle.to_str().expect("text"), secret.to_str().expect("text"));
    let asked =
        ["export", &id, "-o", file, "--with-workspace", "--seal", "--passphrase-file", secret, "--json"];
    let exported = here.ran(&asked).exits(0).json();
    assert_eq!(exported["sealed"], json!(true));
    assert_eq!(exported["bytes"], json!(fs::metadata(&bundle).expect("a bundle").len()));
    assert!(fs::read(&bundle).expect("read").starts_with(b"age-encryption.org/v1"));

    let there = Lab::new();
    let cwd = there.path("elsewhere").display().to_string();
    let import = |more: &[&str]| {
        there.ran(&[&["import", file, "--cwd", &cwd, "--trust-command", "--json"], more].concat())
    };
    let wrong = there.path("wrong");
    fs::write(&wrong, "four words of yours").expect("written");
    let refused = import(&["--passphrase-file", wrong.to_str().expect("text")]).exits(1);
    assert_eq!(refused.error_code(), "wrong_passphrase");
    assert_eq!(import(&[]).exits(2).error_code(), "passphrase_needed");
    assert!(!there.path("elsewhere").exists());
    let imported = import(&["--passphrase-file", secret]).exits(0).json();
    assert_eq!(imported["sessions"][0]["id"], json!(id), "{imported}");
    let read = |name: &str| fs::read_to_string(there.path("elsewhere").join(name)).ok();
    assert_eq!(
        (read("old.txt").as_deref(), read("new.txt").as_deref()),
        (Some("one\ntwo\n"), Some("hello\n"))
    );
    // What the turn did is known there, to the daemon and without one.
    let shown = there.ran(&["diff", &id]).exits(0).out;
    assert!(shown.contains("+two\n") && shown.contains("b/new.txt"), "{shown}");
    assert_eq!(there.get(&format!("/api/sessions/{id}/diff"))["total"], json!(2));
    let child = there.ran(&["rewind", &id, "--yes"]).exits(0).out.trim().to_owned();
    wait_for("the files", || (there.count(&child, "session.files_restored") == 1).then_some(()));
    assert_eq!((read("old.txt").as_deref(), read("new.txt")), (Some("one\n"), None));
    // Once more: the id is taken, and the session that is made of it knows what its history did.
    let other = import(&["--passphrase-file", secret]).exits(0).json()["sessions"][0]["id"].clone();
    let other = other.as_str().expect("an id");
    assert!(other != id && there.ran(&["diff", other]).exits(0).out.contains("+two\n"));
    assert_eq!(there.get(&format!("/api/sessions/{other}/diff"))["total"], json!(2));
    there.ran(&["doctor"]).exits(0);
}

#[test]
fn a_passphrase_is_asked_for_twice_at_the_terminal_and_never_shown() {
    let mut here = Lab::new();
    let id = here.run("say one");
    here.wait_end(&id);
    here.leave();
    let file = here.path("session.rkb").display().to_string();
    let export = || Pty::start(&here.rekindle(&["export", &id, "-o", &file, "--seal"]), 100);
    let answered = |first: &str, again: &str| {
        let mut pty = export();
        pty.see("passphrase for the bundle:");
        pty.press(first);
        pty.see("the same once more:");
        pty.press(again);
        (pty.end(), pty.text())
    };
    let (code, text) = answered("secret\r", "secrets\r");
    assert!(code == Some(2) && text.contains("two different passphrases"), "{text}");
    let mut given_up = export();
    given_up.see("passphrase for the bundle:");
    given_up.press(CTRL_C);
    assert_eq!(given_up.end(), Some(2));
    assert!(!here.path("session.rkb").exists());
    let (code, text) = answered("secret\r", "secret\r");
    assert!(code == Some(0) && !text.contains("secret"), "{text}");
    let mut opened = Pty::start(&here.rekindle(&["import", &file, "--dry-run", "--trust-command"]), 100);
    opened.see("passphrase of the bundle:");
    opened.press("secret\r");
    assert_eq!(opened.end(), Some(0), "{}", opened.text());
    assert!(opened.text().contains("would be imported") && !opened.text().contains("secret"));
}
