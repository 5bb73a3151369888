//! How serving ends: told from outside or asked by a caller, promptly, whoever is still connected.

use std::time::{Duration, Instant};

use rekindle_server::Ending;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::client::{Server, read};

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_asks_for_the_end_and_is_answered_first() {
    let server = Server::start();
    let reply = server.ask("POST", "/api/shutdown", "", "").await;
    assert_eq!((reply.status, reply.body["agents"].as_bool()), (202, Some(false)));
    assert_eq!(server.ended().await, Ending::Asked { agents_left: None });
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_are_closed_at_the_end() {
    let mut server = Server::start();
    let mut idle = server.connect().await;
    idle.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await.expect("a request");
    assert_eq!(read(&mut idle).await.status, 200);
    let begun = Instant::now();
    server.end();
    assert_eq!(idle.read(&mut [0; 16]).await.expect("an end"), 0);
    while server.listens().await {
        tokio::task::yield_now().await;
    }
    assert_eq!(server.ended().await, Ending::Told);
    assert!(begun.elapsed() < Duration::from_secs(2), "took {:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_in_the_middle_of_a_request_cannot_hold_up_the_end() {
    let mut server = Server::start();
    let mut stuck = server.connect().await;
    let head = b"PATCH /api/sessions/sess_1 HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{";
    stuck.write_all(head).await.expect("half a request");
    let begun = Instant::now();
    server.end();
    assert_eq!(server.ended().await, Ending::Told);
    // Longer than it is given, far less than a body may take.
    assert!(begun.elapsed() < Duration::from_secs(20), "took {:?}", begun.elapsed());
}
