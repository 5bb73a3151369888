//! What is refused before the daemon is asked: each with its status, its code, and the shape of all errors.

use rekindle_lab::Reply;
use rekindle_server::MAX_BODY;

use crate::client::{Server, allow_many_connections, read};

#[test]
fn paths_that_are_not_there_and_methods_that_are_not_taken() {
    let server = Server::start();
    for path in ["/", "/api", "/api/sessions/", "/api/waits/wait_1/x", "/healthz/x", "/%ff"] {
        assert_eq!(server.ask("GET", path, "", "").refusal(), (404, "no_such_path"), "{path}");
    }
    let reply = server.ask("PUT", "/api/sessions/sess_1", "", "");
    assert_eq!(reply.refusal(), (405, "no_such_method"));
    let mut allowed: Vec<&str> = reply.header("allow").expect("Allow").split(',').collect();
    allowed.sort_unstable();
    assert_eq!(allowed, ["DELETE", "GET", "HEAD", "PATCH"]);
    let reply = server.ask("GET", "/api/shutdown", "", "");
    assert_eq!((reply.refusal(), reply.header("allow")), ((405, "no_such_method"), Some("POST")));
}

#[test]
fn names_that_are_none_name_nothing() {
    let server = Server::start();
    for id in ["", "x", "run_1", "sess_a%2Fb", "sess_%ff", "sess_..", "sess_%00", &"s".repeat(3000)] {
        for (method, rest) in [("GET", "/log"), ("GET", "/status"), ("POST", "/messages"), ("GET", "/events")]
        {
            let reply = server.ask(method, &format!("/api/sessions/{id}{rest}"), "", "{}");
            assert_eq!(reply.refusal(), (404, "session_unknown"), "{method} {id} {rest}");
            assert_eq!(reply.body["error"]["hint"], "GET /api/sessions lists them");
            assert_eq!(reply.body["error"]["advice"]["kind"], "list_sessions");
        }
    }
    let reply = server.ask("POST", "/api/waits/sess_1/answer", "", "{}");
    assert_eq!(reply.refusal(), (404, "wait_unknown"));
}

#[test]
fn queries_and_bodies_that_make_no_sense() {
    let server = Server::start();
    let queries = [
        ("GET", "/api/sessions?limit=x"),
        ("GET", "/api/sessions?limit=-1"),
        ("GET", "/api/sessions?statsu=waiting"),
        ("GET", "/api/sessions/sess_1/log?after=x"),
        ("GET", "/api/sessions/sess_1/log?limit=0"),
        ("GET", "/api/sessions/sess_1/events?after=1.5"),
        ("DELETE", "/api/sessions/sess_1?force=perhaps"),
        ("DELETE", "/api/sessions/sess_1?froce=1"),
    ];
    for (method, path) in queries {
        assert_eq!(server.ask(method, path, "", "").refusal(), (400, "invalid_query"), "{path}");
    }
    let nothing_to_ask = [
        ("GET", "/api/version"),
        ("GET", "/api/agents"),
        ("GET", "/api/openapi.json"),
        ("GET", "/api/events"),
        ("POST", "/api/shutdown"),
        ("POST", "/api/sessions"),
        ("GET", "/api/sessions/sess_1"),
        ("PATCH", "/api/sessions/sess_1"),
        ("POST", "/api/sessions/sess_1/cancel"),
        ("GET", "/api/sessions/sess_1/status"),
        ("POST", "/api/waits/wait_1/token"),
        ("GET", "/api/blobs/x"),
    ];
    for (method, path) in nothing_to_ask {
        let reply = server.ask(method, &format!("{path}?after=1"), "", "");
        assert_eq!(reply.refusal(), (400, "invalid_query"), "{path}");
        let message = reply.body["error"]["message"].as_str().expect("words");
        assert!(message.contains("`after`"), "{message}");
    }
    // A question mark asks nothing, and those who watch may add what they like.
    for path in ["/api/version?", "/healthz?probe=1", "/readyz?probe=1", "/metrics?name[]=up"] {
        assert_ne!(server.ask("GET", path, "", "").status, 400, "{path}");
    }
    let bodies = [
        ("POST", "/api/sessions", ""),
        ("POST", "/api/sessions", "{\"working_dir\":\"/\",\"agent\":\"x\",\"promt\":\"y\"}"),
        ("POST", "/api/sessions/sess_1/messages", "{\"content\":"),
        ("PATCH", "/api/sessions/sess_1", "[]x"),
        ("POST", "/api/sessions/sess_1/cancel", "{\"now\":true}"),
        ("POST", "/api/waits/wait_1/answer", ""),
        ("POST", "/api/shutdown", "{\"agents\":1}"),
    ];
    for (method, path, body) in bodies {
        assert_eq!(server.ask(method, path, "", body).refusal(), (400, "invalid_body"), "{path} {body}");
    }
    let reply = server.ask("PATCH", "/api/sessions/sess_1", "", "{\n \"titel\":\"a\"}");
    let message = reply.body["error"]["message"].as_str().expect("words");
    assert!(message.contains("`titel`") && message.contains("line 2 column 8"), "{message}");
}

