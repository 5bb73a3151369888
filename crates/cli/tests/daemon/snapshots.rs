//! Kept snapshots of a real daemon: taken by themselves and on request, shown with a daemon and without, gone with their session.

use serde_json::{Value, json};

use crate::lab::{Lab, wait_for};

fn list(lab: &Lab, id: &str) -> Vec<Value> {
    let list = lab.get(&format!("/api/sessions/{id}/snapshots"));
    list["snapshots"].as_array().expect("a list").clone()
}

fn command(lab: &Lab, arguments: &[&str]) -> Value {
    let output = lab.rekindle(arguments).arg("--json").output().expect("it runs");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

#[test]
fn snapshots_are_taken_at_the_end_of_a_run_and_when_the_daemon_leaves() {
    let mut lab = Lab::without_daemon();
    lab.take_snapshots("keep = 3\ncompression = \"gzip\"\n");
    lab.set("REKINDLE_SNAPSHOT_AFTER", 20);
    lab.start();
    let id = lab.run("say hello");
    lab.wait_end(&id);
    wait_for("its snapshot", || (lab.count(&id, "snapshot.created") == 1).then_some(()));
    let first = list(&lab, &id).remove(0);
    assert_eq!((&first["reason"], &first["problem"]), (&json!("run_end"), &Value::Null), "{first}");
    let name = first["name"].as_str().expect("a name").to_owned();
    let record = lab.log(&id).into_iter().find(|record| record["kind"] == "snapshot.created");
    assert_eq!(record.expect("a record")["snapshot"], name.as_str());
    let detail = lab.get(&format!("/api/sessions/{id}/snapshots/{name}"));
    assert_eq!((&detail["run"]["state"], &detail["session_id"]), (&json!("completed"), &json!(id)));
    assert_eq!(detail["state"]["last_seq"], first["seq"]);
    let file = lab.home().join(format!("sessions/{id}.snapshots/{name}.json.gz"));
    assert!(file.exists(), "{}", file.display());

    // On request, by program and by hand.
    let taken = lab.post(&format!("/api/sessions/{id}/snapshots"), &json!({}));
    assert_eq!(taken["reason"], "request");
    let by_hand = command(&lab, &["snapshot", "create", &id]);
    assert!(by_hand["seq"].as_u64() > taken["seq"].as_u64(), "{by_hand} {taken}");
    let listed = command(&lab, &["snapshot", "ls", &id]);
    assert_eq!(listed["snapshots"].as_array().map(Vec::len), Some(3));

    // Something happens, and the daemon leaves: the oldest has to go.
    lab.ask("PATCH", &format!("/api/sessions/{id}"), &json!({"title": "renamed"}));
    lab.leave();
    let listed = command(&lab, &["snapshot", "ls", &id]);
    let reasons: Vec<&str> = listed["snapshots"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|one| one["reason"].as_str())
        .collect();
    assert_eq!(reasons, ["exit", "request", "request"]);
    assert!(!file.exists(), "the oldest of four");
    let newest = listed["snapshots"][0]["name"].as_str().expect("a name").to_owned();
    let shown = command(&lab, &["snapshot", "show", &id, &newest]);
    assert_eq!(shown["title"], "renamed");
    let taken = taken["name"].as_str().expect("a name");
    let diff = command(&lab, &["snapshot", "diff", &id, taken, &newest]);
    let titles = json!([{"what": "title", "from": "say hello", "to": "renamed"}]);
    assert_eq!(diff["changes"], titles, "{diff:#}");
    assert_eq!(diff["records"]["session.updated"], 1, "{diff:#}");
    let text = lab.rekindle(&["snapshot", "ls", &id]).output().expect("it runs");
    assert!(String::from_utf8_lossy(&text.stdout).contains("exit"), "{text:?}");
    let doctor = command(&lab, &["doctor"]);
    assert_eq!(doctor["counts"]["sessions"], 1, "{doctor}");

    // With a daemon again.
    lab.start();
    let diff = command(&lab, &["snapshot", "diff", &id, taken]);
    assert_eq!((&diff["to"], &diff["changes"]), (&json!("now"), &titles), "{diff:#}");
    assert_eq!(command(&lab, &["snapshot", "rm", &id, taken])["removed"], taken);
    for (path, status, code) in [
        (taken, 404, "snapshot_not_found"),
        ("x", 404, "snapshot_not_found"),
        ("1-0", 404, "snapshot_not_found"),
    ] {
        let path = format!("/api/sessions/{id}/snapshots/{path}");
        for method in ["GET", "DELETE"] {
            let reply = lab.ask(method, &path, &Value::Null);
            assert_eq!(
                (reply.status, &reply.body["error"]["code"]),
                (status, &json!(code)),
                "{method} {path}"
            );
        }
    }
    let damaged = lab.home().join(format!("sessions/{id}.snapshots/{newest}.json.gz"));
    std::fs::write(&damaged, "no snapshot").expect("written");
    let reply = lab.ask("GET", &format!("/api/sessions/{id}/snapshots/{newest}"), &Value::Null);
    assert_eq!((reply.status, &reply.body["error"]["code"]), (409, &json!("snapshot_corrupted")));
    assert_eq!(list(&lab, &id)[0]["problem"]["code"], "snapshot_corrupted");

    // Everything goes with the session.
    assert_eq!(lab.ask("DELETE", &format!("/api/sessions/{id}?force=1"), &Value::Null).status, 204);
    assert!(!lab.home().join(format!("sessions/{id}.snapshots")).exists());
}

// I1, I12: a daemon that is killed while it takes one leaves it whole or not there, and the session is as it was.
#[test]
fn dying_while_a_snapshot_is_taken_costs_nothing() {
    for place in ["snapshot.before", "snapshot.after"] {
        let mut lab = Lab::without_daemon();
        lab.take_snapshots("");
        lab.set("REKINDLE_SNAPSHOT_AFTER", 20);
        lab.start_with(&[], &[("REKINDLE_CRASH_AT", place)]);
        let id = lab.run("say hello");
        lab.died();
        lab.start();
        assert_eq!(lab.wait_end(&id), "completed", "{place}");
        let there = list(&lab, &id);
        assert!(there.iter().all(|one| one["problem"].is_null()), "{place}: {there:?}");
        assert_eq!(lab.count(&id, "snapshot.created"), there.len(), "{place}: {there:?}");
        assert_eq!(there.len(), usize::from(place == "snapshot.after"), "{place}");
        lab.post(&format!("/api/sessions/{id}/messages"), &json!({"content": "say more"}));
        wait_for("another", || (list(&lab, &id).len() > there.len()).then_some(()));
    }
}

#[test]
fn a_person_reads_the_short_id_of_a_session_and_can_type_it() {
    let lab = Lab::new();
    let id = lab.run("say hello");
    lab.wait_end(&id);
    let short = &id["sess_".len()..][..10];
    lab.ran(&["snapshot", "ls", short]).exits(0).shows(&format!("no snapshots of {short}: "));
    let created = lab.ran(&["snapshot", "create", short]).exits(0);
    assert!(created.err.starts_with(&format!("{short} as of record ")), "{created:#?}");
    let name = created.out.trim().to_owned();
    let shown =
        lab.ran(&["snapshot", "show", short, &name]).exits(0).shows(&format!("{name}  {short}, taken"));
    assert!(!shown.out.contains(&id), "{shown:#?}");
    lab.ran(&["snapshot", "rm", short, &name]).exits(0).shows(&format!("removed {name} of {short}"));
}
