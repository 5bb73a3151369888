//! Turning a batch of appends into frames: legality, numbers, times, hashes, and the way back if the disk
//! says no.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::vec;

use rekindle_domain::chain::Link;
use rekindle_domain::event::{Effect, Event, Kind};
use rekindle_domain::id::SessionId;
use rekindle_domain::line::{self, Draft, Place};
use rekindle_domain::session::{Illegal, Position};
use rekindle_domain::time::Timestamp;

use super::live::Live;
use super::lives::{Find, Lives};
use super::undo::{Reach, Undo};
use super::{Append, Expect, Handed, Persist, Receipt, Receipts, Reply};
use crate::disk::DiskFile;
use crate::error::AppendError;
use crate::wal::frame;

/// Largest record: a payload of 256 KiB, escaped at worst, and its envelope. Larger ones go into blobs.
pub const MAX_RECORD: usize = 1 << 20;

/// One append of a group that passed.
pub(super) struct Entry {
    pub(super) append: Append,
    pub(super) reply: Reply,
    pub(super) receipts: Receipts,
}

/// Lines of a group that belong into one log.
pub(super) struct Lines {
    pub(super) session: SessionId,
    /// Where they are in the group's frames.
    pub(super) range: Range<usize>,
    /// Where they belong in the session's log.
    pub(super) offset: u64,
    /// That log, if it is open already.
    pub(super) log: Option<Arc<dyn DiskFile>>,
}

/// A batch on its way to the disk.
pub(super) struct Group {
    /// Its number, so that what is remembered for another group is not mistaken for this one's.
    id: u64,
    pub(super) entries: Vec<Entry>,
    /// What they add to each log, in order.
    pub(super) lines: Vec<Lines>,
    /// The frames, which have no place in the write-ahead log yet.
    pub(super) frames: Vec<u8>,
    /// Someone needs it on disk.
    pub(super) sync: bool,
    /// The disk is full: only what ends work is taken in.
    urgent_only: bool,
    ts: Timestamp,
    ts_text: String,
}

impl Group {
    /// Begins a group that is encoded into `frames`, whatever that held.
    pub(super) fn new(id: u64, ts: Timestamp, urgent_only: bool, mut frames: Vec<u8>) -> Group {
        frames.clear();
        let (entries, lines, ts_text) = (Vec::new(), Vec::new(), ts.to_string());
        Group { id, entries, lines, frames, sync: false, urgent_only, ts, ts_text }
    }

    /// Returns an empty group that can be joined to this one later.
    pub(super) fn sibling(&self) -> Group {
        Group::new(self.id, self.ts, self.urgent_only, Vec::new())
    }

    /// Takes in a sibling.
    pub(super) fn join(&mut self, other: Group) {
        let shift = self.frames.len();
        self.frames.extend_from_slice(&other.frames);
        self.sync |= other.sync;
        self.entries.extend(other.entries);
        self.lines.extend(other.lines.into_iter().map(|mut lines| {
            lines.range = lines.range.start + shift..lines.range.end + shift;
            lines
        }));
    }

    /// Adds appends until there are enough bytes.
    pub(super) fn fill(&mut self, lives: &mut impl Find, appends: &mut vec::IntoIter<Handed>, enough: usize) {
        while self.frames.len() < enough
            && let Some((append, reply)) = appends.next()
        {
            if self.urgent_only && !is_urgent(&append) {
                let full = io::ErrorKind::StorageFull.into();
                reply.send(Err(AppendError::StorageFull(Arc::new(full))));
                continue;
            }
            match self.add(lives, &append) {
                Ok(receipts) => self.entries.push(Entry { append, reply, receipts }),
                Err(error) => reply.send(Err(error)),
            }
        }
    }

    /// Adds one append as one frame, or none of it.
    fn add(&mut self, lives: &mut impl Find, append: &Append) -> Result<Receipts, AppendError> {
        let (start, known) = (self.frames.len(), self.lines.len());
        frame::begin_append(&mut self.frames);
        let mut taken: Vec<(SessionId, Undo)> = Vec::new();
        let added = self.add_parts(lives, append, &mut taken);
        match added {
            Ok(receipts) => {
                frame::end_append(&mut self.frames[start..], 1 + append.more.len());
                // What is in one log must not outlive what is in another.
                self.sync |= append.persist == Persist::Disk || append.is_shared();
                Ok(receipts)
            }
            Err(error) => {
                self.frames.truncate(start);
                self.lines.truncate(known);
                for (session, before) in taken.into_iter().rev() {
                    if let Some(live) = lives.find(session) {
                        before.apply(&mut live.state, &mut live.tokens);
                    }
                }
                Err(error)
            }
        }
    }

