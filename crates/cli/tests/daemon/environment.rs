//! What only a caller has: values of variables, which are in the agent and in memory and on no disk.

use std::os::unix::fs::PermissionsExt;

use rekindle_holder::identity::Identity;
use rekindle_holder::tree::signal_exactly;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::agents_here::install_one;
use crate::lab::{Lab, holds, wait_for};
use crate::ran::{Ran, Stdin, ran};

const NAME: &str = "SOME_KEY";
const VALUE: &str = "a-value-that-is-nowhere-81c2";

fn with_env(lab: &Lab, prompt: &str) -> Value {
    let mut body = lab.session(prompt);
    body["env"] = json!({NAME: VALUE});
    body
}

#[track_caller]
fn wait_held(lab: &Lab, id: &str) {
    wait_for("why it is held", || lab.show(id)["held"].as_str()?.contains(NAME).then_some(()));
}

#[track_caller]
fn is_nowhere(lab: &Lab) {
    assert!(!holds(&lab.home(), VALUE), "a value is on disk");
    assert!(!lab.daemon_log().contains(VALUE), "a value is in the daemon's log");
}

fn kill(pid: i32) {
    signal_exactly(&Identity::of(pid).expect("it lives"), Signal::KILL).expect("killed");
}

// I8, I12
#[test]
fn a_continuation_without_its_environment_is_held_until_someone_brings_it() {
    let mut lab = Lab::new();
    let id =
        lab.create(&with_env(&lab, "run printf %s \"$SOME_KEY\" | wc -c > before\nbarrier here\nsay after"));
    lab.reach("here");
    let given = std::fs::read_to_string(lab.path("work").join("before")).expect("the agent wrote it");
    assert_eq!(given.trim(), VALUE.len().to_string(), "the agent has the value");
    is_nowhere(&lab);
    lab.restart();
    kill(lab.agents()[0]);
    wait_held(&lab, &id);
    let status = lab.rekindle(&["status", &id]).output().expect("it runs");
    let words = String::from_utf8_lossy(&[status.stdout, status.stderr].concat()).into_owned();
    assert!(words.contains(NAME), "{words}");
    // Another restart changes nothing: no agent is started without it.
    lab.restart();
    wait_held(&lab, &id);
    assert_eq!((lab.agents().len(), lab.count(&id, "run.interrupted")), (1, 1));
    lab.post(&format!("/api/sessions/{id}/resume"), &json!({"env": {NAME: VALUE}}));
    assert_eq!(lab.wait_end(&id), "completed");
    assert_eq!((lab.agents().len(), lab.count(&id, "run.started")), (2, 2));
    is_nowhere(&lab);
}

// I12
#[test]
fn a_resume_that_lacks_variables_is_refused_by_their_names() {
    let mut lab = Lab::new();
    let mut body = with_env(&lab, "barrier here\nsay after");
    body["resume"] = json!("ask");
    let id = lab.create(&body);
    lab.reach("here");
    lab.restart();
    kill(lab.agents()[0]);
    lab.wait_status(&id, "interrupted_agent");
    let path = format!("/api/sessions/{id}/resume");
    let reply = lab.ask("POST", &path, &json!({}));
    assert_eq!((reply.status, &reply.body["error"]["code"]), (409, &json!("env_missing")));
    assert!(
        reply.body["error"]["message"].as_str().is_some_and(|words| words.contains(NAME)),
        "{}",
        reply.body
    );
    lab.post(&path, &json!({"env": {NAME: VALUE}}));
    assert_eq!(lab.wait_end(&id), "completed");
    is_nowhere(&lab);
}

// I5: a holder that waits for its start gets it with everything, or not at all.
#[test]
fn an_agent_that_was_never_started_is_not_started_without_its_environment() {
    let mut lab = Lab::without_daemon();
    lab.start_to_die("launch.after_spawn");
    let _ = lab.try_ask(
        "POST",
        "/api/sessions",
        "",
        &with_env(&lab, "run printf %s \"$SOME_KEY\" | wc -c > given"),
    );
    lab.died();
    lab.start();
    let id = lab.get("/api/sessions")["sessions"][0]["id"].as_str().expect("it is there").to_owned();
    wait_held(&lab, &id);
    assert!(lab.agents().is_empty(), "nobody was started without it");
    lab.post(&format!("/api/sessions/{id}/resume"), &json!({"env": {NAME: VALUE}}));
    assert_eq!(lab.wait_end(&id), "completed");
    let given = std::fs::read_to_string(lab.path("work").join("given")).expect("the agent wrote it");
    assert_eq!((given.trim(), lab.agents().len()), (VALUE.len().to_string().as_str(), 1));
    is_nowhere(&lab);
}

