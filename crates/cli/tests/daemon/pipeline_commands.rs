//! `rekindle pipeline`: what a person types, reads and is asked, with real agents and checks.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::lab::{Lab, wait_for};
use crate::pty::Pty;
use crate::ran::{Stdin, ran};
use crate::session_worktrees::with_trees;
use crate::worktrees::git;

/// A stage that writes a line, and one that wants two of them: a round back is needed.
const TWICE: &str = r#"version = 1
[agents.builder]
command = ["sh", "-c", "cat > /dev/null; echo line >> work.txt"]
profile = "exec"
[[tasks]]
id = "T-1"
goal = "Two lines"
[pipelines.default]
max_rounds = 3
[[pipelines.default.stages]]
name = "implement"
agent = "builder"
prompt = "{{task.goal}}"
[[pipelines.default.stages]]
name = "verify"
check = ["sh", "-c", "test $(wc -l < work.txt) -ge 2"]
on_fail = "implement"
"#;

#[test]
fn a_run_needs_trust_goes_through_its_rounds_and_is_told_step_by_step() {
    let lab = Lab::new();
    let hash = lab.project(TWICE);
    // Where nobody can be asked nothing begins, and what it would need is said.
    let refused = lab.pipeline(&["run"]).exits(2).tells(&format!("--trust {hash}"));
    assert!(refused.err.contains("not trusted"), "{refused:#?}");
    assert_eq!(lab.pipeline(&["--json", "validate"]).exits(0).json()["hash"], json!(hash));
    assert_eq!((lab.pipelines().len(), lab.home().join("trusted.json").exists()), (0, false));
    let shown = lab.pipeline(&["run", "--trust", &hash]).exits(0);
    let lines: Vec<&str> = shown.out.lines().map(|line| line.get(10..).unwrap_or_default()).collect();
    let begins = [
        "T-1: Two lines",
        "implement → verify from snap-",
        "implement 1  builder  completed",
        "verify 1     check    failed",
        "round 2 of at most 3",
        "implement 2  builder  completed",
        "verify 2     check    completed",
        "completed",
    ];
    assert_eq!(lines.len(), begins.len(), "{shown:#?}");
    for (line, begin) in lines.iter().zip(begins) {
        assert!(line.starts_with(begin), "{begin}: {shown:#?}");
    }
    assert!(lines[2].contains("1 file +1 -0"), "{shown:#?}");
    assert_eq!(fs::read_to_string(lab.path("work/work.txt")).expect("text"), "line\nline\n");
    let mode = lab.home().join("trusted.json").metadata().expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    // It is trusted from now on, also by the next daemon; another file, and the same one elsewhere, are not.
    let run = lab.only_run()["run_id"].as_str().expect("a name").to_owned();
    let mut lab = lab;
    lab.restart();
    let second =
        lab.pipeline(&["run", "--detach"]).exits(0).tells("pipeline log -f run-").out.trim().to_owned();
    let view = |name: &str| lab.get(&format!("/api/pipelines/{name}"));
    wait_for("its end", || (view(&second)["status"] == "completed").then_some(()));
    lab.pipeline(&["show"]).exits(0).shows(&second);
    lab.project(&TWICE.replace("max_rounds = 3", "max_rounds = 2"));
    assert_eq!(lab.pipeline(&["--json", "run"]).exits(2).error_code(), "config_untrusted");
    assert_eq!(lab.pipelines().len(), 2);

    // The first one, named in every way: whole, by its beginning, by its ledger's id.
    let id = view(&run)["id"].as_str().expect("an id").to_owned();
    for name in [run.as_str(), &run[4..], &run[..run.len() - 1], id.as_str()] {
        lab.pipeline(&["show", name]).exits(0).shows(&run).shows("T-1: Two lines").shows("2 of at most 3");
    }
    assert_eq!(lab.pipeline(&["--json", "show", "run-2"]).exits(2).error_code(), "run_ambiguous");
    assert_eq!(lab.pipeline(&["--json", "show", "run-1999"]).exits(2).error_code(), "run_unknown");
    lab.pipeline(&["ls", "--here"]).exits(0).shows(&run).shows("T-1: Two lines");
    lab.pipeline(&["ls", "--status", "failed"]).exits(0).shows("no such runs");
    assert_eq!(lab.pipeline(&["log", &run]).exits(0).out, shown.out, "the same lines as it printed");
    lab.pipeline(&["log", "--records", &run]).exits(0).shows("step.finished").shows("verify-2: completed");
    lab.pipeline(&["graph", "-r", &run]).exits(0).shows("failed    → implement, in another round  (1 time)");

    // To resume it is no failure, and does nothing.
    let before = view(&run)["last_seq"].clone();
    lab.pipeline(&["resume", "-r", &run])
        .exits(0)
        .shows("snapshot   snap-")
        .shows("pending    nothing")
        .tells("complete");
    assert_eq!(view(&run)["last_seq"], before);
    let refused = lab.pipeline(&["--json", "abort", &run]).exits(1);
    assert_eq!(refused.error_code(), "run_completed");
}

