//! Turning a batch of appends into frames: legality, numbers, times, hashes, and the way back if the disk
//! says no.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::vec;

use rekindle_domain::chain::Link;
use rekindle_domain::event::{Effect, Event, Kind};
use rekindle_domain::line::{self, Draft, Place};
use rekindle_domain::session::{Illegal, Position};
use rekindle_domain::time::Timestamp;

use super::live::Live;
use super::lives::{Find, Lives};
use super::undo::{Reach, Undo};
use super::{Append, Expect, Handed, Persist, Receipt, Reply};
use crate::disk::DiskFile;
use crate::error::AppendError;
use crate::wal::frame;

/// Largest record: a payload of 256 KiB, escaped at worst, and its envelope. Larger ones go into blobs.
pub const MAX_RECORD: usize = 1 << 20;

/// One append of a group that passed.
pub(super) struct Entry {
    pub(super) append: Append,
    pub(super) reply: Reply,
    pub(super) receipt: Receipt,
    /// Where its lines are in the group's frames.
    pub(super) lines: Range<usize>,
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
        let (entries, ts_text) = (Vec::new(), ts.to_string());
        Group { id, entries, frames, sync: false, urgent_only, ts, ts_text }
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
        self.entries.extend(other.entries.into_iter().map(|mut entry| {
            entry.lines = entry.lines.start + shift..entry.lines.end + shift;
            entry
        }));
    }

    /// Adds appends until there are enough bytes.
    pub(super) fn fill(&mut self, lives: &mut impl Find, appends: &mut vec::IntoIter<Handed>, enough: usize) {
        while self.frames.len() < enough
            && let Some((append, reply)) = appends.next()
        {
            match lives.find(append.session) {
                _ if self.urgent_only && !is_urgent(&append) => {
                    let full = io::ErrorKind::StorageFull.into();
                    reply.send(Err(AppendError::StorageFull(Arc::new(full))));
                }
                Some(live) => self.add(live, append, reply),
                None => reply.send(Err(AppendError::NotOpen(append.session))),
            }
        }
    }

    /// Adds one append, or answers it with a refusal.
    fn add(&mut self, live: &mut Live, append: Append, reply: Reply) {
        let start = self.frames.len();
        let offset = live.state.log_offset;
        frame::begin_append(&mut self.frames, append.session, live.state.last_seq + 1, offset);
        let lines = self.frames.len();
        match self.prepare(live, &append) {
            Ok(receipt) => {
                frame::end(&mut self.frames[start..]);
                // The log of a session that no checkpoint knows may only be touched once the write-ahead
                // log is sure to mention it: else a torn tail could not be told from damage.
                self.sync |= append.persist == Persist::Disk || !live.is_touched();
                let log = live.open_log();
                let lines = lines..self.frames.len();
                self.entries.push(Entry { append, reply, receipt, lines, offset, log });
            }
            Err(error) => {
                self.frames.truncate(start);
                reply.send(Err(error));
            }
        }
    }

    fn prepare(&mut self, live: &mut Live, append: &Append) -> Result<Receipt, AppendError> {
        let session = append.session;
        if let Some(damage) = &live.damage {
            return Err(AppendError::Damaged { session, damage: damage.clone() });
        }
        let found = live.state.last_seq;
        match append.expect {
            Expect::LastSeq(expected) if expected != found => {
                return Err(AppendError::Moved { session, expected, found });
            }
            Expect::LastSeq(_) | Expect::Anything => {}
        }
        let reach = Reach::of(&append.records);
        // One record about anything but tokens changes nothing when it is refused: what the group remembers
        // of the session is enough.
        let lone = append.records.len() == 1 && !reach.tokens;
        let remembered = live.undo(self.id).as_ref().is_some_and(|undo| undo.has_state() || !reach.state);
        let before = (!(lone && remembered)).then(|| Undo::new(&live.state, &live.tokens, reach));
        match (self.write_lines(live, &append.records), before) {
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
        for entry in &self.entries {
            let Some(live) = lives.get_mut(entry.append.session) else { continue };
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
    append.records.iter().any(|draft| {
        matches!(
            draft.event,
            Event::RunCancelRequested(_) | Event::RunCancelled(_) | Event::SessionDeleted(_)
        ) && draft.source.is_none()
    })
}
