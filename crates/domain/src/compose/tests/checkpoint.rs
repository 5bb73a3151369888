//! Checkpoints recorded: each once, that of an end before that of the next start, taken or not.

use super::*;
use crate::blob_id::BlobId;
use crate::checkpoint::due;
use crate::compose::checkpoint::{Capture, Look, MissedCapture, checkpoints};
use crate::event::{ChangedFiles, DirectoryIdentity, FilesTouched, NotTaken, NotTakenReason, SkippedPaths};

const START: &str = "run.checkpoint at=start how=live";
const ENDED: [&str; 5] = [STARTED, START, AGENT, PROMPTED, "run.completed"];
const NEXT: &str = "run.started run=2";

fn hash(digit: &str) -> String {
    digit.repeat(BlobId::DIGITS)
}

/// What a record says of a capture.
fn taken() -> String {
    format!(
        r#"tree="{}" rules="{}" git={{"ref":"main"}} skipped={{"totals":{{}},"first":[]}} directory={{"file_system":1,"inode":2}}"#,
        hash("a"),
        hash("b")
    )
}

fn capture() -> Capture {
    Capture {
        tree: hash("a").parse().expect("a hash"),
        git: Some(crate::event::GitState { reference: Some("main".into()), commit: None }),
        rules: hash("b").parse().expect("a hash"),
        skipped: SkippedPaths::default(),
        files_touched: Some(FilesTouched { total: 1, lines_added: 2, ..FilesTouched::default() }),
        directory: Some(DirectoryIdentity { file_system: 1, inode: 2 }),
        files_changed: Some(ChangedFiles { total: 3, ..ChangedFiles::default() }),
    }
}

/// Checks what is recorded of a look that a life of the daemon began at a second.
fn check_look(
    appends: &[&str],
    life: &str,
    second: i64,
    outcome: Result<Capture, MissedCapture>,
    expected: &str,
) {
    check(appends, expected, |state, _| {
        let boot_id = life.parse().expect("an id");
        checkpoints(&due(state), Look { root: "/repo", boot_id, begun: at(second) }, outcome)
    });
}

#[test]
fn one_look_at_a_directory_tells_the_end_of_a_run_and_the_start_of_the_next() {
    let touched = r#"files_touched={"total":1,"lines_added":2,"lines_removed":0,"first":[]}"#;
    let changed = r#"files_changed={"total":3,"first":[]}"#;
    let start = |run: &str| format!("run.checkpoint run={run} at=start how=live {} {changed}", taken());
    let end = |how: &str| format!("run.checkpoint run=1 at=end how={how} {} {touched}", taken());
    let both = format!("{};{}", end("live"), start("2"));
    check_look(&[STARTED], "boot_a", 5, Ok(capture()), &start("1"));
    check_look(&[STARTED], "boot_b", 500, Ok(capture()), &start("1"));
    check_look(&ENDED, "boot_a", 12, Ok(capture()), &end("live"));
    check_look(&ENDED, "boot_a", 500, Ok(capture()), &end("late"));
    check_look(&ENDED, "boot_b", 12, Ok(capture()), &end("late"));
    check_look(&[&ENDED[..], &[NEXT]].concat(), "boot_a", 12, Ok(capture()), &both);
    check_look(&["session.created"], "boot_a", 1, Ok(capture()), "");
    check_look(&[&ENDED[..], &["run.checkpoint at=end"]].concat(), "boot_a", 12, Ok(capture()), "");
}

// I12: what was not taken is told.
#[test]
fn a_look_that_came_to_nothing_is_recorded_with_the_reason() {
    let late = || MissedCapture::from(NotTaken { reason: NotTakenReason::TimedOut, detail: "slow".into() });
    let why = r#"not_taken={"reason":"timed_out","detail":"slow"}"#;
    let start = format!("run.checkpoint at=start how=live {why}");
    check_look(&[STARTED], "boot_a", 5, Err(late()), &start);
    let end = format!("run.checkpoint at=end how=live {why}");
    check_look(&ENDED, "boot_a", 12, Err(late()), &end);
    let both = format!("{end}; run.checkpoint run=2 at=start how=live {why}");
    check_look(&[&ENDED[..], &[NEXT]].concat(), "boot_a", 12, Err(late()), &both);
    // What a glance told is recorded all the same.
    let Capture { git, directory, .. } = capture();
    let seen = format!(r#"{start} git={{"ref":"main"}} directory={{"file_system":1,"inode":2}}"#);
    check_look(&[STARTED], "boot_a", 5, Err(MissedCapture { git, directory, ..late() }), &seen);
}
