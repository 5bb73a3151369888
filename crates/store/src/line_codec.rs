//! Lines of a log as they are stored and as they are read. Today the two are the same. What will stand between them, such as
//! encryption, goes here: everything that writes lines into a log or reads them out of one passes through.
//!
//! A stored line is a line too: it has no newline but its own, so that logs are cut, searched and compared by lines whatever is
//! in them. The write-ahead log holds lines as they are stored, and offsets count stored bytes. The search for references to
//! blobs alone looks at the bytes of whole files, logs and segments alike: it would have to learn of another codec too.

use rekindle_domain::chain::{ChainHash, Link};
use rekindle_domain::line::{self, Draft, Envelope, WriteError};

/// The codec of a home's logs: how their lines are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Codec {
    /// As they are.
    #[default]
    Plain,
    /// In hex digits, so that tests see what does not pass through here.
    #[cfg(test)]
    Hex,
}

/// The end of a plain line: `"h":"`, digits, `"}` and the newline.
const PLAIN_END: usize = 5 + ChainHash::DIGITS + 3;

impl Codec {
    /// Appends a record to `out` as it is stored, with its newline, and returns its hash.
    pub(crate) fn write(
        self,
        draft: &Draft,
        place: Envelope<'_>,
        link: Link,
        out: &mut Vec<u8>,
    ) -> Result<ChainHash, WriteError> {
        match self {
            Codec::Plain => line::write(draft, place, link, out),
            #[cfg(test)]
            Codec::Hex => {
                let mut line = Vec::new();
                let hash = line::write(draft, place, link, &mut line)?;
                line.pop();
                out.extend(line.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()).chain([b'\n']));
                Ok(hash)
            }
        }
    }

    /// Returns a stored line as it is read, both without their newline; `room` is for what is not there already. What is not a
    /// stored line reads as nothing, which is no record.
    pub(crate) fn decode<'a>(self, stored: &'a [u8], room: &'a mut Vec<u8>) -> &'a [u8] {
        room.clear();
        match self {
            Codec::Plain => stored,
            #[cfg(test)]
            Codec::Hex => {
                let digits = std::str::from_utf8(stored).unwrap_or_default();
                let pairs =
                    (0..digits.len() / 2).map(|at| digits.get(2 * at..2 * at + 2).unwrap_or_default());
                room.extend(pairs.map_while(|pair| u8::from_str_radix(pair, 16).ok()));
                room
            }
        }
    }

    /// Returns how much of the end of a stored line, its newline included, has the record's hash.
    pub(crate) fn hash_len(self) -> usize {
        match self {
            Codec::Plain => PLAIN_END,
            #[cfg(test)]
            Codec::Hex => 2 * PLAIN_END - 1,
        }
    }

    /// Tells whether stored lines end as a record does.
    pub(crate) fn ends_record(self, lines: &[u8]) -> bool {
        let end = &lines[lines.len().saturating_sub(self.hash_len())..];
        end.strip_suffix(b"\n").is_some_and(|end| self.decode(end, &mut Vec::new()).ends_with(b"\"}"))
    }

    /// Reads the hash from the end of a stored line.
    pub(crate) fn hash(self, end: &[u8]) -> Option<ChainHash> {
        let mut room = Vec::new();
        let end = self.decode(end.strip_suffix(b"\n")?, &mut room);
        ChainHash::from_hex(end.strip_prefix(br#""h":""#)?.strip_suffix(br#""}"#)?)
    }
}

#[cfg(test)]
mod tests;
