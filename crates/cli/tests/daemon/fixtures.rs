//! A daemon on a home of an earlier format: it recovers what was cut when that home was left, and works on.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::json;

use crate::lab::{Lab, wait_for};

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a directory");
    std::fs::set_permissions(to, std::fs::Permissions::from_mode(0o700)).expect("a mode");
    for entry in std::fs::read_dir(from).expect("a directory").flatten() {
        let target = to.join(entry.file_name());
        match entry.file_type().expect("a kind").is_dir() {
            true => copy(&entry.path(), &target),
            false => {
                std::fs::copy(entry.path(), &target).expect("copied");
                std::fs::set_permissions(&target, std::fs::Permissions::from_mode(0o600)).expect("a mode");
            }
        }
    }
}

// I1, I8, I14
#[test]
fn a_home_of_format_1_is_recovered_and_worked_on() {
    let mut lab = Lab::without_daemon();
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/home-1"), &lab.home());
    lab.start();
    for (id, status) in [
        ("sess_01m7hx3ja059cz98ktczyea6ck", "idle"),
        ("sess_01m7hx3kh7ry96zyypy5sm2qxz", "idle"),
        ("sess_01m7hx3mh0qc0et5rz866j2cpy", "idle"),
        ("sess_01m7hx3pq4yc50e8qjyqtw0n71", "interrupted_waiting"),
        ("sess_01m7hx3pqbx3xstx34jrtrx7st", "interrupted_startup"),
    ] {
        lab.wait_status(id, status);
        lab.ask("PATCH", &format!("/api/sessions/{id}"), &json!({"title": "of another format now"}));
        assert_eq!(lab.show(id)["title"], "of another format now");
    }
    assert_eq!(lab.said("sess_01m7hx3pqbx3xstx34jrtrx7st").trim(), "begun", "its journal is read");
    lab.ran(&["cancel", "sess_01m7hx3pqbx3xstx34jrtrx7st"]).exits(0);
    // A new session beside them.
    let id = lab.run("say new");
    assert_eq!(lab.wait_end(&id), "completed");
    lab.restart();
    wait_for("all of them", || {
        (lab.get("/api/sessions?limit=10")["sessions"].as_array()?.len() == 6).then_some(())
    });
    lab.ran(&["stop", "--all"]).exits(0);
    lab.ran(&["doctor"]).exits(0);
}

// I1, I8, I14: with kept snapshots and a key, which are known again.
#[test]
fn a_home_of_format_2_is_recovered_and_worked_on() {
    let mut lab = Lab::without_daemon();
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/home-2"), &lab.home());
    lab.start();
    for (id, status) in [
        ("sess_01m7m2p3zd6h5n2wv8jjkdp0v7", "idle"),
        ("sess_01m7m2p44gngphp2c96vpjvdbp", "idle"),
        ("sess_01m7m2p6s2r3zecwajpat60dsq", "idle"),
        ("sess_01m7m2p86bgv79vsygkec62y50", "interrupted_waiting"),
        ("sess_01m7m2p86tzap32g69qr09xbg1", "interrupted_startup"),
    ] {
        lab.wait_status(id, status);
        lab.ask("PATCH", &format!("/api/sessions/{id}"), &json!({"title": "worked on"}));
        assert_eq!(lab.show(id)["title"], "worked on");
    }
    let answered = "sess_01m7m2p6s2r3zecwajpat60dsq";
    let kept = lab.get(&format!("/api/sessions/{answered}/snapshots"));
    let kept = kept["snapshots"].as_array().expect("a list");
    assert!(kept.len() == 4 && kept.iter().all(|one| one["problem"].is_null()), "{kept:?}");
    lab.post(&format!("/api/sessions/{answered}/snapshots"), &json!({}));
    let agent = json!({"profile": "exec", "command": ["true"]});
    let body = json!({"working_dir": lab.path("work"), "agent": agent, "key": "my-project"});
    let reply = lab.ask("POST", "/api/sessions", &body);
    assert_eq!((reply.status, &reply.body["error"]["code"]), (409, &json!("key_conflict")), "{}", reply.body);
    lab.ran(&["stop", "--all"]).exits(0);
    lab.ran(&["doctor"]).exits(0);
    lab.ran(&["workspace", "ls"]).exits(0);
}

// I1, I12, I14: with checkpoints, forks and a rewind, whose histories are read through their parents.
#[test]
fn a_home_of_format_2_with_forks_is_worked_on() {
    let mut lab = Lab::without_daemon();
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/home-2-forks"), &lab.home());
    lab.start();
    let (parent, child, grandchild, successor) = (
        "sess_01m7ms244cn8r5fq771rx6xpeh",
        "sess_01m7ms26y78sf0ybxr17d10ydj",
        "sess_01m7ms2a09p0ffppwcz2qe53rn",
        "sess_01m7ms2a19v3sn170xkm95dtfw",
    );
    for (id, kept) in [(parent, 3), (child, 2), (grandchild, 1), (successor, 1)] {
        lab.wait_status(id, "idle");
        let log = lab.log(id);
        assert!(log.iter().zip(1..).all(|(record, seq)| record["seq"] == seq), "{id}");
        assert_eq!(log[0], lab.log(parent)[0], "one beginning: {id}");
        let snapshots = lab.get(&format!("/api/sessions/{id}/snapshots"));
        let snapshots = snapshots["snapshots"].as_array().expect("a list");
        assert!(snapshots.len() == kept && snapshots.iter().all(|one| one["problem"].is_null()), "{id}");
    }
    // What a turn did is still known, and its files are still there.
    let diff = lab.get(&format!("/api/sessions/{parent}/diff"));
    assert_eq!((&diff["total"], &diff["files"][0]["path"]), (&json!(1), &json!("old.txt")), "{diff}");
    let place = lab.path("copy");
    let agent = json!({"profile": "exec", "command": ["sh", "-c", "cat new.txt old.txt"]});
    let body = json!({
        "at": "run_01m7ms244c9704tkmck28xmqgh", "files": true, "working_dir": place, "agent": agent,
    });
    let forked = lab.post(&format!("/api/sessions/{parent}/fork"), &body);
    let fork = forked["session"]["id"].as_str().expect("an id");
    lab.post(&format!("/api/sessions/{fork}/messages"), &json!({"content": "read"}));
    assert_eq!(lab.wait_end(fork), "completed");
    assert!(lab.said(fork).contains("hello") && lab.said(fork).contains("first"), "{}", lab.said(fork));
    assert!(!lab.said(fork).contains("second"), "of before the second turn");
    assert!(place.join("sub/link").is_symlink() && place.join("run.sh").is_file());
    // A snapshot is gone on from, and a parent may go.
    let restored = lab.post(&format!("/api/sessions/{child}/snapshots/33-1/restore"), &json!({}));
    assert_eq!(restored["session"]["forked_from"]["session_id"], child, "{restored}");
    let whole = lab.log(grandchild);
    assert_eq!(lab.ask("DELETE", &format!("/api/sessions/{child}"), &json!(null)).status, 204);
    lab.restart();
    assert_eq!(lab.log(grandchild), whole);
    lab.ran(&["stop", "--all"]).exits(0);
    lab.ran(&["doctor"]).exits(0);
}