/// Returns the lists of names that the session's log has, one for each change.
fn names(lab: &Lab, id: &str) -> Vec<Value> {
    lab.log(id).iter().map(|record| record["env_names"].clone()).filter(Value::is_array).collect()
}

// I12: a variable that came with a message is missed as one that came with the session.
#[test]
fn variables_that_came_with_a_message_are_missed_after_a_restart() {
    let mut lab = Lab::new();
    let id = lab.run("say one");
    assert_eq!(lab.wait_end(&id), "completed");
    kill(lab.agents()[0]);
    wait_for("its end", || (lab.count(&id, "agent.exited") == 1).then_some(()));
    let path = format!("/api/sessions/{id}/messages");
    let script = "run printf %s \"$SOME_KEY\" | wc -c > given\nbarrier here\nsay after";
    lab.post(&path, &json!({"content": script, "env": {NAME: VALUE, "LANG": "C"}}));
    lab.reach("here");
    let given = std::fs::read_to_string(lab.path("work").join("given")).expect("the agent wrote it");
    assert_eq!(given.trim(), VALUE.len().to_string(), "the agent has the value");
    lab.post(&path, &json!({"content": "say later", "env": {NAME: VALUE}}));
    assert_eq!(names(&lab, &id), [json!([NAME])], "told once, and nothing that everybody has");
    lab.restart();
    kill(lab.agents()[1]);
    wait_held(&lab, &id);
    assert_eq!(lab.agents().len(), 2, "nobody was started without it");
    lab.post(&format!("/api/sessions/{id}/resume"), &json!({"env": {NAME: VALUE}}));
    wait_for("what was queued", || lab.said(&id).contains("later").then_some(()));
    is_nowhere(&lab);
}

// I12
#[test]
fn variables_that_came_with_a_resume_are_missed_after_a_restart() {
    let mut lab = Lab::new();
    let mut body = lab.session("barrier here\nsay after");
    body["resume"] = json!("ask");
    body["agent"]["command"] = json!(lab.demo(&["--carry-on", "--no-load", "--no-resume"]));
    let id = lab.create(&body);
    lab.reach("here");
    kill(lab.agents()[0]);
    lab.wait_status(&id, "interrupted_agent");
    let path = format!("/api/sessions/{id}/resume");
    lab.post(&path, &json!({"env": {NAME: VALUE}}));
    wait_for("the next agent", || (lab.prompted("Resume Context") == 1).then_some(()));
    assert_eq!(names(&lab, &id), [json!([NAME])]);
    lab.restart();
    lab.wait_end(&id);
    kill(lab.agents()[1]);
    wait_for("its end", || (lab.count(&id, "agent.exited") == 2).then_some(()));
    lab.post(&format!("/api/sessions/{id}/messages"), &json!({"content": "say more"}));
    wait_held(&lab, &id);
    assert_eq!(lab.agents().len(), 2, "nobody was started without it");
    is_nowhere(&lab);
}

#[test]
fn what_no_process_can_have_in_its_environment_is_refused() {
    let lab = Lab::new();
    let id = lab.run("say one");
    lab.wait_end(&id);
    let mut new = lab.session("say two");
    let bad = [json!({"": "x"}), json!({"A=B": "x"}), json!({"A\u{0}": "x"}), json!({NAME: "\u{0}"})];
    for env in bad {
        new["env"] = env.clone();
        let requests = [
            ("/api/sessions".to_owned(), new.clone()),
            (format!("/api/sessions/{id}/messages"), json!({"content": "say two", "env": env})),
            (format!("/api/sessions/{id}/resume"), json!({ "env": env })),
        ];
        for (path, body) in requests {
            let reply = lab.ask("POST", &path, &body);
            assert_eq!((reply.status, &reply.body["error"]["code"]), (400, &json!("invalid_env")), "{path}");
        }
    }
    assert_eq!((lab.count(&id, "message.user"), names(&lab, &id).len()), (1, 0));
}

fn refused(lab: &Lab, id: &str, body: &Value) -> (u16, Value) {
    let reply = lab.ask("POST", &format!("/api/sessions/{id}/resume"), body);
    (reply.status, reply.body["error"]["code"].clone())
}

