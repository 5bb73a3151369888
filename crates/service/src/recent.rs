//! The newest records of a session that several follow: one of them reads a record from the log, and the others have it
//! from there.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::common::Common;
use crate::feed::LogLine;

/// What is kept at most: some records of ordinary size, because those who follow are rarely apart by more. Whoever is
/// further behind reads the log, and so does everyone for a record that is larger than this.
const MOST_RECORDS: usize = 64;
const MOST_BYTES: u64 = 32 << 10;

/// A record, and where in the log it stands.
#[derive(Debug, Clone)]
struct Kept {
    begin: u64,
    end: u64,
    line: Arc<Common<LogLine>>,
}

/// Records that stand one behind the other, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Recent(VecDeque<Kept>);

impl Recent {
    /// Returns the record that stands at a place, and those behind it.
    pub(crate) fn at(&self, begin: u64) -> impl Iterator<Item = &Arc<Common<LogLine>>> {
        let found = self.0.binary_search_by_key(&begin, |kept| kept.begin);
        self.0.range(found.unwrap_or(self.0.len())..).map(|kept| &kept.line)
    }

    /// Keeps a record that stands at a place, if it is newer than all that are kept.
    pub(crate) fn keep(&mut self, begin: u64, line: &Arc<Common<LogLine>>) {
        match self.0.back() {
            Some(newest) if begin < newest.end => return,
            // Something between was never read: only what stands in one piece is of use.
            Some(newest) if begin > newest.end => self.0.clear(),
            _ => {}
        }
        let end = begin + line.space();
        self.0.push_back(Kept { begin, end, line: line.clone() });
        while self.0.len() > MOST_RECORDS
            || self.0.front().is_some_and(|oldest| end - oldest.begin > MOST_BYTES)
        {
            self.0.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(seq: u64, space: usize) -> Arc<Common<LogLine>> {
        let line = "x".repeat(space - 1);
        Arc::new(Common::from(LogLine { seq, kind: "k".to_owned(), hash: None, line }))
    }

    const NONE: [u64; 0] = [];

    fn seqs(recent: &Recent, begin: u64) -> Vec<u64> {
        recent.at(begin).map(|line| line.seq).collect()
    }

    #[test]
    fn records_are_found_by_their_place() {
        let mut recent = Recent::default();
        assert_eq!(seqs(&recent, 0), NONE);
        for (begin, seq) in [(100, 4), (110, 5), (120, 6)] {
            recent.keep(begin, &line(seq, 10));
        }
        assert_eq!(seqs(&recent, 100), [4, 5, 6]);
        assert_eq!(seqs(&recent, 120), [6]);
        for nowhere in [0, 90, 105, 130] {
            assert_eq!(seqs(&recent, nowhere), NONE, "{nowhere}");
        }
    }

    #[test]
    fn older_ones_change_nothing_and_a_gap_begins_anew() {
        let mut recent = Recent::default();
        recent.keep(100, &line(4, 10));
        recent.keep(100, &line(4, 10));
        recent.keep(0, &line(1, 10));
        assert_eq!(seqs(&recent, 100), [4]);
        assert_eq!(seqs(&recent, 0), NONE);
        recent.keep(120, &line(6, 10));
        assert_eq!(seqs(&recent, 100), NONE);
        assert_eq!(seqs(&recent, 120), [6]);
    }

    #[test]
    fn it_keeps_little() {
        let mut recent = Recent::default();
        (0..300).for_each(|n| recent.keep(n * 10, &line(n + 1, 10)));
        assert_eq!(seqs(&recent, 235 * 10), NONE);
        assert_eq!(seqs(&recent, 236 * 10).len(), 64);
        recent.keep(3000, &line(301, 33 << 10));
        assert_eq!(seqs(&recent, 3000), NONE, "larger than everything together may be");
    }
}
