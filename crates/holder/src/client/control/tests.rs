//! Requests and events against a holder that follows a script, over a real socket.

use std::os::unix::net::UnixListener;

use super::super::testing::{Home, PATIENCE, Peer, eventually, marks};
use super::*;
use crate::wire::{MAX_FRAME, Refusal, Refused};

/// Longest a test waits for what does not come.
const SHORT: Duration = Duration::from_millis(50);

/// Lets a supervisor in and follows the script; the other side is driven by the test.
fn with<T: Send>(script: impl FnOnce(&mut Peer) -> T + Send, drive: impl FnOnce(&mut Control)) -> T {
    with_mode(Mode::Control, PATIENCE, script, drive)
}

fn with_mode<T: Send>(
    mode: Mode,
    patience: Duration,
    script: impl FnOnce(&mut Peer) -> T + Send,
    drive: impl FnOnce(&mut Control),
) -> T {
    let home = Home::new();
    let dir = home.holder("h_1");
    let listener = UnixListener::bind(home.path().join("socket")).expect("bound");
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || {
            let mut peer = Peer::new(listener.accept().expect("someone comes").0);
            peer.let_in();
            script(&mut peer)
        });
        let mut control = Control::connect(&dir, mode, "boot_1", 5, PATIENCE).expect("let in");
        control.talk.patience = patience;
        assert_eq!(control.marks(), &marks());
        drive(&mut control);
        drop(control);
        thread.join().expect("the script holds")
    })
}

fn refused(reason: Refusal, input: Option<u64>) -> Event {
    Event::Refused(Refused { reason, epoch: 5, input, expected: None })
}

fn request(peer: &mut Peer) -> Request {
    peer.request().expect("a request").0
}

#[test]
fn requests_have_their_answers_and_news_between_them_wait() {
    let agent = Identity { pid: 7, start_ticks: 8, machine_boot: "m".into() };
    let env: BTreeMap<String, String> = [("KEY".into(), "value".into())].into();
    let expected = (agent.clone(), env.clone());
    with(
        move |peer| {
            let (start, payload) = peer.request().expect("a request");
            assert_eq!(start, Request::Start { epoch: 5 });
            assert_eq!(serde_json::from_slice::<Start>(&payload).expect("plain"), Start { env });
            peer.say(&Event::Wake { head: 10 });
            peer.say(&Event::Started { agent });
            assert_eq!(request(peer), Request::Status {});
            peer.say(&Event::Wake { head: 11 });
            peer.say(&Event::Wake { head: 12 });
            peer.say(&Event::Delivered { input: 1 });
            peer.say(&Event::Status(marks()));
            let stop = Request::Stop { epoch: 5, reason: "done".into(), actor: "cli".into(), grace_ms: 1500 };
            assert_eq!(request(peer), stop);
            peer.say(&Event::Done {});
            assert_eq!(request(peer), Request::Retire { epoch: 5 });
            peer.say(&refused(Refusal::NotNow, None));
            assert_eq!(request(peer), Request::Interrupt { epoch: 5 });
            peer.say(&Event::Done {});
            assert_eq!(request(peer), Request::CloseInput { epoch: 5, after: 2 });
            peer.say(&Event::Done {});
            assert_eq!(request(peer), Request::Ack { epoch: 5, seq: 8 });
            let idle = Request::Hint { epoch: 5, state: "idle".into(), max_detached_ms: Some(1000) };
            assert_eq!(request(peer), idle);
            assert!(matches!(request(peer), Request::Ping { word: 1 }));
            peer.say(&Event::Pong { word: 1 });
            peer.say(&Event::Exited { code: Some(0), signal: None });
        },
        |control| {
            assert_eq!(control.start(expected.1).expect("started"), expected.0);
            assert_eq!(control.status().expect("a status"), marks());
            control.stop("done", "cli", Duration::from_millis(1500)).expect("begun");
            let not_now = control.retire();
            assert!(matches!(not_now, Err(RequestError::Refused(Refused { reason: Refusal::NotNow, .. }))));
            control.interrupt().expect("sent");
            control.close_input(2).expect("decided");
            control.ack(8).expect("sent");
            control.hint(TurnHint::Idle, Some(Duration::from_secs(1))).expect("sent");
            control.ping().expect("alive");
            for expected in [
                Event::Wake { head: 12 },
                Event::Delivered { input: 1 },
                Event::Exited { code: Some(0), signal: None },
            ] {
                assert_eq!(control.next_event(PATIENCE).expect("an event"), Some(expected));
            }
            assert!(matches!(control.next_event(PATIENCE), Err(RequestError::Closed)));
        },
    );
}