// I8, I12: after the death of everybody at once too, nothing is begun that cannot go on.
#[test]
fn a_session_that_lost_everybody_and_its_environment_stays_interrupted_until_someone_brings_it() {
    let mut lab = Lab::new();
    let id = lab.create(&with_env(&lab, "barrier here\nsay after"));
    let other = lab.run("barrier there\nsay after");
    lab.reach("here");
    lab.reach("there");
    lab.kill();
    lab.kill_holders();
    lab.start();
    // When one that needs nothing has gone on, this one would have.
    wait_for("the other one", || (lab.count(&other, "run.completed") == 1).then_some(()));
    wait_held(&lab, &id);
    let cut = lab.show(&id);
    assert_eq!((&cut["run"]["state"], lab.count(&id, "run.started")), (&json!("interrupted"), 1), "{cut}");
    assert_eq!(refused(&lab, &id, &json!({})), (409, json!("env_missing")));
    assert_eq!(refused(&lab, &id, &json!({"env": {"OTHER": "x"}})), (409, json!("env_missing")));
    lab.restart();
    wait_held(&lab, &id);
    assert_eq!(lab.count(&id, "run.started"), 1);
    lab.post(&format!("/api/sessions/{id}/resume"), &json!({"env": {NAME: VALUE}}));
    assert_eq!(lab.wait_end(&id), "completed");
    assert_eq!((lab.agents().len(), lab.count(&id, "run.started")), (4, 2), "two of each");
    is_nowhere(&lab);
}

// I12: what is refused has no effect, and what has an effect is not taken for something else.
#[test]
fn a_resume_of_what_goes_on_is_refused_and_so_is_an_answer_without_its_token() {
    let lab = Lab::new();
    let running = lab.create(&with_env(&lab, "barrier here\nsay after"));
    lab.reach("here");
    let waiting = lab.run("ask may I?\nsay thank you");
    lab.wait_status(&waiting, "waiting");
    for id in [&running, &waiting] {
        assert_eq!(refused(&lab, id, &json!({})), (409, json!("nothing_to_resume")));
        assert_eq!(refused(&lab, id, &json!({"env": {NAME: VALUE}})), (409, json!("nothing_to_resume")));
        let answer = json!({"answer": {"option": "allow_once"}});
        assert_eq!(refused(&lab, id, &answer), (400, json!("invalid_answer")));
    }
    assert_eq!(lab.status(&waiting), "waiting");
    lab.pass("here");
    assert_eq!(lab.wait_end(&running), "completed");
}

// I12: a run that was begun for a message waits for what only a caller has.
#[test]
fn a_message_without_its_variables_waits_for_whoever_brings_them() {
    let mut lab = Lab::new();
    let id = lab.create(&with_env(&lab, "say one"));
    assert_eq!(lab.wait_end(&id), "completed");
    kill(lab.agents()[0]);
    wait_for("its end", || (lab.count(&id, "agent.exited") == 1).then_some(()));
    lab.restart();
    lab.post(&format!("/api/sessions/{id}/messages"), &json!({"content": "say two"}));
    wait_held(&lab, &id);
    assert_eq!(refused(&lab, &id, &json!({})), (409, json!("env_missing")));
    lab.post(&format!("/api/sessions/{id}/resume"), &json!({"env": {NAME: VALUE}}));
    assert_eq!(lab.wait_end(&id), "completed");
    assert_eq!((lab.agents().len(), lab.count(&id, "run.started")), (2, 2));
    is_nowhere(&lab);
}

/// Runs a command of ours where a variable is set, or is not.
fn ran_with(lab: &Lab, arguments: &[&str], value: Option<&str>) -> Ran {
    let mut command = lab.rekindle(arguments);
    match value {
        Some(value) => command.env(NAME, value),
        None => command.env_remove(NAME),
    };
    ran(&mut command, Stdin::Nothing)
}

/// Makes a session that has had a variable, which neither its daemon nor any agent has any more.
fn bereft(lab: &mut Lab) -> String {
    let id = lab.create(&with_env(lab, "say one"));
    assert_eq!(lab.wait_end(&id), "completed");
    kill(lab.agents()[0]);
    wait_for("its end", || (lab.count(&id, "agent.exited") == 1).then_some(()));
    lab.restart();
    id
}

// I12: a command says what is missing instead of sending what nobody could answer, and brings it where it is set.
#[test]
fn send_and_resume_bring_what_is_set_where_they_run_and_name_what_is_not() {
    let mut lab = Lab::new();
    let id = bereft(&mut lab);
    assert_eq!(lab.show(&id)["missing_env"], json!([NAME]));
    let refused = ran_with(&lab, &["send", &id, "say two"], None).exits(1).tells(NAME);
    refused.tells(&lab.hint(&format!("send {id} --env {NAME}=VALUE TEXT")));
    assert_eq!(lab.count(&id, "message.user"), 1, "nothing was sent");
    assert_eq!(ran_with(&lab, &["send", &id, "say two"], Some(VALUE)).exits(0).out, "two\n");
    assert_eq!(lab.show(&id)["missing_env"], json!([]), "an agent lives that has it");
    is_nowhere(&lab);
}

