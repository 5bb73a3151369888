//! Lists page by page: whatever happens between two pages, what is there throughout is listed once.

use std::collections::BTreeSet;
use std::process::Command;

use rekindle_testkit::made::dev_program;
use serde_json::{Value, json};

use crate::lab::{Lab, REKINDLE, wait_for};

fn ids(page: &Value, list: &str, name: &str) -> Vec<String> {
    let entries = page[list].as_array().expect("a list").iter();
    entries.map(|one| one[name].as_str().expect("an id").to_owned()).collect()
}

/// Lists everything, a page at a time; `between` is called with what is listed so far.
fn page_by_page(
    lab: &Lab,
    path: &str,
    (list, name): (&str, &str),
    mut between: impl FnMut(&[String]),
) -> Vec<String> {
    let (mut all, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = lab.get(&format!("{path}{cursor}"));
        all.extend(ids(&page, list, name));
        let Some(next) = page["next"].as_str() else { return all };
        cursor = format!("&cursor={next}");
        assert!(all.len() <= 10_000, "it does not end");
        between(&all);
    }
}

fn quiet(lab: &Lab, title: &str) -> String {
    let agent = json!({"profile": "acp", "command": lab.demo(&[])});
    lab.create(&json!({"working_dir": lab.path("work"), "agent": agent, "title": title}))
}

#[test]
fn sessions_that_are_there_throughout_are_listed_once_whatever_happens_meanwhile() {
    let mut lab = Lab::new();
    let made: Vec<String> = (0..23).map(|number| quiet(&lab, &format!("number {number}"))).collect();
    let mut gone = BTreeSet::new();
    let listed = page_by_page(&lab, "/api/sessions?limit=4", ("sessions", "id"), |so_far| {
        // One more, one changed that is still to come, one changed that was, and the one that the cursor is of is removed.
        quiet(&lab, "late");
        for id in [&made[0], &so_far[0]] {
            let changed = lab.ask("PATCH", &format!("/api/sessions/{id}"), &json!({"title": "changed"}));
            assert_eq!(changed.status, 200);
        }
        let last = so_far.last().expect("a page").clone();
        if last != made[0] {
            assert_eq!(lab.ask("DELETE", &format!("/api/sessions/{last}"), &Value::Null).status, 204);
            gone.insert(last);
        }
    });
    let once: BTreeSet<&String> = listed.iter().collect();
    assert_eq!(once.len(), listed.len(), "one is listed twice: {listed:?}");
    assert_eq!(once, made.iter().collect(), "those that were there before, and none that came later");
    assert!(gone.len() >= 4);

    // A cursor outlives the daemon.
    let page = lab.get("/api/sessions?limit=10");
    let made_at = ids(&page, "sessions", "created_at");
    assert!(made_at.is_sorted_by(|a, b| a >= b), "the one that was made last comes first: {made_at:?}");
    let (first, next) = (ids(&page, "sessions", "id"), page["next"].as_str().expect("a cursor").to_owned());
    lab.restart();
    let rest = ids(&lab.get(&format!("/api/sessions?limit=500&cursor={next}")), "sessions", "id");
    assert!(first.iter().all(|id| !rest.contains(id)));
    assert_eq!(first.len() + rest.len(), ids(&lab.get("/api/sessions?limit=500"), "sessions", "id").len());
}

