//! Names of things: a prefix and a lowercase ULID, checked when they come in, cheap to copy afterwards.
//!
//! Ids become file names, so nothing but letters, digits, `_` and `-` ever gets into one: a path trick is
//! refused here, once. Writers mint ULIDs; readers also accept the shorter ids of older logs.

mod run_name;
mod step;
mod stream_id;

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

pub use run_name::{BadRunName, RunName};
pub use step::{BadStepId, BadStepKey, MAX_NAME, StepId, StepKey, is_plain_name};
pub use stream_id::{StreamId, StreamKind};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use ulid::Ulid;

/// Longest id accepted: twice what a ULID needs, and it keeps an id a small `Copy` value.
pub const MAX_ID_LEN: usize = 47;

/// Why a text is not an id of the expected kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{given:?} is not {article} id: expected {prefix}_ and letters, digits, _ or -, at most {MAX_ID_LEN} bytes"
)]
pub struct BadId {
    given: String,
    article: &'static str,
    prefix: &'static str,
}

/// The bytes of an id, padded with zeros so that derived comparison is string comparison.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Inline {
    bytes: [u8; MAX_ID_LEN],
    len: u8,
}

impl std::hash::Hash for Inline {
    /// The last eight bytes: the random end of a ULID tells ids apart, and the rest need not be hashed.
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        let end = usize::from(self.len).max(8);
        state.write_u64(self.bytes[end - 8..end].iter().fold(0, |value, byte| value << 8 | u64::from(*byte)));
    }
}

impl Inline {
    fn new(text: &str, prefix: &str) -> Option<Inline> {
        let rest = text.strip_prefix(prefix)?.strip_prefix('_')?;
        let clean = rest.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        if rest.is_empty() || !clean || text.len() > MAX_ID_LEN {
            return None;
        }
        let mut bytes = [0; MAX_ID_LEN];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Some(Inline { bytes, len: text.len() as u8 })
    }

    fn as_str(&self) -> &str {
        // Only `new` makes one, from a prefix of a `&str` that is pure ASCII.
        std::str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default()
    }
}

fn ulid_text(prefix: &str, ulid: Ulid) -> String {
    format!("{prefix}_{}", ulid.to_string().to_ascii_lowercase())
}

/// Returns the 128 bits that digits stand for, if they are a ULID as we write it.
fn ulid_of(digits: &str) -> Option<u128> {
    // Lowercase only: uppercase digits denote the same bits, but are another file name.
    let canonical = !digits.bytes().any(|byte| byte.is_ascii_uppercase());
    Ulid::from_string(digits).ok().filter(|_| canonical).map(|ulid| ulid.0)
}

macro_rules! id_types {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal, $article:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Inline);

        impl $name {
            /// What every id of this kind begins with.
            pub const PREFIX: &'static str = $prefix;

            /// Makes a fresh id from the time and 80 random bits; the domain itself has neither.
            pub fn mint(millis: u64, random: u128) -> Self {
                Self::from_ulid(Ulid::from_parts(millis, random).0)
            }

            /// Returns the id as text.
            pub fn as_str(&self) -> &str {
                self.0.as_str()
            }

            /// Returns the 128 bits behind the id if it is exactly what [`Self::mint`] writes.
            pub fn to_ulid(&self) -> Option<u128> {
                ulid_of(&self.as_str()[$prefix.len() + 1..])
            }

            /// Returns the id that stands for 128 bits; the reverse of [`Self::to_ulid`].
            pub fn from_ulid(bits: u128) -> Self {
                let text = ulid_text($prefix, Ulid(bits));
                // A prefix and a ULID are always within the rules.
                text.parse().unwrap_or_else(|bad: BadId| unreachable!("{bad}"))
            }
        }

        impl FromStr for $name {
            type Err = BadId;
            fn from_str(text: &str) -> Result<Self, BadId> {
                Inline::new(text, $prefix).map($name).ok_or_else(|| BadId {
                    // An id from outside may be huge or hostile: show the beginning only.
                    given: text.chars().take(MAX_ID_LEN + 1).collect(),
                    article: $article,
                    prefix: $prefix,
                })
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({
                    "type": "string",
                    "description": concat!("Names ", $article, "."),
                    "pattern": concat!("^", $prefix, "_[A-Za-z0-9_-]+$"),
                    "maxLength": MAX_ID_LEN,
                })
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                crate::text_form::read(deserializer, concat!($article, " id"))
            }
        }
    )*};
}

id_types! {
    /// Names a session: a durable conversation with one agent in one working directory.
    SessionId = "sess", "a session";
    /// Names a run: one turn of a session, from a prompt to its end.
    RunId = "run", "a run";
    /// Names a wait: a run blocked on someone outside.
    WaitId = "wait", "a wait";
    /// Names a resume token: the permission to end one wait.
    TokenId = "rt", "a resume token";
    /// Names an access token: the permission to speak to the daemon from elsewhere.
    AccessId = "tok", "an access token";
    /// Names one life of the daemon.
    BootId = "boot", "a boot";
    /// Names a message.
    MessageId = "msg", "a message";
    /// Names a task: a unit of requested work.
    TaskId = "task", "a task";
    /// Names a holder, the detached process that owns one agent: `h_` and 32 hex digits.
    HolderId = "h", "a holder";
    /// Names the ledger of a pipeline run; people see its [`RunName`].
    PipelineId = "pl", "a pipeline run";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minted_ids_are_lowercase_ulids_and_come_back() {
        let id = SessionId::mint(1_771_668_000_000, 0x1234_5678_9abc_def0_1234);
        assert_eq!(id.as_str().len(), 5 + 26);
        assert_eq!(id.as_str(), id.as_str().to_ascii_lowercase());
        assert_eq!(id.as_str().parse::<SessionId>().as_ref(), Ok(&id));
        assert_eq!(id.to_ulid().map(SessionId::from_ulid), Some(id));
        assert!(id < SessionId::mint(1_771_668_000_001, 0), "later ids sort later");
    }

    #[test]
    fn path_tricks_and_foreign_prefixes_are_refused() {
        let tricks = [
            "",
            "sess_",
            "sess",
            "sess_../x",
            "sess_a/b",
            "sess_.",
            "sess_a.json",
            "sess_\0",
            "sess_é",
            "run_1",
            "../sess_1",
            "sess_a b",
            "sess_%2e",
            " sess_1",
            "SESS_1",
            "sess_a\n",
            "sess_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        ];
        for text in tricks {
            assert!(text.parse::<SessionId>().is_err(), "{text:?} was accepted");
        }
        let error = "../../etc/passwd".parse::<SessionId>().expect_err("a path is not an id");
        assert!(error.to_string().contains("../../etc/passwd") && error.to_string().contains("sess_"));
    }

    #[test]
    fn ids_of_older_logs_are_read_but_have_no_ulid() {
        let id: SessionId = "sess_123".parse().expect("short ids are read");
        assert_eq!(id.to_ulid(), None);
        assert!("boot_20260221_1".parse::<BootId>().is_ok());
        // Uppercase digits denote the same bits but are not the same file name.
        let upper = format!("sess_{}", Ulid(u128::MAX / 3));
        assert_eq!(upper.parse::<SessionId>().map(|id| id.to_ulid()), Ok(None));
    }
}
