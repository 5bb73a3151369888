//! Nobody from elsewhere keeps others out: slow callers, idle ones, and as many streams as there may be.

use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit, setrlimit};
use serde_json::Value;

use crate::client::{Events, Token, ask, listening};
use crate::lab::{Lab, wait_for};

/// What an answer may take on the busiest machine; a caller that is kept out waits until the others are let go.
const PROMPTLY: Duration = Duration::from_secs(10);

fn many_descriptors() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).expect("descriptors");
}

#[track_caller]
fn served_promptly(lab: &Lab, port: u16, token: &Token) {
    for _ in 0..10 {
        let begin = Instant::now();
        assert_eq!(ask(port, "GET", "/api/sessions", Some(token), &Value::Null).status, 200);
        assert_eq!(lab.get("/healthz")["status"], "ok");
        assert!(begin.elapsed() < PROMPTLY, "{:?}", begin.elapsed());
    }
}

#[test]
fn callers_that_take_for_ever_stop_nobody_and_are_let_go() {
    let (lab, port) = listening();
    let token = Token::create(&lab, &[]);
    let mut slow: Vec<TcpStream> =
        (0..200).map(|_| TcpStream::connect(("127.0.0.1", port)).expect("a connection")).collect();
    let half = format!("GET /api/sessions HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nX: ");
    for stream in &mut slow {
        stream.write_all(half.as_bytes()).expect("half a head");
    }
    let over = AtomicBool::new(false);
    let begin = Instant::now();
    std::thread::scope(|scope| {
        // A byte now and then must not keep a connection alive.
        let dripping = scope.spawn(|| {
            let mut open = slow.iter().collect::<Vec<_>>();
            while !open.is_empty() && !over.load(Ordering::Relaxed) {
                open.retain(|stream| {
                    let mut stream: &TcpStream = stream;
                    stream.write_all(b"x").is_ok()
                });
                std::thread::sleep(Duration::from_millis(500));
            }
            (open.len(), begin.elapsed())
        });
        served_promptly(&lab, port, &token);
        while !dripping.is_finished() && begin.elapsed() < Duration::from_secs(40) {
            served_promptly(&lab, port, &token);
        }
        over.store(true, Ordering::Relaxed);
        let (open, lasted) = dripping.join().expect("it ends");
        assert_eq!(open, 0, "some are still there after {lasted:?}");
        assert!(lasted > Duration::from_secs(5), "it was the time for a head that ended them: {lasted:?}");
    });
}

#[test]
fn thousands_of_idle_connections_make_way() {
    many_descriptors();
    let (lab, port) = listening();
    let token = Token::create(&lab, &[]);
    let mut idle = Vec::new();
    for round in 0..3000 {
        idle.push(TcpStream::connect(("127.0.0.1", port)).expect("a connection"));
        if round % 500 == 499 {
            served_promptly(&lab, port, &token);
        }
    }
    served_promptly(&lab, port, &token);
    let descriptors = std::fs::read_dir(format!("/proc/{}/fd", lab.daemon_pid())).expect("its files").count();
    assert!(descriptors < 600, "{descriptors}");
}

#[test]
fn a_thousand_streams_from_elsewhere_and_those_here_are_served() {
    many_descriptors();
    let (lab, port) = listening();
    let token = Token::create(&lab, &[]);
    let id = lab.run("say one\nbarrier here\nsay two");
    lab.reach("here");
    let path = format!("/api/sessions/{id}/events?after=0");
    let mut streams: Vec<Events> = (0..1000).map(|_| Events::follow(port, &path, &token, None)).collect();
    served_promptly(&lab, port, &token);
    lab.pass("here");
    let begin = Instant::now();
    assert_eq!(lab.wait_end(&id), "completed");
    let newest = lab.show(&id)["last_seq"].as_u64().expect("a number").to_string();
    for stream in &mut streams {
        while stream.next_id().expect("an event").split('.').next() != Some(newest.as_str()) {}
    }
    println!("a thousand streams have heard everything after {:?}", begin.elapsed());
    served_promptly(&lab, port, &token);
    // There is an end to it, which is said, and which is not that of our own socket.
    let mut more: Vec<Events> = (0..24).map(|_| Events::follow(port, &path, &token, None)).collect();
    let full = wait_for("too many", || {
        let reply = ask(port, "GET", "/api/version", Some(&token), &Value::Null);
        (reply.status == 503).then_some(reply)
    });
    assert_eq!(full.code(), (503, "too_many_connections"));
    assert_eq!(lab.get("/healthz")["status"], "ok");
    more.clear();
    streams.truncate(10);
    wait_for("room", || {
        (ask(port, "GET", "/api/version", Some(&token), &Value::Null).status == 200).then_some(())
    });
}
