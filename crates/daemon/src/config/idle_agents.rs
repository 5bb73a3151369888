//! The section `[idle_agents]` of the configuration: when agents are ended that have nothing to do.

use std::time::Duration;

use rekindle_domain::age::Age;
use rekindle_service::daemon::IdleAgentPolicy;
use serde::Deserialize;

/// How long an idle agent stays: long enough for a person who reads what it did, and answers.
const AFTER: Duration = Duration::from_secs(10 * 60);

/// How many stay: most agents take some hundred megabytes each.
const MOST: usize = 16;

/// The section as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct IdleAgentsConfig {
    /// After how long one is ended, as in `10m`; or `off`.
    after: IdleTime,
    /// How many stay at most.
    max: usize,
}

/// How long an idle agent stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
struct IdleTime(Option<Duration>);

impl Default for IdleAgentsConfig {
    fn default() -> IdleAgentsConfig {
        IdleAgentsConfig { after: IdleTime(Some(AFTER)), max: MOST }
    }
}

impl IdleAgentsConfig {
    /// Returns when idle agents are ended.
    pub(super) fn policy(self) -> IdleAgentPolicy {
        IdleAgentPolicy { after: self.after.0, most: Some(self.max) }
    }
}

impl TryFrom<String> for IdleTime {
    type Error = String;

    fn try_from(text: String) -> Result<IdleTime, String> {
        match text.as_str() {
            "off" => Ok(IdleTime(None)),
            length => match length.parse::<Age>()? {
                Age(Duration::ZERO) => Err("expected a duration above 0, such as 10m, or off".to_owned()),
                Age(after) => Ok(IdleTime(Some(after))),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_section_says_how_long_and_how_many() {
        let policy = |text: &str| {
            let policy = toml::from_str::<IdleAgentsConfig>(text).map(IdleAgentsConfig::policy).ok();
            policy.map(|policy| (policy.after.map(|after| after.as_secs()), policy.most))
        };
        assert_eq!(policy(""), Some((Some(600), Some(16))));
        assert_eq!(policy("after = \"off\"\nmax = 2"), Some((None, Some(2))));
        assert_eq!(policy("after = \"1h\""), Some((Some(3600), Some(16))));
        for wrong in ["after = \"0s\"", "after = \"soon\"", "after = 1", "max = -1"] {
            assert_eq!(policy(wrong), None, "{wrong}");
        }
    }
}
