//! Checkpoints around the turns of a real agent: what it did to its directory is known, shown and compared, with a daemon and
//! without one, and whoever dies on the way.

use serde_json::{Value, json};

use crate::lab::{Lab, wait_for};

fn checkpoints(lab: &Lab, id: &str) -> Vec<Value> {
    lab.log(id).into_iter().filter(|record| record["kind"] == "run.checkpoint").collect()
}

/// Waits until a session has so many checkpoints, and returns them.
fn wait_checkpoints(lab: &Lab, id: &str, count: usize) -> Vec<Value> {
    wait_for("the checkpoints", || Some(checkpoints(lab, id)).filter(|found| found.len() >= count))
}

#[test]
fn what_a_turn_did_to_its_directory_is_known_and_shown() {
    let mut lab = Lab::new();
    std::fs::write(lab.path("work").join("old.txt"), "one\ntwo\n").expect("written");
    let id = lab.run("write new.txt hello\nappend old.txt three\nsay done");
    assert_eq!(lab.wait_end(&id), "completed");
    let found = wait_checkpoints(&lab, &id, 2);
    assert_eq!((&found[0]["at"], &found[1]["at"]), (&json!("start"), &json!("end")));
    assert_eq!(found[1]["how"], "live");
    let touched = &found[1]["files_touched"];
    let expected = json!([
        {"path": "new.txt", "change": "added", "lines_added": 1, "lines_removed": 0},
        {"path": "old.txt", "change": "modified", "lines_added": 1, "lines_removed": 0},
    ]);
    assert_eq!((&touched["total"], &touched["first"]), (&json!(2), &expected), "{touched}");
    // The agent was given its prompt behind the first of them.
    let kinds = lab.kinds(&id);
    let place = |kind: &str| kinds.iter().position(|one| one == kind).expect(kind);
    assert!(
        place("run.started") < place("run.checkpoint") && place("run.checkpoint") < place("input.queued")
    );

    let run = lab.show(&id)["run"].clone();
    assert_eq!(run["files_touched"], json!({"files": 2, "lines_added": 2, "lines_removed": 0}), "{run}");
    assert_eq!(run["checkpoints"]["start"]["tree"], found[0]["tree"]);
    let diff = lab.get(&format!("/api/sessions/{id}/diff"));
    assert_eq!((&diff["total"], &diff["to"]), (&json!(2), &found[1]["tree"]), "{diff}");
    let text = diff["files"][1]["diff"].as_str().expect("a diff");
    assert!(text.contains("--- a/old.txt\n+++ b/old.txt\n@@ -1,2 +1,3 @@\n one\n two\n+three\n"), "{text}");
    let stat = lab.get(&format!("/api/sessions/{id}/diff?stat=1"));
    assert_eq!((&stat["lines_added"], stat["files"][0].get("diff")), (&json!(2), None), "{stat}");

    for alone in [false, true] {
        if alone {
            lab.leave();
        }
        let shown = lab.ran(&["diff", &id]).exits(0).out;
        assert!(shown.contains("diff --git a/new.txt b/new.txt\nnew file mode 100644\n"), "{shown}");
        assert!(shown.contains("+three\n"), "{shown}");
        lab.ran(&["diff", &id, "--stat"]).exits(0).shows("2 files, +2 −0 lines");
        let told = lab.ran(&["diff", "--json", &id, run["run_id"].as_str().expect("an id")]).exits(0).json();
        assert_eq!(
            (told["files"].as_array().map(Vec::len), &told["ended"]),
            (Some(2), &json!(true)),
            "{told}"
        );
        let snap = |at: usize| format!("snap-{}", &found[at]["tree"].as_str().expect("a tree")[..12]);
        lab.ran(&["diff", &id, &format!("{}..{}", snap(1), snap(0))]).exits(0).shows("deleted file mode");
        lab.ran(&["status", &id]).exits(0).shows("2 files touched, +2 −0 lines");
        lab.ran(&["log", &id]).exits(0).shows(&format!("end {}: 2 files touched, +2 −0 lines", snap(1)));
    }
    // What it was before can be brought back, by the name that the log shows.
    let work = lab.path("work").display().to_string();
    let before = format!("snap-{}", &found[0]["tree"].as_str().expect("a tree")[..12]);
    lab.ran(&["workspace", "restore", &before, "--yes", "--directory", &work]).exits(0);
    assert!(!lab.path("work").join("new.txt").exists());
    assert_eq!(std::fs::read_to_string(lab.path("work").join("old.txt")).expect("there"), "one\ntwo\n");
    let refused = lab.ran(&["diff", "--json", &id, "run_none"]).exits(1);
    assert_eq!(refused.error_code(), "checkpoint_missing");
}

