//! Reading the write-ahead log back: which segments count, where each ends, and what is tail or damage.
//!
//! The newest segment decides: it begins with a checkpoint and needs nothing before it, or it names the
//! segment it goes on from and the byte where that one ends. Reads only.

use std::collections::BTreeMap;

use rekindle_domain::event::Kind;
use rekindle_domain::id::{SessionId, StreamId};
use rekindle_domain::line::Line;
use rekindle_domain::session::Position;

use super::frame::{self, BadFrame, BadHeader, Body, FRAME_MAGIC, Frame, HEADER_LEN, Header, Part, Unknown};
use crate::disk::{if_exists, read_all};
use crate::error::{AtPath, PathError};
use crate::home_files::HomeFiles;
use crate::layout::{Streams, segment_number};
use crate::line_codec::Codec;

/// Longest segment that is read: the writer goes on in a new one long before.
const MAX_SEGMENT_FILE: u64 = 4 << 30;

/// How much reserved room is compared at a time.
const PAGE: usize = 4096;

/// How many bytes may be checksummed while looking for frames behind damage; beyond it a segment is made to
/// fool us, and what was found until then counts.
const SEARCH_BUDGET: usize = 512 << 20;

/// A stretch of a segment that was on disk and is not valid any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalDamage {
    /// The segment.
    pub segment: u64,
    /// Where the stretch begins.
    pub offset: u64,
    /// What is wrong with it.
    pub detail: String,
}

/// One segment that counts.
#[derive(Debug)]
struct Segment {
    number: u64,
    bytes: Vec<u8>,
    /// Where its valid frames begin.
    frames: Vec<usize>,
}

/// The write-ahead log as found on disk.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    segments: Vec<Segment>,
    /// Stretches that were on disk and are not valid.
    pub(crate) damage: Vec<WalDamage>,
    /// The highest segment number in the directory, counted or not.
    pub(crate) last_number: u64,
    streams: Streams,
    codec: Codec,
}

/// The end of the newest segment, for whoever goes on from there.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OpenEnd {
    pub(crate) number: u64,
    /// How far the segment is proven to be on disk.
    pub(crate) synced: u64,
    /// Where its last frame ends.
    pub(crate) end: u64,
    /// The frames between the two.
    pub(crate) unsynced: Vec<u8>,
    /// Segments before it that count, and the bytes in them.
    pub(crate) older: (u64, u64),
}

/// The tail of a stream: what the write-ahead log knows of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tail<'a> {
    /// Where its log was on disk when the log of logs began.
    pub(crate) checkpoint: Option<Position>,
    /// What was appended since, in order.
    pub(crate) appends: Vec<Part<'a>>,
    /// Sessions that were forked from it since, and are not deleted.
    pub(crate) forks: Vec<SessionId>,
}

/// Why the write-ahead log cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    /// A newer version of Rekindle wrote it.
    #[error(
        "write-ahead log segment {segment} has format {format}, newer than this version of Rekindle knows"
    )]
    Newer {
        /// The segment.
        segment: u64,
        /// Its format.
        format: u32,
    },
    /// It has something that this version of Rekindle does not know; everything is left as it is.
    #[error(
        "write-ahead log segment {segment} has {what} at byte {offset}, which this version of Rekindle does not know"
    )]
    Unknown {
        /// The segment.
        segment: u64,
        /// Where the frame begins.
        offset: u64,
        /// What is not known.
        what: Unknown,
    },
    /// A file cannot be read.
    #[error(transparent)]
    Read(#[from] PathError),
}

/// Reads the write-ahead log of a home. A home without one has an empty one.
pub(crate) fn scan(home: &HomeFiles) -> Result<Scan, ScanError> {
    const READ: &str = "read the write-ahead log in";
    let entries = if_exists(home.disk.list(&home.wal())).at_path(READ, &home.wal())?.unwrap_or_default();
    let mut numbers: Vec<u64> = entries.iter().filter_map(|entry| segment_number(&entry.name)).collect();
    numbers.sort_unstable();
    let mut scan = Scan { last_number: numbers.last().copied().unwrap_or(0), ..Scan::default() };
    (scan.streams, scan.codec) = (home.streams(), home.codec());
    let mut wanted = numbers.last().copied();
    let mut end = None;
    while let Some(number) = wanted {
        let path = home.segment(number);
        let Some(bytes) = if_exists(read_all(&*home.disk, &path, MAX_SEGMENT_FILE)).at_path(READ, &path)?
        else {
            scan.add_damage(number, 0, "the segment is missing".into());
            break;
        };
        let header = match Header::read(&bytes) {
            Ok(header) if header.number == number => header,
            Err(BadHeader::Newer(format)) => return Err(ScanError::Newer { segment: number, format }),
            Ok(_) | Err(BadHeader::Damaged) => {
                scan.add_damage(number, 0, "the header is damaged".into());
                // Frames stand by themselves; of what came before only the file names are left to tell.
                let before = numbers.iter().copied().filter(|other| *other < number).max();
                Header { number, previous: before.unwrap_or(0), previous_end: u64::MAX }
            }
        };
        scan.add(header, bytes, end)?;
        end = Some(header.previous_end);
        // Strictly downwards, so that damaged links cannot make a loop.
        wanted = Some(header.previous).filter(|previous| (1..number).contains(previous));
    }
    scan.segments.reverse();
    Ok(scan)
}

