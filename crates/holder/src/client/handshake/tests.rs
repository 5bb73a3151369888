//! Handshakes with a peer that follows a script, over a pair of sockets: good holders, squatters and replays.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use super::super::connect::{ConnectError, shake_hands};
use super::super::socket::Socket;
use super::super::testing::{PATIENCE, Peer, marks};
use super::*;
use crate::wire::{Frame, Refusal};

fn visitor() -> Visitor {
    Visitor { mode: Mode::Control, instance: "boot_1".into(), epoch: 5 }
}

/// Runs a handshake against a script; returns how it ended and what the script saw.
fn shake<T: Send>(
    script: impl FnOnce(&mut Peer) -> T + Send,
    patience: Duration,
) -> (Result<Welcomed, ConnectError>, T) {
    let (ours, theirs) = UnixStream::pair().expect("a pair");
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || script(&mut Peer::new(theirs)));
        let handshake = Handshake::new("h_1", Secret::new([7; 32]), visitor()).expect("randomness");
        let link = Socket::new(ours).expect("a link");
        let deadline = Instant::now() + patience;
        let outcome = shake_hands(link, handshake, Path::new("/s"), deadline, patience);
        let outcome = outcome.map(|(_, welcomed)| welcomed);
        (outcome, thread.join().expect("the script holds"))
    })
}

#[test]
fn a_holder_that_proves_itself_is_trusted() {
    let (outcome, ()) = shake(Peer::let_in, PATIENCE);
    let welcomed = outcome.expect("let in");
    assert_eq!(welcomed.marks, marks());
    assert_eq!(welcomed.challenge.fingerprint, "f");
}

#[test]
fn a_squatter_gets_our_proof_and_nothing_else() {
    let (outcome, more) = shake(
        |peer| {
            peer.secret = Secret::new([8; 32]);
            peer.send(&Preamble::OURS.write());
            peer.challenge();
            peer.preamble();
            let auth = peer.auth();
            peer.welcome(&auth);
            peer.request()
        },
        PATIENCE,
    );
    assert!(matches!(outcome, Err(ConnectError::NotTheHolder { why: "it does not know the secret", .. })));
    assert_eq!(more, None, "it was hung up on");
}

#[test]
fn someone_with_another_id_is_not_even_shown_a_proof() {
    let (outcome, more) = shake(
        |peer| {
            peer.holder_id = "h_2".into();
            peer.send(&Preamble::OURS.write());
            peer.challenge();
            peer.preamble();
            peer.request()
        },
        PATIENCE,
    );
    assert!(matches!(outcome, Err(ConnectError::NotTheHolder { why: "it has another id", .. })));
    assert_eq!(more, None);
}

#[test]
fn other_protocols_and_words_out_of_turn_are_noticed() {
    let (outcome, ()) = shake(|peer| peer.send(b"HTTP/1.1 400 Bad Request\r\n\r\n"), PATIENCE);
    assert!(matches!(outcome, Err(ConnectError::NotTheHolder { .. })));
    let (outcome, ()) = shake(
        |peer| {
            peer.send(&Preamble::OURS.write());
            peer.say(&Event::Wake { head: 1 });
        },
        PATIENCE,
    );
    assert!(matches!(outcome, Err(ConnectError::NotTheHolder { .. })));
    let (outcome, ()) = shake(
        |peer| {
            peer.send(&Preamble::OURS.write());
            // A welcome before any challenge.
            let auth = Auth {
                mode: Mode::Control,
                instance: String::new(),
                epoch: 0,
                nonce2: String::new(),
                proof: String::new(),
            };
            peer.welcome(&auth);
        },
        PATIENCE,
    );
    assert!(matches!(outcome, Err(ConnectError::NotTheHolder { .. })));
}

#[test]
fn without_a_common_version_both_are_named() {
    let (outcome, ()) = shake(|peer| peer.send(&Preamble { low: 2, high: 3, features: 0 }.write()), PATIENCE);
    assert!(matches!(outcome, Err(ConnectError::NoCommonVersion { low: 2, high: 3 })));
}

#[test]
fn a_newer_holder_that_knows_more_is_understood() {
    let (outcome, ()) = shake(
        |peer| {
            let later = |ignorable| {
                let mut bytes = Vec::new();
                Frame { kind: 200, ignorable, header: b"{}".to_vec(), payload: vec![1] }.write(&mut bytes);
                bytes
            };
            peer.send(&Preamble { low: 1, high: 9, features: 0xf0 }.write());
            peer.send(&later(true));
            peer.preamble();
            peer.challenge();
            peer.send(&later(true));
            let auth = peer.auth();
            peer.send(&later(true));
            peer.welcome(&auth);
        },
        PATIENCE,
    );
    assert_eq!(outcome.expect("let in").features, 0xf0);
}

