//! Keys that senders gave their messages, so that one that is sent again is known again. Only what finds a message's record
//! is kept: the record has the rest, so that ten thousand keys are small enough to be copied with the state.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Where a message with a key is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "(String, u64)", try_from = "(String, u64)")]
pub struct MessageKey {
    hash: u64,
    /// Its record.
    pub seq: u64,
}

impl MessageKey {
    /// Notes where the message is that has a key, as the log keeps it: the sender's key, a space, what it was used for.
    pub fn new(stored: &str, seq: u64) -> MessageKey {
        MessageKey { hash: hash(MessageKey::name(stored)), seq }
    }

    /// Returns the sender's part of a key as the log keeps it.
    pub fn name(stored: &str) -> &str {
        stored.rsplit_once(' ').map_or(stored, |(name, _)| name)
    }

    /// Returns the hash of the sender's key.
    pub(crate) fn hash(self) -> u64 {
        self.hash
    }

    /// Tells whether two may be the same sender's key; their records tell whether they are.
    pub fn is_like(self, other: MessageKey) -> bool {
        self.hash == other.hash
    }
}

fn hash(name: &str) -> u64 {
    let digest: [u8; 32] = Sha256::digest(name.as_bytes()).into();
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    u64::from_be_bytes(first)
}

impl From<MessageKey> for (String, u64) {
    fn from(key: MessageKey) -> (String, u64) {
        (format!("{:016x}", key.hash), key.seq)
    }
}

impl TryFrom<(String, u64)> for MessageKey {
    type Error = String;
    fn try_from((digits, seq): (String, u64)) -> Result<MessageKey, String> {
        let hash = u64::from_str_radix(&digits, 16).map_err(|_| format!("{digits:?} is no hash of a key"))?;
        Ok(MessageKey { hash, seq })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_by_its_name_whatever_it_was_used_for() {
        let (once, other) = (MessageKey::new("key-1 aa", 7), MessageKey::new("key-1 bb", 9));
        assert!(once.is_like(other) && !once.is_like(MessageKey::new("key-2 aa", 7)));
        let written = serde_json::to_string(&once).expect("plain");
        assert_eq!(written.len(), r#"["0123456789abcdef",7]"#.len(), "{written}");
        assert_eq!(serde_json::from_str::<MessageKey>(&written).expect("read"), once);
        assert!(serde_json::from_str::<MessageKey>(r#"["no hash",7]"#).is_err());
    }
}
