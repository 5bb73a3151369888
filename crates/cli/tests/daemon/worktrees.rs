//! Forks in worktrees of git, with real daemons and a real git: made by a command, and by whoever comes after a daemon that died.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::lab::{Lab, wait_for};

pub(crate) fn git(directory: &Path, arguments: &[&str]) -> Option<String> {
    let own = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"];
    let mut command = Command::new("git");
    command.arg("-C").arg(directory).args(own).args(arguments).env("GIT_CONFIG_GLOBAL", "/dev/null");
    let told = command.output().ok().filter(|told| told.status.success())?;
    Some(String::from_utf8(told.stdout).expect("text").trim().to_owned())
}

/// Returns a lab whose sessions work in a repository with one commit; none if there is no git.
pub(crate) fn repository() -> Option<Lab> {
    let lab = Lab::without_daemon();
    let work = lab.path("work");
    if git(&work, &["init", "-q", "-b", "main"]).is_none() {
        eprintln!("no git here: not tested");
        return None;
    }
    fs::write(work.join("tracked.txt"), "first\n").expect("written");
    fs::write(work.join(".gitignore"), "*.log\n").expect("written");
    git(&work, &["add", "."]).expect("added");
    git(&work, &["commit", "-qm", "first"]).expect("committed");
    Some(lab)
}

/// Has a session change a tracked file and make another, and waits until that is captured.
fn worked(lab: &Lab) -> String {
    let id = lab.run("append tracked.txt second\nwrite new.txt hello");
    wait_for("the checkpoints", || (lab.count(&id, "run.checkpoint") == 2).then_some(()));
    id
}

fn restored(lab: &Lab, id: &str) -> Value {
    wait_for("the files", || {
        lab.log(id).into_iter().find(|record| record["kind"] == "session.files_restored")
    })
}

/// Checks that a fork works in a worktree of its own, as its parent had left the files.
fn check(lab: &Lab, child: &str, commit: &str) -> PathBuf {
    let record = restored(lab, child);
    assert_eq!((&record["error"], &record["left"]), (&Value::Null, &json!(0)), "{record}");
    let place = PathBuf::from(lab.show(child)["working_dir"].as_str().expect("a path"));
    assert_eq!(place.parent(), lab.path("work").canonicalize().expect("a path").parent());
    let read = |name: &str| fs::read_to_string(place.join(name)).expect("text");
    assert!(read("tracked.txt").ends_with("second\n") && read("new.txt").starts_with("hello"), "{place:?}");
    assert_eq!(git(&place, &["rev-parse", "HEAD"]).as_deref(), Some(commit));
    assert_eq!(git(&place, &["status", "--porcelain"]).as_deref(), Some("M tracked.txt\n?? new.txt"));
    let listed = git(&lab.path("work"), &["worktree", "list", "--porcelain"]).expect("a list");
    assert_eq!(listed.matches("worktree ").count(), 2, "{listed}");
    place
}

#[test]
fn a_fork_works_in_a_worktree_of_its_own() {
    let Some(mut lab) = repository() else { return };
    lab.start();
    let work = lab.path("work");
    let commit = git(&work, &["rev-parse", "HEAD"]).expect("a commit");
    let id = worked(&lab);
    // What happens in the repository afterwards is not the fork's.
    git(&work, &["commit", "-qam", "second"]).expect("committed");
    fs::write(work.join("new.txt"), "changed").expect("written");
    let forked = lab.ran(&["fork", &id, "--worktree"]).exits(0);
    assert!(forked.err.contains("put back in"), "{forked:?}");
    let child = forked.out.trim();
    let place = check(&lab, child, &commit);
    lab.post(&format!("/api/sessions/{child}/messages"), &json!({"content": "write mine.txt here"}));
    lab.wait_end(child);
    assert!(place.join("mine.txt").exists() && !work.join("mine.txt").exists());
    // What speaks against it is said, with what to do; nothing is made.
    let taken = lab.ran(&["fork", &id, "--worktree", "--cwd", &place.display().to_string()]).exits(1);
    assert!(taken.err.contains("already exists") && taken.err.contains("does not exist yet"), "{taken:?}");
    let path = format!("/api/sessions/{id}/fork");
    fs::rename(work.join(".git"), lab.path("elsewhere")).expect("renamed");
    let refused = lab.ask("POST", &path, &json!({"worktree": true}));
    assert_eq!(refused.refusal(), (409, "not_a_repository"), "{}", refused.body);
    lab.leave();
    let nowhere = lab.path("barriers");
    lab.start_with(&[], &[("PATH", nowhere.to_str().expect("text"))]);
    let refused = lab.ask("POST", &path, &json!({"worktree": true}));
    assert_eq!(refused.refusal(), (409, "git_missing"), "{}", refused.body);
    assert_eq!(lab.get("/api/sessions")["sessions"].as_array().map(Vec::len), Some(2));
}