#[test]
fn headers_that_make_no_sense() {
    let server = Server::start();
    let long = format!("Idempotency-Key: {}\r\n", "k".repeat(256));
    for headers in [&long, "Idempotency-Key: a b\r\n", "Idempotency-Key:\r\n", "Idempotency-Key: é\r\n"] {
        for path in ["/api/sessions", "/api/sessions/sess_1/messages"] {
            let reply = server.ask("POST", path, headers, "{}");
            assert_eq!(reply.refusal(), (400, "invalid_idempotency_key"), "{headers}");
        }
    }
    let reply = server.ask("GET", "/api/sessions/sess_1/events", "Last-Event-ID: 7.x\r\n", "");
    assert_eq!(reply.refusal(), (400, "invalid_last_event_id"));
}

#[test]
fn a_body_that_is_too_large_is_refused_announced_or_not() {
    let server = Server::start();
    let head = "PATCH /api/sessions/sess_1 HTTP/1.1\r\nHost: x\r\n";
    let announced = format!("{head}Content-Length: {}\r\n\r\n", MAX_BODY + 1);
    assert_eq!(server.send(announced.as_bytes()).refusal(), (413, "too_large"));

    let mut stream = server.connect();
    stream.send(format!("{head}Transfer-Encoding: chunked\r\n\r\n").as_bytes()).expect("a head");
    let mut chunk = b"100000\r\n".to_vec();
    chunk.resize(chunk.len() + 0x100000, b' ');
    chunk.extend_from_slice(b"\r\n");
    for _ in 0..=MAX_BODY / 0x100000 {
        // It may be refused before all of it is sent.
        if stream.send(&chunk).is_err() {
            break;
        }
    }
    assert_eq!(read(&mut stream).refusal(), (413, "too_large"));
}

#[test]
fn a_connection_is_kept_after_a_refusal() {
    let server = Server::start();
    let mut stream = server.connect();
    for _ in 0..3 {
        let mut ask = |path: &str| Reply::from(stream.ask("GET", path, "", "").expect("an answer"));
        assert_eq!(ask("/nowhere").refusal(), (404, "no_such_path"));
        let reply = ask("/healthz");
        assert_eq!((reply.status, reply.header("cache-control")), (200, Some("no-store")));
    }
}

#[test]
fn too_many_connections_are_told_so_and_come_in_when_others_go() {
    allow_many_connections();
    let server = Server::start();
    let health = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
    let mut streams = Vec::new();
    for _ in 0..1024 {
        let mut stream = server.connect();
        stream.send(health).expect("a request");
        assert_eq!(read(&mut stream).status, 200);
        streams.push(stream);
    }
    assert_eq!(server.send(health).refusal(), (503, "too_many_connections"));
    streams.truncate(512);
    // Their ends are noticed one after the other.
    while server.send(health).status != 200 {
        std::thread::yield_now();
    }
}

#[test]
fn known_agents_are_listed_without_a_daemon_being_asked() {
    let server = Server::start();
    let reply = server.ask("GET", "/api/agents", "", "");
    assert_eq!(reply.status, 200);
    let agents = reply.body["agents"].as_array().expect("agents");
    assert!(agents.iter().any(|agent| agent["id"] == "claude" && agent["how"].is_string()));
}
