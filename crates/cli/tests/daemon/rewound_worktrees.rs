//! Sessions in worktrees of their own that are rewound, with real daemons and a real git: whoever takes their place takes the worktree
//! over, and nothing in it is lost, whoever dies when.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::lab::{Lab, wait_for};
use crate::ran::{Stdin, ran};
use crate::session_worktrees::{made, wanting, with_trees, worktrees};
use crate::worktree_merges::{branches, text};
use crate::worktrees::git;

/// Waits until what a session's latest run left is captured.
fn settled(lab: &Lab, id: &str) {
    wait_for("the checkpoint", || lab.show(id)["run"]["checkpoints"]["end"].is_object().then_some(()));
}

/// A session that did two turns in a worktree, of which nothing is committed.
fn worked(lab: &Lab) -> (String, PathBuf) {
    let id = lab.create(&wanting(lab, "write first.txt one", json!({})));
    settled(lab, &id);
    let place = made(lab, &id);
    lab.post(
        &format!("/api/sessions/{id}/messages"),
        &json!({"content": "write second.txt two\nappend tracked.txt more"}),
    );
    settled(lab, &id);
    assert!(place.join("second.txt").exists());
    (id, place)
}

/// Rewinds a session, and waits until the files are put back; returns what took its place.
fn rewound(lab: &Lab, id: &str) -> String {
    let told = lab.ran(&["rewind", id, "--yes"]).exits(0);
    let child = told.out.trim().to_owned();
    restored(lab, &child);
    child
}

/// Waits until the files are put back that a session began with; its history may tell of others before.
fn restored(lab: &Lab, id: &str) -> Value {
    let cut = lab.show(id)["forked_from"]["seq"].as_u64();
    let is_own = |record: &Value| record["kind"] == "session.files_restored" && record["seq"].as_u64() > cut;
    let record = wait_for("the files", || lab.log(id).into_iter().find(is_own));
    assert_eq!(record["error"], Value::Null, "{record}");
    record
}

/// Returns which sessions would merge and remove their worktrees, by what they say and by what they do.
fn owners(lab: &Lab) -> Vec<String> {
    let sessions = lab.get("/api/sessions")["sessions"].as_array().cloned().expect("a list");
    let says_so = sessions.iter().filter(|session| session["worktree"]["owned"] == json!(true));
    let says_so: Vec<String> = says_so.map(id_of).collect();
    let does = |id: &String| {
        lab.ask("GET", &format!("/api/sessions/{id}/worktree/diff?stat=1"), &Value::Null).status == 200
    };
    let all: Vec<String> = sessions.iter().map(id_of).collect();
    assert_eq!(all.into_iter().filter(does).collect::<Vec<_>>(), says_so);
    says_so
}

fn id_of(session: &Value) -> String {
    session["id"].as_str().expect("an id").to_owned()
}

fn in_work(lab: &Lab, words: &[&str]) -> String {
    ran(lab.rekindle(words).current_dir(lab.path("work")), Stdin::Nothing).exits(0).out
}

fn commit(place: &Path, message: &str) {
    git(place, &["add", "--all"]).expect("added");
    git(place, &["commit", "-qm", message]).expect("committed");
}

#[test]
fn a_rewound_session_hands_its_worktree_on() {
    let Some(mut lab) = with_trees() else { return };
    lab.start();
    let (first, place) = worked(&lab);
    let branch = lab.show(&first)["worktree"]["branch"].clone();
    let second = rewound(&lab, &first);
    assert_eq!(
        (place.join("second.txt").exists(), text(&place.join("first.txt"))),
        (false, Some("one\n".into()))
    );
    assert_eq!(owners(&lab), [&*second]);
    let shown = lab.show(&second)["worktree"].clone();
    assert_eq!((&shown["branch"], &shown["commit"]), (&branch, &lab.show(&first)["worktree"]["commit"]));
    for words in [&["diff", &*first][..], &["merge", &first], &["rm", &first, "--force"]] {
        lab.ran(&[&["task"], words].concat()).exits(1).tells(&format!("{second} replaced it"));
    }
    let told = lab.ran(&["status", &first]).exits(0).out;
    // However the terminal breaks its lines.
    let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("that another session has"), "{told}");
    // Where it was asked for it is found, and goes on: nothing is made or prepared again.
    assert!(in_work(&lab, &["status"]).contains(&second));
    assert!(in_work(&lab, &["ps"]).contains(&second["sess_".len()..][..10]));
    assert!(in_work(&lab, &["log"]).contains("session.files_restored"));
    lab.post(&format!("/api/sessions/{second}/messages"), &json!({"content": "write third.txt three"}));
    settled(&lab, &second);
    assert_eq!(
        (worktrees(&lab), lab.count(&second, "session.worktree_added")),
        (1, 1),
        "once, in their history"
    );
    // Once more, and whoever was there first names the one that has it now.
    let third = rewound(&lab, &second);
    assert_eq!((owners(&lab), place.join("third.txt").exists()), (vec![third.clone()], false));
    lab.ran(&["task", "merge", &first]).exits(1).tells(&third);
    // Those before it are removed, and leave the worktree alone.
    let removed = lab.ran(&["rm", &second, &first]).exits(0);
    assert!(!removed.out.contains("its worktree stays"), "{removed:?}");
    lab.ran(&["gc"]).exits(0);
    assert!(place.join("first.txt").exists());
    assert!(!lab.ran(&["doctor"]).exits(0).out.contains("worktree_"));
    lab.ran(&["task", "diff", &third]).exits(0).shows("+one");
    lab.ran(&["task", "merge", &third]).exits(0).shows("into main: 1 commit");
    assert_eq!(text(&lab.path("work").join("first.txt")).as_deref(), Some("one\n"));
    lab.ran(&["task", "rm", &third]).exits(0).shows("Removed");
    assert_eq!((worktrees(&lab), branches(&lab).as_str()), (0, "main"));
}

