//! Tasks as a program asks for them: queued, begun in turn, followed, cancelled, tried again.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::lab::{Lab, wait_for};

impl Lab {
    /// Returns a task in a directory of its own.
    pub(crate) fn task_in(&self, directory: &str, prompt: &str) -> Value {
        let directory = self.path("work").join(directory);
        std::fs::create_dir_all(&directory).expect("a directory");
        let mut task = self.session(prompt);
        task["working_dir"] = json!(directory);
        task
    }

    /// Asks for a task, and returns its id.
    pub(crate) fn add_task(&self, body: &Value) -> String {
        self.post("/api/tasks", body)["id"].as_str().expect("an id").to_owned()
    }

    pub(crate) fn task(&self, id: &str) -> Value {
        self.get(&format!("/api/tasks/{id}"))
    }

    /// Waits until a task stands somewhere.
    pub(crate) fn wait_task(&self, id: &str, wanted: &str) -> Value {
        wait_for(&format!("{id} to be {wanted}"), || {
            let task = self.try_get(&format!("/api/tasks/{id}"))?;
            (task["status"] == wanted).then_some(task)
        })
    }

    /// Returns the history of a task in words: where it stood, and who brought it there. Checks that there is no gap.
    pub(crate) fn task_history(&self, id: &str) -> Vec<String> {
        let list = self.get(&format!("/api/tasks/{id}/transitions"));
        let list = list["transitions"].as_array().expect("a list");
        for (line, n) in list.iter().zip(1..) {
            assert_eq!(line["n"], n, "{list:?}");
        }
        let word = |line: &Value, name: &str| line[name].as_str().unwrap_or_default().to_owned();
        list.iter().map(|line| format!("{} {}", word(line, "to"), word(line, "actor"))).collect()
    }
}

#[test]
fn tasks_have_their_turns_and_each_says_what_it_waits_for() {
    let mut lab = Lab::without_daemon();
    lab.configure_tasks("limit = 2\nlabels = { solo = 1 }\n");
    lab.start();
    let first = lab.add_task(&lab.task_in("a", "barrier one\nsay done"));
    lab.reach("one");
    // The same directory, one below it, and the same label.
    let same = lab.add_task(&lab.task_in("a", "say same"));
    let below = lab.add_task(&lab.task_in("a/deep", "say below"));
    let mut labelled = lab.task_in("b", "barrier two\nsay b");
    labelled["labels"] = json!(["solo"]);
    let second = lab.add_task(&labelled);
    lab.reach("two");
    let urgent = {
        let mut task = lab.task_in("c", "say urgent");
        (task["labels"], task["priority"]) = (json!(["solo"]), json!(50));
        lab.add_task(&task)
    };
    let active = lab.get("/api/tasks/active");
    let told: Vec<(Value, Value, Value)> = active["tasks"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|task| (task["id"].clone(), task["status"].clone(), task["position"].clone()))
        .collect();
    assert_eq!(told.len(), 5, "{active}");
    assert_eq!((&told[2].0, &told[2].2), (&json!(urgent), &json!(1)), "{active}");
    assert!(told[3..].iter().all(|(_, status, _)| status == "pending"), "{active}");
    let waits = |id: &str| lab.task(id)["waits_for"].as_str().unwrap_or_default().to_owned();
    assert_eq!(waits(&same), "the limit of running tasks is reached");
    lab.pass("two");
    lab.wait_task(&second, "completed");
    lab.wait_task(&urgent, "completed");
    for id in [&same, &below] {
        assert!(waits(id).contains("is working in its directory"), "{}", waits(id));
    }
    lab.pass("one");
    for id in [&first, &same, &below] {
        lab.wait_task(id, "completed");
        assert_eq!(lab.task_history(id), ["pending user:local", "running scheduler", "completed agent"]);
    }
    let session = lab.task(&first)["session_id"].as_str().expect("a session").to_owned();
    let started =
        lab.log(&session).into_iter().find(|record| record["kind"] == "run.started").expect("a run");
    assert_eq!((&started["task_id"], &started["attempt"]), (&json!(first), &json!(1)));
}