    /// Adds the parts of an append; `taken` gets the way back from those of a shared one.
    fn add_parts(
        &mut self,
        lives: &mut impl Find,
        append: &Append,
        taken: &mut Vec<(SessionId, Undo)>,
    ) -> Result<Receipts, AppendError> {
        if append.more.len() >= frame::MAX_PARTS {
            return Err(AppendError::Unwritable("the append touches too many logs".into()));
        }
        let (mut first, mut more) = (None, Vec::new());
        for (session, records, expect) in append.parts() {
            let live = lives.find(session).ok_or(AppendError::NotOpen(session))?;
            if append.is_shared() {
                taken.push((session, Undo::new(&live.state, &live.tokens, Reach::ALL)));
            }
            let offset = live.state.log_offset;
            let begin = frame::begin_part(&mut self.frames, session, live.state.last_seq + 1, offset);
            let receipt = self.prepare(live, session, records, expect)?;
            frame::end_part(&mut self.frames, begin);
            // The log of a session that no checkpoint knows may only be touched once the write-ahead
            // log is sure to mention it: else a torn tail could not be told from damage.
            self.sync |= !live.is_touched();
            let (range, log) = (begin..self.frames.len(), live.open_log());
            self.lines.push(Lines { session, range, offset, log });
            match first {
                None => first = Some(receipt),
                Some(_) => more.push(receipt),
            }
        }
        let first = first.ok_or_else(|| AppendError::Unwritable("the list is empty".into()))?;
        Ok(Receipts { first, more })
    }

    fn prepare(
        &mut self,
        live: &mut Live,
        session: SessionId,
        records: &[Draft],
        expect: Expect,
    ) -> Result<Receipt, AppendError> {
        if let Some(damage) = &live.damage {
            return Err(AppendError::Damaged { session, damage: damage.clone() });
        }
        let found = live.state.last_seq;
        match expect {
            Expect::LastSeq(expected) if expected != found => {
                return Err(AppendError::Moved { session, expected, found });
            }
            Expect::LastSeq(_) | Expect::Anything => {}
        }
        let reach = Reach::of(records);
        // One record about anything but tokens changes nothing when it is refused: what the group remembers
        // of the session is enough.
        let lone = records.len() == 1 && !reach.tokens;
        let remembered = live.undo(self.id).as_ref().is_some_and(|undo| undo.has_state() || !reach.state);
        let before = (!(lone && remembered)).then(|| Undo::new(&live.state, &live.tokens, reach));
        match (self.write_lines(live, records), before) {
            (Ok(receipt), before) => {
                match (live.undo(self.id), before) {
                    (Some(undo), Some(before)) => undo.absorb(before),
                    (undo @ None, before) => *undo = before,
                    (Some(_), None) => {}
                }
                Ok(receipt)
            }
            (Err(error), Some(before)) => {
                before.apply(&mut live.state, &mut live.tokens);
                Err(error)
            }
            (Err(error), None) => Err(error),
        }
    }

    fn write_lines(&mut self, live: &mut Live, records: &[Draft]) -> Result<Receipt, AppendError> {
        let first_seq = live.state.last_seq + 1;
        let mut last_hash = None;
        for (index, draft) in records.iter().enumerate() {
            let seq = live.state.last_seq + 1;
            let start = self.frames.len();
            let at = live.state.happened_at(draft.at.filter(|_| draft.source.is_some()), self.ts);
            let place = Place { seq, ts: &self.ts_text, at, more: index + 1 < records.len() };
            let link = Link::new(live.id(), live.state.last_hash);
            let hash = line::write(draft, place, link, &mut self.frames)
                .map_err(|error| AppendError::Unwritable(error.to_string()))?;
            let size = self.frames.len() - start;
            if size > MAX_RECORD {
                return Err(AppendError::TooLarge { size, limit: MAX_RECORD });
            }
            fold(live, seq, at.unwrap_or(self.ts), &draft.event)?;
            let log_offset = live.state.log_offset + size as u64;
            let position = Position { last_seq: seq, log_offset, last_hash: Some(hash) };
            let state = Arc::make_mut(&mut live.state);
            state.note(self.ts, at, draft.source);
            state.set_position(position);
            Arc::make_mut(&mut live.tokens).set_position(position);
            last_hash = Some(hash);
        }
        let last_hash = last_hash.ok_or_else(|| AppendError::Unwritable("the list is empty".into()))?;
        Ok(Receipt { first_seq, last_seq: live.state.last_seq, last_hash, ts: self.ts })
    }

    /// Takes everything back and returns the appends: none of them happened.
    pub(super) fn take_back(self, lives: &mut Lives) -> Vec<Handed> {
        for lines in &self.lines {
            let Some(live) = lives.get_mut(lines.session) else { continue };
            if let Some(undo) = live.undo(self.id).take() {
                undo.apply(&mut live.state, &mut live.tokens);
            }
        }
        self.entries.into_iter().map(|entry| (entry.append, entry.reply)).collect()
    }
}

/// Takes in one event that happened then.
fn fold(live: &mut Live, seq: u64, happened: Timestamp, event: &Event<'_>) -> Result<(), Illegal> {
    if event.kind().map(Kind::effect) == Some(Effect::Token) {
        Arc::make_mut(&mut live.tokens).apply(seq, happened, event)?;
    }
    Arc::make_mut(&mut live.state).apply(seq, happened, event)
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
