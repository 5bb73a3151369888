//! Sessions and tasks in worktrees of their own, with real daemons and a real git.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::lab::{Lab, wait_for};
use crate::worktrees::{git, repository};

/// Returns a lab whose sessions work in a repository with one commit, and whose worktrees are made beside it.
pub(crate) fn with_trees() -> Option<Lab> {
    with_prepared_trees("")
}

/// The same, with more settings of worktrees.
pub(crate) fn with_prepared_trees(more: &str) -> Option<Lab> {
    let lab = repository()?;
    lab.configure(&format!("[worktree]\ndir = {:?}\n{more}[tasks]\nlimit = 4\n", lab.path("trees")));
    Some(lab)
}

/// A session that wants a worktree.
pub(crate) fn wanting(lab: &Lab, prompt: &str, worktree: Value) -> Value {
    let mut new = lab.session(prompt);
    new["worktree"] = worktree;
    new
}

/// Waits until a session's worktree is there; returns its directory.
pub(crate) fn made(lab: &Lab, id: &str) -> PathBuf {
    let shown = wait_for("the worktree", || {
        Some(lab.show(id)).filter(|shown| shown["worktree"]["commit"].is_string())
    });
    PathBuf::from(shown["worktree"]["directory"].as_str().expect("a path"))
}

pub(crate) fn worktrees(lab: &Lab) -> usize {
    let listed = git(&lab.path("work"), &["worktree", "list", "--porcelain"]).expect("a list");
    listed.matches("worktree ").count() - 1
}

#[test]
fn a_session_works_in_a_worktree_of_its_own() {
    let Some(mut lab) = with_trees() else { return };
    lab.start();
    let work = lab.path("work");
    let demo = lab.demo(&[]);
    let words = ["run", "append tracked.txt mine", "--worktree", "--profile", "acp", "--"];
    let command: Vec<&str> = words.into_iter().chain(demo.iter().map(String::as_str)).collect();
    lab.ran(&command).exits(0);
    let sessions = lab.get("/api/sessions")["sessions"].clone();
    let id = sessions[0]["id"].as_str().expect("an id").to_owned();
    let place = made(&lab, &id);
    assert_eq!(place.parent(), lab.path("trees").canonicalize().ok().as_deref());
    assert!(fs::read_to_string(place.join("tracked.txt")).expect("text").contains("mine"));
    assert_eq!(fs::read_to_string(work.join("tracked.txt")).expect("text"), "first\n");
    let branch = sessions[0]["worktree"]["branch"].as_str().expect("a branch");
    assert!(branch.starts_with("rekindle/append-tracked-txt-mine-"), "{branch}");
    assert_eq!(git(&place, &["branch", "--show-current"]).as_deref(), Some(branch));
    // Whoever asks in the directory that it was made for finds it.
    lab.ran(&["status"]).exits(0).shows(branch).shows("in a worktree made for");
    lab.ran(&["log"]).exits(0).shows("session.worktree_added");
    lab.ran(&["diff"]).exits(0).shows("+mine");
    // It is continued there, whatever died, and what was not committed is there.
    lab.kill();
    lab.kill_holders();
    lab.as_if_rebooted();
    lab.start();
    lab.post(&format!("/api/sessions/{id}/messages"), &json!({"content": "append tracked.txt more"}));
    wait_for("the second turn", || (lab.count(&id, "run.completed") == 2).then_some(()));
    let text = fs::read_to_string(place.join("tracked.txt")).expect("text");
    assert!(text.contains("mine") && text.contains("more"), "{text}");
    assert_eq!((worktrees(&lab), lab.count(&id, "session.worktree_added")), (1, 1));
    // One that somebody removed is not made again behind his back.
    fs::remove_dir_all(&place).expect("removed");
    lab.kill_holders();
    lab.post(&format!("/api/sessions/{id}/messages"), &json!({"content": "say where"}));
    let failed =
        wait_for("the end", || lab.log(&id).into_iter().find(|record| record["kind"] == "run.failed"));
    assert!(failed["error"].as_str().is_some_and(|why| why.contains("does not exist")), "{failed}");
}

