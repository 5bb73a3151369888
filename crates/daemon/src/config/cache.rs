//! The section `[cache]` of the configuration: how long results of steps of pipelines are kept for other runs.

use rekindle_service::upkeep::CacheRetention;
use serde::Deserialize;

use super::{Bytes, days};

/// The section as it is written.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct CacheConfig {
    /// How many days a result is kept.
    keep_days: u32,
    /// How much room results may take with the files that they left, as `5GiB`: the oldest goes first.
    max_bytes: Bytes,
}

impl CacheConfig {
    /// Returns how long results are kept.
    pub fn retention(&self) -> CacheRetention {
        CacheRetention { keep: days(self.keep_days), max_bytes: self.max_bytes.0 }
    }
}

impl Default for CacheConfig {
    fn default() -> CacheConfig {
        CacheConfig { keep_days: 30, max_bytes: Bytes(5 << 30) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_section_says_how_long() {
        let retention = |text: &str| toml::from_str::<CacheConfig>(text).map(|config| config.retention());
        let usual = retention("").expect("as usual");
        assert_eq!((usual.keep, usual.max_bytes), (days(30), 5 << 30));
        let own = retention("keep_days = 0\nmax_bytes = \"100MiB\"").expect("settings");
        assert_eq!((own.keep, own.max_bytes), (days(0), 100 << 20));
        for wrong in ["keep_days = -1", "keep_days = \"30d\"", "max_bytes = \"much\""] {
            assert!(retention(wrong).is_err(), "{wrong}");
        }
    }
}
