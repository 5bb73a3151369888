//! Notifications of a real daemon, to a real receiver: told once it has settled, at least once whoever is killed when, and a target that
//! hangs keeps nobody but itself.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::hook_receiver::Receiver;
use crate::lab::{Lab, wait_for};
use crate::ran::{Ran, Stdin};

const SECRET: &str = "s3cret-of-the-hook";

/// Returns a home whose daemon tells a receiver, and waits so long whether something settles.
fn lab(settle: &str, sinks: &str) -> Lab {
    let mut lab = Lab::without_daemon();
    lab.set("HOOK_SECRET", SECRET);
    lab.configure(&format!("[notify]\nsettle = \"{settle}\"\n{sinks}"));
    lab
}

fn outbox(lab: &Lab) -> String {
    std::fs::read_to_string(lab.home().join("notify/outbox.jsonl")).unwrap_or_default()
}

/// Waits until the outbox says that so many deliveries are over.
#[track_caller]
fn wait_told(lab: &Lab, count: usize) {
    let told = || outbox(lab).matches("\"entry\":\"told\"").count();
    wait_for("deliveries in the outbox", || (told() >= count).then_some(()));
}

#[test]
fn a_question_and_an_end_reach_whoever_is_not_there() {
    let receiver = Receiver::start();
    let mut lab = lab("1s", &receiver.section("phone"));
    lab.start();
    let id = lab.run("ask may I?\nsay thank you");
    receiver.wait_for("waiting");
    let wait = lab.wait_status(&id, "waiting")["wait"]["wait_id"].as_str().expect("a wait").to_owned();
    let asked = receiver.bodies().remove(0);
    assert_eq!((&asked["session_id"], &asked["kind"]), (&json!(id), &json!("waiting")), "{asked}");
    assert_eq!(asked["event_id"].as_str().and_then(|event| event.split('.').next()), Some(id.as_str()));
    lab.post(&format!("/api/waits/{wait}/answer"), &json!({"option": "allow_once"}));
    receiver.wait_for("completed");
    assert_eq!(receiver.told().len(), 2, "{:?}", receiver.told());
    wait_told(&lab, 2);

    // Only its owner may read it, and no secret is anywhere.
    let file = lab.home().join("notify/outbox.jsonl");
    let mode =
        |path: &std::path::Path| std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!((mode(&file), mode(file.parent().expect("a directory"))), (0o600, 0o700));
    let metrics = lab.text("/metrics", "").1;
    assert!(
        metrics.contains(r#"rekindle_notifications_total{sink="phone",outcome="delivered"} 2"#),
        "{metrics}"
    );
    for (what, text) in [("outbox", outbox(&lab)), ("log", lab.daemon_log()), ("metrics", metrics)] {
        assert!(!text.contains(SECRET) && !text.contains("hook-secret"), "a secret is in the {what}: {text}");
    }

    assert!(!lab.ran(&["doctor"]).exits(0).out.contains("foreign_name"));
    let shown = lab.configured(&["notify", "log"]).output().expect("it runs");
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert_eq!(text.lines().count(), 2, "{text}");
    assert!(text.contains("delivered") && text.contains("waiting") && text.contains("completed"), "{text}");
}

#[test]
fn without_sinks_nothing_is_made() {
    let lab = Lab::new();
    let id = lab.run("say one");
    assert_eq!(lab.wait_end(&id), "completed");
    assert!(!lab.home().join("notify").exists());
    assert!(!lab.text("/metrics", "").1.contains("rekindle_notification"));
}

/// Killed wherever it may be between a record and the line that says that it was delivered.
#[test]
fn whoever_is_killed_when_everything_is_told_at_least_once() {
    for place in ["notify.found", "notify.written", "notify.deliver", "notify.delivered"] {
        let receiver = Receiver::start();
        let mut lab = lab("0s", &receiver.section("phone"));
        lab.start_with(&[], &[("REKINDLE_CRASH_AT", place)]);
        let id = lab.run("say one");
        wait_for(&format!("the death at {place}"), || lab.dead().then_some(()));
        lab.start();
        assert_eq!(lab.wait_end(&id), "completed", "{place}");
        let about = |body: &Value| body["session_id"] == json!(id) && body["kind"] == "completed";
        wait_for(&format!("the end, killed at {place}"), || {
            receiver.bodies().iter().any(about).then_some(())
        });
        let mut events: Vec<Value> = receiver
            .bodies()
            .iter()
            .filter(|body| about(body))
            .map(|body| body["event_id"].clone())
            .collect();
        events.dedup();
        assert_eq!(events.len(), 1, "the same event has the same id, however often it is told: {place}");
        // What is written down as delivered is not told again.
        wait_told(&lab, 1);
        let before = receiver.told().len();
        for _ in 0..2 {
            lab.kill();
            lab.start();
            wait_for("the start", || (lab.get("/api/version")["recovered"] == true).then_some(()));
        }
        let next = lab.run("say two");
        wait_for("the next", || {
            receiver.bodies().iter().any(|body| body["session_id"] == json!(next)).then_some(())
        });
        assert_eq!(receiver.told().len(), before + 1, "{place}: {:?}", receiver.told());
    }
}

#[test]
fn a_target_that_hangs_keeps_neither_prompts_nor_other_targets_nor_the_end() {
    let (slow, quick) = (Receiver::start(), Receiver::start());
    slow.hangs.store(true, Ordering::SeqCst);
    let mut lab = lab("0s", &format!("{}{}", slow.section("slow"), quick.section("quick")));
    lab.start();
    for n in 0..5 {
        let id = lab.run(&format!("say {n}"));
        assert_eq!(lab.wait_end(&id), "completed");
    }
    wait_for("all to the other", || (quick.told().len() == 5).then_some(()));
    assert!(slow.told().is_empty());
    let metrics = lab.text("/metrics", "").1;
    assert!(metrics.contains(r#"rekindle_notifications_waiting{sink="slow"} 5"#), "{metrics}");
    let begin = Instant::now();
    lab.leave();
    assert!(begin.elapsed() < Duration::from_secs(8), "the daemon waits for it: {:?}", begin.elapsed());
    slow.hangs.store(false, Ordering::SeqCst);
    lab.start();
    wait_for("what waited", || (slow.told().len() >= 5).then_some(()));
    assert_eq!(quick.told().len(), 5, "nothing twice to the other");
}

#[test]
fn whoever_has_the_session_on_a_terminal_is_not_told() {
    let receiver = Receiver::start();
    let mut lab = lab("0s", &receiver.section("phone"));
    lab.start();
    let id = lab.run("barrier here\nask may I?\nsay thank you");
    lab.reach("here");
    let path = format!("/api/sessions/{id}/events?attended=true");
    let looks = lab.events(&path, None);
    lab.pass("here");
    lab.wait_status(&id, "waiting");
    // Somebody else's question is told, so that this one would have been too.
    let other = lab.run("ask may I too?");
    wait_for("the other", || {
        receiver.bodies().iter().any(|body| body["session_id"] == json!(other)).then_some(())
    });
    assert_eq!(receiver.told().len(), 1, "{:?}", receiver.told());
    drop(looks);
    wait_for("the question", || {
        receiver.bodies().iter().any(|body| body["session_id"] == json!(id)).then_some(())
    });
}

#[test]
fn tasks_are_told_by_their_end_and_the_queue_by_its() {
    let receiver = Receiver::start();
    let mut lab = lab("0s", &receiver.section("phone"));
    lab.start();
    let tasks = json!({"tasks": [lab.task_in("one", "say done"), lab.task_in("two", "refuse not today")]});
    lab.post("/api/tasks", &tasks);
    receiver.wait_for("queue_empty");
    receiver.wait_for("failed");
    receiver.wait_for("completed");
    assert_eq!(receiver.told().len(), 3, "each once: {:?}", receiver.told());
    assert!(
        receiver.bodies().iter().all(|body| body["kind"] == "queue_empty" || body["task_id"].is_string())
    );
}

#[test]
fn a_test_says_what_came_of_each_sink() {
    let receiver = Receiver::start();
    let nobody = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port();
    let away = format!(
        "[notify.sinks.away]\ntype = \"webhook\"\nurl = \"http://127.0.0.1:{nobody}/hook-secret\"\nallow_private = true\n"
    );
    let lab = lab("2s", &format!("{}{away}", receiver.section("phone")));
    let run = |arguments: &[&str]| {
        let output = lab.configured(arguments).output().expect("it runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, out, _) = run(&["notify", "test"]);
    assert_eq!(code, Some(1), "{out}");
    assert_eq!(out.lines().count(), 2, "{out}");
    assert!(out.contains("not delivered") && !out.contains("hook-secret"), "{out}");
    assert_eq!(receiver.told().len(), 1);
    let (code, out, _) = run(&["notify", "test", "--sink", "phone", "--json"]);
    assert_eq!(
        (code, serde_json::from_str::<Value>(&out).expect("JSON")["delivered"].clone()),
        (Some(0), json!(true))
    );
    let (code, _, said) = run(&["notify", "test", "--sink", "pone"]);
    assert!(code == Some(2) && said.contains("away, phone"), "{said}");
    let (code, out, _) = run(&["notify", "ls"]);
    assert!(
        code == Some(0) && out.contains("phone") && !out.contains("hook-secret") && !out.contains(SECRET),
        "{out}"
    );
    let (code, out, _) = run(&["notify", "log"]);
    assert!(code == Some(0) && out.contains("no notification was ever sent"), "{out}");
}

/// Runs a command that reads the daemon's configuration.
#[track_caller]
fn ran(lab: &Lab, arguments: &[&str]) -> Ran {
    crate::ran::ran(&mut lab.configured(arguments), Stdin::Nothing)
}

/// It is the daemon that will tell: with its variables, and the sinks that it has read.
#[test]
fn a_test_is_sent_by_the_daemon() {
    let receiver = Receiver::start();
    let mut lab = Lab::without_daemon();
    let sink = "[notify.sinks.phone]\ntype = \"webhook\"\nurl = \"env:HOOK_URL\"\nallow_private = true\n";
    lab.configure(sink);
    lab.start();
    lab.set("HOOK_URL", format!("http://127.0.0.1:{}/hook", receiver.port));
    // Only this shell has the variable.
    ran(&lab, &["notify", "test"]).exits(1).shows("not delivered").shows("HOOK_URL");
    assert!(receiver.told().is_empty());
    lab.kill();
    lab.start();
    ran(&lab, &["notify", "test"]).exits(0).shows("delivered");
    assert_eq!(receiver.told().len(), 1);
    let tested = lab.post("/api/notify/test", &json!({"sink": "phone"}));
    assert_eq!((&tested["delivered"], &tested["why"]), (&json!(true), &json!(null)), "{tested}");
    lab.configure(&format!("{sink}{}[notify.sinks.ding]\ntype = \"bell\"\n", receiver.section("new")));
    ran(&lab, &["notify", "test", "--sink", "new"]).exits(1).shows("has not read it yet");
    ran(&lab, &["notify", "test", "--sink", "ding"]).exits(2).tells("is a bell");
    ran(&lab, &["notify", "ls"]).exits(0).shows("ding").shows("ps --watch");
    let unknown = lab.ask("POST", "/api/notify/test", &json!({"sink": "new"}));
    assert_eq!(unknown.refusal(), (404, "sink_unknown"));
    // What is sent for trying is no delivery.
    ran(&lab, &["notify", "log"]).exits(0).shows("nothing was delivered yet");
}
