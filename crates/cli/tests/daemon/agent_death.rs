//! Agents that die in the middle of a turn, and forget: whoever continues is told what it lacks, and what nobody knows is said.
//! Each of these behaviours was seen in a real agent; the scripted one has them as flags.

use rekindle_holder::identity::Stat;
use serde_json::{Value, json};

use crate::kills::kill;
use crate::lab::{Lab, wait_for};

/// Begins a session with an agent of these flags.
fn begin(lab: &Lab, prompt: &str, flags: &[&str]) -> String {
    let mut body = lab.session(prompt);
    body["agent"]["command"] = json!(lab.demo(flags));
    body["on_uncertain"] = json!("continue");
    lab.create(&body)
}

/// Has a first turn completed, and a second one killed where it stands at a barrier; returns the session when it was continued.
fn cut_in_second_turn(lab: &Lab, flags: &[&str]) -> String {
    let id = begin(lab, "say a fine first answer", flags);
    lab.wait_end(&id);
    lab.post(&format!("/api/sessions/{id}/messages"), &json!({"content": SECOND}));
    lab.reach("middle");
    kill(*lab.agents().last().expect("an agent"));
    continued(lab, &id, 3);
    id
}

const SECOND: &str = "say the second begins\nbarrier middle\nsay never said";

/// Waits until agents were given so many prompts, the last of which continues a run, and that run has ended.
fn continued(lab: &Lab, id: &str, times: usize) {
    wait_for("the interruption", || (lab.count(id, "run.interrupted") == 1).then_some(()));
    wait_for("the continuation", || (prompts(lab).len() == times).then_some(()));
    assert_eq!(lab.wait_end(id), "completed");
}

/// Returns the texts of all prompts that agents were given, in order.
fn prompts(lab: &Lab) -> Vec<String> {
    let lines = lab.record().into_iter().filter_map(|line| serde_json::from_str::<Value>(&line).ok());
    let prompts = lines.filter(|line| line["method"] == "session/prompt");
    prompts
        .map(|line| {
            let blocks = line["params"]["prompt"].as_array().cloned().unwrap_or_default();
            blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
        })
        .collect()
}

fn restored(lab: &Lab, id: &str) -> Vec<(String, String)> {
    let word = |record: &Value, name: &str| record[name].as_str().unwrap_or_default().to_owned();
    let log = lab.log(id);
    let records = log.iter().filter(|record| record["kind"] == "session.restored");
    records.map(|record| (word(record, "method"), word(record, "verdict"))).collect()
}

fn pair(method: &str, verdict: &str) -> (String, String) {
    (method.to_owned(), verdict.to_owned())
}

// I12: nothing of a request is lost, however long it is.
#[test]
fn a_new_agent_gets_the_whole_request_be_it_long_or_in_a_blob() {
    for lines in [200, 12_000] {
        let lab = Lab::new();
        let long: Vec<String> =
            (0..lines).map(|number| format!("line {number} of the request, to the end")).collect();
        let request = format!("barrier middle\n{}", long.join("\n"));
        let id = begin(&lab, &request, &["--no-load", "--no-resume"]);
        lab.reach("middle");
        kill(lab.agents()[0]);
        continued(&lab, &id, 2);
        let told = &prompts(&lab)[1];
        assert_eq!(told.matches(&long.join("\n")).count(), 1, "{lines} lines");
        assert!(told.contains("[Resume Context]") && told.contains("This is attempt 2."));
        assert_eq!(restored(&lab, &id), [pair("context", "reprimed")]);
    }
}

// I12: a load that brings nothing is no memory.
#[test]
fn an_agent_that_loads_an_empty_session_is_told_everything() {
    let lab = Lab::new();
    let id = cut_in_second_turn(&lab, &["--load-empty"]);
    let told = &prompts(&lab)[2];
    assert_eq!(told.matches(SECOND).count(), 1, "{told}");
    assert!(told.contains("a fine first answer") && told.contains("the second begins"), "{told}");
    assert_eq!(restored(&lab, &id), [pair("load", "shorter"), pair("context", "reprimed")]);
}

