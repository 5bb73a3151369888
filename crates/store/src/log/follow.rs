//! Following a log as it grows. The caller decides when to look; each look costs what is new.

use std::io;
use std::path::PathBuf;

use rekindle_domain::chain::ChainHash;
use rekindle_domain::line::Line;

use super::reader::LogReader;
use crate::disk::SharedDisk;

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
    offset: u64,
    last_hash: Option<ChainHash>,
    identity: Option<(u64, u64)>,
}

impl Follower {
    /// Begins at an offset, which must be the beginning of a line.
    pub fn new(disk: SharedDisk, path: PathBuf, offset: u64) -> Follower {
        Follower { disk, path, offset, last_hash: None, identity: None }
    }

    /// Returns where it is.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Looks for new lines.
    pub fn poll(&mut self) -> io::Result<Follow> {
        let reader = match LogReader::open(&*self.disk, &self.path) {
            Ok(reader) => reader,
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.offset == 0 => {
                return Ok(Follow::Lines(Vec::new()));
            }
            Err(error) => return Err(error),
        };
        let identity = reader.identity()?;
        let replaced = self.identity.is_some_and(|known| known != identity);
        if reader.len() < self.offset || (replaced && !self.same_history(&reader)?) {
            self.restart();
            return Ok(Follow::Reset);
        }
        self.identity = Some(identity);
        let mut found = Vec::new();
        let mut lines = reader.forward(self.offset);
        while let Some(line) = lines.next()? {
            if !line.whole {
                break;
            }
            self.offset = line.end;
            self.last_hash = Line::parse(line.bytes).ok().and_then(|line| line.hash);
            found.push(line.bytes.to_vec());
        }
        Ok(Follow::Lines(found))
    }

    fn restart(&mut self) {
        self.offset = 0;
        self.last_hash = None;
        self.identity = None;
    }

    /// A log that fell behind is rewritten into a new file: the same history if the same record ends here.
    fn same_history(&self, reader: &LogReader) -> io::Result<bool> {
        let last = reader.last(self.offset, 1)?;
        let hash = last.first().and_then(|(_, bytes)| Line::parse(bytes).ok()).and_then(|line| line.hash);
        Ok(self.offset == 0 || hash == self.last_hash)
    }
}
