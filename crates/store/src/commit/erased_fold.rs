//! The fold of an open stream, whatever its type: what the committer asks of it is one call an append, and the work on single
//! records is compiled for each kind of fold.

use std::any::Any;

use rekindle_domain::chain::Link;
use rekindle_domain::line::{Draft, Envelope};
use rekindle_domain::session::Position;
use rekindle_domain::time::Timestamp;

use super::Receipt;
use crate::error::AppendError;
use crate::fold::{Fold, Record};
use crate::line_codec::Codec;

/// Largest record: a payload of 256 KiB, escaped at worst, and its envelope. Larger ones go into blobs.
pub const MAX_RECORD: usize = 1 << 20;

/// Where the records of a group are written to, and what all of them have in common.
pub(super) struct Encoder<'a> {
    /// The group's number, so that what is remembered for another group is not mistaken for this one's.
    pub(super) group: u64,
    pub(super) frames: &'a mut Vec<u8>,
    pub(super) codec: Codec,
    pub(super) ts: Timestamp,
    /// The same time, as it is written.
    pub(super) ts_text: &'a str,
}

/// A fold whose type is hidden, with what the committer remembers of it.
pub(super) trait OpenFold: Send {
    fn position(&self) -> Position;
    fn is_deleted(&self) -> bool;
    /// Numbers, folds and writes a list of records, or none of it.
    fn append(&mut self, encoder: &mut Encoder<'_>, records: &[Draft]) -> Result<Receipt, AppendError>;
    /// Goes back to what it was before a group.
    fn undo_group(&mut self, group: u64);
    /// Remembers what it is now, unless something is remembered already; tells whether it was this time.
    fn set_savepoint(&mut self) -> bool;
    /// Goes back to what was remembered.
    fn roll_back(&mut self);
    /// Forgets what was remembered.
    fn release_savepoint(&mut self);
    /// Returns the fold itself.
    fn as_any(&self) -> &dyn Any;
    /// Makes another fold of the same type what this one is.
    fn copy_to(&self, other: &mut dyn Any);
}

/// A fold of a type, and the ways back.
pub(super) struct Folded<F: Fold> {
    fold: F,
    /// What the stream was before a group.
    undo: Option<F::Undo>,
    /// The group that is meant.
    undo_of: u64,
    /// What it was before an append that touches several streams.
    savepoint: Option<F>,
}

impl<F: Fold> Folded<F> {
    pub(super) fn new(fold: F) -> Folded<F> {
        Folded { fold, undo: None, undo_of: 0, savepoint: None }
    }

    /// Returns what is remembered of the stream before a group; of earlier groups nothing is.
    fn undo(&mut self, group: u64) -> &mut Option<F::Undo> {
        if self.undo_of != group {
            self.undo_of = group;
            self.undo = None;
        }
        &mut self.undo
    }

    fn write_lines(&mut self, encoder: &mut Encoder<'_>, records: &[Draft]) -> Result<Receipt, AppendError> {
        let (stream, fold) = (self.fold.stream(), &mut self.fold);
        let mut position = fold.position();
        let (first_seq, mut last_hash) = (position.last_seq + 1, None);
        for (index, draft) in records.iter().enumerate() {
            let (seq, start) = (position.last_seq + 1, encoder.frames.len());
            let at = fold.happened_at(draft.at.filter(|_| draft.source.is_some()), encoder.ts);
            let place = Envelope { seq, ts: encoder.ts_text, at, more: index + 1 < records.len() };
            let link = Link::new(stream, position.last_hash);
            let hash = encoder
                .codec
                .write(draft, place, link, encoder.frames)
                .map_err(|error| AppendError::Unwritable(error.to_string()))?;
            let size = encoder.frames.len() - start;
            if size > MAX_RECORD {
                return Err(AppendError::TooLarge { size, limit: MAX_RECORD });
            }
            fold.apply(&Record { seq, ts: encoder.ts, at, source: draft.source, event: &draft.event })?;
            let log_offset = position.log_offset + size as u64;
            position = Position { last_seq: seq, log_offset, last_hash: Some(hash) };
            fold.set_position(position);
            last_hash = Some(hash);
        }
        let last_hash = last_hash.ok_or_else(|| AppendError::Unwritable("the list is empty".into()))?;
        Ok(Receipt { first_seq, last_seq: position.last_seq, last_hash, ts: encoder.ts })
    }
}

impl<F: Fold> OpenFold for Folded<F> {
    fn position(&self) -> Position {
        self.fold.position()
    }

    fn is_deleted(&self) -> bool {
        self.fold.is_deleted()
    }

    fn append(&mut self, encoder: &mut Encoder<'_>, records: &[Draft]) -> Result<Receipt, AppendError> {
        let group = encoder.group;
        let covered = self.undo(group).as_ref().is_some_and(|undo| F::covers(undo, records));
        let before = (!covered).then(|| self.fold.undo(records));
        match (self.write_lines(encoder, records), before) {
            (Ok(receipt), before) => {
                match (self.undo(group), before) {
                    (Some(undo), Some(before)) => F::absorb(undo, before),
                    (undo @ None, before) => *undo = before,
                    (Some(_), None) => {}
                }
                Ok(receipt)
            }
            (Err(error), Some(before)) => {
                self.fold.restore(before);
                Err(error)
            }
            (Err(error), None) => Err(error),
        }
    }

    fn undo_group(&mut self, group: u64) {
        if let Some(undo) = self.undo(group).take() {
            self.fold.restore(undo);
        }
    }

    fn set_savepoint(&mut self) -> bool {
        let set = self.savepoint.is_none();
        self.savepoint.get_or_insert_with(|| self.fold.clone());
        set
    }

    fn roll_back(&mut self) {
        if let Some(before) = self.savepoint.take() {
            self.fold = before;
        }
    }

    fn release_savepoint(&mut self) {
        self.savepoint = None;
    }

    fn as_any(&self) -> &dyn Any {
        &self.fold
    }

    fn copy_to(&self, other: &mut dyn Any) {
        if let Some(other) = other.downcast_mut::<F>() {
            other.clone_from(&self.fold);
        }
    }
}