impl Scan {
    fn add_damage(&mut self, segment: u64, offset: u64, detail: String) {
        self.damage.push(WalDamage { segment, offset, detail });
    }

    /// Takes in one segment. With an `end` everything before it was on disk; without, bad bytes at the end
    /// are a tail that never counted. A checkpoint that heads a segment was on disk before the segment had
    /// its name.
    fn add(&mut self, header: Header, mut bytes: Vec<u8>, end: Option<u64>) -> Result<(), ScanError> {
        let number = header.number;
        if let Some(end) = end.filter(|end| *end < bytes.len() as u64) {
            bytes.truncate(end as usize);
        }
        let whole = end.is_some_and(|end| end != u64::MAX);
        let mut frames = Vec::new();
        let mut at = HEADER_LEN;
        let mut budget = SEARCH_BUDGET;
        while at < bytes.len() {
            if let Some(frame) = valid(&bytes, number, at, self.streams)? {
                frames.push(at);
                at += frame.len;
                continue;
            }
            let next = next_frame_after(&bytes, number, at, whole, &mut budget, self.streams)?;
            let headless = header.previous == 0 && at == HEADER_LEN;
            if next.is_none() && !whole && !headless {
                break;
            }
            let to = next.unwrap_or(bytes.len());
            self.add_damage(number, at as u64, format!("{} bytes are damaged", to - at));
            at = to;
        }
        self.segments.push(Segment { number, bytes, frames });
        Ok(())
    }

    /// Groups what counts by stream.
    pub(crate) fn by_stream(&self) -> BTreeMap<StreamId, Tail<'_>> {
        let mut tails: BTreeMap<StreamId, Tail<'_>> = BTreeMap::new();
        for body in self.bodies() {
            match body {
                Body::Append(parts) => {
                    for part in parts {
                        tails.entry(part.stream).or_default().appends.push(part);
                    }
                }
                Body::Checkpoint(positions) => {
                    for (stream, position) in positions {
                        tails.entry(stream).or_default().checkpoint = Some(position);
                    }
                }
            }
        }
        self.add_forks(&mut tails);
        tails
    }

    /// Notes which streams are forks of others, of those that began since the last checkpoint. The logs that older ones go on from
    /// are durable by themselves.
    fn add_forks(&self, tails: &mut BTreeMap<StreamId, Tail<'_>>) {
        let fork = |(stream, tail): (&StreamId, &Tail<'_>)| {
            let parent = tail.forked_from(self.codec).filter(|_| !tail.is_deleted(self.codec))?;
            Some((parent, stream.session()?))
        };
        let forks: Vec<(SessionId, SessionId)> = tails.iter().filter_map(fork).collect();
        for (parent, fork) in forks {
            if let Some(tail) = tails.get_mut(&parent.into()) {
                tail.forks.push(fork);
            }
        }
    }

    fn bodies(&self) -> impl Iterator<Item = Body<'_>> {
        self.segments.iter().flat_map(|segment| {
            let frames = segment.frames.iter().filter_map(|at| self.frame(segment, *at));
            frames.map(|frame| frame.body)
        })
    }

    /// Reads a frame that was found to be valid.
    fn frame<'a>(&self, segment: &'a Segment, at: usize) -> Option<Frame<'a>> {
        frame::read(&segment.bytes[at..], segment.number, at as u64, self.streams).ok()
    }

    /// Returns what stands behind the last frame, unless it is only the room reserved there: a crash in the
    /// middle of a write, which never counted.
    pub(crate) fn torn(&self) -> Option<WalDamage> {
        let (Segment { number, bytes, .. }, _, end) = self.newest()?;
        let mut rest = bytes.get(end as usize..)?;
        // Reserved room is most of a segment: whole pages of it are passed over.
        while let Some((front, _)) = rest.split_last_chunk::<PAGE>().filter(|(_, page)| *page == &[0; PAGE]) {
            rest = front;
        }
        let last = rest.iter().rposition(|byte| *byte != 0)?;
        let detail = format!("{} bytes never became a frame", last + 1);
        Some(WalDamage { segment: *number, offset: end, detail })
    }

    /// Returns the stretch of the newest segment that nothing proves to be on disk.
    pub(crate) fn unsynced(&self) -> Option<(u64, u64, u64)> {
        let (segment, synced, end) = self.newest()?;
        (!segment.frames.is_empty()).then_some((segment.number, synced, end))
    }

    /// Returns the newest segment, how far it is proven to be on disk, and where its last frame ends.
    fn newest(&self) -> Option<(&Segment, u64, u64)> {
        let segment = self.segments.last()?;
        let Some(at) = segment.frames.last() else {
            return Some((segment, HEADER_LEN as u64, HEADER_LEN as u64));
        };
        let last = self.frame(segment, *at)?;
        Some((segment, last.synced.min(*at as u64), (at + last.len) as u64))
    }

    /// Returns where the newest segment ends, how far it is proven to be on disk, and the frames between the two; none if there
    /// is no segment.
    pub(crate) fn open_end(&self) -> Option<OpenEnd> {
        let (Segment { number, bytes, .. }, synced, end) = self.newest()?;
        let unsynced = bytes.get(synced as usize..end as usize)?.to_vec();
        let older = &self.segments[..self.segments.len() - 1];
        let older = (older.len() as u64, older.iter().map(|segment| segment.bytes.len() as u64).sum());
        Some(OpenEnd { number: *number, synced, end, unsynced, older })
    }

    /// Returns the numbers of the segments that count.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u64> {
        self.segments.iter().map(|segment| segment.number)
    }
}

