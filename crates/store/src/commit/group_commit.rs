//! Groups of appends: turned into frames together, and the way back if one is refused or the disk says no.

use std::io;
use std::sync::Arc;
use std::vec;

use rekindle_domain::event::Event;
use rekindle_domain::id::StreamId;
use rekindle_domain::session::Position;
use rekindle_domain::time::Timestamp;

use super::erased_fold::Encoder;
use super::log_writes::StreamLines;
use super::open_stream::OpenStream;
use super::open_streams::{Find, OpenStreams};
use super::{Append, Expect, Persist, Receipts, Reply, Submitted};
use crate::crash_report::at_work;
use crate::error::AppendError;
use crate::line_codec::Codec;
use crate::log::LogForm;
use crate::wal::frame;

/// An append of a group that passed.
pub(super) struct PreparedAppend {
    pub(super) append: Append,
    pub(super) reply: Reply,
    pub(super) receipts: Receipts,
}

/// A group of appends that are written and synced together.
pub(super) struct Group {
    /// Its number, so that what is remembered for another group is not mistaken for this one's.
    id: u64,
    pub(super) appends: Vec<PreparedAppend>,
    /// What they add to each log, in order.
    pub(super) lines: Vec<StreamLines>,
    /// The frames, which have no place in the write-ahead log yet.
    pub(super) frames: Vec<u8>,
    /// Someone needs it on disk.
    pub(super) sync: bool,
    /// The disk is full: only what ends work is taken in.
    urgent_only: bool,
    codec: Codec,
    ts: Timestamp,
    ts_text: String,
}

impl Group {
    /// Begins a group that is encoded into `frames`, whatever that held.
    pub(super) fn new(id: u64, codec: Codec, ts: Timestamp, urgent_only: bool, mut frames: Vec<u8>) -> Group {
        frames.clear();
        let (appends, lines, ts_text) = (Vec::new(), Vec::new(), ts.to_string());
        Group { id, appends, lines, frames, sync: false, urgent_only, codec, ts, ts_text }
    }

    /// Returns an empty group that can be joined to this one later.
    pub(super) fn sibling(&self) -> Group {
        Group::new(self.id, self.codec, self.ts, self.urgent_only, Vec::new())
    }

    /// Takes in a sibling.
    pub(super) fn join(&mut self, other: Group) {
        let shift = self.frames.len();
        self.frames.extend_from_slice(&other.frames);
        self.sync |= other.sync;
        self.appends.extend(other.appends);
        self.lines.extend(other.lines.into_iter().map(|mut lines| {
            lines.range = lines.range.start + shift..lines.range.end + shift;
            lines
        }));
    }

    /// Adds appends until there are enough bytes.
    pub(super) fn fill(
        &mut self,
        streams: &mut impl Find,
        appends: &mut vec::IntoIter<Submitted>,
        enough: usize,
    ) {
        while self.frames.len() < enough
            && let Some((append, reply)) = appends.next()
        {
            if self.urgent_only && !is_urgent(&append) {
                let full = io::ErrorKind::StorageFull.into();
                reply.send(Err(AppendError::StorageFull(Arc::new(full))));
                continue;
            }
            match self.add(streams, &append) {
                Ok(receipts) => self.appends.push(PreparedAppend { append, reply, receipts }),
                Err(error) => reply.send(Err(error)),
            }
        }
    }

    /// Adds one append as one frame, or none of it.
    fn add(&mut self, streams: &mut impl Find, append: &Append) -> Result<Receipts, AppendError> {
        let (start, known) = (self.frames.len(), self.lines.len());
        frame::begin_append(&mut self.frames);
        let mut saved: Vec<StreamId> = Vec::new();
        let added = self.add_parts(streams, append, &mut saved);
        for stream in saved {
            match streams.find(stream) {
                Some(open) if added.is_ok() => open.fold.release_savepoint(),
                Some(open) => open.fold.roll_back(),
                None => {}
            }
        }
        match &added {
            Ok(_) => {
                frame::end_append(&mut self.frames[start..], 1 + append.more.len());
                // What is in one log must not outlive what is in another.
                self.sync |= append.persist == Persist::Disk || append.is_shared();
            }
            Err(_) => {
                self.frames.truncate(start);
                self.lines.truncate(known);
            }
        }
        added
    }

    /// Adds the parts of an append; `saved` gets the streams of a shared one, which remember what they were before it.
    fn add_parts(
        &mut self,
        streams: &mut impl Find,
        append: &Append,
        saved: &mut Vec<StreamId>,
    ) -> Result<Receipts, AppendError> {
        if append.more.len() >= frame::MAX_PARTS {
            return Err(AppendError::Unwritable("the append touches too many logs".into()));
        }
        let (mut first, mut more) = (None, Vec::new());
        for (stream, records, expect) in append.parts() {
            let _at_work = at_work(stream, "append");
            let open = streams.find(stream).ok_or(AppendError::NotOpen(stream))?;
            if append.is_shared() && open.fold.set_savepoint() {
                saved.push(stream);
            }
            let Position { last_seq, log_offset: offset, .. } = open.position();
            check(open, last_seq, expect)?;
            let begin = frame::begin_part(&mut self.frames, stream, last_seq + 1, offset);
            let mut encoder = Encoder {
                group: self.id,
                frames: &mut self.frames,
                codec: self.codec,
                ts: self.ts,
                ts_text: &self.ts_text,
            };
            let receipt = open.fold.append(&mut encoder, records)?;
            frame::end_part(&mut self.frames, begin);
            // The log of a stream that no checkpoint knows may only be touched once the write-ahead
            // log is sure to mention it: else a torn tail could not be told from damage.
            self.sync |= !open.touched;
            open.unsynced = true;
            self.lines.push(StreamLines { stream, range: begin..self.frames.len(), offset });
            match first {
                None => first = Some(receipt),
                Some(_) => more.push(receipt),
            }
        }
        let first = first.ok_or_else(|| AppendError::Unwritable("the list is empty".into()))?;
        Ok(Receipts { first, more })
    }

    /// Takes everything back and returns the appends: none of them happened.
    pub(super) fn roll_back(self, streams: &mut OpenStreams) -> Vec<Submitted> {
        for lines in &self.lines {
            if let Some(open) = streams.get_mut(lines.stream) {
                open.fold.undo_group(self.id);
            }
        }
        self.appends.into_iter().map(|entry| (entry.append, entry.reply)).collect()
    }
}

/// Checks that a stream is what the caller thinks, and can be added to.
fn check(open: &OpenStream, found: u64, expect: Expect) -> Result<(), AppendError> {
    let stream = open.stream;
    if open.form == LogForm::Compressed {
        return Err(AppendError::NotOpen(stream));
    }
    if let Some(damage) = &open.damage {
        return Err(AppendError::Damaged { stream, damage: damage.clone() });
    }
    match expect {
        Expect::LastSeq(expected) if expected != found => Err(AppendError::Moved { stream, expected, found }),
        Expect::LastSeq(_) | Expect::Anything => Ok(()),
    }
}

/// Tells whether an append must go through even when the disk is full: what ends work, and frees room.
pub(super) fn is_urgent(append: &Append) -> bool {
    append.parts().flat_map(|(_, records, _)| records).any(|draft| {
        matches!(
            draft.event,
            Event::RunCancelRequested(_) | Event::RunCancelled(_) | Event::SessionDeleted(_)
        ) && draft.source.is_none()
    })
}
