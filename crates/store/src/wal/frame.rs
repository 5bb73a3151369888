//! The bytes of a segment: a header, then frames. Pure; `docs/on-disk-format.md` says the same in words.
//!
//! Each checksum covers the segment's number and the frame's offset too, so that a stale or misdirected
//! block is never taken for a frame. The first byte of a frame is no part of any UTF-8 text, so that frames
//! can be found again behind damage.

use rekindle_domain::chain::ChainHash;
use rekindle_domain::id::SessionId;
use rekindle_domain::session::Position;

/// Length of a segment's header.
pub(crate) const HEADER_LEN: usize = 44;
/// Length of a frame before its body.
pub(crate) const FRAME_HEAD: usize = 16;
/// Longest body of a frame: a list of records of the largest size, with room for a checkpoint of 100,000
/// sessions. Anything longer is rubbish and is not allocated for.
pub(crate) const MAX_BODY: usize = 64 << 20;

const HEADER_MAGIC: &[u8; 8] = b"RKNDLWAL";
/// The format that is written; every one before it is read, also in one segment with this: what an older version left in the middle of
/// a segment goes on in a new one.
const FORMAT: u32 = 2;
pub(crate) const FRAME_MAGIC: [u8; 2] = [0xf7, 0xe6];

/// What heads a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    /// The segment's number.
    pub(crate) number: u64,
    /// The segment that this one goes on from; 0 if it begins with a checkpoint and needs none.
    pub(crate) previous: u64,
    /// Where that segment ends; what stands behind it there never happened.
    pub(crate) previous_end: u64,
}

/// Why bytes are not the header of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadHeader {
    /// A version of the format this code does not know.
    Newer(u32),
    /// Damaged, or something else.
    Damaged,
}

impl Header {
    pub(crate) fn write(&self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        bytes[..8].copy_from_slice(HEADER_MAGIC);
        bytes[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.number.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.previous.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.previous_end.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..40]);
        bytes[40..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    pub(crate) fn read(bytes: &[u8]) -> Result<Header, BadHeader> {
        let bytes: &[u8; HEADER_LEN] = bytes.first_chunk().ok_or(BadHeader::Damaged)?;
        if &bytes[..8] != HEADER_MAGIC || u32_at(bytes, 40) != crc32c::crc32c(&bytes[..40]) {
            return Err(BadHeader::Damaged);
        }
        match u32_at(bytes, 8) {
            1..=FORMAT => Ok(Header {
                number: u64_at(bytes, 16),
                previous: u64_at(bytes, 24),
                previous_end: u64_at(bytes, 32),
            }),
            newer => Err(BadHeader::Newer(newer)),
        }
    }
}

/// What a frame holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Body<'a> {
    /// One append: whole lines of the logs of one or several streams, all or none.
    Append(Vec<Part<'a>>),
    /// Logs that are on disk up to these places.
    Checkpoint(Vec<(SessionId, Position)>),
}

/// What an append adds to one stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part<'a> {
    /// The session whose log it is.
    pub(crate) session: SessionId,
    /// The number of its first record.
    pub(crate) first_seq: u64,
    /// Where the lines belong in that log.
    pub(crate) offset: u64,
    /// The lines, each with its newline.
    pub(crate) lines: &'a [u8],
}

/// A frame as found in a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    /// How much of the segment was on disk before this frame was written.
    pub(crate) synced: u64,
    /// Its body.
    pub(crate) body: Body<'a>,
    /// Its length, head included.
    pub(crate) len: usize,
}

/// Where a frame stands; part of its checksum.
#[derive(Debug, Clone, Copy)]
pub(crate) struct At {
    pub(crate) segment: u64,
    pub(crate) offset: u64,
    pub(crate) synced: u64,
}

/// An append of format 1: a session, its first number, where it belongs, the lines.
const KIND_SESSION_APPEND: u8 = 1;
/// A checkpoint of format 1, of sessions alone.
const KIND_SESSION_CHECKPOINT: u8 = 2;
const KIND_APPEND: u8 = 3;
const KIND_CHECKPOINT: u8 = 4;

/// The kind of stream that a session's log is.
const STREAM_SESSION: u8 = 1;

/// Length of the number of parts in a frame, and of the length of a part's lines: both are known last.
const COUNT_LEN: usize = 2;
const LINES_LEN: usize = 4;

/// Most streams that one append may touch.
pub(crate) const MAX_PARTS: usize = u16::MAX as usize;

/// Begins an append's frame at the end of `out`: its parts follow, then [`end_append`] and [`place`].
pub(crate) fn begin_append(out: &mut Vec<u8>) {
    begin(out, KIND_APPEND);
    out.extend_from_slice(&[0; COUNT_LEN]);
}

