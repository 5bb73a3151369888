//! The section `[gc]` of the configuration: how often a daemon removes what nobody needs.

use std::time::Duration;

use rekindle_domain::age::Age;
use serde::Deserialize;

/// The section as it is written.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct GcConfig {
    /// From one collection to the next, as in `1d`; or `off`.
    interval: GcInterval,
}

/// How often a daemon collects by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
enum GcInterval {
    Off,
    Every(Duration),
}

impl Default for GcInterval {
    fn default() -> GcInterval {
        GcInterval::Every(Duration::from_secs(24 * 60 * 60))
    }
}

impl GcConfig {
    /// Returns the time from one collection to the next; none if a daemon never collects by itself.
    pub(crate) fn interval(self) -> Option<Duration> {
        match self.interval {
            GcInterval::Off => None,
            GcInterval::Every(interval) => Some(interval),
        }
    }
}

impl TryFrom<String> for GcInterval {
    type Error = String;

    fn try_from(text: String) -> Result<GcInterval, String> {
        match text.as_str() {
            "off" => Ok(GcInterval::Off),
            length => match length.parse::<Age>()? {
                Age(Duration::ZERO) => Err("expected a duration above 0, such as 1d, or off".to_owned()),
                Age(interval) => Ok(GcInterval::Every(interval)),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_section_says_how_often() {
        let hours = |text: &str| {
            let interval = toml::from_str::<GcConfig>(text).map(GcConfig::interval);
            interval.ok().map(|interval| interval.map(|interval| interval.as_secs() / 3600))
        };
        assert_eq!(hours(""), Some(Some(24)));
        assert_eq!(hours("interval = \"6h\""), Some(Some(6)));
        assert_eq!(hours("interval = \"off\""), Some(None));
        for wrong in ["\"0s\"", "\"daily\"", "1", "\"\""] {
            assert_eq!(hours(&format!("interval = {wrong}")), None, "{wrong}");
        }
    }
}
