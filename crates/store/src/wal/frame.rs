//! The bytes of a segment: a header, then frames. Pure; `docs/on-disk-format.md` says the same in words.
//!
//! Each checksum covers the segment's number and the frame's offset too, so that a stale or misdirected
//! block is never taken for a frame. The first byte of a frame is no part of any UTF-8 text, so that frames
//! can be found again behind damage.

use rekindle_domain::chain::ChainHash;
use rekindle_domain::id::{StreamId, StreamKind};
use rekindle_domain::session::Position;

use crate::layout::Streams;

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
    Checkpoint(Vec<(StreamId, Position)>),
}

/// What an append adds to one stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part<'a> {
    /// The stream whose log it is.
    pub(crate) stream: StreamId,
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

/// Why bytes are not a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadFrame {
    /// Damaged, cut short, or something else.
    Damaged,
    /// A whole frame of this format with something in it that this code does not know.
    Unknown(Unknown),
}

/// What a whole frame has that this code does not know: the byte of its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    /// A kind of frame.
    Frame(u8),
    /// A kind of stream.
    Stream(u8),
}

impl std::fmt::Display for Unknown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unknown::Frame(kind) => write!(f, "a frame of kind {kind}"),
            Unknown::Stream(kind) => write!(f, "records of a stream of kind {kind}"),
        }
    }
}

/// Where a frame stands; part of its checksum.
#[derive(Debug, Clone, Copy)]
pub(crate) struct At {
    pub(crate) segment: u64,
    pub(crate) offset: u64,
    pub(crate) synced: u64,
}

impl At {
    /// The place right behind a segment's header.
    pub(crate) fn first(segment: u64) -> At {
        At { segment, offset: HEADER_LEN as u64, synced: HEADER_LEN as u64 }
    }
}

