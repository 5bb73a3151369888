//! `rekindle import`: sessions of another program, as a person imports them.

use serde_json::json;

use crate::support::Home;

/// A session of a snapshot and a log, as one was left that waited for a tool.
const SNAPSHOT: &str = r#"{"id": "sess_42", "title": "Tidy the shed", "working_dir": "/shed",
  "provider": {"type": "native", "model": "some-model"}, "created_at": "2026-01-05T08:00:00Z", "last_seq": 5,
  "run": {"run_id": "run_1", "boot_id": "boot_1", "started_at": "2026-01-05T08:00:01Z", "ended_at": null}}"#;
const LOG: &str = r#"{"seq":4,"ts":"2026-01-05T08:00:10Z","kind":"message.user","message_id":"msg_1","content":"find the rake"}
{"seq":5,"ts":"2026-01-05T08:01:00Z","kind":"message.agent","message_id":"msg_2","content":"It is behind the door."}
"#;

#[test]
fn sessions_of_another_program_are_told_imported_once_and_shown() {
    let (home, source) = (Home::empty(), tempfile::tempdir().expect("a directory"));
    let write = |name: &str, text: &str| std::fs::write(source.path().join(name), text).expect("written");
    write("sess_42.json", SNAPSHOT);
    write("sess_42.messages.jsonl", LOG);
    let place = source.path().to_str().expect("text");
    let import = ["import", "--from", "orbitmesh", place];
    let told = home.json(&[&import[..], &["--dry-run"]].concat());
    assert_eq!(told["imported"][0]["title"], "Tidy the shed", "{told}");
    assert!(!home.path().exists(), "nothing is written");
    let said = home.ok(&import);
    assert!(said.contains("sess_42") && said.contains("1 session imported"), "{said}");
    let log = home.ok(&["log", "42"]);
    assert!(log.contains("find the rake") && log.contains("It is behind the door."), "{log}");
    let status = home.json(&["status", "42"]);
    let shown = (&status["title"], &status["working_dir"], &status["status"]);
    assert_eq!(shown, (&json!("Tidy the shed"), &json!("/shed"), &json!("interrupted_startup")), "{status}");
    let again = home.json(&import);
    assert_eq!(
        (again["imported"].as_array().map(Vec::len), &again["known"][0]["session_id"]),
        (Some(0), &json!("sess_42"))
    );
    home.ok(&["doctor"]);

    // What cannot be read is named, and the command says so.
    write("sess_43.messages.jsonl", "{\"seq\":1,\n");
    let output = home.run(&[&import[..], &["--cwd", place]].concat());
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.code() == Some(1) && said.contains("sess_43.messages.jsonl, line 1"), "{output:?}");
    let output = home.run(&["import", "--from", "orbitmesh", "/nowhere"]);
    assert!(output.status.code() == Some(2), "{output:?}");
}