// I12
#[test]
fn a_request_that_the_agent_forgot_with_the_cut_is_told_again() {
    let lab = Lab::new();
    let id = cut_in_second_turn(&lab, &["--forget-cut"]);
    let told = &prompts(&lab)[2];
    assert_eq!(told.matches(SECOND).count(), 1, "{told}");
    assert!(!told.contains("a fine first answer"), "it remembers the first turn: {told}");
    assert_eq!(restored(&lab, &id), [pair("load", "shorter")]);
    let first = Lab::new();
    let id = begin(&first, "say begun\nbarrier middle", &["--forget-first"]);
    first.reach("middle");
    kill(first.agents()[0]);
    continued(&first, &id, 2);
    assert_eq!(prompts(&first)[1].matches("say begun\nbarrier middle").count(), 1);
}

// I12: whoever has shown that it remembers is not told again.
#[test]
fn an_agent_that_replays_its_prompt_is_not_given_it_again() {
    for flags in [&[][..], &["--merge-messages"]] {
        let lab = Lab::new();
        let id = cut_in_second_turn(&lab, flags);
        let told = &prompts(&lab)[2];
        assert!(told.contains("[Resume Context]") && !told.contains("barrier middle"), "{flags:?}: {told}");
        assert_eq!(restored(&lab, &id), [pair("load", "continued")], "{flags:?}");
    }
}

// I12: an agent that brings its session back without a word of it may have forgotten the cut.
#[test]
fn a_resume_without_a_replay_comes_with_the_request() {
    let lab = Lab::new();
    let id = cut_in_second_turn(&lab, &["--no-load"]);
    assert_eq!(prompts(&lab)[2].matches(SECOND).count(), 1);
    assert_eq!(restored(&lab, &id), [pair("resume", "unverified")]);
}

// I12: a session that a load within the minute would destroy is loaded later, and kept.
#[test]
fn a_session_that_must_not_be_loaded_yet_is_loaded_when_it_may() {
    let mut lab = Lab::without_daemon();
    lab.set("REKINDLE_LOAD_AGAIN_AFTER", 1500);
    lab.start();
    let flags = ["--load-destroys-within", "1s", "--name", "gemini-cli"];
    let id = begin(&lab, "say begun\nbarrier middle\nsay over", &flags);
    lab.reach("middle");
    kill(lab.agents()[0]);
    wait_for("why it waits", || {
        lab.show(&id)["held"].as_str().is_some_and(|held| held.contains("within a minute")).then_some(())
    });
    continued(&lab, &id, 2);
    assert_eq!(lab.agents().len(), 2);
    let told = &prompts(&lab)[1];
    assert!(lab.said(&id).contains("I remember 1 prompt"), "{told}\n{}", lab.said(&id));
    assert_eq!(restored(&lab, &id).len(), 1, "it was loaded, and nothing was told in its place");
}

// I5: what an agent tells again behind its answer to a load is not said by the run that comes next.
#[test]
fn an_agent_that_replays_after_its_answer_is_prompted_when_it_is_done() {
    let mut lab = Lab::without_daemon();
    lab.set("REKINDLE_LOAD_AGAIN_AFTER", 0);
    lab.set("REKINDLE_REPLAY_QUIET", 2000);
    lab.start();
    let id =
        begin(&lab, "say first words", &["--replay-late", "100ms", "--pace", "30ms", "--name", "gemini-cli"]);
    assert_eq!(lab.wait_end(&id), "completed");
    lab.post(
        &format!("/api/sessions/{id}/messages"),
        &json!({"content": "say begun\nbarrier middle\nsay over"}),
    );
    lab.reach("middle");
    kill(lab.agents()[0]);
    lab.pass("middle");
    continued(&lab, &id, 3);
    assert_eq!(lab.said(&id).matches("first words").count(), 1, "{}", lab.said(&id));
    assert!(lab.said(&id).starts_with("first wordsbegunI remember 2 prompts"), "{}", lab.said(&id));
}

// I5: what was allowed has begun, whether or not anything else was said of it; what nobody allowed has not.
#[test]
fn a_tool_that_is_known_by_its_permission_alone_is_uncertain_once_it_was_granted() {
    let lab = Lab::new();
    let mut body = lab.session("guarded echo ran >> effect; sleep 300");
    body["permissions"] = json!("allow");
    let id = lab.create(&body);
    let effect = lab.path("work").join("effect");
    wait_for("its effect", || std::fs::read(&effect).is_ok_and(|text| text == b"ran\n").then_some(()));
    kill(lab.agents()[0]);
    lab.wait_status(&id, "interrupted_agent");
    wait_for("why it is held", || lab.show(&id)["held"].as_str()?.contains("tool calls may").then_some(()));
    let call = lab.show(&id)["run"]["uncertain"]["tool_calls"][0].clone();
    assert_eq!((&call["title"], &call["input"]), (&json!("Shell"), &json!("echo ran >> effect; sleep 300")));
    lab.ran(&["status", &id]).exits(0).shows("Shell: echo ran >> effect");
    lab.ran(&["resume", &id]).exits(0);
    assert_eq!(lab.wait_end(&id), "completed");
    assert!(prompts(&lab)[1].contains("- Shell: echo ran >> effect; sleep 300\n"), "{}", prompts(&lab)[1]);

    let waiting = Lab::new();
    let id = waiting.run("guarded echo ran >> effect");
    waiting.wait_status(&id, "waiting");
    kill(waiting.agents()[0]);
    waiting.wait_status(&id, "interrupted_waiting");
    assert_eq!(waiting.show(&id)["run"]["uncertain"], Value::Null);
}