#[test]
fn sessions_are_found_by_status_agent_directory_and_words() {
    let lab = Lab::new();
    let waiting = lab.run("ask may I?");
    lab.wait_status(&waiting, "waiting");
    let below = lab.path("work/below");
    std::fs::create_dir(&below).expect("a directory");
    let other = json!({"working_dir": below, "agent": {"profile": "exec", "command": ["/bin/true"]}, "title": "Two Words"});
    let other = lab.create(&other);
    let found = |query: &str| ids(&lab.get(&format!("/api/sessions?{query}")), "sessions", "id");
    let (work, both) = (lab.path("work").display().to_string(), vec![other.clone(), waiting.clone()]);
    assert_eq!(found(&format!("cwd={work}")), both);
    assert_eq!(found(&format!("cwd={work}/below")), [other.as_str()]);
    assert_eq!(found(&format!("cwd={work}/bel")), [""; 0], "a directory, not the beginning of a name");
    assert_eq!(found("status=waiting"), [waiting.as_str()]);
    assert_eq!(found("status=waiting,idle"), both);
    assert_eq!(found("status=running"), [""; 0]);
    assert_eq!(found("agent=true"), [other.as_str()]);
    assert_eq!(found("q=two%20wORDS"), [other.as_str()]);
    assert_eq!(found("q=two%20words&status=waiting"), [""; 0]);
    // One of two fits: a page of one is the last.
    let page = lab.get("/api/sessions?status=waiting&limit=1");
    assert_eq!(page["next"], Value::Null, "{page}");
    for (query, code) in [
        ("limit=0", "invalid_query"),
        ("status=lost", "invalid_query"),
        ("colour=red", "invalid_query"),
        ("cursor=sess_1", "invalid_cursor"),
        ("cursor=", "invalid_cursor"),
    ] {
        let reply = lab.ask("GET", &format!("/api/sessions?{query}"), &Value::Null);
        assert_eq!((reply.status, &reply.body["error"]["code"]), (400, &json!(code)), "{query}");
        assert!(code == "invalid_query" || reply.body["error"]["hint"].is_string(), "{query}");
    }
    // The command line finds the same.
    let ps = |arguments: &[&str]| {
        let mut all = vec!["--json", "ps"];
        all.extend(arguments);
        let output = lab.rekindle(&all).output().expect("a command");
        assert!(output.status.success(), "{output:?}");
        ids(&serde_json::from_slice(&output.stdout).expect("JSON"), "sessions", "id")
    };
    assert_eq!(ps(&["--status", "waiting"]), [waiting.as_str()]);
    assert_eq!(ps(&["--agent", "true", "-q", "two"]), [other.as_str()]);
    assert_eq!(ps(&["--search", "nothing like it"]), [""; 0]);
    assert_eq!(lab.rekindle(&["ps", "--status", "lost"]).output().expect("a command").status.code(), Some(2));
}

#[test]
fn waits_and_holders_come_in_pages_too() {
    let lab = Lab::new();
    let sessions: Vec<String> = (0..3).map(|_| lab.run("ask-two first? | second?")).collect();
    wait_for("all questions", || (ids(&lab.get("/api/waits"), "waits", "wait_id").len() == 6).then_some(()));
    let whole = lab.get("/api/waits");
    assert_eq!(whole["next"], Value::Null);
    let mut answered = None;
    let listed = page_by_page(&lab, "/api/waits?limit=2", ("waits", "wait_id"), |so_far| {
        // The one that the cursor is of goes.
        let last = so_far.last().expect("a page");
        if answered.is_none() {
            lab.post(&format!("/api/waits/{last}/answer"), &json!({"option": "allow_once"}));
            answered = Some(last.clone());
        }
    });
    assert_eq!(listed, ids(&whole, "waits", "wait_id"), "oldest first, each once");
    let of_one = lab.get(&format!("/api/waits?session={}", sessions[1]));
    assert!(of_one["waits"].as_array().is_some_and(|waits| !waits.is_empty()));
    assert!(of_one["waits"].as_array().expect("waits").iter().all(|wait| wait["session_id"] == sessions[1]));
    assert_eq!(ids(&lab.get("/api/waits?session=sess_nobody"), "waits", "wait_id"), [""; 0]);

    let all = ids(&lab.get("/api/holders"), "holders", "id");
    assert_eq!(all.len(), 3);
    assert_eq!(page_by_page(&lab, "/api/holders?limit=1", ("holders", "id"), |_| {}), all);
    for path in
        ["/api/waits?cursor=x", "/api/holders?cursor=x", "/api/waits?session=x", "/api/holders?limit=0"]
    {
        assert_eq!(lab.ask("GET", path, &Value::Null).status, 400, "{path}");
    }
    let output = lab.rekindle(&["--json", "waits"]).output().expect("a command");
    assert_eq!(ids(&serde_json::from_slice(&output.stdout).expect("JSON"), "waits", "wait_id").len(), 5);
}

#[test]
fn ten_thousand_sessions_are_found_listed_and_filtered() {
    let mut lab = Lab::without_daemon();
    let made = Command::new(dev_program(REKINDLE))
        .args(["make-home", "--sessions", "10000", "--records", "4", "--finished", "--home"])
        .arg(lab.home())
        .output();
    assert!(made.expect("a command").status.success());
    lab.start();
    for (query, count) in
        [("", 50), ("?status=idle", 50), ("?q=no%20title%20has%20this", 0), ("?status=waiting", 0)]
    {
        let page = lab.get(&format!("/api/sessions{query}"));
        assert_eq!(ids(&page, "sessions", "id").len(), count, "{query}");
    }
    let listed = page_by_page(&lab, "/api/sessions?limit=500", ("sessions", "id"), |_| {});
    assert_eq!((listed.len(), listed.iter().collect::<BTreeSet<_>>().len()), (10_000, 10_000));
}
