//! One log searched from its end, a block at a time: a line that cannot have the words is passed over without being parsed.

use std::io;

use memchr::memmem::Finder;
use rekindle_domain::line::Line;
use rekindle_domain::search::{Found, SearchWords, find_in_event};
use rekindle_domain::time::Timestamp;
use rekindle_store::log::{Cursor, LogReader};

/// Bytes that are read at once: enough that reading costs nothing beside searching.
const BLOCK: u64 = 1 << 20;

/// A record that has all the words.
#[derive(Debug)]
pub(super) struct FoundRecord {
    pub(super) seq: u64,
    pub(super) at: Timestamp,
    pub(super) found: Found,
    /// Where it begins: the search goes on before it.
    pub(super) begin: Cursor,
}

/// A search for words, with what it needs for every line.
pub(super) struct Scanner<'a> {
    words: &'a SearchWords,
    needle: Option<Finder<'a>>,
    /// A line in lower case.
    folded: Vec<u8>,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(words: &'a SearchWords) -> Scanner<'a> {
        Scanner { words, needle: words.needle().map(Finder::new), folded: Vec::new() }
    }

    /// Searches the block before a place; returns what was found, newest first, and where the block begins.
    pub(super) fn search_block(
        &mut self,
        log: &LogReader,
        end: Cursor,
    ) -> io::Result<(Vec<FoundRecord>, Cursor)> {
        let mut found = Vec::new();
        let begin = log.block_before(end, BLOCK, |line| {
            found.extend(self.search_line(line.bytes).map(|(seq, at, hit)| FoundRecord {
                seq,
                at,
                found: hit,
                begin: line.start,
            }));
        })?;
        found.reverse();
        Ok((found, begin))
    }

    fn search_line(&mut self, bytes: &[u8]) -> Option<(u64, Timestamp, Found)> {
        if let Some(needle) = &self.needle {
            self.folded.clear();
            self.folded.extend_from_slice(bytes);
            self.folded.make_ascii_lowercase();
            needle.find(&self.folded)?;
        }
        // What is no record, or of a kind that this version does not know, has no text that could be shown.
        let line = Line::parse(bytes).ok()?;
        let found = find_in_event(self.words, &line.event().ok()?)?;
        Some((line.seq, line.happened_at(), found))
    }
}