#[test]
fn a_large_input_goes_in_parts_that_fit_together() {
    let bytes: Vec<u8> = (0..PART_BYTES * 2 + 3).map(|index| index as u8).collect();
    let sent = bytes.clone();
    with(
        move |peer| {
            let mut got = Vec::new();
            while got.len() < sent.len() {
                let Some((Request::Input { epoch: 5, part }, payload)) = peer.request() else {
                    panic!("an input");
                };
                assert_eq!((part.input, part.len, part.offset), (3, sent.len() as u64, got.len() as u64));
                assert_eq!((part.kind.as_str(), part.sha256), ("prompt", hex(&Sha256::digest(&sent))));
                got.extend(payload);
            }
            assert_eq!(got, sent);
            peer.say(&Event::Accepted { input: 3, seq: 40 });
            peer.say(&Event::Delivered { input: 3 });
            let Request::Ping { word } = request(peer) else { panic!("a ping") };
            peer.say(&Event::Pong { word });
        },
        |control| {
            let accepted = control.input(3, "prompt", &bytes).expect("accepted");
            assert_eq!(accepted, Accepted { input: 3, seq: 40 });
            let event = control.next_event(PATIENCE).expect("an event");
            assert_eq!(event, Some(Event::Delivered { input: 3 }));
        },
    );
}

#[test]
fn answers_to_each_part_of_a_refused_input_are_not_taken_for_a_later_ones() {
    let bytes = vec![b'x'; PART_BYTES * 3];
    let parts = with(
        |peer| {
            let mut parts = 0;
            loop {
                match peer.request() {
                    Some((Request::Input { part, .. }, _)) if part.len == 2 => {
                        peer.say(&Event::Accepted { input: 1, seq: 9 });
                    }
                    Some((Request::Input { .. }, _)) => {
                        parts += 1;
                        peer.say(&refused(Refusal::NoSpace, Some(1)));
                    }
                    Some((Request::Ping { word }, _)) => peer.say(&Event::Pong { word }),
                    Some(other) => panic!("not {other:?}"),
                    None => return parts,
                }
            }
        },
        |control| {
            let full = control.input(1, "prompt", &bytes);
            assert!(matches!(full, Err(RequestError::Refused(Refused { reason: Refusal::NoSpace, .. }))));
            assert_eq!(control.input(1, "prompt", b"x\n").expect("now").seq, 9);
            assert_eq!(control.next_event(Duration::ZERO).expect("no event"), None);
        },
    );
    assert!((1..=3).contains(&parts));
}

#[test]
fn what_no_holder_would_take_is_not_sent() {
    let came = with(
        |peer| peer.request(),
        |control| {
            let invalid = |outcome| assert!(matches!(outcome, Err(RequestError::Invalid(_))));
            invalid(control.input(1, "prompt", b"").map(drop));
            invalid(control.input(1, "two words", b"x").map(drop));
            invalid(control.stop(&"x".repeat(5000), "cli", SHORT));
            let env = [("HUGE".to_owned(), "x".repeat(MAX_FRAME))].into();
            invalid(control.start(env).map(drop));
        },
    );
    assert_eq!(came, None);
    let came = with_mode(
        Mode::Observe,
        PATIENCE,
        |peer| peer.request(),
        |control| assert!(matches!(control.ack(1), Err(RequestError::NotInControl))),
    );
    assert_eq!(came, None);
}

