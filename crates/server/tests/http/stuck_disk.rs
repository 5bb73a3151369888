//! A disk that hangs under one session: whoever asks for anything else is answered, because nothing that serves connections
//! reads or writes a file.

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use rekindle_lab::{Connection, EventStream, HOST, PATIENCE, wait_for};
use rekindle_testkit::tapped::Access;
use rekindle_wire::request::Change;
use serde_json::json;

use crate::client::{Server, allow_many_connections};
use crate::disk_gate::Gate;

/// Within this the daemon says that it lives, whatever hangs.
const ALIVE_WITHIN: Duration = Duration::from_millis(50);

/// How often it is asked: of a machine that is busy with other tests one quick answer is enough.
const TRIES: usize = 40;

/// Followers of the session whose log hangs.
const FOLLOWERS: usize = 300;

/// Requests for its log: more than the threads on which a daemon may block.
const ASKING: usize = 600;

fn create(server: &Server) -> String {
    let agent = json!({"profile": "acp", "command": ["/nowhere/agent"]});
    let body = json!({"working_dir": "/", "agent": agent, "title": "first"}).to_string();
    let reply = server.ask("POST", "/api/sessions", "", &body);
    assert_eq!(reply.status, 201, "{:?}", reply.body);
    reply.body["id"].as_str().expect("an id").to_owned()
}

fn follow(server: &Server, session: &str) -> EventStream<UnixStream> {
    let stream = server.connect().into_stream();
    let path = format!("/api/sessions/{session}/events");
    let mut events = EventStream::open(stream, &path, HOST, None).expect("a stream");
    events.begin().expect("it is followed");
    events
}

fn rename(server: &Server, session: &str, title: &str) -> u16 {
    let body = json!({"title": title}).to_string();
    server.ask("PATCH", &format!("/api/sessions/{session}"), "", &body).status
}

/// Sends a request and does not wait for its answer.
fn begin(server: &Server, method: &str, path: &str, body: &str) -> Connection {
    let mut connection = server.connect();
    let request = rekindle_lab::request(method, path, HOST, body);
    connection.send(request.as_bytes()).expect("a request");
    connection
}

/// Reads a stream until a record renames its session.
fn hear_title(events: &mut EventStream<UnixStream>, title: &str) {
    while events.next_event().expect("news").data["title"] != title {}
}

#[track_caller]
fn assert_alive(server: &Server) {
    let quick = (0..TRIES).any(|_| {
        let begun = Instant::now();
        assert_eq!(server.ask("GET", "/healthz", "", "").status, 200);
        begun.elapsed() < ALIVE_WITHIN
    });
    assert!(quick, "it never says within {ALIVE_WITHIN:?} that it lives");
}

// I10: one session whose log cannot be read is felt by nobody else.
#[test]
fn a_log_whose_reads_hang_keeps_nobody_else_waiting() {
    allow_many_connections();
    let gate = Gate::default();
    let server = Server::start_on(&gate);
    let _opened = gate.open_at_end();
    let (stuck, other) = (create(&server), create(&server));
    let mut others = follow(&server, &other);
    let mut followers: Vec<_> = (0..FOLLOWERS).map(|_| follow(&server, &stuck)).collect();
    followers.iter_mut().for_each(|events| hear_title(events, "first"));
    gate.close(Access::Read, &stuck);
    let path = format!("/api/sessions/{stuck}");
    // What is answered needs no log, or comes when it can be read.
    let _changing = begin(&server, "PATCH", &path, r#"{"title":"second"}"#);
    let message = format!("{path}/messages");
    let _telling = begin(&server, "POST", &message, r#"{"content":"go"}"#);
    wait_for("somebody reads the log", || (!gate.waiting().is_empty()).then_some(()));
    assert_alive(&server);
    let _asking: Vec<_> = (0..ASKING).map(|_| begin(&server, "GET", &format!("{path}/log"), "")).collect();
    assert_alive(&server);
    assert_eq!(rename(&server, &other, "theirs"), 200);
    hear_title(&mut others, "theirs");
    assert_alive(&server);
    gate.open();
    followers.iter_mut().for_each(|events| hear_title(events, "second"));
}

// I10: a log that cannot be written keeps nobody from being heard, and nothing of others from being read.
#[test]
fn a_log_whose_writes_hang_keeps_nobody_from_reading_others() {
    let gate = Gate::default();
    let server = Server::start_on(&gate);
    let _opened = gate.open_at_end();
    let (stuck, other) = (create(&server), create(&server));
    assert_eq!(rename(&server, &other, "theirs"), 200);
    let mut followers: Vec<_> = (0..20).map(|_| follow(&server, &stuck)).collect();
    followers.iter_mut().for_each(|events| hear_title(events, "first"));
    hear_title(&mut follow(&server, &other), "theirs");
    gate.close(Access::Write, &stuck);
    let path = format!("/api/sessions/{stuck}");
    let _changing = begin(&server, "PATCH", &path, r#"{"title":"second"}"#);
    wait_for("somebody writes the log", || (!gate.waiting().is_empty()).then_some(()));
    let message = format!("{path}/messages");
    let _telling: Vec<_> = (0..50).map(|_| begin(&server, "POST", &message, r#"{"content":"go"}"#)).collect();
    assert_alive(&server);
    hear_title(&mut follow(&server, &other), "theirs");
    assert_alive(&server);
    gate.open();
    followers.iter_mut().for_each(|events| hear_title(events, "second"));
}

// What is shown of a session and is in its log alone is read once, and again only when the agent has said something.
#[test]
fn a_session_that_was_shown_is_changed_and_shown_while_its_log_cannot_be_read() {
    let gate = Gate::default();
    let server = Server::start_on(&gate);
    let _opened = gate.open_at_end();
    let session = create(&server);
    assert_eq!(rename(&server, &session, "second"), 200);
    gate.close(Access::Read, &session);
    assert_eq!(rename(&server, &session, "third"), 200);
    let shown = server.ask("GET", &format!("/api/sessions/{session}"), "", "");
    assert_eq!((shown.status, &shown.body["title"]), (200, &json!("third")));
    assert!(gate.waiting().is_empty(), "{:?} wait for the log", gate.waiting());
}

// Whoever comes again and again to a disk that hangs is sent to wait elsewhere before the committer's queue is full.
#[test]
fn callers_who_give_up_and_come_again_never_make_the_serving_thread_wait() {
    let gate = Gate::default();
    let server = Server::start_on(&gate);
    let _opened = gate.open_at_end();
    let stuck = create(&server);
    assert_eq!(rename(&server, &stuck, "second"), 200);
    gate.close(Access::Write, &stuck);
    let _changing = begin(&server, "PATCH", &format!("/api/sessions/{stuck}"), r#"{"title":"third"}"#);
    wait_for("somebody writes the log", || (!gate.waiting().is_empty()).then_some(()));
    let daemon = Arc::clone(&server.daemon);
    let id = stuck.parse().expect("an id");
    let (tell, told) = channel();
    std::thread::spawn(move || {
        let change = |_| Change { title: Some("fourth".into()), ..Change::default() };
        let begun = (0..10_000).map(change).map_while(|change| daemon.try_change(id, change).map(drop));
        tell.send(begun.count())
    });
    let begun = told.recv_timeout(PATIENCE).expect("nobody waits for room");
    assert!((100..4096).contains(&begun), "{begun} were begun");
}