#[test]
fn tasks_wait_for_each_other_and_a_failure_is_passed_on() {
    let lab = Lab::new();
    let task = |name: &str, prompt: &str, after: Value| {
        let mut task = lab.task_in(name, prompt);
        (task["ref"], task["after"]) = (json!(name), after);
        task
    };
    let ended = json!([{"task": "b", "condition": "ended"}]);
    let mut fails = task("b", "say b", json!(["a"]));
    fails["agent"] = json!({"profile": "exec", "command": ["false"]});
    let body = json!({"tasks": [
        task("d", "say d", ended),
        task("c", "say c", json!(["b"])),
        fails,
        task("a", "say a", json!([])),
    ]});
    let made = lab.post("/api/tasks", &body);
    let ids: Vec<&str> =
        made["tasks"].as_array().expect("a list").iter().filter_map(|task| task["id"].as_str()).collect();
    assert!(ids.is_sorted(), "in the order of the request");
    let [d, c, b, a] = ids[..] else { panic!("{made}") };
    lab.wait_task(a, "completed");
    let cause = lab.wait_task(b, "failed");
    assert!(cause["reason"].as_str().is_some_and(|why| why.contains('1')), "{cause}");
    let failed = lab.wait_task(c, "failed");
    assert_eq!(failed["reason"], format!("dependency: {b}"));
    assert_eq!(lab.task_history(c), ["pending user:local", "failed dependency"]);
    lab.wait_task(d, "completed");
    for (bad, code) in [
        (
            json!({"tasks": [task("x", "say", json!(["y"])), task("y", "say", json!(["x"]))]}),
            "dependency_cycle",
        ),
        (json!({"tasks": [task("x", "say", json!(["x"]))]}), "dependency_cycle"),
        (task("x", "say", json!(["task_01khz0p6r8vk6mqj3b8y2c9d4e"])), "dependency_unknown"),
        (json!({"tasks": []}), "invalid_task"),
        (json!({"tasks": [task("x", "say", json!([])), task("x", "say", json!([]))]}), "invalid_task"),
        (json!({"tasks": [task("x", "", json!([]))]}), "invalid_content"),
    ] {
        let refused = lab.ask("POST", "/api/tasks", &bad);
        assert_eq!(refused.code().1, code, "{bad}");
    }
    assert_eq!(lab.get("/api/tasks")["tasks"].as_array().map(Vec::len), Some(4), "nothing is left of those");
}

#[test]
fn a_task_is_asked_for_once_however_often_the_request_is_made() {
    let mut lab = Lab::new();
    let key = "Idempotency-Key: once\r\n";
    let ask =
        |lab: &Lab, key: &str, body: &Value| lab.try_ask("POST", "/api/tasks", key, body).expect("answered");
    let one = lab.task_in("a", "say one");
    let first = ask(&lab, key, &one);
    assert_eq!(first.status, 201, "{}", first.body);
    let id = first.body["id"].as_str().expect("an id").to_owned();
    lab.wait_task(&id, "completed");
    assert_eq!(ask(&lab, key, &one).body["id"], id);
    assert_eq!(ask(&lab, key, &lab.task_in("a", "say other")).code().1, "key_reused");
    assert_eq!(ask(&lab, key, &json!({"tasks": [one.clone(), one.clone()]})).code().1, "key_reused");
    let many = json!({"tasks": (0..50).map(|n| lab.task_in("b", &format!("say {n}"))).collect::<Vec<_>>()});
    let keyed = "Idempotency-Key: many\r\n";
    let ids = |reply: &crate::lab::Reply| -> Vec<Value> {
        reply.body["tasks"].as_array().expect("a list").iter().map(|task| task["id"].clone()).collect()
    };
    let made = ids(&ask(&lab, keyed, &many));
    lab.restart();
    assert_eq!(ids(&ask(&lab, keyed, &many)), made);
    assert_eq!(ask(&lab, key, &one).body["id"], id);
    assert_eq!(lab.get("/api/tasks?limit=500")["tasks"].as_array().map(Vec::len), Some(51));
}

