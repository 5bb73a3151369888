//! What programs rely on: lists, keys, events that resume, queues, deletion, damage beside the good.

use serde_json::{Value, json};

use crate::lab::{Lab, wait_for};

#[test]
fn the_same_key_gets_the_same_answer_across_restarts_and_another_body_is_a_conflict() {
    let mut lab = Lab::new();
    let body = lab.session("say once");
    let key = "Idempotency-Key: one\r\n";
    let create =
        |lab: &Lab, body: &Value| lab.try_ask("POST", "/api/sessions", key, body).expect("an answer");
    let first = create(&lab, &body);
    assert_eq!(first.status, 201);
    let id = first.body["id"].as_str().expect("an id").to_owned();
    assert_eq!(create(&lab, &body).body["id"], id.as_str());
    lab.wait_end(&id);
    let message = json!({"content": "say twice"});
    let path = format!("/api/sessions/{id}/messages");
    let say = |lab: &Lab, body: &Value| lab.try_ask("POST", &path, key, body).expect("an answer");
    let taken = say(&lab, &message);
    assert_eq!(taken.status, 202);
    lab.wait_end(&id);
    lab.restart();
    assert_eq!(create(&lab, &body).body["id"], id.as_str());
    assert_eq!(say(&lab, &message).body, taken.body);
    for reply in [create(&lab, &lab.session("say other")), say(&lab, &json!({"content": "say other"}))] {
        assert_eq!((reply.status, &reply.body["error"]["code"]), (409, &json!("key_reused")));
    }
    assert_eq!(lab.get("/api/sessions")["sessions"].as_array().map(Vec::len), Some(1));
    assert_eq!(lab.count(&id, "message.user"), 2);
}

// I3: every durable record once and in order, across a restart.
#[test]
fn events_resume_where_they_were_cut() {
    let mut lab = Lab::new();
    let id = lab.run("say one\nbarrier here\nsay two");
    lab.reach("here");
    let mut events = lab.follow(&id, None);
    let (mut seqs, mut last) = (Vec::new(), String::new());
    while seqs.len() < 6 {
        let heard = events.next().expect("an event");
        if let Some(id) = heard.id {
            seqs.push(heard.data["seq"].as_u64().expect("a number"));
            last = id;
        }
    }
    lab.restart();
    let mut events = lab.follow(&id, Some(&last));
    lab.pass("here");
    loop {
        let heard = events.next().expect("an event");
        if heard.id.is_some() {
            seqs.push(heard.data["seq"].as_u64().expect("a number"));
        }
        if heard.event == "run.completed" {
            break;
        }
    }
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
    let foreign = format!("{}.{}", seqs.len() - 1, "0123456789abcdef");
    let mut events = lab.follow(&id, Some(&foreign));
    assert_eq!(events.next().expect("an event").event, "reset", "the log has another hash there");
}

#[test]
fn words_come_before_the_record_that_has_them() {
    let lab = Lab::new();
    let id = lab.run("barrier here\nwords 30 every 1ms");
    lab.reach("here");
    let mut events = lab.follow(&id, None);
    lab.pass("here");
    let mut words = String::new();
    let whole = loop {
        let heard = events.next().expect("an event");
        match heard.event.as_str() {
            "delta" => words.push_str(heard.data["text"].as_str().unwrap_or_default()),
            "message.agent" => break heard.data["content"].as_str().unwrap_or_default().to_owned(),
            _ => {}
        }
    };
    assert!(words.contains("w30") && whole.ends_with(words.trim_start()), "{words:?} {whole:?}");
}

#[test]
fn messages_wait_for_their_turn_and_a_cancel_takes_them_along() {
    let lab = Lab::new();
    let id = lab.run("barrier here\nsay one");
    lab.reach("here");
    let path = format!("/api/sessions/{id}/messages");
    for text in ["say two", "say three"] {
        assert_eq!(lab.post(&path, &json!({"content": text}))["queued"], true);
    }
    lab.pass("here");
    wait_for("three runs", || (lab.count(&id, "run.completed") == 3).then_some(()));
    let said = lab.said(&id);
    assert!(said.find("one") < said.find("two") && said.find("two") < said.find("three"), "{said}");

    let id = lab.run("barrier there\nsay never");
    lab.reach("there");
    lab.post(&format!("/api/sessions/{id}/messages"), &json!({"content": "say neither"}));
    lab.post(&format!("/api/sessions/{id}/cancel"), &Value::Null);
    assert_eq!(lab.wait_end(&id), "cancelled");
    assert_eq!(lab.show(&id)["queued"], 0);
    assert_eq!(lab.count(&id, "run.started"), 1);
    let again = lab.ask("POST", &format!("/api/sessions/{id}/cancel"), &Value::Null);
    assert_eq!((again.status, &again.body["error"]["code"]), (409, &json!("nothing_running")));
}

