//! The hash chain of a stream's log: each record names the whole history before it.
//!
//! `h` = 16 hex digits of BLAKE3 over the previous `h` (for the first: the stream's id, which for a session is the session's)
//! and the bytes of the line before `,"h":`. It finds damage, edits, gaps and reordering; it is no signature. Format 1 hashed
//! with SHA-256, which is several times slower on processors without instructions for it; its records are read for good.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

use crate::hex;
use crate::id::StreamId;

/// The `h` of one record.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChainHash(u64);

impl ChainHash {
    /// Length of the written form.
    pub const DIGITS: usize = 16;

    fn cut(digest: &[u8; 32]) -> ChainHash {
        ChainHash(digest[..8].iter().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    /// Returns the sixteen lowercase hex digits.
    pub fn to_hex(self) -> [u8; Self::DIGITS] {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        std::array::from_fn(|i| DIGITS[(self.0 >> (60 - 4 * i)) as usize & 0xf])
    }

    /// Reads sixteen lowercase hex digits; uppercase ones are not what we write.
    pub fn from_hex(digits: &[u8]) -> Option<ChainHash> {
        hex::decode(digits).map(|bytes| ChainHash(u64::from_be_bytes(bytes)))
    }
}

/// What a record's hash builds upon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// The first hashed record of a stream.
    First(StreamId),
    /// A record after one with this `h`.
    After(ChainHash),
}

impl Link {
    /// Returns the link for the record after `last`.
    pub fn new(stream: impl Into<StreamId>, last: Option<ChainHash>) -> Link {
        last.map_or_else(|| Link::First(stream.into()), Link::After)
    }

    /// Returns the hash of a record given its bytes before `,"h":`.
    pub fn hash(self, body: &[u8]) -> ChainHash {
        let mut digest = blake3::Hasher::new();
        match self {
            Link::First(stream) => digest.update(stream.as_str().as_bytes()),
            Link::After(hash) => digest.update(&hash.to_hex()),
        };
        ChainHash::cut(digest.update(body).finalize().as_bytes())
    }

    /// Returns the hash that format 1 gave a record.
    pub fn hash_of_format_1(self, body: &[u8]) -> ChainHash {
        let mut digest = Sha256::new();
        match self {
            Link::First(stream) => digest.update(stream.as_str()),
            Link::After(hash) => digest.update(hash.to_hex()),
        }
        digest.update(body);
        ChainHash::cut(&digest.finalize().into())
    }

    /// Tells whether a record has the hash that it must have here, of whichever format. Records of format 1 may stand before those
    /// of this one, and the first of this one hashes over the last of them.
    pub fn fits(self, body: &[u8], hash: ChainHash) -> bool {
        self.hash(body) == hash || self.hash_of_format_1(body) == hash
    }
}

impl fmt::Display for ChainHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for ChainHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// A text that is no chain hash.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not 16 lowercase hex digits")]
pub struct BadChainHash;

impl FromStr for ChainHash {
    type Err = BadChainHash;
    fn from_str(text: &str) -> Result<ChainHash, BadChainHash> {
        ChainHash::from_hex(text.as_bytes()).ok_or(BadChainHash)
    }
}

impl Serialize for ChainHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ChainHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// How far into a log a fold has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Position {
    /// The last record taken in; 0 before the first.
    pub last_seq: u64,
    /// The byte after it.
    pub log_offset: u64,
    /// Its hash, unless it is a legacy line.
    pub last_hash: Option<ChainHash>,
}

#[cfg(test)]
mod tests {
    use crate::id::SessionId;

    use super::*;

    #[test]
    fn the_first_hash_covers_the_session_id_and_the_next_the_previous_hash() {
        let session: SessionId = "sess_123".parse().expect("an id");
        let body = br#"{"seq":1,"ts":"2026-02-21T10:00:00.000Z","kind":"session.closed""#;
        let old = Link::new(session, None).hash_of_format_1(body);
        // sha256("sess_123" + body), computed with sha256sum.
        assert_eq!(old.to_string(), "4df9e30ab1d947d5");
        let first = Link::new(session, None).hash(body);
        // blake3("sess_123" + body), computed with b3sum.
        assert_eq!(first.to_string(), "935b20134197f5df");
        let link = Link::new(session, None);
        assert!(link.fits(body, first) && link.fits(body, old) && !link.fits(&body[1..], old));
        assert_eq!(ChainHash::from_hex(&first.to_hex()), Some(first));
        assert_eq!(first.to_string().as_bytes(), first.to_hex());
        assert_ne!(Link::After(first).hash(body), first);
        assert_ne!(Link::new("sess_124".parse::<SessionId>().expect("an id"), None).hash(body), first);
    }

    #[test]
    fn only_sixteen_lowercase_digits_are_a_hash() {
        for text in ["", "00000000000000000", "000000000000000", "000000000000000G", "ABCDEF0123456789"] {
            assert_eq!(text.parse::<ChainHash>(), Err(BadChainHash), "{text}");
        }
    }
}
