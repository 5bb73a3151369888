//! Killing the daemon, the agent, the holder, and all of them.

use rekindle_holder::client::{LockState, inspect_all};
use rekindle_holder::identity::Identity;
use rekindle_holder::tree::{await_end, signal_exactly};
use rekindle_lab::Daemon;
use rustix::process::Signal;
use serde_json::json;

use crate::lab::{Lab, PATIENCE, wait_for};

pub(crate) fn kill(pid: i32) {
    rekindle_lab::kill(&Identity::of(pid).expect("it lives"));
}

pub(crate) fn holder_pid(lab: &Lab) -> i32 {
    let found = inspect_all(&lab.home().join("holders")).expect("holders");
    let lives = found.into_iter().find_map(|seen| match seen.lock {
        LockState::Held { note: Some(note), .. } => Some(note.process.pid),
        _ => None,
    });
    lives.expect("a living holder")
}

fn words(count: usize) -> String {
    (1..=count).map(|n| format!("w{n}")).collect::<Vec<_>>().join(" ")
}

// I4, I5, I6
#[test]
fn a_daemon_killed_in_mid_sentence_is_replaced_and_the_sentence_is_whole() {
    let mut lab = Lab::new();
    let id = lab.run("words 20\nbarrier here\nwords 400 every 2ms");
    lab.reach("here");
    let agents = lab.agents();
    lab.restart();
    lab.pass("here");
    lab.restart();
    assert_eq!(lab.wait_end(&id), "completed");
    assert_eq!(lab.agents(), agents, "the agent was not started again");
    assert_eq!(lab.prompted("words"), 1);
    assert!(lab.said(&id).contains(&words(400)), "{}", lab.said(&id));
    assert_eq!((lab.count(&id, "run.interrupted"), lab.count(&id, "run.started")), (0, 1));
    assert!(lab.count(&id, "run.adopted") >= 1);
}

// I6, I8, I14
#[test]
fn a_restart_that_finds_the_agent_dead_interrupts_the_run_once_and_for_all() {
    let mut lab = Lab::new();
    let mut body = lab.session("say before\nbarrier here\nsay after");
    body["resume"] = json!("ask");
    let id = lab.create(&body);
    lab.reach("here");
    let holder = holder_pid(&lab);
    lab.kill();
    kill(holder);
    for _ in 0..2 {
        lab.start();
        lab.wait_status(&id, "interrupted_startup");
        wait_for("why it is held", || {
            lab.show(&id)["held"].as_str()?.contains("your decision").then_some(())
        });
        assert_eq!((lab.count(&id, "run.interrupted"), lab.count(&id, "agent.exited")), (1, 1));
        lab.kill();
    }
    lab.start();
}

// I5
#[test]
fn an_agent_that_dies_is_continued_without_repeating_what_was_asked() {
    let lab = Lab::new();
    let id = lab.run("say before\nbarrier here\nsay after");
    lab.reach("here");
    kill(lab.agents()[0]);
    wait_for("the continuation", || (lab.count(&id, "run.started") == 2).then_some(()));
    assert_eq!(lab.wait_end(&id), "completed");
    let kinds = lab.kinds(&id);
    assert_eq!(lab.count(&id, "run.interrupted"), 1, "{kinds:?}");
    assert!(kinds.iter().any(|kind| kind == "session.restored"), "{kinds:?}");
    assert_eq!(lab.prompted("barrier here"), 1, "the prompt was given once");
    assert_eq!(lab.show(&id)["run"]["attempt"], 2);
}

#[test]
fn an_agent_that_cannot_come_back_is_told_what_happened() {
    let lab = Lab::new();
    let agent = json!({"profile": "acp", "command": lab.demo(&["--no-load", "--no-resume"])});
    let id = lab.create(&json!({
        "working_dir": lab.path("work"), "agent": agent, "prompt": "say a\nbarrier one",
    }));
    lab.reach("one");
    kill(lab.agents()[0]);
    wait_for("the continuation", || (lab.count(&id, "run.started") == 2).then_some(()));
    assert_eq!(lab.wait_end(&id), "completed");
    assert!(lab.prompted("[Resume Context]") == 1, "{:?}", lab.record());
    let restored = lab.log(&id).into_iter().find(|record| record["kind"] == "session.restored");
    assert_eq!(restored.expect("told of its past")["verdict"], "reprimed");
}

// I14
#[test]
fn an_agent_that_dies_again_and_again_is_left_to_a_person() {
    let lab = Lab::new();
    // Any prompt ends it: so does every continuation.
    let script = "while read line; do case $line in *initialize*) id=1;; esac; done";
    let agent =
        json!({"profile": "exec", "command": ["sh", "-c", format!("cat >/dev/null; kill -9 $$; {script}")]});
    // A command is run again only where that is declared to be right.
    let id = lab.create(&json!({
        "working_dir": lab.path("work"), "agent": agent, "prompt": "hello", "on_uncertain": "continue",
    }));
    wait_for("the last attempt", || {
        let shown = lab.show(&id);
        let held = shown["held"].as_str()?.contains("twice");
        (held && shown["run"]["attempt"] == 3).then_some(())
    });
    assert_eq!((lab.count(&id, "run.started"), lab.count(&id, "run.interrupted")), (3, 3));
    assert_eq!(lab.status(&id), "interrupted_agent");
    // A person may go on.
    lab.post(&format!("/api/sessions/{id}/resume"), &json!({}));
    wait_for("another attempt", || (lab.count(&id, "run.interrupted") == 4).then_some(()));
}

