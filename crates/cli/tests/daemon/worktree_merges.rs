//! Worktrees of tasks and sessions compared, merged and removed, with real daemons, a real git, and deaths at every step.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::lab::{Lab, wait_for};
use crate::session_worktrees::{made, wanting, with_prepared_trees, with_trees, worktrees};
use crate::worktrees::git;

/// A session that has done its work in a worktree: one commit, and a file that is not committed.
fn worked(lab: &mut Lab) -> (String, PathBuf) {
    lab.start();
    let id = lab.create(&wanting(lab, "append tracked.txt mine", json!({})));
    lab.wait_end(&id);
    let place = made(lab, &id);
    git(&place, &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qam", "work"]).expect("committed");
    fs::write(place.join("new.txt"), "left behind\n").expect("written");
    (id, place)
}

pub(crate) fn text(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok()
}

pub(crate) fn branches(lab: &Lab) -> String {
    git(&lab.path("work"), &["branch", "--format=%(refname:short)"]).expect("branches")
}

#[test]
fn a_task_is_looked_at_merged_and_removed_by_commands() {
    let Some(mut lab) = with_trees() else { return };
    lab.start();
    let work = lab.path("work");
    let mut new = wanting(&lab, "append tracked.txt mine\nbarrier go", json!({}));
    new["title"] = json!("Fix the test");
    let task = lab.post("/api/tasks", &new)["id"].as_str().expect("an id").to_owned();
    lab.reach("go");
    // While its run goes on nothing is merged and nothing is removed.
    lab.ran(&["task", "merge", &task]).exits(1).tells("its run has not ended");
    lab.ran(&["task", "rm", &task, "--force"]).exits(1).tells("its run has not ended");
    lab.pass("go");
    wait_for("its end", || (lab.get(&format!("/api/tasks/{task}"))["status"] == "completed").then_some(()));
    lab.ran(&["task", "diff", &task]).exits(0).shows("+mine");
    let session = lab.get(&format!("/api/tasks/{task}"))["session_id"].as_str().expect("an id").to_owned();
    // However the terminal breaks its lines.
    let status =
        || lab.ran(&["status", &session]).exits(0).out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(status().contains(&format!("task merge {session}")), "{}", status());
    lab.ran(&["task", "diff", &task, "--stat"])
        .exits(0)
        .shows("1 file changed, +1 -0: 0 commits, 1 not committed");
    lab.ran(&["task", "rm", &task]).exits(1).tells("not committed: tracked.txt").tells("task merge");
    // Somebody works in the original: nothing is changed under his hands.
    let other = lab.create(&lab.session("barrier other"));
    lab.reach("other");
    lab.ran(&["task", "merge", &task]).exits(1).tells("has not ended, in, above or below");
    lab.pass("other");
    lab.wait_end(&other);
    lab.ran(&["task", "merge", &task]).exits(0).shows("Merged").shows("into main: 1 commit");
    assert_eq!(text(&work.join("tracked.txt")).as_deref(), Some("first\nmine\n"));
    assert_eq!(git(&work, &["log", "-1", "--format=%s"]).as_deref(), Some("Fix the test"));
    lab.ran(&["task", "merge", &task, "--rebase"]).exits(0).shows("has everything");
    lab.ran(&["task", "rm", &task]).exits(0).shows("Removed");
    assert_eq!((worktrees(&lab), branches(&lab).as_str()), (0, "main"));
    lab.ran(&["task", "diff", &task]).exits(1).tells("was removed");
    let shown = lab.show(&session)["worktree"].clone();
    assert_eq!((&shown["merged_into"], &shown["removed"]), (&json!("main"), &json!(true)));
    assert!(status().contains("merged into main; it was removed"), "{}", status());
    lab.ran(&["task", "show", &task]).exits(0).shows("it was removed");
    lab.ran(&["send", &session, "say more"]).exits(1).tells("its worktree was removed");
    lab.ran(&["log", &session]).exits(0).shows("session.worktree_merged").shows("session.worktree_removed");
}

// What was left over is in the worktree whenever somebody dies over a merge that is refused, committed or not.
#[test]
fn dying_while_a_refused_merge_is_rolled_back_loses_nothing() {
    for place in ["merge.before_rollback", "merge.after_reset"] {
        let Some(mut lab) = with_trees() else { return };
        let (id, worktree) = worked(&mut lab);
        let work = lab.path("work");
        fs::write(work.join("tracked.txt"), "theirs\n").expect("written");
        git(&work, &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qam", "theirs"])
            .expect("committed");
        lab.kill();
        lab.start_to_die(place);
        let path = format!("/api/sessions/{id}/worktree/merge");
        let _ = lab.try_ask("POST", &path, "", &json!({}));
        lab.died();
        lab.start();
        let refused = lab.ask("POST", &path, &json!({}));
        assert_eq!(refused.refusal(), (409, "merge_conflict"), "{place}: {}", refused.body);
        assert_eq!(text(&worktree.join("new.txt")).as_deref(), Some("left behind\n"), "{place}");
        assert_eq!(text(&worktree.join("tracked.txt")).as_deref(), Some("first\nmine\n"), "{place}");
        assert_eq!(text(&work.join("tracked.txt")).as_deref(), Some("theirs\n"), "{place}");
        assert!(git(&worktree, &["status", "--porcelain"]).is_some(), "{place}: git goes on there");
    }
}

#[test]
fn one_that_could_not_be_prepared_is_removed_by_command() {
    let Some(mut lab) = with_prepared_trees("setup = [\"false\"]\n") else { return };
    lab.start();
    let id = lab.create(&wanting(&lab, "say hello", json!({})));
    assert_eq!(lab.wait_end(&id), "failed");
    lab.ran(&["task", "merge", &id]).exits(1).tells("does not exist yet");
    lab.ran(&["task", "rm", &id]).exits(0).shows("Removed");
    assert_eq!((worktrees(&lab), branches(&lab).as_str()), (0, "main"));
    lab.ran(&["task", "rm", &id]).exits(1).tells("was removed");
}

// I4, I14: git does it before it is recorded, and whoever asks again finishes it: nothing is lost, nothing is merged twice.
#[test]
fn dying_while_a_worktree_is_merged_loses_nothing() {
    for place in [
        "merge.after_commit",
        "merge.after_scratch",
        "merge.after_merge",
        "merge.before_forward",
        "merge.after_forward",
        "merge.before_record",
    ] {
        let Some(mut lab) = with_trees() else { return };
        let (id, worktree) = worked(&mut lab);
        let work = lab.path("work");
        // Both have gone on, and a person is in the middle of something.
        fs::write(work.join("other.txt"), "theirs\n").expect("written");
        git(&work, &["add", "other.txt"]).expect("added");
        let commit = ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "theirs"];
        git(&work, &commit).expect("committed");
        fs::write(work.join("unfinished.txt"), "not committed\n").expect("written");
        lab.kill();
        lab.start_to_die(place);
        let path = format!("/api/sessions/{id}/worktree/merge");
        let _ = lab.try_ask("POST", &path, "", &json!({"method": "squash"}));
        lab.died();
        assert_eq!(text(&worktree.join("new.txt")).as_deref(), Some("left behind\n"), "{place}");
        assert_eq!(text(&work.join("unfinished.txt")).as_deref(), Some("not committed\n"), "{place}");
        lab.start();
        let merged = lab.post(&path, &json!({"method": "squash"}));
        assert_eq!(merged["into"], "main", "{place}: {merged}");
        for (file, expected) in [
            ("new.txt", "left behind\n"),
            ("tracked.txt", "first\nmine\n"),
            ("other.txt", "theirs\n"),
            ("unfinished.txt", "not committed\n"),
        ] {
            assert_eq!(text(&work.join(file)).as_deref(), Some(expected), "{place}");
        }
        let commits = git(&work, &["rev-list", "--count", "HEAD"]).expect("counted");
        assert_eq!(
            (commits.as_str(), worktrees(&lab)),
            ("3", 1),
            "{place}: first, theirs, and the merge once"
        );
        assert_eq!(lab.count(&id, "session.worktree_merged"), 1, "{place}");
        assert!(!lab.path("home/workspaces/merging").join(&id).exists(), "{place}");
    }
}

// I4: what is nowhere else is in its bundle before anything is removed, whoever dies when.
#[test]
fn dying_while_a_worktree_is_removed_loses_nothing() {
    for place in [
        "rm.after_commit",
        "rm.after_bundle",
        "rm.before_remove",
        "rm.after_remove",
        "rm.after_branch",
        "rm.before_record",
    ] {
        let Some(mut lab) = with_trees() else { return };
        let (id, worktree) = worked(&mut lab);
        let branch = lab.show(&id)["worktree"]["branch"].as_str().expect("a branch").to_owned();
        let path = format!("/api/sessions/{id}/worktree");
        let refused = lab.ask("DELETE", &path, &json!({}));
        assert_eq!(refused.refusal(), (409, "worktree_unsaved"), "{}", refused.body);
        assert!(worktree.join("new.txt").exists(), "nothing is removed");
        lab.kill();
        lab.start_to_die(place);
        let _ = lab.try_ask("DELETE", &format!("{path}?force=1"), "", &json!({}));
        lab.died();
        lab.start();
        let removed = lab.ask("DELETE", &format!("{path}?force=1"), &json!({})).body;
        assert_eq!(
            (worktree.exists(), worktrees(&lab), branches(&lab).as_str()),
            (false, 0, "main"),
            "{place}"
        );
        let bundle = removed["bundle"].as_str().unwrap_or_else(|| panic!("{place}: {removed}")).to_owned();
        let back = format!("{branch}:back");
        git(&lab.path("work"), &["fetch", "-q", &bundle, &back]).expect("fetched");
        let show = |file: &str| git(&lab.path("work"), &["show", &format!("back:{file}")]);
        assert_eq!(show("new.txt").as_deref(), Some("left behind"), "{place}");
        assert_eq!(show("tracked.txt").as_deref(), Some("first\nmine"), "{place}");
        assert_eq!(lab.count(&id, "session.worktree_removed"), 1, "{place}");
        assert!(!lab.ran(&["doctor"]).exits(0).out.contains("foreign_name"), "{place}");
    }
}

#[test]
fn a_worktree_whose_session_was_removed_goes_only_when_nothing_is_lost() {
    let Some(mut lab) = with_trees() else { return };
    let (id, worktree) = worked(&mut lab);
    let branch = lab.show(&id)["worktree"]["branch"].as_str().expect("a branch").to_owned();
    lab.ran(&["rm", &id]).exits(0).shows("its worktree stays");
    lab.ran(&["gc"]).exits(0).shows("not committed: new.txt");
    assert!(worktree.join("new.txt").exists(), "it is kept for what is in it");
    lab.ran(&["doctor"]).exits(0).shows("worktree_unsaved").shows(&branch);
    // Its work is saved: somebody merges it by hand.
    fs::remove_file(worktree.join("new.txt")).expect("removed");
    git(&lab.path("work"), &["merge", "-q", "--ff-only", &branch]).expect("merged");
    lab.ran(&["doctor"]).exits(0).shows("worktree_left");
    lab.ran(&["gc", "--dry-run"]).exits(0).shows("all work in it exists elsewhere too");
    assert!(worktree.exists());
    lab.ran(&["gc"]).exits(0);
    assert_eq!((worktree.exists(), worktrees(&lab), branches(&lab).as_str()), (false, 0, "main"));
    lab.ran(&["doctor", "--json"]).exits(0);
    assert!(!lab.ran(&["doctor"]).out.contains("worktree_"));
}