#[test]
fn the_file_to_begin_with_runs_as_it_is() {
    let lab = Lab::new();
    // Whichever agents are on this machine: the demo agent stands in it, where tests have it.
    let mut init = lab.rekindle(&["pipeline", "init"]);
    ran(init.current_dir(lab.path("work")).env("PATH", ""), Stdin::Nothing).exits(0);
    let written = fs::read_to_string(lab.path("work/rekindle.toml")).expect("a file");
    let (agent, demo) = ("[\"rekindle\", \"demo-agent\"]", format!("{:?}", lab.demo(&[])));
    assert_eq!(written.matches(agent).count(), 2, "{written}");
    let hash = lab.project(&written.replace(agent, &demo));
    let told = lab.pipeline(&["run", "--trust", &hash]).exits(0).shows("review 1         reviewer  approved");
    assert!(told.out.ends_with("  completed\n") && !told.out.contains("once more"), "{told:#?}");
}

#[test]
fn several_tasks_are_followed_together_each_in_a_worktree() {
    let Some(mut lab) = with_trees() else { return };
    lab.start();
    let other = "[[tasks]]\nid = \"T-2\"\ngoal = \"The same elsewhere\"\n[pipelines.default]";
    let hash = lab.project(&TWICE.replace("[pipelines.default]", other));
    let work = lab.path("work");
    git(&work, &["add", "."]).expect("added");
    git(&work, &["commit", "-q", "-m", "the project"]).expect("committed");
    let both = ["run", "--task", "T-1", "--task", "T-2", "--worktree"];
    let told = lab.pipeline(&[&both[..], &["--trust", &hash]].concat()).exits(0);
    for task in ["T-1", "T-2"] {
        let lines: Vec<&str> = told.out.lines().filter(|line| line.get(10..13) == Some(task)).collect();
        assert_eq!(lines.len(), 7, "{told:#?}");
        assert!(
            lines[5].contains("  verify 2  ") && lines[6].ends_with(&format!("{task}  completed")),
            "{told:#?}"
        );
    }
    assert!(!work.join("work.txt").exists(), "nobody worked there");
    // A record does not say whose it is.
    let told = lab.pipeline(&[&both[..], &["--json"]].concat()).exits(0);
    let records: Vec<Value> =
        told.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let runs = |kind: &str| records.iter().filter(|told| told["record"]["kind"] == kind).count();
    assert_eq!((runs("pipeline.started"), runs("pipeline.completed")), (2, 2));
    assert!(records.iter().all(|told| told["run_id"].as_str().is_some_and(|name| name.starts_with("run-"))));
}

#[test]
fn json_is_the_ledger_as_it_stands() {
    let lab = Lab::new();
    let hash = lab.project(TWICE);
    let told = lab.pipeline(&["run", "--json", "--trust", &hash]).exits(0);
    let run = lab.only_run()["run_id"].as_str().expect("a name").to_owned();
    // Compressed by now, or about to be: the same bytes.
    let ledger = String::from_utf8(lab.compressed_ledger(&run)).expect("text");
    assert_eq!(told.out, ledger);
    assert_eq!(lab.pipeline(&["log", "--json"]).exits(0).out, ledger);
    let kinds: Vec<Value> = ledger
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["kind"].clone())
        .collect();
    assert_eq!((&kinds[0], kinds.last()), (&json!("pipeline.started"), Some(&json!("pipeline.completed"))));
}