// I8: what nobody works on is not said to go on.
#[test]
fn a_run_without_its_variables_is_shown_as_held_and_a_resume_frees_it() {
    let mut lab = Lab::new();
    let id = bereft(&mut lab);
    lab.post(&format!("/api/sessions/{id}/messages"), &json!({"content": "say two"}));
    wait_held(&lab, &id);
    let listed = lab.ran(&["ps"]).exits(0);
    assert!(listed.out.contains("held") && !listed.out.contains("running"), "{listed:?}");
    let told = lab.ran(&["status", &id]).exits(0);
    let words = told.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(&lab.hint(&format!("resume {id} --env {NAME}"))), "{words}");
    ran_with(&lab, &["resume", &id], None).exits(1).tells(&format!("resume {id} --env {NAME}=VALUE"));
    assert_eq!(ran_with(&lab, &["resume", &id], Some(VALUE)).exits(0).out, "two\n");
    is_nowhere(&lab);
}

#[test]
fn a_command_that_is_a_known_agent_gets_that_agents_variables() {
    let lab = Lab::new();
    install_one(&lab, "gemini", "");
    let program = lab.path("bin/gemini").display().to_string();
    let script = "run printf %s \"$GEMINI_API_KEY\" | wc -c > given";
    let mut command = lab.rekindle(&["run", script, "--", &program, "--acp"]);
    ran(command.env("GEMINI_API_KEY", VALUE), Stdin::Nothing).exits(0);
    let given = std::fs::read_to_string(lab.path("work").join("given")).expect("the agent wrote it");
    assert_eq!(given.trim(), VALUE.len().to_string(), "it has the key");
    is_nowhere(&lab);
}

/// Returns the mode of a file that an agent made.
fn mode(lab: &Lab, name: &str) -> u32 {
    let file = lab.path("work").join(name);
    std::fs::metadata(file).expect("the agent made it").permissions().mode() & 0o777
}

/// Has a shell run a command of ours under a umask.
fn ran_under(lab: &Lab, umask: &str, arguments: &[&str]) -> Ran {
    let ours = lab.rekindle(arguments);
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "umask \"$1\"; shift; exec \"$@\"", "sh", umask]);
    command.arg(ours.get_program()).args(ours.get_args()).current_dir(lab.path("work"));
    command.envs(ours.get_envs().filter_map(|(name, value)| Some((name, value?))));
    ran(&mut command, Stdin::Nothing)
}

#[test]
fn agents_make_files_with_the_umask_of_whoever_asks_and_the_daemon_with_its_own() {
    let mut lab = Lab::new();
    let demo = lab.demo(&[]);
    let run = |umask: &str, file: &str| {
        let script = format!("write {file} hi");
        let mut words = vec!["run", &script, "--"];
        words.extend(demo.iter().map(String::as_str));
        ran_under(&lab, umask, &words).exits(0);
        mode(&lab, file)
    };
    assert_eq!((run("022", "a"), run("002", "b"), run("077", "c")), (0o644, 0o664, 0o600));
    let list = lab.get("/api/sessions");
    let made = |list: &Value| list["sessions"].as_array().expect("a list").len();
    assert_eq!(made(&list), 3);
    // The next agent has it too, whoever launches it: it is in the log.
    let id = lab.get("/api/sessions?q=b")["sessions"][0]["id"].as_str().expect("it is there").to_owned();
    let agents = lab.agents();
    lab.restart();
    agents.into_iter().for_each(kill);
    wait_for("its end", || (lab.count(&id, "agent.exited") == 1).then_some(()));
    lab.post(&format!("/api/sessions/{id}/messages"), &json!({"content": "write d hi\nsay later"}));
    wait_for("the next agent", || lab.said(&id).contains("later").then_some(()));
    assert_eq!(mode(&lab, "d"), 0o664);
    let bad = lab.ask("POST", "/api/sessions", &{
        let mut body = lab.session("say x");
        body["umask"] = json!("0888");
        body
    });
    assert_eq!((bad.status, &bad.body["error"]["code"]), (400, &json!("invalid_body")));
    let log = lab.home().join("sessions").join(format!("{id}.messages.jsonl"));
    let ours = std::fs::metadata(log).expect("a log").permissions().mode() & 0o777;
    assert_eq!(ours, 0o600, "what is ours stays ours");
}