// I13
#[test]
fn a_task_is_cancelled_wherever_it_stands_and_tried_again() {
    let lab = Lab::new();
    let running = lab.add_task(&lab.task_in("a", "barrier here\nsay never"));
    lab.reach("here");
    let waiting = lab.add_task(&lab.task_in("a", "say later"));
    let cancel =
        |id: &str| lab.ask("POST", &format!("/api/tasks/{id}/cancel"), &json!({"reason": "not needed"}));
    assert_eq!(cancel(&waiting).body["status"], "cancelled");
    cancel(&running);
    let ended = lab.wait_task(&running, "cancelled");
    assert_eq!(ended["reason"], "not needed");
    assert_eq!(cancel(&running).code().1, "task_state_conflict");
    assert_eq!(cancel("task_01khz0p6r8vk6mqj3b8y2c9d4e").code().1, "task_unknown");
    assert_eq!(cancel("nonsense").code().1, "task_unknown");
    // A question that nobody answers is no reason to wait.
    let asks = lab.add_task(&lab.task_in("a", "ask may I\nsay yes"));
    assert_eq!(lab.wait_task(&asks, "waiting_input")["reason"], "permission");
    cancel(&asks);
    lab.wait_task(&asks, "cancelled");
    // Another attempt goes on in the same session, or in a new one.
    let retry = |id: &str, body: Value| lab.ask("POST", &format!("/api/tasks/{id}/retry"), &body);
    let session = lab.task(&waiting)["session_id"].clone();
    assert_eq!((session, retry(&waiting, json!({})).status), (Value::Null, 200));
    let again = lab.wait_task(&waiting, "completed");
    assert_eq!((&again["attempt"], retry(&waiting, json!({})).code().1), (&json!(1), "task_state_conflict"));
    let before = lab.task(&asks)["session_id"].clone();
    for (fresh, same) in [(false, true), (true, false)] {
        assert_eq!(retry(&asks, json!({"fresh": fresh})).status, 200);
        let asked = lab.wait_task(&asks, "waiting_input");
        assert_eq!(asked["session_id"] == before, same, "{asked}");
        cancel(&asks);
        lab.wait_task(&asks, "cancelled");
    }
    assert_eq!(lab.task(&asks)["attempt"], 3);
    // Each is told what came of the one before, and then what the task is, as it is.
    for attempt in [2, 3] {
        let told =
            format!("This is attempt {attempt} of 3 at the task below. The last one ended: not needed.");
        assert_eq!(lab.prompted(&told), 1, "{:?}", lab.record());
    }
    assert_eq!(lab.prompted("[End of Resume Context]\\n\\nask may I\\nsay yes"), 2);
    let words = lab.task_history(&asks);
    assert_eq!(words.iter().filter(|line| **line == "running scheduler").count(), 3, "{words:?}");
}

#[test]
fn a_task_follows_its_session_through_questions_and_deaths() {
    let lab = Lab::new();
    let id = lab.add_task(&lab.task_in("a", "ask may I\nbarrier here\nsay done"));
    let task = lab.wait_task(&id, "waiting_input");
    let session = task["session_id"].as_str().expect("a session").to_owned();
    let wait = lab.show(&session)["wait"]["wait_id"].as_str().expect("a wait").to_owned();
    lab.post(&format!("/api/waits/{wait}/answer"), &json!({"option": "allow_once"}));
    lab.reach("here");
    lab.wait_task(&id, "running");
    lab.kill_holders();
    // The session is continued by itself, and the task with it.
    let ended = lab.wait_task(&id, "completed");
    assert_eq!(ended["attempt"], 2);
    let words = lab.task_history(&id);
    let expected = ["pending user:local", "running scheduler", "waiting_input agent", "running agent"];
    assert_eq!(words[..4], expected, "{words:?}");
    assert_eq!(words.last().map(String::as_str), Some("completed agent"), "{words:?}");
    assert!(words[4..].iter().any(|line| line == "running recovery"), "{words:?}");
}

