//! The bytes of one file: what reads see, what the last sync made durable, and what is pending between.
//! Copies share their bytes until one of them writes.

use std::sync::Arc;

/// A change of a file's bytes.
#[derive(Debug, Clone)]
pub(super) enum Change {
    /// Bytes at an offset; a gap before it reads as zeros.
    Write { offset: usize, bytes: Arc<[u8]> },
    /// A new length; grown room reads as zeros.
    Resize(usize),
}

impl Change {
    /// Makes the change.
    pub(super) fn apply(&self, to: &mut Vec<u8>) {
        match self {
            Change::Write { offset, bytes } => {
                let end = offset + bytes.len();
                if to.len() < end {
                    to.resize(end, 0);
                }
                to[*offset..end].copy_from_slice(bytes);
            }
            Change::Resize(len) => to.resize(*len, 0),
        }
    }
}

/// What a write covered, so that a kill in the middle of it can take its end back.
#[derive(Debug, Clone)]
pub(super) struct Undo {
    pub(super) offset: usize,
    pub(super) len: usize,
    before: Arc<[u8]>,
    old_len: usize,
}

/// The bytes of one file.
#[derive(Debug, Clone, Default)]
pub(super) struct Content {
    live: Arc<Vec<u8>>,
    durable: Arc<Vec<u8>>,
    pending: Arc<Vec<Change>>,
    /// A failed sync lost something: durable and pending together are no longer what reads see.
    diverged: bool,
}

impl Content {
    /// Returns content of which nothing is pending.
    pub(super) fn settled(bytes: Arc<Vec<u8>>) -> Content {
        Content { live: bytes.clone(), durable: bytes, pending: Arc::default(), diverged: false }
    }

    pub(super) fn live(&self) -> &Arc<Vec<u8>> {
        &self.live
    }

    pub(super) fn durable(&self) -> &Arc<Vec<u8>> {
        &self.durable
    }

    pub(super) fn pending(&self) -> &[Change] {
        &self.pending
    }

    pub(super) fn len(&self) -> usize {
        self.live.len()
    }

    /// Returns what a sync after the first `count` pending changes would have made durable.
    pub(super) fn after(&self, count: usize) -> Arc<Vec<u8>> {
        if count == self.pending.len() && !self.diverged {
            return self.live.clone();
        }
        let mut bytes = Vec::with_capacity(self.durable.len().max(self.live.len()));
        bytes.extend_from_slice(&self.durable);
        self.pending[..count].iter().for_each(|change| change.apply(&mut bytes));
        Arc::new(bytes)
    }

    /// Copies bytes from an offset; returns how many there were.
    pub(super) fn read(&self, buf: &mut [u8], offset: u64) -> usize {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.live.len());
        let len = buf.len().min(self.live.len() - start);
        buf[..len].copy_from_slice(&self.live[start..start + len]);
        len
    }

    pub(super) fn write(&mut self, offset: usize, bytes: &[u8]) -> Undo {
        let old_len = self.live.len();
        let covered = offset.min(old_len)..(offset + bytes.len()).min(old_len);
        let before = self.live[covered].into();
        self.change(Change::Write { offset, bytes: bytes.into() });
        Undo { offset, len: bytes.len(), before, old_len }
    }

    pub(super) fn resize(&mut self, len: usize) {
        if len != self.live.len() {
            self.change(Change::Resize(len));
        }
    }

    fn change(&mut self, change: Change) {
        change.apply(Arc::make_mut(&mut self.live));
        Arc::make_mut(&mut self.pending).push(change);
    }

    /// Takes back all but the first `keep` bytes of the last change, which was the write of `undo`.
    pub(super) fn tear(&mut self, undo: &Undo, keep: usize) {
        let live = Arc::make_mut(&mut self.live);
        let torn = undo.offset + keep;
        live.truncate(undo.old_len.max(torn));
        if let Some(lost) = undo.before.get(keep..) {
            live[torn..torn + lost.len()].copy_from_slice(lost);
        }
        if let Some(Change::Write { bytes, .. }) = Arc::make_mut(&mut self.pending).last_mut() {
            *bytes = bytes[..keep].into();
        }
    }

    /// Makes what is pending durable, and nothing else: blocks lost by a failed sync stay lost.
    pub(super) fn sync(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let durable = Arc::make_mut(&mut self.durable);
        for change in self.pending.iter() {
            change.apply(durable);
        }
        self.pending = Arc::default();
    }

    /// Leaves `durable` of a failed sync: the rest is lost although reads still see it.
    ///
    /// The length stays pending if it is lost, as a file system's journal brings it along later: lost blocks
    /// then read as zeros.
    pub(super) fn fail_sync(&mut self, durable: Vec<u8>) {
        let grown = durable.len() != self.live.len();
        self.durable = Arc::new(durable);
        self.diverged = true;
        self.pending = if grown { Arc::new(vec![Change::Resize(self.live.len())]) } else { Arc::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_write_restores_what_it_covered() {
        let cases =
            [("abcdef", 1, 1, "aXcdef"), ("abc", 2, 2, "abXY"), ("abc", 2, 0, "abc"), ("a", 3, 1, "a\0\0X")];
        for (before, offset, keep, expected) in cases {
            let mut content = Content::settled(Arc::new(before.into()));
            let undo = content.write(offset, b"XYZ");
            content.tear(&undo, keep);
            assert_eq!(content.live()[..], *expected.as_bytes());
            content.sync();
            assert_eq!(content.durable(), content.live());
        }
    }
}
