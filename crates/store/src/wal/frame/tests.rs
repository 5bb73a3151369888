//! Frames written and read back, torn, misplaced, of older formats and with what is not known.

use proptest::prelude::*;

use rekindle_domain::id::SessionId;

use super::*;

fn read(bytes: &[u8], segment: u64, offset: u64) -> Option<Frame<'_>> {
    super::read(bytes, segment, offset, Streams::default()).ok()
}

fn part(lines: &[u8]) -> Part<'_> {
    Part { stream: SessionId::from_ulid(7).into(), first_seq: 300, offset: 70_000, lines }
}

fn write_append(out: &mut Vec<u8>, parts: &[Part<'_>]) {
    let start = out.len();
    begin_append(out);
    for part in parts {
        let lines = begin_part(out, part.stream, part.first_seq, part.offset);
        out.extend_from_slice(part.lines);
        end_part(out, lines);
    }
    end_append(&mut out[start..], parts.len());
}

/// Writes an append as format 1 did.
fn write_format_1(out: &mut Vec<u8>, part: &Part<'_>) {
    let start = out.len();
    begin(out, KIND_SESSION_APPEND);
    write_id(out, part.stream);
    write_varint(out, part.first_seq);
    write_varint(out, part.offset);
    out.extend_from_slice(part.lines);
    end(&mut out[start..]);
}

#[test]
fn an_append_to_several_streams_is_one_frame() {
    let other = Part { stream: "sess_1".parse::<SessionId>().expect("an id").into(), ..part(b"{}\n{}\n") };
    let parts = [part(b"{}\n"), other, part(b"")];
    let mut bytes = Vec::new();
    write_append(&mut bytes, &parts);
    let old = bytes.len();
    write_format_1(&mut bytes, &part(b"old\n"));
    place(&mut bytes, At { segment: 3, offset: 44, synced: 44 });
    assert_eq!(read(&bytes, 3, 44).map(|frame| frame.body), Some(Body::Append(parts.to_vec())));
    let found = read(&bytes[old..], 3, 44 + old as u64).map(|frame| frame.body);
    assert_eq!(found, Some(Body::Append(vec![part(b"old\n")])), "beside one of format 1");
    for at in 0..old {
        let mut torn = bytes[..old].to_vec();
        torn[at] ^= 1;
        assert_eq!(read(&torn, 3, 44), None, "byte {at}");
    }
}

#[test]
fn a_frame_comes_back_only_where_it_was_placed() {
    let mut bytes = Vec::new();
    write_append(&mut bytes, &[part(b"{}\n")]);
    assert_eq!(read(&bytes, 3, 44), None, "no place yet");
    place(&mut bytes, At { segment: 3, offset: 44, synced: 44 });
    let frame = read(&bytes, 3, 44).expect("a frame");
    assert_eq!((frame.synced, frame.len), (44, bytes.len()));
    assert_eq!(frame.body, Body::Append(vec![part(b"{}\n")]));
    assert_eq!(read(&bytes, 4, 44), None, "another segment");
    assert_eq!(read(&bytes, 3, 45), None, "another offset");
    assert_eq!(read(&bytes[..bytes.len() - 1], 3, 44), None, "cut short");
    assert_eq!(bytes.len(), FRAME_HEAD + 2 + 1 + 17 + 2 + 3 + 4 + 3, "the cost of a frame");
}

#[test]
fn frames_follow_each_other_and_can_be_placed_again() {
    let mut bytes = Vec::new();
    write_append(&mut bytes, &[part(b"a\n")]);
    let first = bytes.len();
    write_append(&mut bytes, &[part(b"bb\n")]);
    for (segment, offset) in [(1, 100), (2, 44)] {
        place(&mut bytes, At { segment, offset, synced: 44 });
        let found = read(&bytes, segment, offset).map(|frame| frame.body);
        assert_eq!(found, Some(Body::Append(vec![part(b"a\n")])));
        let second = read(&bytes[first..], segment, offset + first as u64);
        assert_eq!(second.map(|frame| frame.body), Some(Body::Append(vec![part(b"bb\n")])));
    }
}

#[test]
fn a_checkpoint_and_a_short_id_come_back() {
    let id: SessionId = "sess_123".parse().expect("an id");
    let hash = Some("0123456789abcdef".parse().expect("a hash"));
    let positions = vec![
        (id.into(), Position { last_seq: 5, log_offset: 500, last_hash: hash }),
        (SessionId::from_ulid(9).into(), Position { last_seq: 1, log_offset: 9, last_hash: None }),
    ];
    let mut bytes = Vec::new();
    write_checkpoint(&mut bytes, At { segment: 1, offset: 44, synced: 44 }, &positions);
    assert_eq!(read(&bytes, 1, 44).map(|frame| frame.body), Some(Body::Checkpoint(positions)));
}

#[test]
fn a_frame_with_something_unknown_is_told_from_damage() {
    let read = |bytes: &[u8]| super::read(bytes, 3, 44, Streams::default()).map(|frame| frame.len);
    let mut bytes = Vec::new();
    write_append(&mut bytes, &[part(b"{}\n"), part(b"{}\n")]);
    let mut checkpoint = Vec::new();
    let at = At { segment: 3, offset: 44, synced: 44 };
    write_checkpoint(&mut checkpoint, at, &[(part(b"").stream, Position::default())]);
    for (mut frame, stream) in [(bytes, FRAME_HEAD + COUNT_LEN), (checkpoint, FRAME_HEAD + 1)] {
        place(&mut frame, at);
        assert_eq!(read(&frame), Ok(frame.len()));
        frame[stream] = 7;
        assert_eq!(read(&frame), Err(BadFrame::Damaged), "the checksum covers the kind of the stream");
        place(&mut frame, at);
        assert_eq!(read(&frame), Err(BadFrame::Unknown(Unknown::Stream(7))));
        assert_eq!(read(&frame[..frame.len() - 1]), Err(BadFrame::Damaged));
        (frame[stream], frame[2]) = (1, 9);
        place(&mut frame, at);
        assert_eq!(read(&frame), Err(BadFrame::Unknown(Unknown::Frame(9))));
    }
}

#[test]
fn headers_of_newer_formats_are_told_from_damage() {
    let header = Header { number: 9, previous: 8, previous_end: 1234 };
    let mut bytes = header.write();
    assert_eq!(Header::read(&bytes), Ok(header));
    bytes[8] = 3;
    assert_eq!(Header::read(&bytes), Err(BadHeader::Damaged), "the checksum covers the version");
    let crc = crc32c::crc32c(&bytes[..40]);
    bytes[40..].copy_from_slice(&crc.to_le_bytes());
    assert_eq!(Header::read(&bytes), Err(BadHeader::Newer(3)));
    assert_eq!(Header::read(&bytes[..43]), Err(BadHeader::Damaged));
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Header::read(&bytes);
        let _ = read(&bytes, 1, 44);
        let mut framed = Vec::new();
        for kind in 1..=9 {
            framed.clear();
            begin(&mut framed, kind);
            framed.extend(&bytes);
            end(&mut framed);
            place(&mut framed, At { segment: 1, offset: 44, synced: 44 });
            let _ = read(&framed, 1, 44);
        }
    }

    #[test]
    fn numbers_come_back(value: u64) {
        let mut bytes = Vec::new();
        write_varint(&mut bytes, value);
        prop_assert_eq!(read_varint(&mut &bytes[..]), Some(value));
    }
}
