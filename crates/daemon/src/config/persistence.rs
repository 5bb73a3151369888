//! The section `[persistence]` of the configuration: how snapshots of sessions are kept.

use std::time::Duration;

use rekindle_domain::age::Age;
use rekindle_domain::event::Compression;
use rekindle_domain::kept_snapshot::{Policy, Retention};
use serde::{Deserialize, Deserializer};

/// The section as it is written; what it does not say is as usual.
#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct PersistenceConfig {
    /// Whether snapshots are taken by themselves.
    enabled: Option<bool>,
    /// Time between two while something happens, as in `5m`.
    #[serde(deserialize_with = "length_of_time")]
    interval: Option<Duration>,
    /// Whether one is taken when the daemon leaves or a session is closed.
    on_exit: Option<bool>,
    /// How many of a session are kept.
    keep: Option<u32>,
    /// How old one may get, as in `30d`.
    #[serde(deserialize_with = "length_of_time")]
    max_age: Option<Duration>,
    /// `zstd`, `gzip` or `none`.
    compression: Option<Compression>,
}

impl PersistenceConfig {
    /// Returns how snapshots are kept.
    pub(crate) fn policy(&self) -> Policy {
        let usual = Policy::default();
        Policy {
            enabled: self.enabled.unwrap_or(usual.enabled),
            interval: self.interval.unwrap_or(usual.interval),
            on_exit: self.on_exit.unwrap_or(usual.on_exit),
            retention: Retention {
                keep: self.keep.map_or(usual.retention.keep, |keep| keep as usize),
                max_age: self.max_age.or(usual.retention.max_age),
            },
            compression: self.compression.unwrap_or(usual.compression),
        }
    }
}

/// Reads a length of time; none at all would be a snapshot for every record, or none that stays.
pub(crate) fn length_of_time<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(deserializer)?;
    match text.parse::<Age>().map_err(serde::de::Error::custom)? {
        Age(Duration::ZERO) => Err(serde::de::Error::custom("expected a duration above 0, such as 5m")),
        Age(length) => Ok(Some(length)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_section_says_how_snapshots_are_kept() {
        let policy = |text: &str| toml::from_str::<PersistenceConfig>(text).map(|config| config.policy());
        assert_eq!(policy("").ok(), Some(Policy::default()));
        let own = policy(
            "enabled = false\ninterval = \"90s\"\non_exit = false\nkeep = 3\nmax_age = \"30d\"\ncompression = \"gzip\"",
        );
        let retention = Retention { keep: 3, max_age: Some(Duration::from_secs(30 * 86_400)) };
        let expected = Policy {
            enabled: false,
            interval: Duration::from_secs(90),
            on_exit: false,
            retention,
            compression: Compression::Gzip,
        };
        assert_eq!(own.ok(), Some(expected));
        for bad in ["interval = \"0s\"", "interval = 5", "max_age = \"soon\"", "compression = \"brotli\""] {
            assert!(policy(bad).is_err(), "{bad}");
        }
    }
}
