//! The section `[tasks]` of the configuration: how many tasks run at once.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use rekindle_service::daemon::TaskSettings;
use serde::Deserialize;

/// The section as it is written; what it does not say is not limited, but for all tasks together.
#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct TasksConfig {
    /// Tasks that run at once; as many as there are processors without it, and two at least.
    limit: Option<NonZeroUsize>,
    /// With one agent, by its name.
    agents: BTreeMap<String, NonZeroUsize>,
    /// With one label.
    labels: BTreeMap<String, NonZeroUsize>,
}

impl TasksConfig {
    /// Returns how tasks are scheduled.
    pub(crate) fn settings(&self) -> TaskSettings {
        let numbers = |limits: &BTreeMap<String, NonZeroUsize>| {
            limits.iter().map(|(name, most)| (name.clone(), most.get())).collect()
        };
        TaskSettings {
            limit: self.limit.map(NonZeroUsize::get),
            agents: numbers(&self.agents),
            labels: numbers(&self.labels),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_and_none_is_nothing() {
        let read = |text: &str| toml::from_str::<TasksConfig>(text);
        let config = read("limit = 4\n[agents]\nclaude = 2\n[labels]\nci = 1\n").expect("settings");
        let settings = config.settings();
        assert_eq!((settings.limit, settings.agents["claude"], settings.labels["ci"]), (Some(4), 2, 1));
        assert_eq!(read("").expect("settings").settings(), TaskSettings::default());
        for bad in ["limit = 0", "[agents]\nclaude = 0", "limit = \"many\""] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
