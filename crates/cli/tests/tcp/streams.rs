//! Streams over TCP: taken up again where they were, also at another daemon.

use serde_json::json;

use crate::client::{Events, Token, ask, listening};

fn seq(id: &str) -> u64 {
    id.split('.').next().and_then(|seq| seq.parse().ok()).expect("a number")
}

// I3, I4
#[test]
fn a_stream_is_taken_up_behind_its_last_event_by_the_next_daemon_too() {
    let (mut lab, port) = listening();
    let id = lab.run("say one\nbarrier here\nsay two");
    lab.reach("here");
    let token = Token::create(&lab, &["--scope", "admin"]);
    let path = format!("/api/sessions/{id}/events");
    let mut heard = Vec::new();
    let mut events = Events::follow(port, &path, &token, None);
    for _ in 0..3 {
        heard.push(events.next_id().expect("a record"));
    }
    drop(events);
    let mut events = Events::follow(port, &path, &token, heard.last().map(String::as_str));
    heard.push(events.next_id().expect("a record"));
    lab.kill();
    // What is still on its way was said before the end.
    while let Some(id) = events.next_id() {
        heard.push(id);
    }
    lab.start();
    let mut events = Events::follow(port, &path, &token, heard.last().map(String::as_str));
    lab.pass("here");
    assert_eq!(lab.wait_end(&id), "completed");
    let said = json!({"content": "say three"});
    assert_eq!(ask(port, "POST", &format!("/api/sessions/{id}/messages"), Some(&token), &said).status, 202);
    crate::lab::wait_for("the second turn", || (lab.count(&id, "run.completed") == 2).then_some(()));
    let newest = lab.show(&id)["last_seq"].as_u64().expect("a number");
    while heard.last().map(|id| seq(id)) != Some(newest) {
        heard.push(events.next_id().expect("a record"));
    }
    let seqs: Vec<u64> = heard.iter().map(|id| seq(id)).collect();
    assert_eq!(seqs, (1..=newest).collect::<Vec<_>>(), "each once and in order");
}
