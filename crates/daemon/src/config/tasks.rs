//! The section `[tasks]` of the configuration: how many tasks run at once.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use rekindle_service::daemon::{DatabaseChoice, DatabaseSettings, TaskSettings};
use serde::Deserialize;

use super::budgets::BudgetsConfig;
use super::persistence::length_of_time;

/// The section as it is written; what it does not say is not limited, but for all tasks together.
#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct TasksConfig {
    /// Tasks that run at once; as many as there are processors without it, and two at least.
    limit: Option<NonZeroUsize>,
    /// With one agent, by its name.
    agents: BTreeMap<String, NonZeroUsize>,
    /// With one label.
    labels: BTreeMap<String, NonZeroUsize>,
    /// Where the database of tasks is, if it is a file.
    path: Option<PathBuf>,
    /// The address of a Postgres that has them, or `env:NAME` for the variable that has the address.
    url: Option<Address>,
    /// After how long a task is shown as stalled whose agent says nothing, as in `10m`.
    #[serde(deserialize_with = "length_of_time")]
    stall_after: Option<Duration>,
    /// How long rows of tasks that have ended are kept, as in `90d`.
    #[serde(deserialize_with = "length_of_time")]
    keep: Option<Duration>,
    /// How long the history of a task is kept that has no row any more.
    #[serde(deserialize_with = "length_of_time")]
    keep_history: Option<Duration>,
    /// The certificates of whom its server's must be signed by; of whom the system trusts without it.
    ca_file: Option<PathBuf>,
}

/// The address of a database, which may have a password in it: it is shown to nobody.
#[derive(Default, Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
struct Address(String);

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

impl Address {
    /// Returns the address; one in a variable that is not set is none that anybody could reach.
    fn read(&self) -> String {
        match self.0.strip_prefix("env:") {
            Some(name) => std::env::var(name).unwrap_or_default(),
            None => self.0.clone(),
        }
    }
}

impl TasksConfig {
    /// Returns which database has the tasks, and for how long.
    pub fn database(&self) -> DatabaseSettings {
        let usual = DatabaseSettings::default();
        DatabaseSettings {
            choice: match &self.url {
                Some(url) => DatabaseChoice::Postgres { address: url.read(), ca_file: self.ca_file.clone() },
                None => DatabaseChoice::Sqlite(self.path.clone()),
            },
            keep_tasks: self.keep.unwrap_or(usual.keep_tasks),
            keep_history: self.keep_history.unwrap_or(usual.keep_history),
        }
    }

    /// Returns after how long a run is stalled whose agent says nothing.
    pub(crate) fn stall_after(&self) -> Option<Duration> {
        self.stall_after
    }

    /// Returns how tasks are scheduled, and what they may use.
    pub(crate) fn settings(&self, budgets: &BudgetsConfig) -> TaskSettings {
        let numbers = |limits: &BTreeMap<String, NonZeroUsize>| {
            limits.iter().map(|(name, most)| (name.clone(), most.get())).collect()
        };
        TaskSettings {
            limit: self.limit.map(NonZeroUsize::get),
            agents: numbers(&self.agents),
            labels: numbers(&self.labels),
            stall_after: self.stall_after,
            budgets: budgets.settings(),
            database: self.database(),
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
        let settings = config.settings(&BudgetsConfig::default());
        assert_eq!((settings.limit, settings.agents["claude"], settings.labels["ci"]), (Some(4), 2, 1));
        assert_eq!(read("").expect("settings").settings(&BudgetsConfig::default()), TaskSettings::default());
        let elsewhere = read("url = \"postgres://me:secret@db/tasks\"").expect("settings");
        let address = "postgres://me:secret@db/tasks".to_owned();
        assert_eq!(
            elsewhere.database().choice,
            DatabaseChoice::Postgres { address: address.clone(), ca_file: None }
        );
        let trusting = read(&format!("url = \"{address}\"\nca_file = \"/etc/ca.pem\"")).expect("settings");
        let ca_file = Some("/etc/ca.pem".into());
        assert_eq!(trusting.database().choice, DatabaseChoice::Postgres { address, ca_file });
        assert!(
            !format!("{elsewhere:?} {:?}", elsewhere.settings(&BudgetsConfig::default())).contains("secret")
        );
        let moved = read("path = \"/data/tasks.db\"\nkeep = \"30d\"").expect("settings").database();
        let month = Duration::from_secs(30 * 24 * 60 * 60);
        assert_eq!((moved.keep_tasks, moved.keep_history), (month, DatabaseSettings::default().keep_history));
        assert_eq!(moved.choice, DatabaseChoice::Sqlite(Some("/data/tasks.db".into())));
        for bad in ["limit = 0", "[agents]\nclaude = 0", "limit = \"many\""] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
