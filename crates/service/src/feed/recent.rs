//! The newest records of a session that several follow: one of them reads a record from the log, and the others have it
//! from there.

use std::collections::VecDeque;
use std::sync::Arc;

use rekindle_store::log::Cursor;

use super::encoded_once::EncodedOnce;
use crate::show::log::LogLine;

/// What is kept at most: some records of ordinary size, because those who follow are rarely apart by more. Whoever is
/// further behind reads the log, and so does everyone for a record that is larger than this.
const MOST_RECORDS: usize = 64;
const MOST_BYTES: usize = 32 << 10;

/// A record that was read, and where the next one begins.
#[derive(Debug, Clone)]
pub(crate) struct Read {
    pub(crate) line: Arc<EncodedOnce<LogLine>>,
    pub(crate) end: Cursor,
}

/// Records that follow each other, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    records: VecDeque<Read>,
    /// Bytes of them all.
    bytes: usize,
}

impl Recent {
    /// Returns the record that has a number, and those behind it.
    pub(crate) fn from(&self, seq: u64) -> impl Iterator<Item = &Read> {
        let found = self.records.binary_search_by_key(&seq, |read| read.line.seq);
        self.records.range(found.unwrap_or(self.records.len())..)
    }

    /// Keeps a record, if it is newer than all that are kept.
    pub(crate) fn push(&mut self, read: &Read) {
        let seq = read.line.seq;
        match self.records.back() {
            Some(newest) if seq <= newest.line.seq => return,
            // Something between was never read: only what stands in one piece is of use.
            Some(newest) if seq > newest.line.seq + 1 => {
                self.records.clear();
                self.bytes = 0;
            }
            _ => {}
        }
        self.bytes += read.line.line.len();
        self.records.push_back(read.clone());
        while self.records.len() > MOST_RECORDS || self.bytes > MOST_BYTES {
            let Some(oldest) = self.records.pop_front() else { break };
            self.bytes -= oldest.line.line.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(seq: u64, bytes: usize) -> Read {
        let line = LogLine { seq, kind: "k".to_owned(), hash: None, line: "x".repeat(bytes) };
        Read { line: Arc::new(EncodedOnce::from(line)), end: Cursor::START }
    }

    const NONE: [u64; 0] = [];

    fn seqs(recent: &Recent, from: u64) -> Vec<u64> {
        recent.from(from).map(|read| read.line.seq).collect()
    }

    #[test]
    fn records_are_found_by_their_number() {
        let mut recent = Recent::default();
        assert_eq!(seqs(&recent, 0), NONE);
        for seq in [4, 5, 6] {
            recent.push(&line(seq, 10));
        }
        assert_eq!(seqs(&recent, 4), [4, 5, 6]);
        assert_eq!(seqs(&recent, 6), [6]);
        for nowhere in [0, 3, 7] {
            assert_eq!(seqs(&recent, nowhere), NONE, "{nowhere}");
        }
    }

    #[test]
    fn older_ones_change_nothing_and_a_gap_begins_anew() {
        let mut recent = Recent::default();
        recent.push(&line(4, 10));
        recent.push(&line(4, 10));
        recent.push(&line(1, 10));
        assert_eq!(seqs(&recent, 4), [4]);
        assert_eq!(seqs(&recent, 1), NONE);
        recent.push(&line(6, 10));
        assert_eq!(seqs(&recent, 4), NONE);
        assert_eq!(seqs(&recent, 6), [6]);
    }

    #[test]
    fn it_keeps_little() {
        let mut recent = Recent::default();
        (1..=300).for_each(|seq| recent.push(&line(seq, 10)));
        assert_eq!(seqs(&recent, 236), NONE);
        assert_eq!(seqs(&recent, 237).len(), 64);
        recent.push(&line(301, 33 << 10));
        assert_eq!(seqs(&recent, 301), NONE, "larger than everything together may be");
        recent.push(&line(302, 10));
        assert_eq!(seqs(&recent, 302), [302]);
    }
}
