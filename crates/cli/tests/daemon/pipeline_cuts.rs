//! Steps that are cut in the middle: what becomes of them by default, and as people say meanwhile.

use std::fs;

use serde_json::{Value, json};

use crate::lab::{Lab, wait_for};

/// A step that begins to work, waits for a word in the middle of it, and goes on.
const HELD: &str = "append code.txt begun\nbarrier here\nappend code.txt done";

fn held(lab: &Lab) -> String {
    lab.demo_config(&[], HELD)
}

/// A run whose only step was cut in the middle by the death of everything, and a person who was at work before a daemon came back.
fn cut_and_edited(lab: &mut Lab) -> String {
    fs::write(lab.path("work/mine.txt"), "of before\n").expect("written");
    let run = lab.start_run(&held(lab), &json!({"on_cut": "restore"}));
    lab.reach("here");
    lab.kill();
    lab.kill_holders();
    wait_for("the end of the agent", || {
        lab.living_agents().iter().for_each(|agent| crate::kills::kill(*agent));
        lab.living_agents().is_empty().then_some(())
    });
    fs::write(lab.path("work/mine.txt"), "edited\n").expect("written");
    lab.start();
    let rests = lab.wait_pending("drift");
    let drift = &rests["pending"]["drift"];
    let paths: Vec<&str> = drift["files"]["first"]
        .as_array()
        .expect("files")
        .iter()
        .filter_map(|file| file["path"].as_str())
        .collect();
    // The agent's own file too: nobody saw when it ended.
    assert_eq!(
        (paths, &drift["unknown_author"]["total"]),
        (vec!["code.txt", "mine.txt"], &json!(2)),
        "{rests:#}"
    );
    lab.pass("here");
    run
}

/// I4, I13: nothing that a person may have done is taken back unasked, and what they say is done.
#[test]
fn an_edit_between_a_death_and_a_resume_is_named_and_done_with_as_somebody_says() {
    for (word, mine, code) in
        [("restore", "of before\n", "begun\ndone\n"), ("accept", "edited\n", "begun\nbegun\ndone\n")]
    {
        let mut lab = Lab::new();
        let run = cut_and_edited(&mut lab);
        let read = |name: &str| fs::read_to_string(lab.path("work").join(name)).expect("a file");
        let key = |lab: &Lab| lab.try_show_run(&run).expect("a run")["stages"][0]["key"].clone();
        let meant = key(&lab);
        lab.pipeline(&["resume", "--on-drift", "stop"])
            .exits(3)
            .tells("mine.txt")
            .tells("--on-drift restore");
        assert_eq!((read("mine.txt").as_str(), read("code.txt").as_str()), ("edited\n", "begun\n"));
        lab.pipeline(&["resume", "--on-drift", word]).exits(0).shows("completed");
        assert_eq!((read("mine.txt").as_str(), read("code.txt").as_str()), (mine, code), "{word}");
        assert_eq!(key(&lab) == meant, word == "restore", "what begins with other files is another step");
        let records = lab.ledger(&run);
        let decided: Vec<&Value> = records
            .iter()
            .filter(|record| record["kind"] == "pipeline.drift")
            .map(|record| &record["decision"])
            .collect();
        assert_eq!(decided, [&json!("stop"), &json!(word)], "{records:#?}");
    }
}

/// I4: one run works in a directory at a time, also under daemons that come after them; the second one finds what the first one did.
#[test]
fn two_runs_in_a_directory_work_one_after_the_other_whoever_dies() {
    let mut lab = Lab::new();
    let first = lab.start_run(&held(&lab), &json!({"on_cut": "restore"}));
    lab.reach("here");
    let second = lab.start_run(&held(&lab), &json!({"on_cut": "restore"}));
    let why = |lab: &Lab, run: &str| {
        lab.try_show_run(run).and_then(|view| view["pending"]["why"].as_str().map(str::to_owned))
    };
    for _ in 0..3 {
        wait_for("the second to wait", || (why(&lab, &second)? == "directory").then_some(()));
        assert_eq!(why(&lab, &first).as_deref(), Some("working"));
        lab.restart();
    }
    lab.pass("here");
    wait_for("the end of the first", || lab.is_run_over(&first).then_some(()));
    // What it works from is not there any more: nobody else's work is built on, or taken back, unasked.
    wait_for("the second to stop", || (why(&lab, &second)? == "drift").then_some(()));
    assert_eq!(fs::read_to_string(lab.path("work/code.txt")).expect("a file"), "begun\ndone\n");
    lab.pipeline(&["resume", &second, "--on-drift", "accept"]).exits(0);
    assert_eq!(fs::read_to_string(lab.path("work/code.txt")).expect("a file"), "begun\ndone\nbegun\ndone\n");
    let at = |run: &str, kind: &str| -> Vec<String> {
        let of = lab.ledger(run).into_iter().filter(|record| record["kind"] == kind);
        of.filter_map(|record| record["ts"].as_str().map(str::to_owned)).collect()
    };
    assert_eq!(at(&first, "step.began").len(), 1, "it was never cut");
    assert!(at(&second, "step.began")[0] >= at(&first, "pipeline.completed")[0]);
}

