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