// I10
#[test]
fn one_bad_session_does_not_keep_the_others_from_being_served() {
    let mut lab = Lab::new();
    let good = lab.run("say good");
    let bad = lab.run("say bad");
    lab.wait_end(&good);
    lab.wait_end(&bad);
    // In order: what was just written would be mended from the write-ahead log.
    lab.leave();
    let log = lab.home().join(format!("sessions/{bad}.messages.jsonl"));
    let mut bytes = std::fs::read(&log).expect("a log");
    bytes[300] ^= 1;
    std::fs::write(&log, bytes).expect("written");
    for name in ["index.json".to_owned(), format!("{bad}.json"), format!("{good}.json")] {
        let _ = std::fs::remove_file(lab.home().join("sessions").join(name));
    }
    std::fs::write(lab.home().join("sessions/rubbish"), "x").expect("written");
    lab.start();
    lab.post(&format!("/api/sessions/{good}/messages"), &json!({"content": "say still here"}));
    wait_for("an answer", || lab.said(&good).contains("still here").then_some(()));
    let shown = lab.show(&bad);
    assert_eq!(shown["health"]["state"], "damaged", "{shown}");
    let reply = lab.ask("POST", &format!("/api/sessions/{bad}/messages"), &json!({"content": "say x"}));
    assert_eq!((reply.status, &reply.body["error"]["code"]), (409, &json!("session_damaged")));
}

#[test]
fn what_cannot_be_launched_fails_with_its_reason_and_nobody_else_waits() {
    let lab = Lab::new();
    let missing = json!({
        "working_dir": lab.path("work"), "prompt": "hello",
        "agent": {"profile": "acp", "command": ["/no/such/agent"]},
    });
    let id = lab.create(&missing);
    assert_eq!(lab.wait_end(&id), "failed");
    let log = lab.log(&id);
    let failed = log.iter().find(|record| record["kind"] == "run.failed").expect("it failed");
    assert!(failed["error"].as_str().is_some_and(|why| why.contains("No such file")), "{failed}");
    // One that ends before it can be asked is not started again for ever.
    let hasty = json!({
        "working_dir": lab.path("work"), "prompt": "hello",
        "agent": {"profile": "acp", "command": ["sh", "-c", "echo not signed in >&2; exit 3"]},
    });
    let id = lab.create(&hasty);
    assert_eq!(lab.wait_end(&id), "failed");
    assert_eq!(lab.count(&id, "agent.launching"), 3);
    let log = lab.log(&id);
    let failed = log.iter().find(|record| record["kind"] == "run.failed").expect("it failed");
    let why = failed["error"].as_str().unwrap_or_default();
    assert!(why.contains("exit code 3") && why.contains("not signed in"), "{why}");
    let nowhere = json!({"working_dir": "/no/such/place", "agent": "claude", "prompt": "hello"});
    let reply = lab.ask("POST", "/api/sessions", &nowhere);
    assert_eq!((reply.status, &reply.body["error"]["code"]), (400, &json!("invalid_working_dir")));
    let id = lab.run("say fine");
    assert_eq!(lab.wait_end(&id), "completed");
}

#[test]
fn any_command_can_be_an_agent() {
    let lab = Lab::new();
    let body = json!({
        "working_dir": lab.path("work"), "prompt": "some words",
        "agent": {"profile": "exec", "command": ["sh", "-c", "tr a-z A-Z; exit 0"]},
    });
    let id = lab.create(&body);
    assert_eq!(lab.wait_end(&id), "completed");
    assert!(lab.said(&id).contains("SOME WORDS"), "{}", lab.said(&id));
}

