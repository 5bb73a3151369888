//! What is written comes back; what only looks like a record's end does not fool the reader.

use proptest::prelude::*;

use super::*;
use crate::event::{AgentNotice, MessageAgent, Raw, SessionClosed};
use crate::id::SessionId;

fn session() -> SessionId {
    "sess_123".parse().expect("an id")
}

fn holder() -> HolderId {
    "h_0123456789abcdef0123456789abcdef".parse().expect("an id")
}

fn written(draft: &Draft, more: bool) -> Vec<u8> {
    let mut out = Vec::new();
    let place = Envelope { seq: 7, ts: "2026-02-21T10:00:00.000Z", at: draft.at, more };
    write(draft, place, Link::First(session().into()), &mut out).expect("it is JSON");
    assert_eq!(out.pop(), Some(b'\n'));
    out
}

#[test]
fn the_order_of_fields_is_fixed() {
    let draft = Draft {
        event: SessionClosed { by: Some("me".into()), ..SessionClosed::default() }.into(),
        source: Some(Source(holder(), 5, 0, 6)),
        at: Some("2026-02-21T09:00:00.000Z".parse().expect("a time")),
    };
    let line = String::from_utf8(written(&draft, true)).expect("text");
    let (body, end) = line.split_at(line.len() - HASH_SUFFIX);
    assert_eq!(
        body,
        r#"{"seq":7,"ts":"2026-02-21T10:00:00.000Z","kind":"session.closed","by":"me","more":true,"at":"2026-02-21T09:00:00.000Z","src":["h_0123456789abcdef0123456789abcdef",5,0,6]"#
    );
    assert!(end.starts_with(r#","h":""#) && end.ends_with(r#""}"#));
}

#[test]
fn an_empty_payload_leaves_valid_json() {
    let line = written(&SessionClosed::default().into(), false);
    let value: serde_json::Value = serde_json::from_slice(&line).expect("valid JSON");
    assert_eq!(value["kind"], "session.closed");
    assert!(Line::parse(&line).expect("a record").follows(session(), None));
}

#[test]
fn a_line_in_another_order_is_read_the_slow_way() {
    let text = r#"{"kind":"message.user","ts":"2026-02-21T10:01:10Z","seq":145,"message_id":"msg_u1","content":"run tests"}"#;
    let line = Line::parse(text.as_bytes()).expect("a legacy record");
    assert_eq!((line.seq, line.kind, line.hash), (145, "message.user", None));
    assert_eq!(line.time().to_string(), "2026-02-21T10:01:10.000Z");
    assert!(matches!(line.event(), Ok(Event::MessageUser(_))));
}

#[test]
fn the_time_of_a_journal_counts_only_beside_a_source() {
    for (text, expected) in [
        (
            r#"{"kind":"x","ts":"","seq":1,"src":["h_1",1,0,2],"at":"2026-02-21T10:01:10Z"}"#,
            "2026-02-21T10:01:10.000Z",
        ),
        (r#"{"kind":"x","ts":"","seq":1,"src":["h_1",1,0,2],"at":["noon"]}"#, "1970-01-01T00:00:00.000Z"),
        (r#"{"kind":"x","ts":"","seq":1,"at":"2026-02-21T10:01:10Z"}"#, "1970-01-01T00:00:00.000Z"),
    ] {
        let line = Line::parse(text.as_bytes()).expect("a record");
        assert_eq!(line.happened_at().to_string(), expected, "{text}");
    }
}

#[test]
fn payloads_that_imitate_the_end_of_a_record_change_nothing() {
    let fakes = [
        r#"{"a":1,"src":["h_1",1,2,3]}"#,
        r#"[{"src":["h_1",1,2,3]}]"#,
        r#""x\",\"src\":[\"h_1\",1,2,3]""#,
        r#"{"x":0,"more":true}"#,
        r#""\",\"more\":true""#,
        r#"["h_1",1,2,3]"#,
        r#"{"h":"0123456789abcdef"}"#,
        r#"{"x":0,"at":"2026-02-21T09:00:00.000Z"}"#,
        r#""\",\"at\":\"2026-02-21T09:00:00.000Z""#,
    ];
    for fake in fakes {
        let raw: Raw<'_> = serde_json::from_str(fake).expect("JSON");
        let notice = AgentNotice { run_id: None, what: "x".into(), text: None, raw: Some(raw.into_owned()) };
        for source in [None, Some(Source(holder(), 5, 0, 6))] {
            let bytes = written(&Draft { source, ..notice.clone().into() }, false);
            let line = Line::parse(&bytes).expect("a record");
            assert_eq!((line.source, line.more, line.at), (source, false, None), "{fake}");
        }
        let bytes = written(&notice.into(), false);
        let line = Line::parse(&bytes).expect("a record");
        assert!(line.follows(session(), None));
    }
}

#[test]
fn rubbish_is_named_not_swallowed() {
    for (bytes, expected) in [
        (&b"\xff\xfe"[..], "not UTF-8"),
        (b"", "not a record"),
        (b"{}", "seq"),
        (b"[1]", "not a record"),
        (br#"{"seq":-1,"ts":"","kind":""}"#, "not a record"),
        (br#"{"seq":18446744073709551616,"ts":"","kind":"","h":"0123456789abcdef"}"#, "not a record"),
    ] {
        let error = Line::parse(bytes).expect_err("rubbish").to_string();
        assert!(error.contains(expected), "{error}");
    }
}

proptest! {
    #[test]
    fn whatever_was_written_comes_back(text in ".*", n in any::<u64>(), more: bool, has_source: bool, has_time: bool) {
        let message = MessageAgent {
            run_id: None,
            message_id: "msg_1".parse().expect("an id"),
            content: Raw::text(&text),
            partial: false,
        };
        let source = has_source.then(|| Source(holder(), n, 0, n));
        let at = has_time.then(|| Timestamp::from_millis((n % (1 << 46)) as i64)).filter(|_| has_source);
        let draft = Draft { event: message.into(), source, at };
        let bytes = written(&draft, more);
        let line = Line::parse(&bytes).expect("a record");
        prop_assert_eq!((line.seq, line.more, line.source, line.at), (7, more, source, at));
        prop_assert!(line.follows(session(), None));
        prop_assert_eq!(line.event().expect("readable"), draft.event);
        prop_assert!(!bytes.contains(&b'\n'), "a record is one line");
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = Line::parse(&bytes);
        let _ = peek_seq(&bytes);
    }

    #[test]
    fn a_flipped_bit_breaks_the_chain(at in any::<proptest::sample::Index>(), bit in 0u8..8) {
        let mut bytes = written(&SessionClosed { by: Some("someone".into()), ..SessionClosed::default() }.into(), false);
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        if let Ok(line) = Line::parse(&bytes) {
            prop_assert!(!line.follows(session(), None));
        }
    }
}
