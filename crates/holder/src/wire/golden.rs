//! A conversation as it was when version 1 was made, byte for byte. It is what old holders and supervisors say: whatever
//! changes here must still read it, and write what they can read.

use super::{
    Auth, Challenge, Decoder, Event, Frame, Input, Marks, Mode, PREAMBLE_LEN, Phase, Preamble, Proof,
    Request, Secret, Welcome,
};
use crate::identity::Identity;

/// The first bytes of each frame, its header, and its payload.
type Said = (&'static [u8; 8], &'static str, &'static [u8]);

const SUPERVISOR: [Said; 3] = [
    (
        b"\xb7\x00\x00\x00\x01\x00\xb3\x00",
        r#"{"is":"auth","mode":"control","instance":"boot_1","epoch":7,"nonce2":"f0e0d0c0b0a090807060504030201000","proof":"93603803032d1e2e276d887a9293278b9ed3f5a861778919c08d7d72ad97ae27"}"#,
        b"",
    ),
    (
        b"\xa1\x00\x00\x00\x03\x00\x9a\x00",
        r#"{"is":"input","epoch":7,"part":{"input":3,"kind":"prompt","sha256":"98ea6e4f216f2fb4b69fff9b3a44842c38686ca685f3f55dc48c5d3fb1107be4","len":3,"offset":0}}"#,
        b"hi\n",
    ),
    (b"\x2c\x00\x00\x00\x0b\x00\x28\x00", r#"{"is":"close_input","epoch":7,"after":3}"#, b""),
];

const HOLDER: [Said; 4] = [
    (
        b"\xa1\x00\x00\x00\x65\x00\x9d\x00",
        r#"{"is":"challenge","nonce":"000102030405060708090a0b0c0d0e0f","holder_id":"h_00000000000000000000000000000001","fingerprint":"f1","phase":"running","epoch":6}"#,
        b"",
    ),
    (
        b"\xf7\x00\x00\x00\x66\x00\xf3\x00",
        r#"{"is":"welcome","proof":"8d242c09722e127c1176db45739547bb41f0e08d6ad8ee3ead32696abc222352","marks":{"phase":"running","epoch":7,"head":9,"acked":3,"accepted":2,"delivered":1,"agent":{"pid":7,"start_ticks":8,"machine_boot":"m"},"trouble":null}}"#,
        b"",
    ),
    (b"\x28\x00\x00\x00\x6a\x00\x24\x00", r#"{"is":"accepted","input":3,"seq":10}"#, b""),
    (b"\x11\x00\x00\x00\x72\x01\x0d\x00", r#"{"is":"done"}"#, b""),
];

const NONCE: &str = "000102030405060708090a0b0c0d0e0f";
const NONCE2: &str = "f0e0d0c0b0a090807060504030201000";
const HOLDER_ID: &str = "h_00000000000000000000000000000001";

fn secret() -> Secret {
    Secret::new(std::array::from_fn(|index| index as u8))
}

fn proof() -> Proof<'static> {
    Proof {
        holder_id: HOLDER_ID,
        nonce: NONCE,
        nonce2: NONCE2,
        mode: Mode::Control,
        instance: "boot_1",
        epoch: 7,
    }
}

fn requests() -> [(Request, &'static [u8]); 3] {
    let auth = Auth {
        mode: Mode::Control,
        instance: "boot_1".into(),
        epoch: 7,
        nonce2: NONCE2.into(),
        proof: proof().of_supervisor(&secret()),
    };
    let sha256 = "98ea6e4f216f2fb4b69fff9b3a44842c38686ca685f3f55dc48c5d3fb1107be4".into();
    let part = Input { input: 3, kind: "prompt".into(), sha256, len: 3, offset: 0 };
    [
        (Request::Auth(auth), b""),
        (Request::Input { epoch: 7, part }, b"hi\n"),
        (Request::CloseInput { epoch: 7, after: 3 }, b""),
    ]
}

fn events() -> [Event; 4] {
    let challenge = Challenge {
        nonce: NONCE.into(),
        holder_id: HOLDER_ID.into(),
        fingerprint: "f1".into(),
        phase: Phase::Running,
        epoch: 6,
    };
    let marks = Marks {
        phase: Phase::Running,
        epoch: 7,
        head: 9,
        acked: 3,
        accepted: 2,
        delivered: 1,
        agent: Some(Identity { pid: 7, start_ticks: 8, machine_boot: "m".into() }),
        trouble: None,
    };
    let proof = proof().of_holder(&secret());
    [
        Event::Challenge(challenge),
        Event::Welcome(Welcome { proof, marks }),
        Event::Accepted { input: 3, seq: 10 },
        Event::Done {},
    ]
}

fn bytes_of(said: &[Said]) -> Vec<u8> {
    said.iter().flat_map(|(head, header, payload)| [&head[..], header.as_bytes(), payload].concat()).collect()
}

fn frames(bytes: &[u8]) -> Vec<Frame> {
    let mut decoder = Decoder::default();
    decoder.push(bytes);
    std::iter::from_fn(|| decoder.next_frame().expect("frames")).collect()
}

#[test]
fn what_version_1_said_is_written_the_same_today() {
    let preamble = Preamble { low: 1, high: 1, features: 0x0102_0304 }.write();
    assert_eq!(preamble, *b"RKHL\x01\0\x01\0\x04\x03\x02\x01\0\0\0\0");
    let (mut supervisor, mut holder) = (Vec::new(), Vec::new());
    for (request, payload) in requests() {
        request.frame(payload.to_vec()).write(&mut supervisor);
    }
    events().iter().for_each(|event| event.frame(Vec::new()).write(&mut holder));
    assert_eq!(String::from_utf8_lossy(&supervisor), String::from_utf8_lossy(&bytes_of(&SUPERVISOR)));
    assert_eq!(supervisor, bytes_of(&SUPERVISOR));
    assert_eq!(String::from_utf8_lossy(&holder), String::from_utf8_lossy(&bytes_of(&HOLDER)));
    assert_eq!(holder, bytes_of(&HOLDER));
}

#[test]
fn what_version_1_said_is_understood_today() {
    let preamble: &[u8; PREAMBLE_LEN] = b"RKHL\x01\0\x01\0\x04\x03\x02\x01\0\0\0\0";
    let read = Preamble::read(preamble).expect("a preamble");
    assert_eq!(read, Preamble { low: 1, high: 1, features: 0x0102_0304 });
    assert_eq!(Preamble::OURS.common(read), Ok(1));
    let heard = frames(&bytes_of(&SUPERVISOR));
    for (frame, (request, payload)) in heard.iter().zip(requests()) {
        assert_eq!((Request::read(frame), &frame.payload[..]), (Ok(Some(request)), payload));
    }
    let told = frames(&bytes_of(&HOLDER));
    for (frame, event) in told.iter().zip(events()) {
        assert_eq!(Event::read(frame), Ok(Some(event)));
    }
    assert_eq!((heard.len(), told.len()), (SUPERVISOR.len(), HOLDER.len()));
    let Ok(Some(Request::Auth(auth))) = Request::read(&heard[0]) else { panic!("a proof") };
    assert!(proof().check_supervisor(&secret(), &auth.proof));
    let Ok(Some(Event::Welcome(welcome))) = Event::read(&told[1]) else { panic!("a proof") };
    assert!(proof().check_holder(&secret(), &welcome.proof));
}