// I12: what an agent does inside a load is in the log, as part of the run that it was launched for.
#[test]
fn work_inside_a_load_is_recorded_and_not_done_again() {
    let lab = Lab::new();
    let script = "append done one\nbarrier middle\nappend done two\nsay two is done";
    let id = begin(&lab, script, &["--load-continues"]);
    lab.reach("middle");
    kill(lab.agents()[0]);
    lab.pass("middle");
    continued(&lab, &id, 2);
    let log = lab.log(&id);
    let second = |record: &&Value| record["kind"] == "tool.call" && record["status"] == "completed";
    assert!(log.iter().any(|record| second(&record) && record["title"] == "append to done"), "{log:#?}");
    assert_eq!(lab.said(&id).matches("two is done").count(), 1, "{}", lab.said(&id));
    let told = &prompts(&lab)[1];
    assert!(told.contains("append to done"), "it is told as finished: {told}");
    let done = std::fs::read_to_string(lab.path("work").join("done")).expect("a file");
    assert_eq!(done, "one\ntwo\n");
}

// I14: a load that never returns is ended, and whoever comes next is told the story.
#[test]
fn a_load_that_never_returns_is_given_up() {
    let mut lab = Lab::without_daemon();
    lab.set("REKINDLE_LOAD_WITHIN", 700);
    lab.start();
    let id = begin(&lab, "say begun\nbarrier middle", &["--load-hangs"]);
    lab.reach("middle");
    kill(lab.agents()[0]);
    continued(&lab, &id, 2);
    assert_eq!(lab.agents().len(), 3, "one that was killed, one that hung, one that went on");
    assert_eq!(restored(&lab, &id), [pair("context", "reprimed")]);
    let log = lab.log(&id);
    assert!(log.iter().any(|record| record["what"] == "load_timed_out"), "it is said");
    assert_eq!(prompts(&lab)[1].matches("say begun\nbarrier middle").count(), 1);
}

// I13: a cancel ends what hangs, and nothing waits behind it.
#[test]
fn a_cancel_during_a_load_ends_it_and_the_next_message_gets_its_turn() {
    let lab = Lab::new();
    let id = begin(&lab, "say begun\nbarrier middle", &["--load-hangs"]);
    lab.reach("middle");
    kill(lab.agents()[0]);
    let loads = || lab.record().iter().filter(|line| line.contains("session/load")).count();
    wait_for("the load", || (loads() == 1).then_some(()));
    assert_eq!(lab.show(&id)["connection"], "loading");
    lab.ran(&["status", &id]).exits(0).shows("loading");
    // Whoever wants it continued is not told that nothing was cut: it goes on by itself.
    lab.ran(&["resume", &id, "--detach"]).exits(0).tells("continues; watch it");
    lab.post(&format!("/api/sessions/{id}/cancel"), &json!({}));
    wait_for("the end of the agent", || lab.living_agents().is_empty().then_some(()));
    assert_eq!(lab.count(&id, "run.cancelled"), 1);
    // Another agent, which can load, is in the same session by then.
    lab.post(&format!("/api/sessions/{id}/messages"), &json!({"content": "say next"}));
    wait_for("the next load", || (loads() == 2).then_some(()));
}

/// Kills the launcher of the newest agent, which lives on for a moment.
fn kill_launcher(lab: &Lab) {
    let agent = *lab.agents().last().expect("an agent");
    let launcher = Stat::read(agent).expect("it lives").parent;
    kill(launcher);
}