impl Tail<'_> {
    /// Returns where the write-ahead log takes over from the stream's log.
    pub(crate) fn base(&self) -> Option<u64> {
        let checkpoint = self.checkpoint.map(|position| position.log_offset);
        checkpoint.or_else(|| self.appends.first().map(|append| append.offset))
    }

    /// Returns the session that this one is a fork of, if its first record is here.
    fn forked_from(&self, codec: Codec) -> Option<SessionId> {
        let first = self.appends.first().filter(|append| append.offset == 0 && self.checkpoint.is_none())?;
        let end = memchr::memchr(b'\n', first.lines)?;
        let mut room = Vec::new();
        let line = Line::parse(codec.decode(&first.lines[..end], &mut room)).ok()?;
        line.forked_from().map(|from| from.session_id)
    }

    /// Tells whether the last thing appended was the deletion of a session.
    pub(crate) fn is_deleted(&self, codec: Codec) -> bool {
        let mut room = Vec::new();
        let last = self.appends.last().and_then(|append| {
            let lines = append.lines.strip_suffix(b"\n")?;
            let start = memchr::memrchr(b'\n', lines).map_or(0, |at| at + 1);
            Line::parse(codec.decode(&lines[start..], &mut room)).ok()
        });
        last.is_some_and(|line| line.kind == Kind::SessionDeleted.as_str())
    }
}

/// Reads the frame at a place, if there is a valid one. One that is whole and cannot be understood ends the scan: what is in
/// it counts, and nothing may be done without it.
fn valid(bytes: &[u8], segment: u64, at: usize, streams: Streams) -> Result<Option<Frame<'_>>, ScanError> {
    match frame::read(&bytes[at..], segment, at as u64, streams) {
        Ok(frame) => Ok(Some(frame)),
        Err(BadFrame::Damaged) => Ok(None),
        Err(BadFrame::Unknown(what)) => Err(ScanError::Unknown { segment, offset: at as u64, what }),
    }
}

/// Finds a valid frame behind a bad stretch that proves the stretch was on disk before it.
fn next_frame_after(
    bytes: &[u8],
    number: u64,
    bad: usize,
    whole: bool,
    budget: &mut usize,
    streams: Streams,
) -> Result<Option<usize>, ScanError> {
    let mut at = bad + 1;
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr::memchr(FRAME_MAGIC[0], rest)) {
        at += found;
        if bytes.get(at + 1) == Some(&FRAME_MAGIC[1]) {
            let cost = bytes.get(at + 4..at + 8).and_then(|len| len.first_chunk().copied());
            let cost = cost.map_or(0, u32::from_le_bytes) as usize;
            let Some(left) = budget.checked_sub(cost.min(bytes.len() - at)) else { return Ok(None) };
            *budget = left;
            let proof = valid(bytes, number, at, streams)?;
            if proof.is_some_and(|frame| whole || frame.synced > bad as u64) {
                return Ok(Some(at));
            }
        }
        at += 1;
    }
    Ok(None)
}