#[test]
fn a_person_sees_the_file_before_it_is_trusted() {
    let lab = Lab::new();
    lab.project(TWICE);
    let command = || {
        let mut command = lab.rekindle(&["pipeline", "run"]);
        command.current_dir(lab.path("work"));
        command
    };
    let mut terminal = Pty::start(&command(), 100);
    terminal.see("builder: sh -c 'cat > /dev/null; echo line >> work.txt'");
    terminal.see("from now on? [y/N]");
    terminal.press("n\r");
    assert_eq!(terminal.end(), Some(2));
    assert!(terminal.text().contains("nothing was started"), "{}", terminal.text());
    assert_eq!(lab.pipelines().len(), 0);
    let mut terminal = Pty::start(&command(), 100);
    terminal.see("from now on? [y/N]");
    terminal.press("y\r");
    assert_eq!(terminal.end(), Some(0));
    assert!(terminal.text().contains("verify 2     check    completed"), "{}", terminal.text());
}

#[test]
fn a_step_that_was_cancelled_rests_until_it_is_resumed_and_files_that_changed_are_named() {
    let lab = Lab::new();
    let hash = lab.demo_project("write made.txt by the agent\nbarrier here\nsay done");
    let run = lab.pipeline(&["run", "--detach", "--trust", &hash, "--on-cut", "restore"]).exits(0);
    let run = run.out.trim().to_owned();
    lab.reach("here");
    let working = lab.wait_pending("working");
    let session = working["pending"]["session_id"].as_str().expect("a session").to_owned();
    lab.post(&format!("/api/sessions/{session}/cancel"), &Value::Null);
    lab.wait_pending("cancelled");
    // Whoever follows is told why it rests, and what has it go on.
    let rests = lab.pipeline(&["log", "-f"]).exits(3).tells("was cancelled");
    assert!(rests.err.contains(&format!("pipeline resume {run}")), "{rests:#?}");
    lab.pipeline(&["ls"]).exits(0).shows("rests").shows("implement 1 was cancelled");

    // Somebody else was at work meanwhile: that is not taken back unasked.
    fs::write(lab.path("work/mine.txt"), "mine").expect("written");
    let stops = lab.pipeline(&["resume"]).exits(3).shows("implement 1").tells("--on-drift restore");
    assert!(stops.out.contains("mine.txt") || stops.err.contains("mine.txt"), "{stops:#?}");
    assert_eq!(lab.only_run()["pending"]["why"], "drift");
    assert!(lab.path("work/mine.txt").exists());
    lab.pass("here");
    let done = lab.pipeline(&["resume", "--on-drift", "accept"]).exits(0).shows("accepted as they are");
    assert!(done.out.contains("attempt 2") && done.out.ends_with("completed\n"), "{done:#?}");
    assert!(lab.path("work/mine.txt").exists());
}

#[test]
fn a_run_that_was_aborted_goes_on_only_by_force() {
    let lab = Lab::new();
    let hash = lab.demo_project("barrier here\nsay done");
    lab.pipeline(&["run", "--detach", "--trust", &hash]).exits(0);
    lab.reach("here");
    lab.pipeline(&["abort", "--reason", "not wanted"]).exits(0).tells("resume");
    wait_for("its end", || (lab.only_run()["status"] == "aborted").then_some(()));
    lab.pipeline(&["show"]).exits(0).shows("aborted").shows("not wanted");
    let refused = lab.pipeline(&["resume"]).exits(1).tells("--force");
    assert!(refused.out.contains("status     aborted: not wanted"), "{refused:#?}");
    let said = format!("{}{}", refused.out, refused.err);
    assert_eq!(said.matches("force").count(), 1, "what continues it is said once: {said}");
    // Nor with what nobody here has trusted, as one that came from another machine.
    fs::remove_file(lab.home().join("trusted.json")).expect("removed");
    lab.pipeline(&["resume", "--force"]).exits(2).tells("not trusted").tells(&hash);
    assert_eq!(lab.only_run()["status"], "aborted");
    lab.pass("here");
    lab.pipeline(&["resume", "--force", "--trust", &hash]).exits(0).shows("reopened").shows("completed");
}

