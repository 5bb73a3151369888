//! How serving ends: told from outside or asked by a caller, promptly, whoever is still connected.

use std::io::Read;
use std::time::{Duration, Instant};

use rekindle_server::Ending;

use crate::client::Server;

#[test]
fn a_caller_asks_for_the_end_and_is_answered_first() {
    let server = Server::start();
    let reply = server.ask("POST", "/api/shutdown", "", "");
    assert_eq!((reply.status, reply.body["agents"].as_bool()), (202, Some(false)));
    assert_eq!(server.ended(), Ending::Asked { agents_left: None });
}

#[test]
fn idle_connections_are_closed_at_the_end() {
    let mut server = Server::start();
    let mut idle = server.connect();
    assert_eq!(idle.get("/healthz").expect("an answer")["status"], "ok");
    let begun = Instant::now();
    server.end();
    assert_eq!(idle.into_stream().read(&mut [0; 16]).expect("an end"), 0);
    while server.listens() {
        std::thread::yield_now();
    }
    assert_eq!(server.ended(), Ending::Told);
    assert!(begun.elapsed() < Duration::from_secs(2), "took {:?}", begun.elapsed());
}

#[test]
fn a_caller_in_the_middle_of_a_request_cannot_hold_up_the_end() {
    let mut server = Server::start();
    let mut stuck = server.connect();
    let head = b"PATCH /api/sessions/sess_1 HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{";
    stuck.send(head).expect("half a request");
    let begun = Instant::now();
    server.end();
    assert_eq!(server.ended(), Ending::Told);
    // Longer than it is given, far less than a body may take.
    assert!(begun.elapsed() < Duration::from_secs(20), "took {:?}", begun.elapsed());
}