// I4, I14: one append says who has the worktree, and whoever comes next goes on with the files.
#[test]
fn dying_while_a_session_in_a_worktree_is_rewound_leaves_it_one_owner() {
    for (place, is_replaced) in [
        ("rewind.before_record", false),
        ("rewind.after_record", true),
        ("rewind.before_files", true),
        ("restore.step#2", true),
        ("restore.step#6", true),
        ("rewind.after_files", true),
        ("rewind.after_files_record", true),
    ] {
        let Some(mut lab) = with_trees() else { return };
        lab.start_to_die(place);
        let (id, worktree) = worked(&lab);
        let _ = lab.try_ask("POST", &format!("/api/sessions/{id}/rewind"), "", &json!({}));
        lab.died();
        // Beside nobody, too: whoever collects sees who has it.
        lab.ran(&["gc"]).exits(0);
        lab.start();
        let owner = lab.show(&id)["replaced_by"].as_str().unwrap_or(&id).to_owned();
        // While files are put back nobody is shown what differs.
        let record = is_replaced.then(|| restored(&lab, &owner));
        assert_eq!((owner != id, owners(&lab)), (is_replaced, vec![owner.clone()]), "{place}");
        let read = |name: &str| text(&worktree.join(name));
        assert_eq!(read("first.txt").as_deref(), Some("one\n"), "{place}");
        if let Some(record) = record {
            let undo = record["undo"].as_str().expect("a tree").to_owned();
            assert_eq!(
                (read("second.txt"), read("tracked.txt").as_deref()),
                (None, Some("first\n")),
                "{place}"
            );
            // What was taken back is where the log says.
            let there = worktree.display().to_string();
            lab.ran(&["workspace", "restore", &undo, "--yes", "--directory", &there]).exits(0);
        }
        assert_eq!(read("second.txt").as_deref(), Some("two\n"), "{place}");
        assert_eq!(read("tracked.txt").as_deref(), Some("first\nmore\n"), "{place}");
        lab.ran(&["task", "merge", &owner]).exits(0);
        lab.ran(&["task", "rm", &owner]).exits(0);
        assert_eq!(
            (worktrees(&lab), text(&lab.path("work").join("second.txt")).is_some()),
            (0, true),
            "{place}"
        );
    }
}

#[test]
fn a_worktree_is_collected_once_the_session_is_removed_that_took_it_over() {
    let Some(mut lab) = with_trees() else { return };
    lab.start();
    let (first, place) = worked(&lab);
    let second = rewound(&lab, &first);
    let forked = lab.post(&format!("/api/sessions/{second}/fork"), &json!({}));
    let fork = id_of(&forked["session"]);
    lab.ran(&["rm", &second]).exits(0).shows("its worktree stays");
    // The one before it is there still, and is no reason to keep it; what is in it is.
    lab.ran(&["gc"]).exits(0).shows(&format!("{fork} is using it"));
    assert!(!lab.ran(&["doctor"]).exits(0).out.contains("worktree_"), "it is not left");
    lab.ran(&["rm", &fork]).exits(0);
    lab.ran(&["gc"]).exits(0).shows("not committed: first.txt");
    lab.ran(&["doctor"]).exits(0).shows("worktree_unsaved");
    lab.ran(&["task", "rm", &first]).exits(1).tells("which was removed");
    commit(&place, "by hand");
    let branch = lab.show(&first)["worktree"]["branch"].as_str().expect("a branch").to_owned();
    git(&lab.path("work"), &["merge", "-q", "--ff-only", &branch]).expect("merged");
    lab.ran(&["gc"]).exits(0);
    assert_eq!((place.exists(), worktrees(&lab), branches(&lab).as_str()), (false, 0, "main"));
}