#[test]
fn deadlines_and_missing_variables_are_told_and_held_to() {
    let mut lab = Lab::new();
    let mut late = lab.task_in("a", "barrier here\nsay never");
    late["deadline_at"] = json!("2020-01-01T00:00:00Z");
    let late = lab.add_task(&late);
    assert_eq!(lab.wait_task(&late, "failed")["reason"], "deadline");
    let mut needs = lab.task_in("a", "say done");
    needs["env"] = json!({"A_SECRET_OF_MINE": "x"});
    needs["not_before"] = json!("2999-01-01T00:00:00Z");
    let needs = lab.add_task(&needs);
    assert!(lab.task(&needs)["waits_for"].as_str().is_some_and(|why| why.starts_with("not before 2999")));
    // Whoever comes next knows the name, and not the value.
    lab.restart();
    assert_eq!(lab.task(&needs)["waits_for"], "env_missing: A_SECRET_OF_MINE");
    let log = rekindle_lab::tasks_log(&lab.home()).expect("a log");
    assert!(log.contains("A_SECRET_OF_MINE") && !log.contains("\"x\""));
}

#[test]
fn the_file_of_an_agents_variables_frees_a_task_that_lacks_them() {
    let mut lab = Lab::new();
    let file = lab.path("agent.env");
    let mut needs = lab.task_in("a", "ask may I\nsay done");
    needs["env"] = json!({"A_SECRET_OF_MINE": "x"});
    let first = lab.add_task(&needs);
    lab.wait_task(&first, "waiting_input");
    let second = lab.add_task(&needs);
    lab.leave();
    lab.configure(&format!("[agents.rekindle]\nenv_file = {:?}\n", file.display().to_string()));
    // Whoever else may read it has no use for it.
    std::fs::write(&file, "A_SECRET_OF_MINE=y\n").expect("written");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).expect("changed");
    lab.start();
    lab.post(&format!("/api/tasks/{first}/cancel"), &json!({}));
    lab.wait_task(&first, "cancelled");
    wait_for("what it waits for", || {
        (lab.task(&second)["waits_for"] == "env_missing: A_SECRET_OF_MINE").then_some(())
    });
    assert!(lab.daemon_log().contains("chmod 600"), "{}", lab.daemon_log());
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("changed");
    lab.restart();
    lab.wait_task(&second, "waiting_input");
}

#[test]
fn a_task_that_has_used_its_budget_is_ended_by_it() {
    let lab = Lab::new();
    let mut slow = lab.task_in("a", "barrier here\nsay never");
    slow["budget"] = json!({"wall_s": 1});
    let slow = lab.add_task(&slow);
    let ended = lab.wait_task(&slow, "failed");
    assert_eq!(ended["reason"], "budget: wall time");
    let words = lab.task_history(&slow);
    assert_eq!(words.last().map(String::as_str), Some("failed budget"), "{words:?}");
    let mut quick = lab.task_in("b", "say done");
    quick["budget"] = json!({"wall_s": 3600, "turns": 1, "tokens": 1_000_000, "cost": 5});
    let quick = lab.add_task(&quick);
    lab.wait_task(&quick, "completed");
    let mut wrong = lab.task_in("b", "say done");
    wrong["budget"] = json!({"cost": -1});
    assert_eq!(lab.ask("POST", "/api/tasks", &wrong).code().1, "invalid_task");
}