/// Begins a part of an append at the end of `out`: its lines follow, then [`end_part`] with what this returns.
pub(crate) fn begin_part(out: &mut Vec<u8>, session: SessionId, first_seq: u64, offset: u64) -> usize {
    out.push(STREAM_SESSION);
    write_id(out, session);
    write_varint(out, first_seq);
    write_varint(out, offset);
    out.extend_from_slice(&[0; LINES_LEN]);
    out.len()
}

/// Ends the part whose lines began there.
pub(crate) fn end_part(out: &mut [u8], lines: usize) {
    let len = (out.len() - lines) as u32;
    out[lines - LINES_LEN..lines].copy_from_slice(&len.to_le_bytes());
}

/// Ends a frame of so many parts; it is valid once it has its place.
pub(crate) fn end_append(frame: &mut [u8], parts: usize) {
    frame[FRAME_HEAD..FRAME_HEAD + COUNT_LEN].copy_from_slice(&(parts as u16).to_le_bytes());
    end(frame);
}

/// Appends a checkpoint's frame to `out`.
pub(crate) fn write_checkpoint(out: &mut Vec<u8>, at: At, positions: &[(SessionId, Position)]) {
    let start = out.len();
    begin(out, KIND_CHECKPOINT);
    write_varint(out, positions.len() as u64);
    for (session, position) in positions {
        out.push(STREAM_SESSION);
        write_id(out, *session);
        write_varint(out, position.last_seq);
        write_varint(out, position.log_offset);
        match position.last_hash {
            Some(hash) => out.extend_from_slice(&hash.to_hex()),
            None => out.extend_from_slice(&[b'-'; ChainHash::DIGITS]),
        }
    }
    end(&mut out[start..]);
    seal(&mut out[start..], at);
}

fn begin(out: &mut Vec<u8>, kind: u8) {
    let mut head = [0; FRAME_HEAD];
    head[..2].copy_from_slice(&FRAME_MAGIC);
    head[2] = kind;
    out.extend_from_slice(&head);
}

/// Ends a frame that has its whole body.
fn end(frame: &mut [u8]) {
    let len = frame.len() - FRAME_HEAD;
    frame[4..8].copy_from_slice(&(len as u32).to_le_bytes());
}

/// Writes what depends on a frame's place: what was synced before it, and the checksum.
fn seal(frame: &mut [u8], at: At) {
    frame[8..12].copy_from_slice(&(at.synced as u32).to_le_bytes());
    let crc = checksum(frame, at.segment, at.offset);
    frame[12..16].copy_from_slice(&crc.to_le_bytes());
}

fn checksum(frame: &[u8], segment: u64, offset: u64) -> u32 {
    let mut place = [0; 16];
    place[..8].copy_from_slice(&segment.to_le_bytes());
    place[8..].copy_from_slice(&offset.to_le_bytes());
    let crc = crc32c::crc32c_append(crc32c::crc32c(&place), &frame[..12]);
    crc32c::crc32c_append(crc, &frame[FRAME_HEAD..])
}

/// Gives whole frames their place, in order from `first` on; also frames that had another one.
pub(crate) fn place(frames: &mut [u8], first: At) {
    let At { segment, mut offset, synced } = first;
    let mut rest = frames;
    while rest.len() >= FRAME_HEAD {
        let len = (FRAME_HEAD + u32_at(rest, 4) as usize).min(rest.len());
        let (frame, behind) = rest.split_at_mut(len);
        seal(frame, At { segment, offset, synced });
        offset += len as u64;
        rest = behind;
    }
}

/// Reads the frame at the beginning of `bytes`, if there is a whole and valid one.
pub(crate) fn read(bytes: &[u8], segment: u64, offset: u64) -> Option<Frame<'_>> {
    if bytes.len() < FRAME_HEAD || bytes[..2] != FRAME_MAGIC {
        return None;
    }
    let body_len = u32_at(bytes, 4) as usize;
    let frame = bytes.get(..FRAME_HEAD + body_len).filter(|_| body_len <= MAX_BODY)?;
    if u32_at(frame, 12) != checksum(frame, segment, offset) {
        return None;
    }
    let body = read_body(frame[2], &frame[FRAME_HEAD..])?;
    Some(Frame { synced: u64::from(u32_at(frame, 8)), body, len: frame.len() })
}

