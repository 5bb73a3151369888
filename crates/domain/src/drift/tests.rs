//! Drift between two turns: what is compared with what, and what is not worth a word.

use super::*;
use crate::session::tests::script::draft;

const CREATED: &str = "session.created";
const TURN: &str = "run.started; run.checkpoint at=start; input.queued input_seq=1; run.completed";
const NEXT: &str = "run.started run=2";

fn tree(digit: &str) -> String {
    format!("tree=\"{}\"", digit.repeat(BlobId::DIGITS))
}

/// Returns what drifted before the second run of a log, as JSON.
fn drift(records: &[&str]) -> Option<Value> {
    let mut watch = DriftWatch::default();
    for record in records.iter().flat_map(|records| records.split(';')) {
        watch.note(&draft(record).event);
    }
    let drift = watch.report("run_2".parse().expect("an id"))?;
    Some(serde_json::to_value(drift).expect("JSON"))
}

/// Checks what drifted between a turn that left tree `a` and one that begins with what is said.
fn check(end: &str, start: &str, expected: Option<Value>) {
    let end = format!("run.checkpoint at=end {end}");
    let start = format!("run.checkpoint run=2 at=start {start}");
    assert_eq!(drift(&[CREATED, TURN, &end, NEXT, &start]), expected, "{end}\n{start}");
}