#[test]
fn whoever_failed_because_of_a_task_is_retried_with_it() {
    let lab = Lab::new();
    let task = |name: &str, after: Value| {
        let mut task = lab.task_in(name, "say done");
        (task["ref"], task["after"]) = (json!(name), after);
        task
    };
    let script = lab.path("fails-once");
    let command = format!("[ -e '{0}' ] || {{ touch '{0}'; exit 1; }}", script.display());
    let mut first = task("a", json!([]));
    first["agent"] = json!({"profile": "exec", "command": ["sh", "-c", command]});
    let body = json!({"tasks": [first, task("b", json!(["a"])), task("c", json!(["b"])), task("d", json!(["a", "c"]))]});
    let made = lab.post("/api/tasks", &body);
    let ids: Vec<&str> =
        made["tasks"].as_array().expect("a list").iter().filter_map(|task| task["id"].as_str()).collect();
    ids.iter().for_each(|id| drop(lab.wait_task(id, "failed")));
    let refused = lab.ask("POST", &format!("/api/tasks/{}/retry", ids[2]), &json!({}));
    assert_eq!(refused.code().1, "task_state_conflict", "what it waits for has failed");
    assert_eq!(lab.ask("POST", &format!("/api/tasks/{}/retry", ids[0]), &json!({})).status, 200);
    ids.iter().for_each(|id| drop(lab.wait_task(id, "completed")));
    for id in &ids[1..] {
        let words = lab.task_history(id);
        let expected = [
            "pending user:local",
            "failed dependency",
            "pending dependency",
            "running scheduler",
            "completed agent",
        ];
        assert_eq!(words, expected);
    }
}

#[test]
fn a_person_who_goes_on_where_a_task_failed_goes_on_with_the_task() {
    let lab = Lab::new();
    let message = |session: &str, content: &str| {
        lab.post(&format!("/api/sessions/{session}/messages"), &json!({"content": content}));
    };
    let session_of = |task: &Value| task["session_id"].as_str().expect("a session").to_owned();
    // One that was cancelled.
    let id = lab.add_task(&lab.task_in("a", "barrier here\nsay never"));
    lab.reach("here");
    lab.post(&format!("/api/tasks/{id}/cancel"), &json!({}));
    let session = session_of(&lab.wait_task(&id, "cancelled"));
    message(&session, "barrier there\nsay done by hand");
    lab.reach("there");
    let again = lab.wait_task(&id, "running");
    assert_eq!((&again["attempt"], &again["reason"]), (&json!(2), &json!("a person's message")));
    lab.pass("there");
    let ended = lab.wait_task(&id, "completed");
    assert_eq!(ended["result"], "done by hand", "{ended}");
    let expected = ["cancelled user:local", "running user", "completed agent"];
    let words = lab.task_history(&id);
    assert_eq!(words[words.len() - 3..], expected, "{words:?}");
    // What is asked in its session after it was completed is another thing.
    message(&session, "say something else");
    lab.wait_end(&session);
    assert_eq!(lab.task(&id)["attempt"], 2);
    let runs = lab.get(&format!("/api/tasks?kind=run&session={session}"));
    assert_eq!(runs["tasks"].as_array().map(Vec::len), Some(1), "{runs}");

    // One whose agent was cut in the middle of something, and that waits for a person.
    let mut uncertain = lab.task_in("b", "tool touch\nbarrier cut\nsay never");
    uncertain["resume"] = json!("ask");
    let id = lab.add_task(&uncertain);
    lab.reach("cut");
    lab.kill_holders();
    let session = session_of(&lab.wait_task(&id, "waiting_input"));
    message(&session, "say go on");
    let ended = lab.wait_task(&id, "completed");
    assert_eq!(ended["attempt"], 2, "{ended}");
    assert_eq!(ended["run_id"], lab.show(&session)["run"]["run_id"]);
}

#[test]
fn a_task_of_which_nothing_is_heard_is_shown_as_stalled_and_goes_on() {
    let mut lab = Lab::without_daemon();
    lab.configure_tasks("stall_after = \"1s\"\n");
    lab.start();
    let id = lab.add_task(&lab.task_in("a", "barrier here\nsay done"));
    lab.reach("here");
    wait_for("it to be stalled", || (lab.task(&id)["progress"]["stalled"] == true).then_some(()));
    lab.ran(&["task", "ls"]).exits(0).shows("stalled");
    lab.pass("here");
    assert_eq!(lab.wait_task(&id, "completed")["progress"]["stalled"], false);
}
