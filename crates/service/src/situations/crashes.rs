//! Daemons that die at every single write of a flow, while their agents live on, and successors that go on.

use rekindle_domain::event::{OnUncertain, ResumePolicy};

use super::home::{Home, Setup};

/// One step of a flow: tells whether it was acknowledged.
type Step = fn(&mut Home) -> bool;

/// Goes through a flow, with a daemon that dies after each of its writes in turn. Whatever was not acknowledged is asked for
/// again, then everything must have happened, and once.
fn at_every_write(setup: fn() -> Setup, life: &'static str, steps: &[Step], check: fn(&Home, &str)) {
    at_writes(1, &|| Home::with(setup(), &[life]), life, steps, check);
}

/// The same in homes of a certain kind, at every so many writes.
fn at_writes(every: usize, make: &dyn Fn() -> Home, life: &str, steps: &[Step], check: fn(&Home, &str)) {
    let mut whole = make();
    let begin = whole.writes();
    for step in steps {
        assert!(step(&mut whole), "{life}");
    }
    check(&whole, life);
    let writes = whole.writes() - begin;
    assert!(writes > 10, "{life} writes {writes} times");
    drop(whole);
    for number in (0..writes).step_by(every) {
        let mut home = make();
        home.stop_writing_after(number);
        let done = steps.iter().take_while(|step| step(&mut home)).count();
        home.restart_after_last_write();
        for step in &steps[done..] {
            step(&mut home);
        }
        home.wait_long();
        check(&home, &format!("{life}, dies after {number} of {writes} writes: {}", home.course()));
    }
}

fn send(home: &mut Home) -> bool {
    // One that was recorded and not acknowledged is there.
    if home.count("message.user") == 0 && home.message().is_err() {
        return false;
    }
    home.settle();
    true
}

fn allow(home: &mut Home) -> bool {
    home.settle();
    if home.count("run.waiting") == 0 {
        return false;
    }
    home.count("run.resumed") == 1 || home.answer("allow_once").is_ok()
}

fn cancel(home: &mut Home) -> bool {
    home.count("run.cancel_requested") == 1 || home.cancel().is_ok()
}

/// I1, I4, I5, I6: what was taken is done once, by one agent that was told it once.
fn once(home: &Home, name: &str) {
    assert_eq!((home.count("message.user"), home.count("run.started")), (1, 1), "{name}");
    assert_eq!((home.scripted.started(), home.scripted.given("prompt")), (1, 1), "{name}");
    assert_eq!(home.status(), "idle", "{name}");
}

fn completed(home: &Home, name: &str) {
    once(home, name);
    assert_eq!((home.count("run.completed"), home.count("message.agent")), (1, 1), "{name}");
}

// I1, I4, I5, I6
#[test]
fn a_turn_is_done_once_whenever_its_daemon_dies() {
    at_every_write(Setup::default, "text tool done end", &[send], |home, name| {
        completed(home, name);
        assert_eq!((home.count("tool.call"), home.count("tool.update")), (1, 1), "{name}");
    });
}

// I1, I4, I5, I7
#[test]
fn a_question_is_answered_once_whenever_its_daemon_dies() {
    at_every_write(Setup::default, "ask text end", &[send, allow], |home, name| {
        completed(home, name);
        assert_eq!((home.count("run.waiting"), home.count("run.resumed")), (1, 1), "{name}");
        assert_eq!(home.scripted.given("answer"), 1, "{name}");
    });
}

// I6, I13
#[test]
fn a_cancel_is_carried_out_once_whenever_its_daemon_dies() {
    at_every_write(Setup::default, "hang", &[send, cancel], |home, name| {
        assert_eq!((home.count("run.cancel_requested"), home.count("run.cancelled")), (1, 1), "{name}");
        assert!(home.scripted.given("prompt") <= 1 && home.scripted.given("cancel") <= 1, "{name}");
        assert_eq!(home.status(), "idle", "{name}");
    });
}