fn child_of(lab: &Lab, id: &str) -> Option<String> {
    let sessions = lab.get("/api/sessions")["sessions"].as_array().cloned().unwrap_or_default();
    let child = sessions.into_iter().find(|one| one["forked_from"]["session_id"] == json!(id))?;
    Some(child["id"].as_str().expect("an id").to_owned())
}

// I14: it is recorded before git is run, so the next daemon has it made; or nothing was begun.
#[test]
fn dying_while_a_fork_gets_a_worktree_leaves_it_done_or_not_begun() {
    for (place, begun) in
        [("fork.before_record", false), ("fork.after_record", true), ("fork.after_worktree", true)]
    {
        let Some(mut lab) = repository() else { return };
        let commit = git(&lab.path("work"), &["rev-parse", "HEAD"]).expect("a commit");
        lab.start_to_die(place);
        let id = worked(&lab);
        let _ = lab.try_ask("POST", &format!("/api/sessions/{id}/fork"), "", &json!({"worktree": true}));
        lab.died();
        lab.start();
        let child = child_of(&lab, &id);
        assert_eq!(child.is_some(), begun, "{place}");
        match child {
            Some(child) => drop(check(&lab, &child, &commit)),
            None => {
                let listed = git(&lab.path("work"), &["worktree", "list", "--porcelain"]).expect("a list");
                assert_eq!(listed.matches("worktree ").count(), 1, "{place}: {listed}");
            }
        }
    }
}

// I14: git outlives the daemon that started it. The next one lets it finish, and neither runs a second nor writes beside it.
#[test]
fn a_daemon_that_dies_while_git_makes_a_worktree_is_replaced_by_one_that_waits_for_it() {
    let Some(mut lab) = repository() else { return };
    let commit = git(&lab.path("work"), &["rev-parse", "HEAD"]).expect("a commit");
    let (begun, go) = (lab.path("begun"), lab.path("go"));
    let real = std::env::var("PATH").expect("a path");
    let bin = lab.path("bin");
    fs::create_dir(&bin).expect("made");
    let script = format!(
        "#!/bin/sh\nPATH='{real}'\ncase \"$*\" in *'worktree add'*)\n  echo >>'{}'\n  while ! [ -e '{}' ]; do sleep 0.02; done\nesac\nexec git \"$@\"\n",
        begun.display(),
        go.display(),
    );
    fs::write(bin.join("git"), script).expect("written");
    fs::set_permissions(bin.join("git"), PermissionsExt::from_mode(0o755)).expect("a mode");
    let path = format!("{}:{real}", bin.display());
    lab.start_with(&[], &[("PATH", &path)]);
    let id = worked(&lab);
    let forked = lab.post(&format!("/api/sessions/{id}/fork"), &json!({"worktree": true}));
    let child = forked["session"]["id"].as_str().expect("an id").to_owned();
    wait_for("git", || begun.exists().then_some(()));
    lab.kill();
    lab.start_with(&[], &[("PATH", &path), ("REKINDLE_RESTORE_AGAIN", "50")]);
    wait_for("what it waits for", || {
        lab.show(&child).to_string().contains("another process is restoring").then_some(())
    });
    assert_eq!(lab.count(&child, "session.files_restored"), 0);
    fs::write(&go, "").expect("written");
    check(&lab, &child, &commit);
    assert_eq!(fs::read_to_string(&begun).expect("text").lines().count(), 1, "git was run once");
}
