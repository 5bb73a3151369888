//! Checkpoints around every run: before its prompt and after its end, whoever dies, and whatever becomes of a capture.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rekindle_domain::event::CheckpointMode;
use rekindle_domain::session::Run;
use rekindle_wire::view::RunState;

use super::home::{Home, Setup};
use super::table::Table;

const BEGUN: &str = "message.user; run.started; run.checkpoint start; agent.launching; input.queued prompt";
const NEXT: &str = "message.user; run.started; run.checkpoint start; input.queued prompt";
const SAID: &str = "message.agent; run.completed";

// Scripted journals have one time, that of the beginning: by them every turn ended then, and what is captured some seconds later
// is late. How late that may be is a matter of the domain's own tests.

/// A home whose session works in a directory with two files, which is captured.
pub(super) struct Captured {
    pub(super) home: Home,
    directory: tempfile::TempDir,
}

impl Captured {
    pub(super) fn new(lives: &[&'static str]) -> Captured {
        Captured::with(Setup::default(), lives)
    }

    pub(super) fn with(setup: Setup, lives: &[&'static str]) -> Captured {
        let directory = tempfile::tempdir().expect("a directory");
        write(directory.path(), "a.txt", "one\ntwo\n");
        write(directory.path(), "b.txt", "three\n");
        let working_dir = directory.path().to_str().expect("text").to_owned().leak();
        let home = Home::with(Setup { working_dir, ..setup }, lives);
        home.captures.set_on(true);
        Captured { home, directory }
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        write(self.directory.path(), name, text);
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(super) fn run(&self) -> Run {
        self.home.state().run.clone().expect("a run")
    }
}

fn write(directory: &Path, name: &str, text: &str) {
    std::fs::write(directory.join(name), text).expect("written");
}

#[test]
fn a_run_has_two_checkpoints_and_says_which_files_it_touched() {
    let mut at = Captured::new(&["hang text end"]);
    let mut table = Table::default();
    table.row("begun", at.home.send(), BEGUN, "running", "");
    at.write("a.txt", "one\n2\nnew\n");
    at.write("c.txt", "c\n");
    std::fs::remove_file(at.path("b.txt")).expect("removed");
    at.home.scripted.go_on();
    table.row("ended", at.home.settle(), &format!("{SAID}; run.checkpoint end 3 files +3 -2"), "idle", "");
    let checkpoints = at.run().checkpoints;
    let (start, end) = (checkpoints.start.expect("taken"), checkpoints.end.expect("taken"));
    assert!(start.tree.is_some() && end.tree.is_some() && start.tree != end.tree);
    table.row("next", at.home.send(), &format!("{NEXT}; {SAID}; run.checkpoint end 0 files"), "idle", "");
    let next = at.run().checkpoints;
    assert_eq!(next.start.expect("taken").tree, end.tree, "nobody changed anything in between");
    table.done(3);
}

// I1: whoever gives a prompt is answered at once, however long the capture takes; the agent is not.
#[test]
fn a_prompt_is_taken_at_once_and_given_to_the_agent_when_its_checkpoint_is_recorded() {
    for warm in [false, true] {
        let mut at = Captured::new(&[]);
        if warm {
            at.home.send();
        }
        at.home.news();
        let given = at.home.scripted.given("prompt");
        at.home.captures.set_hang(true);
        at.home.message().expect("taken");
        at.home.pass(Duration::from_secs(20));
        assert_eq!(at.home.news(), "message.user; run.started", "warm: {warm}");
        assert_eq!(at.home.scripted.given("prompt"), given, "warm: {warm}");
        assert_eq!(at.home.status(), "running");
        assert_eq!(at.home.shown().run.expect("a run").state, RunState::Checkpointing, "warm: {warm}");
        at.home.captures.set_hang(false);
        at.home.captures.let_go();
        let launch = if warm { "" } else { "agent.launching; " };
        let news = format!("run.checkpoint start; {launch}input.queued prompt; {SAID}; run.checkpoint end");
        let told = at.home.settle().news();
        assert!(told.starts_with(&news), "warm: {warm}: {told}");
        assert_eq!(at.home.scripted.given("prompt"), given + 1);
    }
}

// I12: what takes too long is given up, and said.
#[test]
fn a_prompt_waits_thirty_seconds_and_no_longer() {
    for warm in [false, true] {
        let mut at = Captured::new(&[]);
        if warm {
            at.home.send();
        }
        at.home.news();
        at.home.captures.set_hang(true);
        at.home.message().expect("taken");
        at.home.pass(Duration::from_secs(29));
        assert_eq!(at.home.news(), "message.user; run.started", "warm: {warm}");
        assert!(!at.home.captures.is_latest_stopped());
        at.home.captures.set_hang(false);
        let launch = if warm { "" } else { "agent.launching; " };
        let news = format!(
            "run.checkpoint start timed_out; {launch}input.queued prompt; {SAID}; run.checkpoint end"
        );
        let told = at.home.pass(Duration::from_secs(1)).news();
        assert!(told.starts_with(&news), "warm: {warm}: {told}");
        // The one that was given up comes to its end, and nobody cares.
        at.home.captures.let_go();
        assert_eq!(at.home.settle().news(), "", "warm: {warm}");
    }
}

// I13
#[test]
fn a_cancel_ends_a_run_that_waits_for_its_checkpoint_at_once() {
    for warm in [false, true] {
        let mut at = Captured::new(&[]);
        if warm {
            at.home.send();
        }
        at.home.news();
        let given = at.home.scripted.given("prompt");
        at.home.captures.set_hang(true);
        at.home.message().expect("taken");
        at.home.settle();
        at.home.cancel().expect("cancelled");
        let news = "message.user; run.started; run.cancel_requested; run.cancelled";
        assert!(at.home.news().starts_with(news), "warm: {warm}: {}", at.home.course());
        assert!(at.home.captures.is_latest_stopped(), "warm: {warm}");
        assert_eq!(at.home.status(), "idle");
        at.home.captures.set_hang(false);
        at.home.captures.let_go();
        assert_eq!(at.home.settle().news(), "", "warm: {warm}");
        assert_eq!(at.home.scripted.given("prompt"), given, "warm: {warm}");
        at.home.send();
        assert!(at.home.news().starts_with("message.user; run.started; run.checkpoint start; "));
    }
}

// I4: the next daemon takes what the last one did not, and says when that is late.
#[test]
fn a_daemon_that_dies_leaves_its_checkpoints_to_the_next() {
    let mut table = Table::default();
    let mut at = Captured::new(&[]);
    at.home.captures.set_hang(true);
    at.home.message().expect("taken");
    at.home.settle();
    at.home.captures.set_hang(false);
    let news = format!(
        "message.user; run.started; run.checkpoint start; run.adopted; agent.launching; input.queued prompt; {SAID}; \
         run.checkpoint end 0 files"
    );
    table.row("at a start, cold", at.home.restart(), &news, "idle", "");

    let mut at = Captured::new(&[]);
    at.home.send().news();
    at.home.captures.set_hang(true);
    at.home.message().expect("taken");
    at.home.settle();
    at.home.captures.set_hang(false);
    let news = format!(
        "message.user; run.started; run.adopted; run.checkpoint start; input.queued prompt; {SAID}; run.checkpoint end 0 files"
    );
    table.row("at a start, warm", at.home.restart(), &news, "idle", "");

    for agent_lives in [true, false] {
        let mut at = Captured::new(&["hang text end"]);
        at.home.send().news();
        at.home.captures.set_hang(true);
        at.home.scripted.go_on();
        at.home.settle();
        at.home.daemon_ends();
        at.home.captures.set_hang(false);
        at.write("c.txt", "by somebody else\n");
        if !agent_lives {
            at.home.scripted.kill();
        }
        let exited = if agent_lives { "" } else { "agent.exited; " };
        let news = format!("{SAID}; {exited}run.checkpoint end late 1 files +1 -0");
        table.row("at an end", at.home.restart(), &news, "idle", "");
    }
    table.done(4);
}

// What the agent did while nobody was there is told apart from what others may have done since.
#[test]
fn a_run_that_ends_while_nobody_is_there_has_a_late_end() {
    let mut at = Captured::new(&["hang text end"]);
    at.home.send().news();
    at.home.daemon_ends();
    at.home.scripted.lose();
    at.home.restart();
    let news = at.home.news();
    assert!(news.contains("run.interrupted holder_lost"), "{news}");
    assert!(news.contains("run.checkpoint end late 0 files"), "{news}");
}

#[test]
fn a_cut_run_and_its_continuation_have_two_checkpoints_each() {
    let mut at = Captured::new(&["text die"]);
    let cut = "message.agent; run.interrupted agent_exit; agent.exited; run.checkpoint end 0 files";
    let mut table = Table::default();
    table.row("cut", at.home.send(), &format!("{BEGUN}; {cut}"), "interrupted_agent", "");
    let news = format!(
        "run.started attempt=2; run.checkpoint start; agent.launching; session.restored continued; input.queued prompt; \
         {SAID}; run.checkpoint end 0 files"
    );
    table.row("continued", at.home.wait_long(), &news, "idle", "");
    table.done(2);
}

#[test]
fn the_end_of_a_run_is_recorded_before_anything_else_begins() {
    let mut at = Captured::new(&["hang text end"]);
    at.home.send().send().news();
    at.home.captures.set_hang(true);
    at.home.scripted.go_on();
    assert_eq!(at.home.settle().news(), SAID, "the next one waits");
    at.home.captures.set_hang(false);
    at.home.captures.let_go();
    let news = format!(
        "run.checkpoint end 0 files; run.started; run.checkpoint start; input.queued prompt; {SAID}; run.checkpoint end 0 files"
    );
    assert_eq!(at.home.settle().news(), news);

    // One that is given while the end is captured begins at once: its agent waits.
    at.home.captures.set_hang(true);
    at.home.message().expect("taken");
    at.home.settle();
    at.home.captures.let_go();
    at.home.settle();
    at.home.message().expect("taken");
    at.home.settle();
    assert_eq!(at.home.captures.begun(), 6);
    at.home.captures.set_hang(false);
    at.home.captures.let_go();
    at.home.settle();
    let starts = at.home.course().matches("run.checkpoint start").count();
    let ends = at.home.course().matches("run.checkpoint end").count();
    assert_eq!((starts, ends), (4, 4), "{}", at.home.course());
    assert_eq!(at.home.count("run.completed"), 4);
}

#[test]
fn a_cancel_while_an_end_is_captured_is_about_what_waits_alone() {
    let mut at = Captured::new(&["hang text end"]);
    at.home.send().send().news();
    at.home.captures.set_hang(true);
    at.home.scripted.go_on();
    assert_eq!(at.home.settle().news(), SAID, "the next one waits");
    assert_eq!(at.home.cancel().expect("cancelled"), None, "the run that ended is not cancelled");
    at.home.captures.set_hang(false);
    at.home.captures.let_go();
    at.home.settle();
    let course = at.home.course();
    assert_eq!(course.matches("run.cancel_requested").count(), 1, "{course}");
    assert_eq!(at.home.count("run.started"), 1, "{course}");
}

// I12: a capture that fails fails no run, and says why.
#[test]
fn a_capture_that_fails_fails_no_run() {
    let mut at = Captured::new(&["hang text end"]);
    at.home.send().news();
    let parent = at.directory.path().with_extension("moved");
    std::fs::rename(at.directory.path(), &parent).expect("moved");
    at.home.scripted.go_on();
    let news = at.home.settle().news();
    std::fs::rename(&parent, at.directory.path()).expect("moved back");
    assert_eq!(news, format!("{SAID}; run.checkpoint end unreadable"));
    assert_eq!(at.home.status(), "idle");
}

#[test]
fn a_session_says_whether_its_directory_is_captured() {
    for (mode, expected) in [(CheckpointMode::Off, 0), (CheckpointMode::On, 2), (CheckpointMode::Auto, 2)] {
        let mut setup = Setup::default();
        setup.options.checkpoints = Some(mode);
        let mut at = Captured::with(setup, &[]);
        at.home.send();
        assert_eq!(at.home.count("run.checkpoint"), expected, "{mode:?}");
        assert_eq!(at.home.count("run.completed"), 1, "{mode:?}");
    }
    // Nobody means all of a machine.
    let home = || {
        let home = Home::new(&[]);
        home.captures.set_on(true);
        home
    };
    let mut root = home();
    root.send();
    assert_eq!((root.count("run.checkpoint"), root.count("run.completed")), (0, 1));
}

// A command works from its start: its checkpoint comes before its launch.
#[test]
fn a_command_is_launched_behind_its_checkpoint() {
    let mut at = Captured::with(Setup::command(), &["text end"]);
    at.home.captures.set_hang(true);
    at.home.message().expect("taken");
    assert_eq!(at.home.settle().news(), "message.user; run.started");
    assert_eq!(at.home.scripted.launches(), 0);
    at.home.captures.set_hang(false);
    at.home.captures.let_go();
    let news = at.home.wait_long().news();
    assert!(news.starts_with("run.checkpoint start; agent.launching; "), "{news}");
    assert!(news.contains("run.checkpoint end 0 files"), "{news}");
}

#[test]
fn a_removal_waits_for_no_checkpoint() {
    let mut at = Captured::new(&[]);
    at.home.captures.set_hang(true);
    at.home.message().expect("taken");
    at.home.settle();
    at.home.delete().expect("removed");
    assert!(!at.home.is_there() && at.home.captures.is_latest_stopped());
    at.home.captures.let_go();
}