// I4: before the prompt reached anybody the same run goes on.
#[test]
fn a_daemon_killed_before_the_prompt_reached_an_agent_goes_on_with_the_same_run() {
    let mut lab = Lab::without_daemon();
    lab.start_with(&[], &[("REKINDLE_CRASH_AT", "start.before_launch")]);
    let _ = lab.try_ask("POST", "/api/sessions", "", &lab.session("say hello"));
    lab.died();
    lab.start();
    let list = lab.get("/api/sessions");
    let id = list["sessions"][0]["id"].as_str().expect("the session is there").to_owned();
    assert_eq!(lab.wait_end(&id), "completed");
    assert_eq!((lab.count(&id, "run.started"), lab.prompted("say hello")), (1, 1));
    assert_eq!(lab.count(&id, "run.interrupted"), 0);
}

// I9, I13
#[test]
fn a_stopped_daemon_is_replaced_and_its_agents_do_not_notice() {
    let mut lab = Lab::new();
    let id = lab.run("barrier here\nwords 50");
    lab.reach("here");
    let agents = lab.agents();
    // As often as one likes. How long it takes is for the bench to say.
    for _ in 0..3 {
        let old = Identity::of(lab.daemon_pid()).expect("it lives");
        signal_exactly(&old, Signal::STOP).expect("stopped");
        lab.start_with(&["--takeover"], &[]);
        assert_eq!(lab.status(&id), "running");
        assert!(await_end(&old, PATIENCE).expect("looked"), "there is one daemon");
    }
    lab.pass("here");
    assert_eq!(lab.wait_end(&id), "completed");
    assert_eq!((lab.agents(), lab.count(&id, "run.interrupted")), (agents, 0));
}

#[test]
fn a_second_daemon_on_one_home_is_refused() {
    let lab = Lab::new();
    let second = lab.rekindle(&["serve"]).output().expect("it runs");
    assert!(!second.status.success());
    let words = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(words.contains("in use"), "{words}");
    lab.get("/healthz");
}

// I13: recorded while nobody could be told, and told when somebody can be, not by the end of the agent.
#[test]
fn a_cancel_while_the_holder_is_silent_reaches_the_agent_when_it_is_met() {
    for prompt in ["say one\nhang", "ask may I?\nsay never"] {
        let mut lab = Lab::new();
        let id = lab.run(prompt);
        wait_for("its turn", || (lab.prompted(prompt.split_once('\n')?.0) == 1).then_some(()));
        if prompt.starts_with("ask") {
            lab.wait_status(&id, "waiting");
        }
        let holder = Identity::of(holder_pid(&lab)).expect("it lives");
        signal_exactly(&holder, Signal::STOP).expect("stopped");
        lab.restart();
        lab.post(&format!("/api/sessions/{id}/cancel"), &json!(null));
        lab.restart();
        signal_exactly(&holder, Signal::CONT).expect("continued");
        let begin = std::time::Instant::now();
        assert_eq!(lab.wait_end(&id), "cancelled", "{prompt}");
        assert!(begin.elapsed().as_secs() < 20, "the agent was told, not ended");
        assert_eq!(lab.living_agents(), lab.agents(), "it lives");
        lab.post(&format!("/api/sessions/{id}/messages"), &json!({"content": "say again"}));
        assert_eq!(lab.wait_end(&id), "completed", "{prompt}");
        let told = lab.record().iter().filter(|line| line.contains("session/cancel")).count();
        assert_eq!((told, lab.agents().len(), lab.count(&id, "run.cancelled")), (1, 1, 1), "{prompt}");
    }
}

// I9: whoever comes first; nobody comes second.
#[test]
fn of_daemons_that_begin_at_once_on_one_home_one_serves() {
    let lab = Lab::without_daemon();
    let begin = || lab.begin(&[], &[]);
    let mut daemons: Vec<Daemon> = (0..8).map(|_| begin()).collect();
    let left = wait_for("all but one to leave", || {
        let mut alive = Vec::new();
        for (at, daemon) in daemons.iter_mut().enumerate() {
            if daemon.try_wait().expect("collected").is_none() {
                alive.push(at);
            }
        }
        (alive.len() == 1).then(|| alive[0])
    });
    let pid = wait_for("the one that is left", || lab.try_get("/api/version")?["pid"].as_u64());
    assert_eq!(pid, u64::from(daemons[left].id()));
    let mut epochs = std::fs::read_to_string(lab.home().join("epoch")).expect("an epoch");
    epochs.retain(|letter| letter.is_ascii_digit());
    assert_eq!(epochs, "1", "the others have not commanded");
}