#[test]
fn last_words_are_those_of_the_latest_turn_however_often_they_are_shown() {
    let mut lab = Lab::new();
    let id = lab.run("say one");
    lab.wait_end(&id);
    assert_eq!(lab.show(&id)["last_words"], "one");
    let renamed = lab.ask("PATCH", &format!("/api/sessions/{id}"), &json!({"title": "new"}));
    assert_eq!(renamed.body["last_words"], "one");
    lab.post(&format!("/api/sessions/{id}/messages"), &json!({"content": "say two"}));
    wait_for("the second turn's words", || (lab.show(&id)["last_words"] == "two").then_some(()));
    // Without a daemon its log has them.
    lab.wait_end(&id);
    wait_for("the last checkpoint", || (lab.count(&id, "run.checkpoint") == 4).then_some(()));
    let told = lab.show(&id);
    lab.kill();
    lab.ran(&["ps"]).exits(0).shows("two");
    let status = lab.ran(&["status", &id, "--json"]).exits(0).json();
    for field in ["last_words", "usage", "cursor", "run", "title", "status", "since", "waits", "queued"] {
        assert_eq!(status[field], told[field], "{field}");
    }
    lab.start();
}

#[test]
fn what_no_agent_can_read_is_refused_before_anything_is_recorded() {
    let lab = Lab::new();
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let id = lab.run("question colour?");
    let wait = lab.wait_status(&id, "waiting")["wait"]["wait_id"].as_str().expect("a wait").to_owned();
    let before = lab.show(&id)["last_seq"].clone();
    for content in [
        r#""\ud800""#.to_owned(),
        r#"[{"type":"text","text":"x","more":"\ud800"}]"#.into(),
        r#"[{"type":"text","text":"x","more":1e999999}]"#.into(),
        format!(r#"[{{"type":"text","text":"x","more":{deep}}}]"#),
        r#"[["text","hello"]]"#.into(),
        r#"["text"]"#.into(),
        r#"[{"type":"text"}]"#.into(),
        r#"[{"type":"","text":{}}]"#.into(),
    ] {
        let body = format!(r#"{{"content":{content}}}"#);
        let (status, said) = lab.raw("POST", &format!("/api/sessions/{id}/messages"), &body);
        assert!(status == 400 || status == 422, "{status} {said}: {content}");
    }
    let form = r#"{"form":{"answer":"\ud800"}}"#;
    let (status, said) = lab.raw("POST", &format!("/api/waits/{wait}/answer"), form);
    assert!(status == 400 || status == 422, "{status} {said}");
    assert_eq!(lab.show(&id)["last_seq"], before);
}

#[test]
fn a_session_that_is_removed_leaves_no_worker() {
    let lab = Lab::new();
    for _ in 0..5 {
        let agent = json!({"profile": "acp", "command": lab.demo(&[])});
        let id = lab.create(&json!({"working_dir": lab.path("work"), "agent": agent}));
        assert_eq!(lab.ask("DELETE", &format!("/api/sessions/{id}"), &json!(null)).status, 204);
    }
    let workers = || {
        let (_, page) = lab.text("/metrics", "");
        page.lines().find_map(|line| line.strip_prefix("rekindle_workers ")?.parse::<u64>().ok())
    };
    wait_for("the workers to leave", || (workers() == Some(0)).then_some(()));
}

#[test]
fn questions_that_mean_nothing_are_refused() {
    let lab = Lab::new();
    let id = lab.run("ask may I?");
    let wait = lab.wait_status(&id, "waiting")["wait"]["wait_id"].as_str().expect("a wait").to_owned();
    for path in ["/api/sessions?status=nope", "/api/sessions?status=idle,", "/api/sessions?limit=0"] {
        let reply = lab.ask("GET", path, &Value::Null);
        assert_eq!((reply.status, &reply.body["error"]["code"]), (400, &json!("invalid_query")), "{path}");
    }
    let answer =
        lab.ask("POST", &format!("/api/waits/{wait}/answer"), &json!(["allow_once", null, null, null]));
    assert_eq!((answer.status, &answer.body["error"]["code"]), (400, &json!("invalid_body")));
    for content in [json!([{"bogus": 1}]), json!([{"type": "text"}]), json!(["words"])] {
        let reply = lab.ask("POST", &format!("/api/sessions/{id}/messages"), &json!({"content": content}));
        assert_eq!(
            (reply.status, &reply.body["error"]["code"]),
            (400, &json!("invalid_content")),
            "{content}"
        );
    }
    assert_eq!(lab.status(&id), "waiting");
}