#[test]
fn files_are_told_only_if_they_are_not_what_the_turn_before_left() {
    let changed = r#"files_changed={"total":1,"first":[{"path":"a","change":"modified"}]}"#;
    let files = serde_json::json!({"files": {"total": 1, "first": [{"path": "a", "change": "modified"}]}});
    check(&tree("a"), &tree("a"), None);
    check(&tree("a"), &format!("{} {changed}", tree("b")), Some(files));
    // Only directories, or what one of the two did not look at.
    check(&tree("a"), &format!(r#"{} files_changed={{"total":0,"first":[]}}"#, tree("b")), None);
    let why = "they differ from what the last turn left, and the two cannot be compared";
    check(&tree("a"), &tree("b"), Some(serde_json::json!({ "files_unknown": why })));
}

// I15
#[test]
fn what_was_not_captured_is_said_unless_that_is_so_at_every_turn() {
    let missing = |reason: &str| format!(r#"not_taken={{"reason":"{reason}","detail":"x"}}"#);
    let told = |why: &str| Some(serde_json::json!({ "files_unknown": why }));
    check(
        &missing("timed_out"),
        &tree("a"),
        told("the checkpoint after the last turn was not taken (timed out)"),
    );
    check(
        &tree("a"),
        &missing("unreadable"),
        told("the checkpoint before this turn was not taken (unreadable)"),
    );
    check(&missing("too_large"), &missing("too_large"), None);
    // Beside something else it is said, or it would be taken for nothing.
    let ends = ["at=end", "run=2 at=start"].map(|at| format!("run.checkpoint {at} {}", missing("too_large")));
    let plan = r#"session.updated working_dir=null provider=null options={"mode":"plan"}"#;
    let beside = drift(&[CREATED, TURN, &ends[0], plan, NEXT, &ends[1]]).expect("a drift");
    assert_eq!((&beside["files_unknown"], beside["settings"].is_array()), (&Value::from(NOT_COMPARED), true));
    // Nobody captures anything here.
    assert_eq!(drift(&[CREATED, "run.started; input.queued input_seq=1; run.completed", NEXT]), None);
    // What the turn left is not known: what was there before it says nothing of that.
    let start = format!("run.checkpoint run=2 at=start {}", tree("b"));
    assert_eq!(drift(&[CREATED, TURN, NEXT, &start]), None);
    let end = format!("run.checkpoint at=end {}", tree("a"));
    let more = "run.started run=3; input.queued input_seq=1; run.completed run=3";
    assert_eq!(drift(&[CREATED, TURN, &end, more, NEXT, &start]), None);
    // The start of another run is not this one's.
    let other = format!("run.checkpoint run=3 at=start {}", tree("b"));
    assert_eq!(drift(&[CREATED, TURN, &end, "run.started run=3", &other, NEXT]), None);
}

#[test]
fn the_head_of_git_is_compared_where_both_are_known() {
    let at = |digit: &str, git: &str| format!("{} {git}", tree(digit));
    let (main, other) = (r#"git={"ref":"refs/heads/main","commit":"01"}"#, r#"git={"commit":"02"}"#);
    check(&at("a", main), &at("a", main), None);
    let moved = serde_json::json!({"git": {"from": {"ref": "refs/heads/main", "commit": "01"}, "to": {"commit": "02"}}});
    check(&at("a", main), &at("a", other), Some(moved));
    let gone = serde_json::json!({"git": {"from": {"commit": "02"}, "to": null}});
    check(&at("a", other), &at("a", ""), Some(gone));
}

// I15: what a glance tells is told where nothing was captured, and that files were not compared.
#[test]
fn head_and_directory_are_compared_where_a_directory_is_too_large_to_be_captured() {
    let glance = |inode: u64, commit: &str| {
        let git = format!(r#"git={{"commit":"{commit}"}} directory={{"file_system":1,"inode":{inode}}}"#);
        format!(r#"not_taken={{"reason":"too_large","detail":"x"}} {git}"#)
    };
    check(&glance(1, "01"), &glance(1, "01"), None);
    let moved = serde_json::json!({
        "git": {"from": {"commit": "01"}, "to": {"commit": "02"}}, "files_unknown": NOT_COMPARED,
    });
    check(&glance(1, "01"), &glance(1, "02"), Some(moved));
    let replaced = serde_json::json!({
        "directory": {"change": "replaced", "from": "/repo", "to": "/repo"}, "files_unknown": NOT_COMPARED,
    });
    check(&glance(1, "01"), &glance(2, "01"), Some(replaced));
    // Nobody looked at one of the two: that there was no HEAD is not known.
    check(r#"not_taken={"reason":"too_large","detail":"x"}"#, &glance(1, "01"), None);
}

#[test]
fn another_directory_is_told_unless_all_its_files_are_the_same() {
    let at = |digit: &str, file_system: u64, inode: u64| {
        let changed = r#"files_changed={"total":0,"first":[]}"#;
        format!(r#"{} directory={{"file_system":{file_system},"inode":{inode}}} {changed}"#, tree(digit))
    };
    let told = |change: &str| {
        Some(serde_json::json!({"directory": {"change": change, "from": "/repo", "to": "/repo"}}))
    };
    check(&at("a", 1, 2), &at("b", 1, 2), None);
    check(&at("a", 1, 2), &at("b", 1, 3), told("replaced"));
    check(&at("a", 1, 2), &at("b", 9, 3), told("other_file_system"));
    // The machine was restarted, and counts its disks otherwise.
    check(&at("a", 1, 2), &at("b", 9, 2), None);
    check(&at("a", 1, 2), &at("a", 9, 3), None);
    check(&tree("a"), &at("b", 9, 3), None);
}

#[test]
fn the_agent_its_settings_and_where_it_works_are_compared_with_the_last_prompt() {
    let ready = |info: &str| format!("agent.ready info={info}");
    let first = ready(r#"{"name":"claude","version":"1.0"}"#);
    let turn = [CREATED, "run.started", &first, "input.queued input_seq=1; run.completed"];
    // Nobody captures anything here, which is said beside what else there is to say.
    let unlooked = |told: Option<Value>| {
        told.map(|mut told| {
            assert_eq!(told["files_unknown"], NOT_COMPARED, "{told}");
            told.as_object_mut().expect("an object").remove("files_unknown");
            told
        })
    };
    let then = |more: &[&str]| unlooked(drift(&[&turn[..], more, &[NEXT]].concat()));
    assert_eq!(then(&[&first]), None);
    assert_eq!(then(&[&ready(r#"{"version":7}"#)]), None, "one that says nothing is not another");
    let newer = then(&[&ready(r#"{"name":"claude","version":"1.1"}"#)]);
    assert_eq!(newer, Some(serde_json::json!({"agent": {"from": "claude 1.0", "to": "claude 1.1"}})));
    let moved = then(&["session.updated working_dir=/elsewhere provider=null options=null"]);
    let directory = serde_json::json!({"change": "moved", "from": "/repo", "to": "/elsewhere"});
    assert_eq!(moved, Some(serde_json::json!({ "directory": directory })));
    let set = |options: &str| format!("session.updated working_dir=null provider=null options={options}");
    let plan = set(r#"{"resume":"auto","on_uncertain":"ask","mode":"plan"}"#);
    let usual = set(r#"{"resume":"auto","on_uncertain":"ask"}"#);
    let settings = serde_json::json!([{"name": "mode", "from": null, "to": "plan"}]);
    assert_eq!(then(&[&plan]), Some(serde_json::json!({ "settings": settings })));
    assert_eq!(then(&[&plan, &usual]), None, "taken back");
    let names = "session.updated working_dir=null provider=null options=null env_names=[\"B\",\"A\"]";
    assert_eq!(then(&[names]), None, "brought along");
    let fewer = "session.updated working_dir=null provider=null options=null env_names=[\"A\"]";
    let settings = serde_json::json!([{"name": "environment", "from": "A B", "to": "A"}]);
    let changed = unlooked(drift(&[CREATED, names, TURN, fewer, NEXT]));
    assert_eq!(changed, Some(serde_json::json!({ "settings": settings })));
    let model = r#"session.updated working_dir=null options=null provider={"type":"acp","agent":"codex","model":"large"}"#;
    let settings = serde_json::json!([
        {"name": "agent", "from": null, "to": "codex"},
        {"name": "model", "from": null, "to": "large"},
    ]);
    assert_eq!(then(&[model]), Some(serde_json::json!({ "settings": settings })));
}

#[test]
fn a_session_that_was_never_prompted_has_nothing_to_drift_from_and_neither_has_a_fork() {
    let plan = r#"session.updated working_dir=null provider=null options={"mode":"plan"}"#;
    assert_eq!(drift(&[CREATED, plan, NEXT]), None);
    assert!(drift(&[CREATED, TURN, plan, NEXT]).is_some());
    assert_eq!(drift(&[CREATED, TURN, CREATED, plan, NEXT]), None);
    // A command is prompted by its launch, and begins each turn anew.
    let command = r#"session.created provider={"type":"exec"}"#;
    assert!(drift(&[command, "run.started; agent.launching; run.interrupted", plan, NEXT]).is_some());
    assert_eq!(
        drift(&[command, "run.started; agent.launching; run.interrupted", plan, "agent.launching", NEXT]),
        None
    );
}

#[test]
fn a_long_value_is_shortened() {
    let long = format!(
        "session.updated working_dir=null provider=null options={{\"mode\":\"{}\"}}",
        "x".repeat(5000)
    );
    let told = drift(&[CREATED, TURN, &long, NEXT]).expect("a drift");
    let mode = told["settings"].as_array().expect("a list").iter().find(|setting| setting["name"] == "mode");
    assert_eq!(mode.expect("told")["to"].as_str().map(|to| to.chars().count()), Some(VALUE + 1));
}