#[test]
fn a_holder_without_a_feature_is_not_asked_for_it() {
    let came = with(
        |peer| peer.request(),
        |control| {
            control.features &= !CLOSE_INPUT;
            assert!(matches!(control.close_input(0), Err(RequestError::TooOld(_))));
        },
    );
    assert_eq!(came, None);
}

#[test]
fn one_who_is_fenced_is_told_at_once_and_asks_nothing_more() {
    let later = with(
        |peer| {
            assert_eq!(request(peer), Request::Status {});
            peer.say(&Event::Fenced { by: 6 });
            peer.request()
        },
        |control| {
            assert!(matches!(control.status(), Err(RequestError::Fenced { by: 6 })));
            assert!(matches!(control.ack(1), Err(RequestError::Fenced { by: 6 })));
        },
    );
    assert_eq!(later, None);
    with(
        |peer| peer.say(&Event::Fenced { by: 7 }),
        |control| {
            let event = control.next_event(PATIENCE).expect("an event");
            assert_eq!(event, Some(Event::Fenced { by: 7 }));
            assert!(matches!(control.retire(), Err(RequestError::Fenced { by: 7 })));
        },
    );
}

#[test]
fn a_holder_that_does_not_answer_is_given_up_on_but_not_confused() {
    with_mode(
        Mode::Control,
        SHORT,
        |peer| {
            assert_eq!(request(peer), Request::Status {});
            assert_eq!(peer.request(), None);
        },
        |control| {
            assert!(matches!(control.status(), Err(RequestError::Timeout { .. })));
            assert!(matches!(control.status(), Err(RequestError::OutOfStep)));
            assert_eq!(control.next_event(Duration::ZERO).expect("nothing"), None);
        },
    );
}

#[test]
fn a_holder_that_ended_meanwhile_has_done_what_a_stop_wants() {
    with(
        |peer| peer.say(&Event::Exited { code: None, signal: Some(9) }),
        |control| {
            control.stop("done", "cli", SHORT).expect("it has ended");
            let event = control.next_event(PATIENCE).expect("an event");
            assert_eq!(event, Some(Event::Exited { code: None, signal: Some(9) }));
            assert!(matches!(control.status(), Err(RequestError::Closed)));
        },
    );
}

#[test]
fn nobody_listening_and_nobody_answering_are_told_apart() {
    let home = Home::new();
    let dir = home.holder("h_1");
    let connect = |timeout| Control::connect(&dir, Mode::Probe, "boot_1", 0, timeout);
    assert!(matches!(connect(SHORT), Err(ConnectError::NoSocket { .. })));
    let listener = UnixListener::bind(home.path().join("socket")).expect("bound");
    // A stopped process still has a queue: it takes connections and says nothing.
    assert!(matches!(connect(SHORT), Err(ConnectError::Timeout { .. })));
    drop(listener);
    // A process that another test starts just now has our descriptors for a moment.
    eventually(|| matches!(connect(SHORT), Err(ConnectError::NoSocket { .. })).then_some(()));
    std::fs::remove_file(dir.secret()).expect("removed");
    assert!(matches!(connect(SHORT), Err(ConnectError::Files { .. })));
}

#[test]
fn a_queue_that_is_full_does_not_hold_us() {
    let home = Home::new();
    let dir = home.holder("h_1");
    let address = rustix::net::SocketAddrUnix::new(home.path().join("socket").as_path()).expect("short");
    let kind = rustix::net::SocketType::STREAM;
    let socket = rustix::net::socket(rustix::net::AddressFamily::UNIX, kind, None).expect("a socket");
    rustix::net::bind(&socket, &address).expect("bound");
    rustix::net::listen(&socket, 0).expect("listening");
    let mut waiting = Vec::new();
    // The first fill the queue and are not answered; then there is no room even to wait.
    for _ in 0..4 {
        let before = Instant::now();
        waiting.push(Control::connect(&dir, Mode::Probe, "boot_1", 0, SHORT));
        assert!(matches!(waiting.last(), Some(Err(ConnectError::Timeout { .. }))));
        assert!(before.elapsed() < PATIENCE);
    }
}