#[test]
fn a_task_goes_on_in_the_session_that_took_the_place_of_its_own() {
    let Some(mut lab) = with_trees() else { return };
    lab.start();
    let mut new = wanting(&lab, "write first.txt one\nrefuse no more", json!({}));
    new["max_attempts"] = json!(1);
    let task = lab.add_task(&new);
    let ended = lab.wait_task(&task, "failed");
    let first = ended["session_id"].as_str().expect("a session").to_owned();
    settled(&lab, &first);
    let second = rewound(&lab, &first);
    // It means the session that works there now, like a message that names the one before.
    lab.ran(&["task", "diff", &task, "--stat"]).exits(0).shows("0 files changed");
    lab.ran(&["task", "show", &task]).exits(0).shows("in a worktree made for");
    lab.post(&format!("/api/tasks/{task}/retry"), &json!({}));
    wait_for("the next attempt", || {
        (lab.get(&format!("/api/tasks/{task}"))["session_id"] == json!(second)).then_some(())
    });
    wait_for("its prompt", || (lab.prompted("This is attempt 2") == 1).then_some(()));
    let told = lab.record().into_iter().rfind(|line| line.contains("This is attempt 2")).expect("told");
    assert!(told.contains("was taken back since") && !told.contains("Files that it touched"), "{told}");
    assert_eq!((owners(&lab), worktrees(&lab)), (vec![second], 1));
}

// What came of a worktree before goes on with it; of one that is gone nothing can.
#[test]
fn a_merged_worktree_is_taken_over_and_a_removed_one_is_not() {
    let Some(mut lab) = with_trees() else { return };
    lab.start();
    let (first, place) = worked(&lab);
    lab.ran(&["task", "merge", &first]).exits(0);
    let second = rewound(&lab, &first);
    assert_eq!(lab.show(&second)["worktree"]["merged_into"], "main");
    // What was taken back is a change like any other now, and can be merged.
    lab.ran(&["task", "diff", &second]).exits(0).shows("-more");
    lab.ran(&["task", "merge", &second]).exits(0);
    assert_eq!(text(&lab.path("work").join("tracked.txt")).as_deref(), Some("first\n"));
    lab.post(&format!("/api/sessions/{second}/messages"), &json!({"content": "write third.txt three"}));
    settled(&lab, &second);
    lab.ran(&["task", "rm", &second, "--force"]).exits(0);
    assert!(!place.exists());
    lab.ran(&["rewind", &second, "--yes"]).exits(1).tells("its worktree was removed").tells("rekindle fork");
    lab.ran(&["rewind", &second, "--files-only", "--yes"]).exits(1).tells("its worktree was removed");
    assert_eq!(lab.count(&second, "session.closed"), 0);
    let copy = lab.path("copy").display().to_string();
    let forked = lab.ran(&["fork", &second, "--files", "--cwd", &copy]).exits(0);
    restored(&lab, forked.out.trim());
    assert_eq!(text(&lab.path("copy").join("third.txt")).as_deref(), Some("three\n"));
    assert_eq!(lab.show(forked.out.trim())["worktree"], Value::Null);
}

#[test]
fn a_snapshot_restored_in_place_hands_the_worktree_on_and_a_fork_does_not() {
    let Some(mut lab) = with_trees() else { return };
    lab.start();
    let new = || {
        let mut new = wanting(&lab, "write first.txt one", json!({}));
        new["key"] = json!("mine");
        new
    };
    let first = lab.create(&new());
    settled(&lab, &first);
    let taken = lab.post(&format!("/api/sessions/{first}/snapshots"), &json!({}));
    let name = taken["name"].as_str().expect("a name");
    let path = format!("/api/sessions/{first}/snapshots/{name}/restore");
    let fork = id_of(&lab.post(&path, &json!({}))["session"]);
    assert_eq!(owners(&lab), [&*first]);
    lab.ran(&["task", "rm", &fork, "--force"]).exits(1).tells(&format!("belongs to {first}"));
    let second = id_of(&lab.post(&path, &json!({"in_place": true, "files": true}))["session"]);
    restored(&lab, &second);
    assert_eq!(owners(&lab), [&*second]);
    // Where the worktree was asked for, both are found, and the key means the one that took the place.
    let below = lab.path("work").display().to_string();
    let found = lab.get(&format!("/api/sessions?cwd={below}"))["sessions"].clone();
    let found: Vec<String> = found.as_array().expect("a list").iter().map(id_of).collect();
    assert!([&fork, &second].iter().all(|id| found.contains(id)), "{found:?}");
    let known = lab.ask("POST", "/api/sessions", &new());
    assert_eq!((known.status, &known.body["id"]), (200, &json!(second)), "{}", known.body);
}