// I12: nothing is captured of a session that says so, and whoever asks is told.
#[test]
fn a_session_without_checkpoints_has_none() {
    let lab = Lab::new();
    let mut body = lab.session("write new.txt hello");
    body["checkpoints"] = json!("off");
    let id = lab.create(&body);
    assert_eq!(lab.wait_end(&id), "completed");
    let refused = lab.ask("GET", &format!("/api/sessions/{id}/diff"), &Value::Null);
    assert_eq!(refused.refusal(), (409, "checkpoint_missing"));
    let changed = lab.ask("PATCH", &format!("/api/sessions/{id}"), &json!({"checkpoints": "on"}));
    assert_eq!(changed.status, 200, "{}", changed.body);
    lab.post(&format!("/api/sessions/{id}/messages"), &json!({"content": "write newer.txt hello"}));
    let found = wait_checkpoints(&lab, &id, 2);
    assert_eq!(found[1]["files_touched"]["first"][0]["path"], "newer.txt");
}

// I1, I5, I14: the next daemon takes what the last one did not record; the agent is asked once, behind its checkpoint.
#[test]
fn dying_while_a_checkpoint_is_taken_leaves_it_to_the_next_daemon() {
    for (place, ends) in [
        ("checkpoint.before_capture", "live"),
        ("checkpoint.before_record", "live"),
        ("checkpoint.after_record", "live"),
        ("checkpoint.before_capture#2", "late"),
        ("checkpoint.before_record#2", "late"),
        ("checkpoint.after_record#2", "live"),
    ] {
        let mut lab = Lab::without_daemon();
        lab.start_to_die(place);
        // It may die before it has answered.
        let _ = lab.try_ask("POST", "/api/sessions", "", &lab.session("write new.txt hello"));
        lab.died();
        lab.start();
        let id = lab.get("/api/sessions")["sessions"][0]["id"].as_str().expect("an id").to_owned();
        let found = wait_checkpoints(&lab, &id, 2);
        assert_eq!(lab.wait_end(&id), "completed", "{place}");
        let at: Vec<&str> = found.iter().filter_map(|record| record["at"].as_str()).collect();
        assert_eq!(at, ["start", "end"], "{place}: {:?}", lab.kinds(&id));
        assert_eq!(
            (found[0]["how"].as_str(), found[1]["how"].as_str()),
            (Some("live"), Some(ends)),
            "{place}"
        );
        assert_eq!(found[1]["files_touched"]["first"][0]["path"], "new.txt", "{place}");
        assert_eq!(lab.prompted("write new.txt"), 1, "{place}");
        let kinds = ["run.started", "run.completed", "run.checkpoint"];
        assert_eq!(kinds.map(|kind| lab.count(&id, kind)), [1, 1, 2], "{place}");
    }
}

// I15: what was changed while no agent was there is told to whoever resumes, and to the agent; the owner of the home knows which
// checkpoints are needed.
#[test]
fn a_resume_tells_what_was_changed_meanwhile() {
    let lab = Lab::new();
    let mut body = lab.session("write mine.txt hello\nbarrier middle\nsay over");
    body["resume"] = json!("ask");
    let id = lab.create(&body);
    lab.reach("middle");
    lab.kill_holders();
    lab.pass("middle");
    wait_checkpoints(&lab, &id, 2);
    std::fs::write(lab.path("work").join("theirs.txt"), "by a person\n").expect("written");
    let resumed = lab.ran(&["resume", &id]).exits(0);
    let told = "since the last turn: 1 file changed: theirs.txt (new)";
    assert!(format!("{resumed:?}").contains(told), "{resumed:?}");
    assert_eq!(lab.wait_end(&id), "completed");
    let drift = lab.show(&id)["run"]["drift"].clone();
    let files = json!({"total": 1, "first": [{"path": "theirs.txt", "change": "added"}]});
    assert_eq!(drift, json!({ "files": files }));
    assert_eq!(lab.count(&id, "run.drift"), 1);
    lab.ran(&["status", &id]).exits(0).shows("1 file changed: theirs.txt (new)");
    lab.ran(&["log", &id]).exits(0).shows("1 file changed: theirs.txt (new)");
    wait_checkpoints(&lab, &id, 4);

    let looked = lab.ran(&["gc", "--dry-run", "--json"]).exits(0).json();
    assert!(looked["space"]["checkpoints"].as_u64().is_some_and(|bytes| bytes > 0), "{looked}");
    let refused = lab.ask("POST", "/api/gc", &json!({"dry_run": 1}));
    assert_eq!(refused.refusal(), (400, "invalid_body"));
    lab.ran(&["gc"]).exits(0).shows("space used before: sessions");
    assert_eq!(lab.get(&format!("/api/sessions/{id}/diff"))["total"], json!(0), "its files are kept");
}
