//! Settings of a session about its kept snapshots: what it wants otherwise than the daemon's configuration.

use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::whole_number::positive;

/// How kept snapshots are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Compression {
    /// With zstd.
    #[default]
    Zstd,
    /// With gzip, for other programs.
    Gzip,
    /// Not at all.
    None,
}

impl Compression {
    /// All of them.
    pub const ALL: [Compression; 3] = [Compression::Zstd, Compression::Gzip, Compression::None];

    /// Returns the word for it in configurations and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Compression::Zstd => "zstd",
            Compression::Gzip => "gzip",
            Compression::None => "none",
        }
    }
}

/// A word that names no compression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the compression must be zstd, gzip or none")]
pub struct BadCompression;

impl FromStr for Compression {
    type Err = BadCompression;
    fn from_str(word: &str) -> Result<Compression, BadCompression> {
        Compression::ALL.into_iter().find(|one| one.as_str() == word).ok_or(BadCompression)
    }
}

/// How a session's snapshots are kept; what it does not say is as the daemon is configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Persistence {
    /// Whether any are taken by themselves; those that somebody asks for always are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Seconds between two of them while something happens.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "positive")]
    #[schemars(with = "Option<u64>", range(min = 1))]
    pub interval_s: Option<u64>,
    /// Whether one is taken when the daemon leaves or the session is closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_exit: Option<bool>,
    /// How many are kept; the newest always is.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "positive")]
    #[schemars(with = "Option<u32>", range(min = 1))]
    pub keep: Option<u32>,
    /// Seconds after which one goes, though there are not too many; the newest stays.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "positive")]
    #[schemars(with = "Option<u64>", range(min = 1))]
    pub max_age_s: Option<u64>,
    /// How they are compressed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression: Option<Compression>,
}

impl Persistence {
    /// Returns these settings with others in place of what those say.
    pub fn with(self, other: Persistence) -> Persistence {
        Persistence {
            enabled: other.enabled.or(self.enabled),
            interval_s: other.interval_s.or(self.interval_s),
            on_exit: other.on_exit.or(self.on_exit),
            keep: other.keep.or(self.keep),
            max_age_s: other.max_age_s.or(self.max_age_s),
            compression: other.compression.or(self.compression),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compression_is_named_by_one_word() {
        for compression in Compression::ALL {
            assert_eq!(compression.as_str().parse(), Ok(compression));
            assert_eq!(serde_json::to_value(compression).expect("a word"), compression.as_str());
        }
        assert_eq!("brotli".parse::<Compression>(), Err(BadCompression));
    }

    #[test]
    fn what_is_said_later_counts_and_the_rest_stays() {
        let first = Persistence { keep: Some(3), interval_s: Some(60), ..Persistence::default() };
        let then = Persistence { keep: Some(5), enabled: Some(false), ..Persistence::default() };
        let both = first.with(then);
        assert_eq!((both.keep, both.interval_s, both.enabled), (Some(5), Some(60), Some(false)));
        assert_eq!(serde_json::to_string(&first).expect("JSON"), r#"{"interval_s":60,"keep":3}"#);
        let read = |text| serde_json::from_str::<Persistence>(text).ok();
        assert_eq!(read(r#"{"interval_s":60.0,"keep":3,"max_age_s":null}"#), Some(first));
        for bad in [r#"{"keep":0}"#, r#"{"keep":4294967296}"#, r#"{"interval_s":0.5}"#, r#"{"speed":1}"#] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