// What is in the way may be over by itself: that is waited for, and said.
#[test]
fn a_run_whose_directory_is_busy_waits_for_it_and_says_so() {
    let lab = Lab::new();
    let hash = lab.demo_project("barrier here\nappend work.txt line\nsay done");
    let first = lab.pipeline(&["run", "--detach", "--trust", &hash]).exits(0).out.trim().to_owned();
    lab.reach("here");
    let mut command = lab.rekindle(&["pipeline", "run"]);
    command.current_dir(lab.path("work"));
    let mut terminal = Pty::start(&command, 160);
    terminal.see(&format!("implement 1 waits for its directory: run {first} is working in its directory"));
    lab.pipeline(&["ls"]).exits(0).shows("implement 1 waits for its directory");
    lab.pass("here");
    // The first one changed files under it: it does not work on those unasked, and that needs a person.
    assert_eq!(terminal.end(), Some(3));
    lab.pipeline(&["resume", "--on-drift", "accept"]).exits(0).shows("completed");
    assert_eq!(fs::read_to_string(lab.path("work/work.txt")).expect("text"), "line\nline\n");
}

#[test]
fn ctrl_c_leaves_and_the_run_goes_on() {
    let lab = Lab::new();
    let hash = lab.demo_project("barrier here\nsay done");
    let mut command = lab.rekindle(&["pipeline", "run", "--trust", &hash]);
    command.current_dir(lab.path("work"));
    let mut terminal = Pty::start(&command, 100);
    lab.reach("here");
    terminal.see("implement 1 (demo) for");
    terminal.press(crate::pty::CTRL_C);
    assert_eq!(terminal.end(), Some(130));
    assert!(terminal.text().contains("pipeline log -f run-"), "{}", terminal.text());
    assert_eq!(lab.only_run()["status"], "running");
    lab.pass("here");
    lab.pipeline(&["log", "-f"]).exits(0).shows("completed");
}

// I4, I11: whoever follows a run sees it to its end, and the step that goes on is not begun again.
#[test]
fn a_daemon_that_dies_is_waited_for_and_its_successor_takes_the_step_over() {
    let mut lab = Lab::new();
    let hash = lab.demo_project("append work.txt once\nbarrier here\nsay done");
    let mut command = lab.rekindle(&["pipeline", "run", "--trust", &hash]);
    command.current_dir(lab.path("work"));
    let mut terminal = Pty::start(&command, 100);
    lab.reach("here");
    lab.kill();
    // The command itself starts the next one.
    terminal.see("the daemon went away");
    terminal.see("a daemon is running again");
    lab.pass("here");
    assert_eq!(terminal.end(), Some(0));
    assert!(terminal.text().contains("implement 1  demo  completed"), "{}", terminal.text());
    assert_eq!(fs::read_to_string(lab.path("work/work.txt")).expect("text"), "once\n");
    assert_eq!(lab.only_run()["counts"]["commands"], 1);
}

#[test]
fn a_project_is_found_from_below_it_and_the_same_file_elsewhere_is_not_trusted() {
    let lab = Lab::new();
    let hash = lab.project(TWICE);
    let inner = lab.path("work/src");
    fs::create_dir(&inner).expect("a directory");
    let run_in = |directory: PathBuf, arguments: &[&str]| {
        let mut command = lab.rekindle(&[&["pipeline", "run"], arguments].concat());
        ran(command.current_dir(directory), Stdin::Nothing)
    };
    run_in(inner.clone(), &["--trust", &hash]).exits(0);
    assert!(lab.path("work/work.txt").exists() && !inner.join("work.txt").exists());
    let other = lab.path("other");
    fs::create_dir(&other).expect("a directory");
    fs::write(other.join("rekindle.toml"), TWICE).expect("written");
    run_in(other.clone(), &[]).exits(2).tells("not trusted");
    assert!(!other.join("work.txt").exists());
    // A link to the directory is the directory.
    std::os::unix::fs::symlink(lab.path("work"), lab.path("link")).expect("a link");
    run_in(lab.path("link"), &[]).exits(0);
}