// I5: an agent whose launcher has died is not given anything any more.
#[test]
fn an_agent_whose_launcher_died_gets_no_prompt() {
    let lab = Lab::new();
    let id = begin(&lab, "say one", &["--behind-launcher"]);
    lab.wait_end(&id);
    kill_launcher(&lab);
    lab.post(&format!("/api/sessions/{id}/messages"), &json!({"content": "append done two\nsay two"}));
    wait_for("the second turn", || (lab.count(&id, "run.completed") == 2).then_some(()));
    assert_eq!(lab.prompted("append done two"), 1);
    assert_eq!(lab.count(&id, "run.interrupted"), 0, "{:?}", lab.kinds(&id));
    let done = std::fs::read_to_string(lab.path("work").join("done")).expect("a file");
    assert_eq!((done.as_str(), lab.count(&id, "agent.launching")), ("two\n", 2));
}

// I5, I6: a launcher that dies in mid-turn takes its agent along, and the run goes on with another.
#[test]
fn a_launcher_that_dies_in_a_turn_is_an_agent_that_dies() {
    let lab = Lab::new();
    let id = begin(&lab, "append done one\nsay begun\nbarrier middle\nsay never", &["--behind-launcher"]);
    lab.reach("middle");
    let agent = *lab.agents().last().expect("an agent");
    kill_launcher(&lab);
    continued(&lab, &id, 2);
    // It may not have been collected yet.
    assert!(!Stat::read(agent).is_ok_and(|stat| !stat.ended), "two agents work on one session");
    let done = std::fs::read_to_string(lab.path("work").join("done")).expect("a file");
    assert_eq!((done.as_str(), lab.count(&id, "agent.launching")), ("one\n", 2));
    assert_eq!(lab.said(&id).matches("begun").count(), 1);
}

// I7: an answer to a question whose agent is gone is told in the words of its option, and taken once.
#[test]
fn an_answer_to_a_dead_agents_question_is_told_in_words_and_known_again() {
    let lab = Lab::new();
    let id = lab.run("ask delete everything?");
    let wait = lab.wait_status(&id, "waiting")["wait"]["wait_id"].as_str().expect("a wait").to_owned();
    kill(lab.agents()[0]);
    lab.wait_status(&id, "interrupted_waiting");
    let path = format!("/api/waits/{wait}/answer");
    let first = lab.post(&path, &json!({"option": "allow_once"}));
    let again = lab.post(&path, &json!({"option": "allow_once"}));
    assert_eq!(first["run_id"], again["run_id"], "{first} {again}");
    assert_eq!(lab.ask("POST", &path, &json!({"option": "reject_once"})).status, 409);
    assert_eq!(lab.wait_end(&id), "completed");
    let told = prompts(&lab).into_iter().filter(|text| text.contains("The answer is: Allow")).count();
    assert_eq!(told, 1, "{:?}", prompts(&lab));
}

// I5: that a prompt reached the agent is known from the journal, even if every record since names no run.
#[test]
fn a_prompt_is_not_sent_again_after_a_restart_and_a_death() {
    let mut lab = Lab::new();
    let id = begin(&lab, "usage 10 5 0.01\nbarrier middle\nsay never", &[]);
    lab.reach("middle");
    wait_for("its record", || (lab.count(&id, "usage.updated") == 1).then_some(()));
    lab.kill();
    lab.start();
    wait_for("the adoption", || (lab.count(&id, "run.adopted") == 1).then_some(()));
    kill(lab.agents()[0]);
    continued(&lab, &id, 2);
    let again = prompts(&lab).iter().filter(|text| !text.contains("[Resume Context]")).count();
    assert_eq!(again, 1, "{:#?}", prompts(&lab));
}

// I8, I13: what was left of a run that was cut, and then cancelled, is not offered to be resumed.
#[test]
fn a_cut_run_that_was_cancelled_is_not_said_to_be_resumable() {
    let lab = Lab::new();
    let mut body = lab.session("say begun\nbarrier middle\nsay never");
    body["resume"] = json!("ask");
    let id = lab.create(&body);
    lab.reach("middle");
    kill(lab.agents()[0]);
    assert_eq!(lab.wait_status(&id, "interrupted_agent")["run"]["resumable"], true);
    let resumes = format!("resume {id}");
    lab.ran(&["status", &id]).exits(0).shows(&resumes);
    lab.ran(&["cancel", &id]).exits(0);
    assert_eq!(lab.show(&id)["run"]["resumable"], false);
    let shown = lab.ran(&["status", &id]).exits(0).shows("was cancelled");
    assert!(!shown.out.contains(&resumes), "{shown:?}");
    assert_eq!(lab.ask("POST", &format!("/api/sessions/{id}/resume"), &json!({})).status, 409);
}