// I4: many at once.
#[test]
fn forty_agents_are_adopted_and_each_goes_on() {
    let mut lab = Lab::new();
    let ids: Vec<String> = (0..40).map(|n| lab.run(&format!("barrier all\nsay done {n}"))).collect();
    wait_for("all agents", || (lab.prompted("barrier all") == 40).then_some(()));
    lab.kill();
    lab.start();
    lab.pass("all");
    for (n, id) in ids.iter().enumerate() {
        assert_eq!(lab.wait_end(id), "completed");
        assert!(lab.said(id).contains(&format!("done {n}")));
        assert_eq!(lab.count(id, "run.interrupted"), 0);
    }
    assert_eq!(lab.agents().len(), 40);
}

// I4, I14: recovery itself is killed, again and again.
#[test]
fn a_daemon_killed_while_it_recovers_is_followed_by_one_that_recovers_everything() {
    let mut lab = Lab::new();
    let ids: Vec<String> = (0..12).map(|n| lab.run(&format!("barrier all\nsay done {n}"))).collect();
    wait_for("all agents", || (lab.prompted("barrier all") == 12).then_some(()));
    for _ in 0..8 {
        lab.restart();
    }
    lab.restart();
    lab.pass("all");
    for (n, id) in ids.iter().enumerate() {
        assert_eq!(lab.wait_end(id), "completed");
        assert_eq!(lab.said(id).matches(&format!("done {n}")).count(), 1);
        assert_eq!((lab.count(id, "run.interrupted"), lab.count(id, "run.started")), (0, 1));
    }
    assert_eq!((lab.agents().len(), lab.prompted("barrier all")), (12, 12));
}

// I9, I10: one that is silent, one without a place, one that dies at once; the others are served.
#[test]
fn a_silent_holder_is_waited_for_and_keeps_nobody() {
    let mut lab = Lab::new();
    let silent = lab.run("barrier here\nsay late");
    lab.reach("here");
    let gone = lab.path("gone");
    std::fs::create_dir(&gone).expect("a directory");
    let mut body = lab.session("barrier there\nsay x");
    body["working_dir"] = json!(gone);
    let homeless = lab.create(&body);
    lab.reach("there");
    let holder = Identity::of(holder_pid(&lab)).expect("it lives");
    lab.kill();
    signal_exactly(&holder, Signal::STOP).expect("stopped");
    std::fs::remove_dir_all(&gone).expect("removed");
    lab.start();
    let good = lab.run("say good");
    assert_eq!(lab.wait_end(&good), "completed");
    for id in [&silent, &homeless] {
        assert!(matches!(lab.status(id).as_str(), "running"), "{}", lab.show(id));
    }
    signal_exactly(&holder, Signal::CONT).expect("continued");
    lab.pass("here");
    lab.pass("there");
    assert_eq!(lab.wait_end(&silent), "completed");
    assert_eq!(lab.count(&silent, "run.interrupted"), 0);
    lab.wait_end(&homeless);
}

// I8, I9: what is said of the holder and why nothing happens agree, also while it is asked once more.
#[test]
fn a_holder_that_does_not_answer_is_said_to_be_silent_until_it_does() {
    let mut lab = Lab::new();
    let id = lab.run("hang");
    wait_for("its turn", || (lab.prompted("hang") == 1).then_some(()));
    let holder = Identity::of(holder_pid(&lab)).expect("it lives");
    lab.kill();
    signal_exactly(&holder, Signal::STOP).expect("stopped");
    lab.start();
    wait_for("its silence", || lab.show(&id)["held"].as_str()?.contains("does not answer").then_some(()));
    let proof = || lab.show(&id)["evidence"]["holder"]["proof"].clone();
    wait_for("some more attempts", || {
        assert_eq!(proof(), "unresponsive");
        (lab.daemon_log().matches("holder refuses the daemon").count() >= 3).then_some(())
    });
    signal_exactly(&holder, Signal::CONT).expect("continued");
    wait_for("its answer", || (proof() == "lock").then_some(()));
    assert_eq!((lab.show(&id)["held"].is_null(), lab.status(&id).as_str()), (true, "running"));
}

// I13: whoever says that everything is to stop is obeyed by a daemon that has met nobody yet.
#[test]
fn everything_stops_although_the_daemon_has_just_begun() {
    for _ in 0..8 {
        let mut lab = Lab::new();
        for id in [lab.run("say one"), lab.run("say two")] {
            lab.wait_end(&id);
        }
        lab.kill();
        lab.start();
        lab.post("/api/shutdown", &json!({"agents": true}));
        lab.died();
        // A holder ends a moment after it has told how its agent ended.
        wait_for("the end of every holder", || lab.living_holders().is_empty().then_some(()));
        assert_eq!(lab.living_agents(), [0; 0], "{}", lab.daemon_log());
    }
}