/// A step whose agent is killed in the middle of it, in a project that says nothing of that: how its agent comes back, why its attempts
/// were cut, and how often its work was done.
struct ByDefault {
    flags: &'static [&'static str],
    cuts: &'static [&'static str],
    done: usize,
}

/// I4, I9: without a word about it a step that was cut goes on in its agent's own session, if that comes back whole; else its files are
/// restored, and it begins again. Nobody need be there.
#[test]
fn by_default_a_cut_step_goes_on_where_its_agent_can_and_else_begins_again() {
    for ByDefault { flags, cuts, done } in [
        ByDefault { flags: &["--carry-on"], cuts: &["agent_gone"], done: 1 },
        ByDefault { flags: &["--no-load", "--no-resume"], cuts: &["agent_gone"], done: 2 },
        ByDefault { flags: &["--load-empty"], cuts: &["agent_gone", "not_continued"], done: 2 },
    ] {
        let lab = Lab::new();
        let effects = lab.path("effects");
        let goal = HELD.replace("barrier", &format!("run echo done >> {}\nbarrier", effects.display()));
        let run = lab.start_run(&lab.demo_config(flags, &goal), &json!({}));
        lab.reach("here");
        crate::kills::kill(lab.living_agents().pop().expect("it works"));
        lab.pass("here");
        let end = wait_for("its end", || lab.try_show_run(&run).filter(|view| view["status"] != "running"));
        assert_eq!(end["status"], "completed", "{flags:?}: {end:#}");
        let read = |file| fs::read_to_string(file).expect("text");
        assert_eq!(read(lab.path("work/code.txt")), "begun\ndone\n", "{flags:?}");
        assert_eq!(read(effects).lines().count(), done, "{flags:?}");
        let records = lab.ledger(&run);
        let of = |kind: &str| records.iter().filter(|record| record["kind"] == kind).collect::<Vec<_>>();
        let why: Vec<&str> = of("step.interrupted").iter().filter_map(|cut| cut["reason"].as_str()).collect();
        assert_eq!(why, cuts, "{flags:?}: {records:#?}");
        assert_eq!(of("pipeline.drift").len(), 0, "{flags:?}: nobody was asked");
        // In the same session exactly where its agent brought that back.
        let sessions: Vec<&str> =
            of("step.began").iter().filter_map(|began| began["session_id"].as_str()).collect();
        let verdicts: Vec<Value> = lab
            .log(sessions[0])
            .into_iter()
            .filter(|record| record["kind"] == "session.restored")
            .map(|record| record["verdict"].clone())
            .collect();
        let goes_on = done == 1;
        assert_eq!(sessions.first() == sessions.last(), goes_on, "{flags:?}: {records:#?}");
        assert_eq!(verdicts.contains(&json!("continued")), goes_on, "{flags:?}: {verdicts:?}");
    }
}

/// I4, I11: a step whose agent lives is taken over by the daemon that a resume has started; of all who resume at once each is told who has
/// the run, and none begins anything.
#[test]
fn a_resume_that_starts_a_daemon_has_the_step_taken_over() {
    let mut lab = Lab::new();
    let run = lab.start_run(&held(&lab), &json!({"on_cut": "restore"}));
    lab.reach("here");
    lab.kill();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let told = lab.pipeline(&["resume", "--on-drift", "restore"]).exits(1);
                assert!(told.err.contains("is working on the run") && told.err.contains("pid"), "{told:#?}");
            });
        }
    });
    lab.pass("here");
    wait_for("its end", || lab.is_run_over(&run).then_some(()));
    assert_eq!(fs::read_to_string(lab.path("work/code.txt")).expect("a file"), "begun\ndone\n");
    assert_eq!(lab.agents().len(), 1, "no agent was begun twice");
    assert_eq!(
        crate::pipeline_lab::kinds(&lab.ledger(&run)).iter().filter(|kind| **kind == "step.began").count(),
        1
    );
}
