//! Whatever an agent writes, nothing panics, and what it leads to can be appended.

use std::sync::Arc;

use proptest::prelude::*;
use rekindle_agent::acp::Acp;
use rekindle_agent::blob;
use rekindle_agent::connection::Connection;
use rekindle_agent::known::{Quirk, Quirks};
use rekindle_domain::event::{Event, Raw, SessionClosed};
use rekindle_domain::time::Timestamp;
use rekindle_holder::journal::{Ctl, InputHead, Item, OutFlags};
use rekindle_holder::stamp::Stamp;

use crate::conversations::all;
use crate::stage::Step;

fn connection(quirks: Quirks) -> Connection {
    Connection::new("h_1".parse().expect("an id"), Arc::new(Acp::default()), quirks)
}

fn line(seq: u64, bytes: &[u8], flags: OutFlags) -> Item<'_> {
    Item::Line { first: seq, seq, time: Stamp(0), flags, bytes: bytes.into() }
}

/// Takes lines in, with some inputs among them, and checks what comes out.
fn survives(lines: &[Vec<u8>], quirks: Quirks) {
    let mut connection = connection(quirks);
    let mut seq = 0;
    let inputs = [
        ("setup", r#"{"id":1,"method":"initialize"}"#),
        ("setup", r#"{"id":2,"method":"session/load","params":{"sessionId":"s1"}}"#),
        ("prompt", r#"{"id":3,"method":"session/prompt","params":{"sessionId":"s1"}}"#),
    ];
    let mut low = 0;
    for (index, bytes) in lines.iter().enumerate() {
        seq += 1;
        let flags = OutFlags { truncated: bytes.first() == Some(&b'T'), ..OutFlags::default() };
        let taken = connection.take(&line(seq, bytes, flags), None);
        for (n, draft) in taken.records.iter().enumerate() {
            let source = draft.source.expect("a source");
            assert_eq!((source.1, source.2), (seq, n as u64));
            assert!(source.3 <= seq + 1 && source.3 >= low, "low never goes back");
            low = source.3;
            let mut fields = Vec::new();
            draft.event.write_fields(&mut fields).expect("a payload that can be written");
            assert!(!fields.contains(&b'\n'), "a record is one line");
            assert!(!matches!(draft.event, Event::Unknown { .. }));
            assert!(blob::oversize(draft).is_none());
        }
        for reply in &taken.replies {
            assert_eq!(reply.line.iter().filter(|byte| **byte == b'\n').count(), 1);
        }
        if let Some((kind, bytes)) = inputs.get(index) {
            seq += 1;
            let head = Box::new(InputHead { input: index as u64 + 1, kind: (*kind).into(), sha256: [0; 32] });
            let item = Item::Input { first: seq, seq, time: Stamp(0), head, bytes: bytes.as_bytes().into() };
            connection.take(&item, None);
        }
    }
    connection.finish(true);
    assert!(
        connection.take(&line(seq, b"{}", OutFlags::default()), None).is_quiet(),
        "an old item does nothing"
    );
}

#[test]
fn records_have_the_time_of_the_journal_they_come_from() {
    let time = Timestamp::from_millis;
    let at = |time, seq, bytes: Vec<u8>| Item::Line {
        first: seq,
        seq,
        time: Stamp(time),
        flags: OutFlags::default(),
        bytes: bytes.into(),
    };
    let mut connection = connection(Quirks::default());
    assert_eq!(connection.take(&at(5_000, 1, piece(3)), None).deltas[0].said_at, Some(time(5_000)));
    let noise = connection.take(&at(6_000, 2, b"not JSON".to_vec()), None);
    assert_eq!(noise.records[0].at, Some(time(6_000)));
    // What the caller adds to the records of an item happened then too.
    let mut exit = connection.take(
        &Item::Ctl { seq: 3, time: Stamp(7_000), ctl: Ctl::Exit { code: Some(1), signal: None } },
        None,
    );
    exit.add(SessionClosed::default());
    assert!(exit.records.len() > 1, "the end of the message, and what was added");
    assert!(exit.records.iter().all(|record| record.at == Some(time(7_000))), "{:?}", exit.records);
    for (unattended, expected) in [(true, Some(time(5_000))), (false, None)] {
        let mut lost = self::connection(Quirks::default());
        lost.take(&at(5_000, 1, piece(3)), None);
        let ended = lost.finish(unattended);
        assert_eq!(ended.records[0].at, expected, "nobody was there: {unattended}");
    }
}

/// Says a piece of a message of that many letters.
fn piece(letters: usize) -> Vec<u8> {
    let text = "x".repeat(letters);
    let update = r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"TEXT"}}"#;
    let update = update.replace("TEXT", &text);
    format!(r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"update":{update}}}}}"#).into_bytes()
}

#[test]
fn long_messages_are_for_blobs_and_endless_ones_are_divided() {
    let mut connection = connection(Quirks::default());
    let mut records = Vec::new();
    for seq in 1..=18 {
        records.extend(connection.take(&line(seq, &piece(1 << 20), OutFlags::default()), None).records);
    }
    let sizes: Vec<_> = records.iter().map(|draft| blob::oversize(draft).map(str::len)).collect();
    assert_eq!(sizes, [Some((8 << 20) + 2), Some((8 << 20) + 2)]);
    let mut ids: Vec<_> = records.iter().map(|draft| draft.source.expect("a source")).collect();
    ids.dedup();
    assert_eq!(ids.len(), 2);
    let mut draft = records.remove(0);
    let reference: Raw<'_> = serde_json::from_str(r#"{"blob":"ab","size":1}"#).expect("JSON");
    blob::replace_with_reference(&mut draft, reference.into_owned());
    assert!(blob::oversize(&draft).is_none());
}

fn spoken() -> Vec<Vec<u8>> {
    let lines = all().into_iter().flat_map(|conversation| conversation.steps).filter_map(|step| match step {
        Step::Say(line) | Step::SayInParts(line) => Some(line.replace('$', "3").into_bytes()),
        _ => None,
    });
    lines.collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_lines(lines in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..60), 0..20)) {
        survives(&lines, Quirks::default());
    }

    #[test]
    fn conversations_shuffled_and_mutated(
        picks in proptest::collection::vec(any::<prop::sample::Index>(), 1..60),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>()), 0..20),
        late in any::<bool>(),
    ) {
        let spoken = spoken();
        let mut lines: Vec<Vec<u8>> = picks.iter().map(|pick| pick.get(&spoken).clone()).collect();
        for (which, at, byte) in changes {
            let index = which.index(lines.len());
            let line = &mut lines[index];
            if line.is_empty() {
                continue;
            }
            let at = at.index(line.len());
            match byte % 3 {
                0 => line[at] = byte,
                1 => line.truncate(at),
                _ => { line.remove(at); }
            }
        }
        // A holder splits at line breaks, so there is none inside a line.
        lines.iter_mut().flatten().filter(|byte| **byte == b'\n').for_each(|byte| *byte = b' ');
        let quirks = late.then_some(Quirk::ReplaysAfterLoad).into_iter().collect();
        survives(&lines, quirks);
    }
}