fn read_body(kind: u8, mut bytes: &[u8]) -> Option<Body<'_>> {
    match kind {
        KIND_SESSION_APPEND => {
            let session = read_id(&mut bytes)?;
            let first_seq = read_varint(&mut bytes)?;
            let offset = read_varint(&mut bytes)?;
            Some(Body::Append(vec![Part { session, first_seq, offset, lines: bytes }]))
        }
        KIND_APPEND => {
            let (count, mut rest) = bytes.split_first_chunk::<COUNT_LEN>()?;
            let count = usize::from(u16::from_le_bytes(*count));
            let parts: Vec<Part<'_>> = (0..count).map_while(|_| read_part(&mut rest)).collect();
            (parts.len() == count && rest.is_empty()).then_some(Body::Append(parts))
        }
        KIND_SESSION_CHECKPOINT | KIND_CHECKPOINT => {
            let count = read_varint(&mut bytes)?;
            // Each entry takes at least this much: a count beyond that is rubbish.
            if count > bytes.len() as u64 / 19 {
                return None;
            }
            let mut positions = Vec::with_capacity(count as usize);
            for _ in 0..count {
                if kind == KIND_CHECKPOINT {
                    read_stream(&mut bytes)?;
                }
                let session = read_id(&mut bytes)?;
                let last_seq = read_varint(&mut bytes)?;
                let log_offset = read_varint(&mut bytes)?;
                let (digits, rest) = bytes.split_at_checked(ChainHash::DIGITS)?;
                bytes = rest;
                let last_hash = ChainHash::from_hex(digits);
                positions.push((session, Position { last_seq, log_offset, last_hash }));
            }
            Some(Body::Checkpoint(positions))
        }
        _ => None,
    }
}

fn read_part<'a>(bytes: &mut &'a [u8]) -> Option<Part<'a>> {
    read_stream(bytes)?;
    let session = read_id(bytes)?;
    let first_seq = read_varint(bytes)?;
    let offset = read_varint(bytes)?;
    let (len, rest) = bytes.split_first_chunk::<LINES_LEN>()?;
    let (lines, rest) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
    *bytes = rest;
    Some(Part { session, first_seq, offset, lines })
}

/// Reads the kind of a stream; there is one so far.
fn read_stream(bytes: &mut &[u8]) -> Option<()> {
    let (kind, rest) = bytes.split_first()?;
    *bytes = rest;
    (*kind == STREAM_SESSION).then_some(())
}

/// Writes a session id: 16 bytes for a ULID, else its length and text.
fn write_id(out: &mut Vec<u8>, id: SessionId) {
    match id.to_ulid() {
        Some(bits) => {
            out.push(0);
            out.extend_from_slice(&bits.to_be_bytes());
        }
        None => {
            out.push(id.as_str().len() as u8);
            out.extend_from_slice(id.as_str().as_bytes());
        }
    }
}

fn read_id(bytes: &mut &[u8]) -> Option<SessionId> {
    let (len, rest) = bytes.split_first()?;
    if *len == 0 {
        let (bits, rest) = rest.split_first_chunk::<16>()?;
        *bytes = rest;
        return Some(SessionId::from_ulid(u128::from_be_bytes(*bits)));
    }
    let (text, rest) = rest.split_at_checked(usize::from(*len))?;
    *bytes = rest;
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn write_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn read_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|bytes| bytes.first_chunk()).map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|bytes| bytes.first_chunk()).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn part(lines: &[u8]) -> Part<'_> {
        Part { session: SessionId::from_ulid(7), first_seq: 300, offset: 70_000, lines }
    }

    fn write_append(out: &mut Vec<u8>, parts: &[Part<'_>]) {
        let start = out.len();
        begin_append(out);
        for part in parts {
            let lines = begin_part(out, part.session, part.first_seq, part.offset);
            out.extend_from_slice(part.lines);
            end_part(out, lines);
        }
        end_append(&mut out[start..], parts.len());
    }

    /// Writes an append as format 1 did.
    fn write_format_1(out: &mut Vec<u8>, part: &Part<'_>) {
        let start = out.len();
        begin(out, KIND_SESSION_APPEND);
        write_id(out, part.session);
        write_varint(out, part.first_seq);
        write_varint(out, part.offset);
        out.extend_from_slice(part.lines);
        end(&mut out[start..]);
    }

    #[test]
    fn an_append_to_several_streams_is_one_frame() {
        let other = Part { session: "sess_1".parse().expect("an id"), ..part(b"{}\n{}\n") };
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
            (id, Position { last_seq: 5, log_offset: 500, last_hash: hash }),
            (SessionId::from_ulid(9), Position { last_seq: 1, log_offset: 9, last_hash: None }),
        ];
        let mut bytes = Vec::new();
        write_checkpoint(&mut bytes, At { segment: 1, offset: 44, synced: 44 }, &positions);
        assert_eq!(read(&bytes, 1, 44).map(|frame| frame.body), Some(Body::Checkpoint(positions)));
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
}