#[test]
fn what_is_not_committed_is_refused_left_or_carried() {
    let Some(mut lab) = with_trees() else { return };
    lab.start();
    fs::write(lab.path("work").join("new.txt"), "new").expect("written");
    let refused = lab.ask("POST", "/api/sessions", &wanting(&lab, "say hi", json!({})));
    assert_eq!(refused.refusal(), (409, "worktree_impossible"), "{}", refused.body);
    let text = refused.body.to_string();
    assert!(text.contains("new.txt") && text.contains("carry"), "{text}");
    assert!(
        lab.get("/api/sessions")["sessions"].as_array().is_some_and(Vec::is_empty),
        "nothing is recorded"
    );
    for (policy, is_there) in [("ignore", false), ("carry", true)] {
        let id = lab.create(&wanting(&lab, "say hi", json!({"dirty": policy})));
        assert_eq!(made(&lab, &id).join("new.txt").exists(), is_there, "{policy}");
        lab.wait_end(&id);
    }
    fs::rename(lab.path("work").join(".git"), lab.path("elsewhere")).expect("renamed");
    let refused = lab.ask("POST", "/api/sessions", &wanting(&lab, "say hi", json!({})));
    assert_eq!(refused.refusal(), (409, "worktree_impossible"), "{}", refused.body);
}

// I4, I14: it is recorded before git is run, so the next daemon has it made, once; and the prompt is given once.
#[test]
fn dying_while_a_worktree_is_made_leaves_it_to_the_next_daemon() {
    for place in [
        "worktree.before",
        "worktree.after_add",
        "worktree.before_lock",
        "worktree.after_setup",
        "worktree.after",
        "worktree.after_record",
    ] {
        let Some(mut lab) = with_trees() else { return };
        fs::write(lab.path("work").join("new.txt"), "new").expect("written");
        lab.start_to_die(place);
        let new = wanting(&lab, "say done", json!({"dirty": "carry", "base": "HEAD"}));
        let _ = lab.try_ask("POST", "/api/sessions", "", &new);
        lab.died();
        lab.start();
        let sessions = lab.get("/api/sessions")["sessions"].clone();
        let id = sessions[0]["id"].as_str().expect("an id").to_owned();
        let directory = made(&lab, &id);
        lab.wait_end(&id);
        assert_eq!(fs::read_to_string(directory.join("new.txt")).ok().as_deref(), Some("new"), "{place}");
        assert_eq!((worktrees(&lab), lab.prompted("say done")), (1, 1), "{place}");
        let listed = git(&lab.path("work"), &["worktree", "list", "--porcelain"]).expect("a list");
        assert!(listed.contains("locked a session of Rekindle works here"), "{place}: {listed}");
    }
}