// I5, I6
#[test]
fn a_death_is_recorded_once_and_continued_once_whenever_the_daemon_dies() {
    fn wait(home: &mut Home) -> bool {
        home.wait_long();
        home.count("run.completed") == 1
    }
    at_every_write(Setup::default, "text die", &[send, wait], |home, name| {
        let counts = ["run.started", "run.interrupted", "run.completed"].map(|kind| home.count(kind));
        assert_eq!(counts, [2, 1, 1], "{name}");
        assert_eq!((home.scripted.started(), home.scripted.given("prompt")), (2, 2), "{name}");
    });
}

// I1, I4, I5, I12: a prompt follows its checkpoint, each of the two is recorded once, and what they name is there.
#[test]
fn checkpoints_are_recorded_once_whenever_their_daemon_dies() {
    let directory = tempfile::tempdir().expect("a directory");
    for name in ["a", "b", "c"] {
        std::fs::write(directory.path().join(name), name.repeat(100)).expect("written");
    }
    let working_dir: &'static str = directory.path().to_str().expect("text").to_owned().leak();
    // A turn that is cut has twice as many: some of them are enough.
    for (life, every) in [("text end", 1), ("text die", 5)] {
        let make = || {
            let home = Home::with(Setup { working_dir, ..Setup::default() }, &[life]);
            home.captures.set_on(true);
            home
        };
        let wait: Step = |home| {
            home.wait_long();
            home.count("run.completed") == 1 && home.state().owed_end.is_none()
        };
        at_writes(every, &make, life, &[send, wait], |home, name| {
            let records = home.course();
            let runs = home.count("run.started");
            let count = |what: &str| records.split("; ").filter(|record| record.starts_with(what)).count();
            assert_eq!((count("run.checkpoint start"), count("run.checkpoint end")), (runs, runs), "{name}");
            assert_eq!(home.scripted.given("prompt"), runs, "{name}");
            let prompts = records.match_indices("input.queued prompt").map(|(at, _)| at);
            let starts = records.match_indices("run.checkpoint start").map(|(at, _)| at);
            assert!(starts.zip(prompts).all(|(start, prompt)| start < prompt), "{name}");
            let checkpoints = home.state().run.as_ref().expect("a run").checkpoints;
            let trees = [checkpoints.start, checkpoints.end].map(|taken| taken.and_then(|taken| taken.tree));
            for tree in trees.into_iter().flatten() {
                assert!(home.store().blobs().get(&tree).is_ok(), "{name}");
            }
        });
    }
}

// I4, I6: what drifted is told once, with the prompt that it belongs to.
#[test]
fn drift_is_told_once_whenever_the_daemon_dies() {
    let directory = tempfile::tempdir().expect("a directory");
    let working_dir: &'static str = directory.path().to_str().expect("text").to_owned().leak();
    let make = || {
        let _ = std::fs::remove_file(directory.path().join("by-a-person"));
        let setup = Setup::policy(ResumePolicy::Ask, OnUncertain::Ask);
        let home = Home::with(Setup { working_dir, ..setup }, &["text die"]);
        home.captures.set_on(true);
        home
    };
    let change_and_resume: Step = |home| {
        home.settle();
        let is_captured = home.state().run.as_ref().is_some_and(|run| run.checkpoints.end.is_some());
        if home.count("run.started") == 1 {
            if !is_captured {
                return false;
            }
            let changed = std::path::Path::new(&home.state().working_dir).join("by-a-person");
            std::fs::write(changed, "x").expect("written");
            return home.resume(&[]).is_ok() && home.count("run.completed") == 1;
        }
        home.wait_long();
        home.count("run.completed") == 1
    };
    at_writes(3, &make, "text die", &[send, change_and_resume], |home, name| {
        assert_eq!((home.count("run.drift"), home.scripted.given("prompt")), (1, 2), "{name}");
        let records = home.course();
        let told = records.find("run.drift files; input.queued prompt");
        assert!(told > records.find("run.checkpoint end"), "{name}");
        assert!(home.prompted().contains("by-a-person (new)"), "{name}");
    });
}
