//! The section `[waits]` of the configuration: how long questions of agents wait, and tokens for them are good.

use std::time::Duration;

use rekindle_service::daemon::WaitSettings;
use serde::Deserialize;

use super::persistence::length_of_time;

/// The section as it is written; what it does not say is as usual.
#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct WaitsConfig {
    /// How long a question waits for its answer, as in `2h`, in a session that does not say.
    #[serde(deserialize_with = "length_of_time")]
    timeout: Option<Duration>,
    /// How long a token is good that somebody mints for a wait.
    #[serde(deserialize_with = "length_of_time")]
    token_lifetime: Option<Duration>,
}

impl WaitsConfig {
    /// Returns how long questions wait.
    pub(crate) fn settings(&self) -> WaitSettings {
        let usual = WaitSettings::default();
        let token_lifetime = self.token_lifetime.unwrap_or(usual.token_lifetime);
        WaitSettings { timeout: self.timeout, token_lifetime }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_none_is_nothing() {
        let read = |text: &str| toml::from_str::<WaitsConfig>(text);
        let settings = read("timeout = \"2h\"\ntoken_lifetime = \"10m\"").expect("settings").settings();
        assert_eq!(settings.timeout, Some(Duration::from_secs(7200)));
        assert_eq!(settings.token_lifetime, Duration::from_secs(600));
        assert_eq!(read("").expect("settings").settings(), WaitSettings::default());
        assert!(read("timeout = \"0s\"").is_err() && read("timeout = 5").is_err());
    }
}