#[test]
fn tasks_with_worktrees_work_on_one_repository_at_once() {
    let Some(mut lab) = with_trees() else { return };
    lab.start();
    let task = |n: usize, worktree: Value| {
        wanting(&lab, &format!("append tracked.txt {n}\nbarrier go{n}\nsay done"), worktree)
    };
    let tasks: Vec<Value> = (0..3).map(|n| task(n, json!({}))).collect();
    let added = lab.post("/api/tasks", &json!({"tasks": tasks}));
    let ids: Vec<String> = added["tasks"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|task| task["id"].as_str().expect("an id").to_owned())
        .collect();
    // In one directory they would wait for each other.
    (0..3).for_each(|n| lab.reach(&format!("go{n}")));
    (0..3).for_each(|n| lab.pass(&format!("go{n}")));
    let mut branches = Vec::new();
    for (id, n) in ids.iter().zip(0..) {
        let ended = lab.wait_task(id, "completed");
        let session = lab.show(ended["session_id"].as_str().expect("a session"));
        let directory = session["worktree"]["directory"].as_str().expect("a path");
        let text = fs::read_to_string(PathBuf::from(directory).join("tracked.txt")).expect("text");
        assert_eq!(text, format!("first\n{n}\n"));
        assert_eq!(ended["branch"], session["worktree"]["branch"]);
        let branch = ended["branch"].as_str().expect("a branch");
        lab.ran(&["task", "show", id]).exits(0).shows(branch);
        branches.push(ended["branch"].clone());
    }
    branches.dedup();
    assert_eq!((branches.len(), worktrees(&lab)), (3, 3));
    assert_eq!(git(&lab.path("work"), &["status", "--porcelain"]).as_deref(), Some(""));
    // What speaks against it when its turn comes fails it, and its next attempt tries again.
    let waiting = {
        let mut task = task(9, json!({}));
        task["max_attempts"] = json!(1);
        task["after"] = json!([lab.add_task(&lab.task_in("../beside", "barrier first\nsay done"))]);
        lab.add_task(&task)
    };
    lab.reach("first");
    fs::write(lab.path("work").join("new.txt"), "new").expect("written");
    lab.pass("first");
    let failed = lab.wait_task(&waiting, "failed");
    assert!(failed["reason"].as_str().is_some_and(|why| why.contains("uncommitted")), "{failed}");
    fs::remove_file(lab.path("work").join("new.txt")).expect("removed");
    lab.post(&format!("/api/tasks/{waiting}/retry"), &json!({}));
    lab.reach("go9");
    lab.pass("go9");
    lab.wait_task(&waiting, "completed");
}

// However many tasks a request has, git is asked about a repository once for each place where their branches begin.
#[test]
fn many_tasks_of_one_request_ask_git_once() {
    let Some(mut lab) = with_trees() else { return };
    let (bin, asked) = (lab.path("bin"), lab.path("asked"));
    let real = std::env::var("PATH").expect("a path");
    fs::create_dir(&bin).expect("made");
    let script = format!("#!/bin/sh\necho >>'{}'\nPATH='{real}' exec git \"$@\"\n", asked.display());
    fs::write(bin.join("git"), script).expect("written");
    fs::set_permissions(bin.join("git"), PermissionsExt::from_mode(0o755)).expect("a mode");
    lab.start_with(&[], &[("PATH", &format!("{}:{real}", bin.display()))]);
    let count = |bases: &[Option<&str>], many: usize| {
        let _ = fs::remove_file(&asked);
        let task = |base: &Option<&str>| {
            let mut task = wanting(&lab, "say done", json!({"base": base}));
            // Nothing is begun, so only the request asks.
            task["not_before"] = json!("2999-01-01T00:00:00Z");
            task
        };
        let tasks: Vec<Value> = bases.iter().map(task).cycle().take(many).collect();
        lab.post("/api/tasks", &json!({"tasks": tasks}));
        fs::read_to_string(&asked).expect("asked").lines().count()
    };
    let one = count(&[None], 1);
    assert_eq!(count(&[None], 400), one);
    let two = count(&[None, Some("main")], 2);
    assert_eq!((count(&[None, Some("main")], 400), two > one), (two, true));
}

#[test]
fn submodules_are_there_for_an_agent() {
    let Some(mut lab) = with_trees() else { return };
    let (work, module) = (lab.path("work"), lab.path("module"));
    git(&work, &["clone", "-q", ".", module.to_str().expect("text")]).expect("cloned");
    // Git has no submodules of this machine but for those who allow it.
    let allowed = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add"];
    git(&work, &[&allowed[..], &[module.to_str().expect("text"), "module"]].concat()).expect("added");
    git(&work, &["commit", "-qm", "a module"]).expect("committed");
    let settings = lab.path("gitconfig");
    fs::write(&settings, "[protocol \"file\"]\nallow = always\n").expect("written");
    lab.start_with(&[], &[("GIT_CONFIG_GLOBAL", settings.to_str().expect("text"))]);
    let id = lab.create(&wanting(&lab, "say hi", json!({})));
    assert!(made(&lab, &id).join("module/tracked.txt").exists());
    lab.wait_end(&id);
}