/// An append of format 1: a session, its first number, where it belongs, the lines.
const KIND_SESSION_APPEND: u8 = 1;
/// A checkpoint of format 1, of sessions alone.
const KIND_SESSION_CHECKPOINT: u8 = 2;
const KIND_APPEND: u8 = 3;
const KIND_CHECKPOINT: u8 = 4;

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
pub(crate) fn begin_part(out: &mut Vec<u8>, stream: StreamId, first_seq: u64, offset: u64) -> usize {
    write_stream(out, stream);
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
pub(crate) fn write_checkpoint(out: &mut Vec<u8>, at: At, positions: &[(StreamId, Position)]) {
    let start = out.len();
    begin(out, KIND_CHECKPOINT);
    write_varint(out, positions.len() as u64);
    for (stream, position) in positions {
        write_stream(out, *stream);
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
pub(crate) fn read(bytes: &[u8], segment: u64, offset: u64, streams: Streams) -> Result<Frame<'_>, BadFrame> {
    if bytes.len() < FRAME_HEAD || bytes[..2] != FRAME_MAGIC {
        return Err(BadFrame::Damaged);
    }
    let body_len = u32_at(bytes, 4) as usize;
    let frame = bytes.get(..FRAME_HEAD + body_len).filter(|_| body_len <= MAX_BODY);
    let frame = frame.ok_or(BadFrame::Damaged)?;
    if u32_at(frame, 12) != checksum(frame, segment, offset) {
        return Err(BadFrame::Damaged);
    }
    let body = Body::read(frame[2], &mut Bytes { rest: &frame[FRAME_HEAD..], streams })?;
    Ok(Frame { synced: u64::from(u32_at(frame, 8)), body, len: frame.len() })
}

impl<'a> Body<'a> {
    fn read(kind: u8, bytes: &mut Bytes<'a>) -> Result<Body<'a>, BadFrame> {
        match kind {
            KIND_SESSION_APPEND => {
                let stream = bytes.id(StreamKind::SESSION)?;
                let (first_seq, offset) = (bytes.varint()?, bytes.varint()?);
                Ok(Body::Append(vec![Part { stream, first_seq, offset, lines: bytes.rest }]))
            }
            KIND_APPEND => {
                let count = u16::from_le_bytes(*bytes.chunk::<COUNT_LEN>()?);
                let parts = (0..count).map(|_| Part::read(bytes)).collect::<Result<Vec<_>, _>>()?;
                if bytes.rest.is_empty() { Ok(Body::Append(parts)) } else { Err(BadFrame::Damaged) }
            }
            KIND_SESSION_CHECKPOINT | KIND_CHECKPOINT => {
                let count = bytes.varint()?;
                // Each entry takes at least this much: a count beyond that is rubbish.
                if count > bytes.rest.len() as u64 / 19 {
                    return Err(BadFrame::Damaged);
                }
                let mut positions = Vec::with_capacity(count as usize);
                for _ in 0..count {
                    let stream = match kind {
                        KIND_CHECKPOINT => bytes.stream()?,
                        _ => bytes.id(StreamKind::SESSION)?,
                    };
                    let (last_seq, log_offset) = (bytes.varint()?, bytes.varint()?);
                    let last_hash = ChainHash::from_hex(bytes.read_bytes(ChainHash::DIGITS)?);
                    positions.push((stream, Position { last_seq, log_offset, last_hash }));
                }
                Ok(Body::Checkpoint(positions))
            }
            unknown => Err(BadFrame::Unknown(Unknown::Frame(unknown))),
        }
    }
}

impl<'a> Part<'a> {
    fn read(bytes: &mut Bytes<'a>) -> Result<Part<'a>, BadFrame> {
        let stream = bytes.stream()?;
        let (first_seq, offset) = (bytes.varint()?, bytes.varint()?);
        let len = u32::from_le_bytes(*bytes.chunk::<LINES_LEN>()?);
        Ok(Part { stream, first_seq, offset, lines: bytes.read_bytes(len as usize)? })
    }
}

/// The rest of a body whose checksum is right.
struct Bytes<'a> {
    rest: &'a [u8],
    streams: Streams,
}

impl<'a> Bytes<'a> {
    fn read_bytes(&mut self, len: usize) -> Result<&'a [u8], BadFrame> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(BadFrame::Damaged)?;
        self.rest = rest;
        Ok(taken)
    }

    fn chunk<const N: usize>(&mut self) -> Result<&'a [u8; N], BadFrame> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(BadFrame::Damaged)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Reads the kind and the id of a stream.
    fn stream(&mut self) -> Result<StreamId, BadFrame> {
        let [byte] = *self.chunk::<1>()?;
        let kind = self.streams.kind(byte).ok_or(BadFrame::Unknown(Unknown::Stream(byte)))?;
        self.id(kind)
    }

    fn id(&mut self, kind: StreamKind) -> Result<StreamId, BadFrame> {
        let [len] = *self.chunk::<1>()?;
        let stream = match len {
            0 => kind.stream_from_ulid(u128::from_be_bytes(*self.chunk::<16>()?)),
            _ => std::str::from_utf8(self.read_bytes(usize::from(len))?)
                .ok()
                .and_then(|name| kind.stream(name)),
        };
        stream.ok_or(BadFrame::Damaged)
    }

    fn varint(&mut self) -> Result<u64, BadFrame> {
        read_varint(&mut self.rest).ok_or(BadFrame::Damaged)
    }
}

/// Writes the kind of a stream and its id: a zero and 16 bytes for a ULID, else its length and text.
fn write_stream(out: &mut Vec<u8>, stream: StreamId) {
    out.push(stream.kind());
    write_id(out, stream);
}

fn write_id(out: &mut Vec<u8>, stream: StreamId) {
    match stream.to_ulid() {
        Some(bits) => {
            out.push(0);
            out.extend_from_slice(&bits.to_be_bytes());
        }
        None => {
            out.push(stream.as_str().len() as u8);
            out.extend_from_slice(stream.as_str().as_bytes());
        }
    }
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
mod tests;
