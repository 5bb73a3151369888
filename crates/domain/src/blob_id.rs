//! The name of a blob: BLAKE3 of its plain bytes. Payloads of records, contents of workspace files and tree objects share it.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{hex, text_form};

/// The name of a blob: BLAKE3 of its plain bytes, written as 64 lowercase hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, JsonSchema)]
#[schemars(with = "String", extend("pattern" = "^[0-9a-f]{64}$"))]
pub struct BlobId([u8; 32]);

impl BlobId {
    /// Length of the written form.
    pub const DIGITS: usize = 64;

    /// Returns the name of some bytes.
    pub fn of(bytes: &[u8]) -> BlobId {
        BlobId(*blake3::hash(bytes).as_bytes())
    }

    /// Returns the name that these bytes of a hash are.
    pub const fn from_bytes(bytes: [u8; 32]) -> BlobId {
        BlobId(bytes)
    }

    /// Returns the bytes of the hash.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(blake3::Hash::from_bytes(self.0).to_hex().as_str())
    }
}

impl fmt::Debug for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// A text that names no blob.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the name of a blob must be 64 lowercase hex digits")]
pub struct BadBlobId;

impl FromStr for BlobId {
    type Err = BadBlobId;
    fn from_str(text: &str) -> Result<BlobId, BadBlobId> {
        hex::decode(text.as_bytes()).map(BlobId).ok_or(BadBlobId)
    }
}

impl<'de> Deserialize<'de> for BlobId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text_form::read(deserializer, "the name of a blob")
    }
}

impl Serialize for BlobId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_written_as_64_lowercase_digits_and_read_back() {
        let id = BlobId::of(b"payload");
        let text = id.to_string();
        assert_eq!((text.len(), text.parse()), (BlobId::DIGITS, Ok(id)));
        assert_eq!(
            serde_json::from_str::<BlobId>(&serde_json::to_string(&id).expect("text")).expect("a name"),
            id
        );
        assert_eq!(BlobId::from_bytes(*id.as_bytes()), id);
        for bad in ["", "ab", &text[1..], &text.to_uppercase(), "../../etc/passwd"] {
            assert_eq!(bad.parse::<BlobId>(), Err(BadBlobId), "{bad}");
        }
    }
}
