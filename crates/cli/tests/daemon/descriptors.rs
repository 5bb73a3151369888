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
    let mut is_over = false;
    while !is_over {
        let heard = events.next().expect("an event");
        // The last record of a run is what it left behind.
        is_over = heard.event == "run.checkpoint" && heard.data["at"] == "end";
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

/// Returns the numbers of a process's open descriptors.
fn open_descriptors(pid: i32) -> Vec<u64> {
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("a process of ours");
    open.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

// I8, I12: those who only listen do not keep out who wants to know what goes on, and miss nothing when they make way.
#[test]
fn with_no_descriptor_left_whoever_asks_is_answered_and_followers_make_way_for_others() {
    let lab = Lab::new();
    let id = lab.run("say one");
    lab.wait_end(&id);
    let mut first = lab.follow(&id, None);
    let mut last = None;
    let mut is_over = false;
    while !is_over {
        let heard = first.next().expect("an event");
        // The last record of a run is what it left behind.
        is_over = heard.event == "run.checkpoint" && heard.data["at"] == "end";
        last = heard.id.map(|id| (heard.event, id)).or(last);
    }
    let daemon = lab.daemon_pid();
    let open = open_descriptors(daemon);
    // Not one more than those that are open.
    let most = (0..).find(|number| !open.contains(number)).expect("a free number");
    let few = Rlimit { current: Some(most), maximum: rustix::process::getrlimit(Resource::Nofile).maximum };
    let many = prlimit(Pid::from_raw(daemon), Resource::Nofile, few).expect("no more descriptors");
    let mut others = Vec::new();
    for number in 0..16 {
        let mut follower = lab.follow(&id, None);
        assert_eq!(follower.next().expect("an event").event, "session.created", "of follower {number}");
        others.push(follower);
        assert_eq!(lab.get(&format!("/api/sessions/{id}"))["status"], "idle", "with {number} followers");
        assert_eq!(lab.log(&id).last().expect("records")["kind"], "run.checkpoint");
    }
    // The oldest has made way: its stream has an end.
    while first.next().is_some() {}
    let title = json!({"title": "new"});
    assert_eq!(lab.ask("PATCH", &format!("/api/sessions/{id}"), &title).status, 200);
    let mut again = lab.follow(&id, last.as_ref().map(|(_, id)| id.as_str()));
    assert_eq!(again.next().map(|heard| heard.data["title"].clone()), Some(json!("new")));
    prlimit(Pid::from_raw(daemon), Resource::Nofile, many).expect("as before");
    assert_eq!(lab.status(&lab.run("say two")), "running");
}

// What a script has open, a lock or a pipe, is not kept open by the daemon that one of its commands started.
#[test]
fn a_daemon_in_the_background_has_nothing_open_of_whoever_started_it() {
    let mut lab = Lab::without_daemon();
    let theirs = lab.path("their lock");
    let keep = format!("exec 9>>'{}' 8>&9; exec \"$@\"", theirs.display());
    lab.start_by(&["sh", "-c", &keep, "sh"]);
    let daemon = lab.daemon_pid();
    let paths = open_descriptors(daemon).into_iter().filter_map(|number| {
        let link = std::fs::read_link(format!("/proc/{daemon}/fd/{number}"));
        link.ok()
    });
    let open: Vec<_> = paths.collect();
    assert!(!open.is_empty());
    assert!(!open.contains(&theirs), "{open:?}");
}
