//! A daemon that has no descriptors left for a while: what it cannot look at just then is not taken for gone.

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::{Value, json};

use crate::lab::Lab;

// I9, I12
#[test]
fn whoever_follows_a_session_that_cannot_be_read_is_not_told_that_it_is_gone() {
    let lab = Lab::new();
    let id = lab.run("say one");
    lab.wait_end(&id);
    let mut events = lab.follow(&id, None);
    let mut last = None;
    while last.as_ref().is_none_or(|(event, _)| event != "run.completed") {
        let heard = events.next().expect("an event");
        last = heard.id.map(|id| (heard.event, id)).or(last);
    }
    let mut visitor = lab.connect().expect("a connection");
    assert_eq!(visitor.get("/healthz").expect("an answer")["status"], "ok");
    let daemon = Pid::from_raw(lab.daemon_pid());
    let few = Rlimit { current: Some(3), maximum: rustix::process::getrlimit(Resource::Nofile).maximum };
    let many = prlimit(daemon, Resource::Nofile, few).expect("no more descriptors");
    let (path, body) = (format!("/api/sessions/{id}"), json!({"title": "new"}).to_string());
    visitor.ask("PATCH", &path, "", &body).and_then(|answer| answer.expect(200)).expect("changed");
    let told: Vec<String> = std::iter::from_fn(|| events.next()).map(|heard| heard.event).collect();
    assert!(!told.contains(&"deleted".to_owned()), "it lives: {told:?}");
    prlimit(daemon, Resource::Nofile, many).expect("as before");
    // Whoever comes again has missed nothing.
    assert_eq!(lab.ask("PATCH", &format!("/api/sessions/{id}"), &json!({"title": "newer"})).status, 200);
    let mut events = lab.follow(&id, last.as_ref().map(|(_, id)| id.as_str()));
    let mut titles = std::iter::from_fn(|| events.next()).filter(|heard| heard.event == "session.updated");
    let mut title = || titles.next().map_or(Value::Null, |heard| heard.data["title"].clone());
    assert_eq!([title(), title()], [json!("new"), json!("newer")]);
}
