//! A home of the earlier layout: a snapshot and a log without hashes, and nothing else.

use std::path::PathBuf;

use serde_json::Value;

use crate::lab::{Lab, wait_for};

const ID: &str = "sess_123";
const SNAPSHOT: &str = r#"{
  "id": "sess_123", "title": "Fix flaky test", "working_dir": "/repo",
  "provider": {"type": "native", "model": "gpt-5.3-codex"},
  "created_at": "2026-02-21T10:00:00Z", "updated_at": "2026-02-21T10:03:14Z", "last_seq": 148,
  "run": {"run_id": "run_9f5", "boot_id": "boot_20260221_1", "started_at": "2026-02-21T10:01:03Z", "ended_at": null,
          "wait": {"kind": "tool_result", "since_seq": 146, "resume_token_id": "rt_5f0", "deadline_at": "2026-02-21T10:11:03Z"}},
  "recovery": {"last_boot_seen": "boot_20260221_1", "interruption": null}
}"#;
const LOG: &str = r#"{"seq":145,"ts":"2026-02-21T10:01:10Z","kind":"message.user","message_id":"msg_u1","content":"run tests"}
{"seq":146,"ts":"2026-02-21T10:01:25Z","kind":"run.waiting","run_id":"run_9f5","wait_kind":"tool_result","resume_token_id":"rt_5f0"}
{"seq":147,"ts":"2026-02-21T10:02:02Z","kind":"run.interrupted","run_id":"run_9f5","reason":"process_exit"}
{"seq":148,"ts":"2026-02-21T10:03:14Z","kind":"status.derived","status":"interrupted_waiting"}
"#;

fn json_of(lab: &Lab, arguments: &[&str]) -> Value {
    let output = lab.rekindle(arguments).output().expect("it runs");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

fn check(lab: &Lab) {
    let session = lab.show(ID);
    assert_eq!(
        (&session["title"], &session["working_dir"]),
        (&"Fix flaky test".into(), &"/repo".into()),
        "{session:#}"
    );
    assert_eq!(
        (&session["status"], &session["since"]),
        (&"interrupted_waiting".into(), &"2026-02-21T10:02:02.000Z".into())
    );
    assert_eq!(session["created_at"], "2026-02-21T10:00:00.000Z");
    assert_eq!(session["health"]["state"], "ok");
    let kinds = lab.kinds(ID);
    assert_eq!(kinds[..4], ["message.user", "run.waiting", "run.interrupted", "status.derived"]);
    assert_eq!(kinds.iter().filter(|kind| *kind == "session.created").count(), 1, "{kinds:?}");
}

/// Puts the two files into a home, and nothing else; returns where the snapshot is.
fn older(lab: &Lab) -> PathBuf {
    let sessions = lab.home().join("sessions");
    std::fs::create_dir_all(&sessions).expect("a directory");
    let snapshot = sessions.join(format!("{ID}.json"));
    std::fs::write(&snapshot, SNAPSHOT).expect("written");
    std::fs::write(sessions.join(format!("{ID}.messages.jsonl")), LOG).expect("written");
    snapshot
}

// I2: what stood beside the log alone is in the log before anything is made of it.
#[test]
fn a_session_of_the_earlier_layout_keeps_its_title_directory_and_history() {
    let mut lab = Lab::without_daemon();
    let snapshot = older(&lab);
    lab.start();
    lab.wait_status(ID, "interrupted_waiting");
    wait_for("its beginning in the log", || (lab.count(ID, "session.created") == 1).then_some(()));
    check(&lab);
    lab.kill();
    let _ = std::fs::remove_file(&snapshot);
    let _ = std::fs::remove_file(lab.home().join("sessions/index.json"));
    lab.start();
    check(&lab);
}

// I12: nobody is told to delete the only copy of anything.
#[test]
fn without_a_daemon_a_session_of_the_earlier_layout_is_shown_and_kept() {
    let lab = Lab::without_daemon();
    let snapshot = older(&lab);
    std::fs::write(lab.home().join("home.json"), r#"{"format":1}"#).expect("written");
    let status = json_of(&lab, &["status", ID, "--json"]);
    assert_eq!(status["title"], "Fix flaky test", "{status:#}");
    assert_eq!((&status["working_dir"], &status["status"]), (&"/repo".into(), &"interrupted_waiting".into()));
    let doctor = lab.rekindle(&["doctor"]).output().expect("it runs");
    let said = String::from_utf8_lossy(&doctor.stdout);
    assert!(!said.contains("rm ") && !said.contains("delete it"), "{said}");
    assert!(said.contains("Keep it"), "{said}");
    assert_eq!(std::fs::read_to_string(&snapshot).expect("it is there"), SNAPSHOT, "nobody has touched it");
}
