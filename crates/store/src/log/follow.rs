//! Following a log as it grows. The caller decides when to look; each look costs what is new.

use std::io;
use std::path::PathBuf;

use rekindle_domain::chain::ChainHash;
use rekindle_domain::line::Line;

use super::cursor::Cursor;
use super::reader::LogReader;
use crate::disk::SharedDisk;
use crate::line_codec::Codec;

/// What a look found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Follow {
    /// Whole lines, without newlines; none if there is nothing new.
    Lines(Vec<Vec<u8>>),
    /// The log does not continue what was read before: read it again from the start.
    Reset,
}

/// A reader that remembers where it is.
pub struct Follower {
    disk: SharedDisk,
    path: PathBuf,
    codec: Codec,
    at: Cursor,
    last_hash: Option<ChainHash>,
    identity: Option<(u64, u64)>,
}

impl Follower {
    /// Begins at a place.
    pub fn new(disk: SharedDisk, path: PathBuf, codec: Codec, at: Cursor) -> Follower {
        Follower { disk, path, codec, at, last_hash: None, identity: None }
    }

    /// Returns where it is.
    pub fn at(&self) -> Cursor {
        self.at
    }

    /// Looks for new lines.
    pub fn poll(&mut self) -> io::Result<Follow> {
        let reader = match LogReader::open(&*self.disk, &self.path, self.codec) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.at == Cursor::START => {
                return Ok(Follow::Lines(Vec::new()));
            }
            opened => opened?,
        };
        let identity = reader.identity()?;
        let replaced = self.identity.is_some_and(|known| known != identity);
        if reader.end() < self.at || (replaced && !self.same_history(&reader)?) {
            self.restart();
            return Ok(Follow::Reset);
        }
        self.identity = Some(identity);
        let mut found = Vec::new();
        let mut lines = reader.forward(self.at);
        while let Some(line) = lines.next()? {
            if !line.whole {
                break;
            }
            self.at = line.end;
            self.last_hash = Line::parse(line.bytes).ok().and_then(|line| line.hash);
            found.push(line.bytes.to_vec());
        }
        Ok(Follow::Lines(found))
    }

    fn restart(&mut self) {
        self.at = Cursor::START;
        self.last_hash = None;
        self.identity = None;
    }

    /// A log that fell behind is rewritten into a new file: the same history if the same record ends here.
    fn same_history(&self, reader: &LogReader) -> io::Result<bool> {
        let last = reader.last(self.at, 1)?;
        let hash = last.first().and_then(|(_, bytes)| Line::parse(bytes).ok()).and_then(|line| line.hash);
        Ok(self.at == Cursor::START || hash == self.last_hash)
    }
}