#[test]
fn a_stream_of_nothing_is_not_listened_to_for_ever() {
    let mut bytes = Preamble::OURS.write().to_vec();
    let idle = Frame { kind: 200, ignorable: true, header: Vec::new(), payload: Vec::new() };
    (0..=MOST_PASSED_OVER).for_each(|_| idle.write(&mut bytes));
    let mut handshake = Handshake::new("h_1", Secret::new([7; 32]), visitor()).expect("randomness");
    assert!(matches!(handshake.receive(&bytes), Err(HandshakeError::NotTheHolder { .. })));
}

#[test]
fn neither_sides_proof_can_be_used_again() {
    let record = |peer: &mut Peer| {
        peer.send(&Preamble::OURS.write());
        peer.preamble();
        peer.challenge();
        let auth = peer.auth();
        peer.welcome(&auth);
        auth
    };
    let (outcome, auth) = shake(record, PATIENCE);
    outcome.expect("let in");
    // Somebody who recorded that conversation answers the next one with it.
    let (outcome, newer) = shake(
        |peer| {
            peer.send(&Preamble::OURS.write());
            peer.preamble();
            peer.challenge();
            let newer = peer.auth();
            peer.welcome(&auth);
            newer
        },
        PATIENCE,
    );
    assert!(matches!(outcome, Err(ConnectError::NotTheHolder { .. })));
    assert_ne!(newer.nonce2, auth.nonce2);
    // And what we sent is no proof to a holder that asks anew.
    let (stream, _other) = UnixStream::pair().expect("a pair");
    let mut holder = Peer::new(stream);
    assert!(holder.proof(&auth).check_supervisor(&holder.secret, &auth.proof));
    holder.nonce = "another".into();
    assert!(!holder.proof(&auth).check_supervisor(&holder.secret, &auth.proof));
}

#[test]
fn a_refusal_is_passed_on_even_if_it_hangs_up_behind_it() {
    for proven in [false, true] {
        let (outcome, ()) = shake(
            |peer| {
                peer.send(&Preamble::OURS.write());
                peer.preamble();
                if proven {
                    peer.challenge();
                    peer.auth();
                }
                let refused = Refused { reason: Refusal::Stale, epoch: 9, input: None, expected: None };
                peer.say(&Event::Refused(refused));
            },
            PATIENCE,
        );
        assert!(matches!(outcome, Err(ConnectError::Refused(Refused { epoch: 9, .. }))));
    }
}

#[test]
fn silence_and_hanging_up_are_told_apart() {
    let (outcome, ()) = shake(
        |peer| {
            peer.preamble();
        },
        PATIENCE,
    );
    assert!(matches!(outcome, Err(ConnectError::HungUp)));
    let before = Instant::now();
    let (outcome, more) = shake(
        |peer| {
            peer.send(&Preamble::OURS.write()[..7]);
            peer.preamble();
            peer.request()
        },
        Duration::from_millis(50),
    );
    assert!(matches!(outcome, Err(ConnectError::Timeout { .. })));
    assert!(before.elapsed() < PATIENCE);
    assert_eq!(more, None);
}

#[test]
fn it_does_not_matter_how_the_bytes_are_cut() {
    let mut handshake = Handshake::new("h_1", Secret::new([7; 32]), visitor()).expect("randomness");
    assert_eq!(handshake.outgoing(), Preamble::OURS.write());
    let challenge = Challenge {
        nonce: "n".into(),
        holder_id: "h_1".into(),
        fingerprint: "f".into(),
        phase: crate::wire::Phase::Running,
        epoch: 1,
    };
    let mut bytes = Preamble::OURS.write().to_vec();
    Event::Challenge(challenge).frame(Vec::new()).write(&mut bytes);
    for byte in &bytes {
        assert!(handshake.outgoing().is_empty());
        assert!(handshake.receive(&[*byte]).expect("going on").is_none());
    }
    let mut decoder = Decoder::default();
    decoder.push(&handshake.outgoing());
    let frame = decoder.next_frame().expect("a frame").expect("whole");
    assert!(matches!(Request::read(&frame), Ok(Some(Request::Auth(auth))) if auth.epoch == 5));
}
