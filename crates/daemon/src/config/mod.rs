//! What a person set once for all: `config.toml` in `$XDG_CONFIG_HOME/rekindle`, or wherever `$REKINDLE_CONFIG` says.

mod budgets;
mod cache;
mod file;
mod gc;
mod idle_agents;
mod keys;
mod nearest;
mod persistence;
mod settings;
mod tasks;
mod unknown;
mod waits;
mod worktree;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rekindle_client::failure::Failure;
use rekindle_client::listen_options::Listening;
use rekindle_domain::event::CheckpointMode;
use rekindle_notify::NotifyConfig;
use rekindle_service::daemon::IdleAgentPolicy;
use rekindle_service::upkeep::{CheckpointRetention, CollectionPolicy};
use serde::Deserialize;

pub use self::file::ConfigFile;
pub use self::settings::{Setting, Source, as_toml, settings};
pub use self::unknown::UnknownKey;

use self::budgets::BudgetsConfig;
use self::cache::CacheConfig;
use self::gc::GcConfig;
use self::idle_agents::IdleAgentsConfig;
use self::persistence::PersistenceConfig;
use self::tasks::TasksConfig;
use self::waits::WaitsConfig;
use self::worktree::WorktreeConfig;

/// The settings. A key that is not known, mistyped or of another version, is ignored and named.
#[derive(Debug, Default, PartialEq, Deserialize)]
pub struct Config {
    /// The agent that is run when none is named.
    pub agent: Option<String>,
    /// Where a daemon listens that is not told so.
    #[serde(default)]
    pub(crate) serve: Listening,
    /// What a daemon logs, and how.
    #[serde(default)]
    pub(crate) log: LogConfig,
    /// Which files of a working directory count.
    #[serde(default)]
    pub workspace: WorkspaceConfig,
    /// Whether working directories are captured, and how long what was captured is kept.
    #[serde(default)]
    pub checkpoints: CheckpointConfig,
    /// How long results of steps are kept for other runs.
    #[serde(default)]
    pub cache: CacheConfig,
    /// How snapshots of sessions are kept.
    #[serde(default)]
    pub(crate) persistence: PersistenceConfig,
    /// When agents are ended that have nothing to do.
    #[serde(default)]
    pub(crate) idle_agents: IdleAgentsConfig,
    /// When a daemon removes what nobody needs.
    #[serde(default)]
    pub(crate) gc: GcConfig,
    /// How many tasks run at once, and where they are written for questions.
    #[serde(default)]
    pub tasks: TasksConfig,
    /// The most that runs, sessions, tasks and days may use.
    #[serde(default)]
    pub(crate) budgets: BudgetsConfig,
    /// How long questions of agents wait.
    #[serde(default)]
    pub(crate) waits: WaitsConfig,
    /// How long runs of pipelines are kept.
    #[serde(default)]
    pub pipelines: PipelinesConfig,
    /// Where worktrees of sessions are made.
    #[serde(default)]
    pub(crate) worktree: WorktreeConfig,
    /// Who is told elsewhere what happens, and of what.
    #[serde(default)]
    pub notify: NotifyConfig,
    /// What single agents get, by their names.
    #[serde(default)]
    pub(crate) agents: BTreeMap<String, AgentConfig>,
    /// Keys of the file that this version does not know.
    #[serde(skip)]
    pub unknown: Vec<UnknownKey>,
}

/// A section `[agents.NAME]` of the configuration.
#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct AgentConfig {
    /// A file with variables that this agent gets, as lines of `NAME=VALUE`; nobody else may read it.
    pub(crate) env_file: Option<PathBuf>,
}

impl Config {
    /// Returns the files with variables of agents.
    pub(crate) fn env_files(&self) -> BTreeMap<String, PathBuf> {
        let file = |(name, agent): (&String, &AgentConfig)| Some((name.clone(), agent.env_file.clone()?));
        self.agents.iter().filter_map(file).collect()
    }
}

/// The section `[checkpoints]` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct CheckpointConfig {
    /// Whether a session's directory is captured before and after each run: `auto`, `on` or `off`.
    pub(crate) mode: CheckpointMode,
    /// How many days what was captured is kept.
    pub(crate) keep_days: u32,
    /// How much room it may take, as `20GiB`: the oldest goes first.
    pub(crate) max_bytes: Bytes,
}

impl CheckpointConfig {
    /// Returns how long checkpoints of runs are kept.
    pub fn retention(&self) -> CheckpointRetention {
        CheckpointRetention { keep: days(self.keep_days), max_bytes: self.max_bytes.0 }
    }
}

/// The section `[pipelines]` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct PipelinesConfig {
    /// How many days runs are kept that have ended.
    pub(crate) keep_days: u32,
}

impl Default for PipelinesConfig {
    fn default() -> PipelinesConfig {
        PipelinesConfig { keep_days: 90 }
    }
}

impl PipelinesConfig {
    /// Returns how long runs are kept that have ended.
    pub fn retention(&self) -> Duration {
        days(self.keep_days)
    }
}

/// Returns so many days.
fn days(count: u32) -> Duration {
    Duration::from_secs(u64::from(count) * 24 * 60 * 60)
}

/// A number of bytes as people write it: `20GiB`, `500MiB`, `1000`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "BytesWritten")]
pub(crate) struct Bytes(pub(crate) u64);

/// How a number of bytes may be written.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a number of bytes, as 500000000 or \"20GiB\"")]
enum BytesWritten {
    Number(u64),
    Text(String),
}

impl TryFrom<BytesWritten> for Bytes {
    type Error = String;

    fn try_from(written: BytesWritten) -> Result<Bytes, String> {
        let text = match written {
            BytesWritten::Number(bytes) => return Ok(Bytes(bytes)),
            BytesWritten::Text(text) => text,
        };
        let units = [("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40), ("", 0)];
        let bytes = units.into_iter().find_map(|(unit, power)| {
            let number: u64 = text.trim().strip_suffix(unit)?.trim_end().parse().ok()?;
            number.checked_mul(1 << power)
        });
        bytes.map(Bytes).ok_or_else(|| format!("{text:?} is not a number of bytes: write one such as 20GiB"))
    }
}

impl Default for CheckpointConfig {
    fn default() -> CheckpointConfig {
        CheckpointConfig { mode: CheckpointMode::Auto, keep_days: 30, max_bytes: Bytes(20 << 30) }
    }
}

/// The section `[workspace]` of the configuration: patterns as in a `.gitignore`.
#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct WorkspaceConfig {
    /// Files that are left out.
    pub exclude: Vec<String>,
    /// Files that count although something leaves them out.
    pub include: Vec<String>,
}

/// The section `[log]` of the configuration.
#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct LogConfig {
    /// Which lines, as `REKINDLE_LOG` has it.
    pub(crate) filter: Option<String>,
    /// In which form: `text` or `json`.
    pub(crate) format: Option<String>,
}

impl Config {
    /// Returns how a daemon collects its home by itself, if it does.
    pub(crate) fn collection(&self) -> Option<CollectionPolicy> {
        Some(CollectionPolicy {
            interval: self.gc.interval()?,
            checkpoints: self.checkpoints.retention(),
            cached_results: self.cache.retention(),
            runs: self.pipelines.retention(),
        })
    }

    /// Returns when agents are ended that have nothing to do.
    pub(crate) fn idle_agents(&self) -> IdleAgentPolicy {
        self.idle_agents.policy()
    }

    /// Reads the settings; without a file there are none.
    pub fn read() -> Result<Config, Failure> {
        let Some(file) = ConfigFile::find() else { return Ok(Config::default()) };
        file.text()?.map_or_else(|| Ok(Config::default()), |text| Config::parse(&text, &file.path))
    }

    /// Reads the settings from the text of a file.
    pub fn parse(text: &str, path: &Path) -> Result<Config, Failure> {
        let mut config: Config = toml::from_str(text).map_err(|error: toml::de::Error| {
            // What begins with a line is in that one, not in the one before.
            let line =
                error.span().map(|span| text.get(..span.start).unwrap_or(text).matches('\n').count() + 1);
            let line = line.map(|line| format!(", line {line}")).unwrap_or_default();
            let message = format!("{}{line}: {}", path.display(), error.message());
            Failure::usage("config_unreadable", message).hint("correct it, or remove it")
        })?;
        config.unknown = unknown::unknown_keys(text);
        // Files are named as seen from the one that names them.
        let beside = path.parent().unwrap_or(Path::new("/"));
        for file in [&mut config.serve.tls_cert, &mut config.serve.tls_key].into_iter().flatten() {
            *file = beside.join(&*file);
        }
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_is_read_and_what_is_not_known_is_named() {
        let parse = |text: &str| Config::parse(text, Path::new("/c.toml"));
        assert_eq!(parse("").ok(), Some(Config::default()));
        let config = parse("# mine\nagent = \"claude\"\n[of.tomorrow]\nx = 1\n").expect("settings");
        assert_eq!(config.agent.as_deref(), Some("claude"));
        assert_eq!(config.unknown.len(), 1, "{:?}", config.unknown);
        let serve = parse("[serve]\nlisten = [\"7700\", \"[::1]:7700\"]\ntls_cert = \"box.pem\"\n")
            .expect("settings")
            .serve;
        assert_eq!((serve.listen.len(), serve.tls_cert), (2, Some("/box.pem".into())));
        assert!(parse("[serve]\nlisten = [\"nowhere\"]\n").is_err());
        let log = parse("[log]\nfilter = \"debug\"\nformat = \"json\"\n").expect("settings").log;
        assert_eq!((log.filter.as_deref(), log.format.as_deref()), (Some("debug"), Some("json")));
        let config =
            parse("[workspace]\nexclude = [\"*.mp4\"]\n[checkpoints]\nkeep_days = 7\n").expect("settings");
        assert_eq!((config.workspace.exclude.len(), config.checkpoints.keep_days), (1, 7));
        let usual = parse("").expect("settings").checkpoints;
        assert_eq!(
            (usual.mode, usual.keep_days, usual.max_bytes),
            (CheckpointMode::Auto, 30, Bytes(20 << 30))
        );
        for (written, bytes) in [("\"5GiB\"", 5 << 30), ("\"100 KiB\"", 100 << 10), ("\"7\"", 7), ("7", 7)] {
            let text = format!("[checkpoints]\nmax_bytes = {written}\n");
            assert_eq!(parse(&text).expect("settings").checkpoints.max_bytes, Bytes(bytes), "{written}");
        }
        for wrong in ["\"\"", "\"5 apples\"", "-1", "\"99999999999TiB\"", "true"] {
            assert!(parse(&format!("[checkpoints]\nmax_bytes = {wrong}\n")).is_err(), "{wrong}");
        }
        let off = parse("[checkpoints]\nmode = \"off\"\n").expect("settings").checkpoints;
        assert_eq!((off.mode, off.keep_days), (CheckpointMode::Off, 30));
        assert!(parse("[checkpoints]\nmode = \"sometimes\"\n").is_err());
        assert!(!parse("[persistence]\nenabled = false\n").expect("settings").persistence.policy().enabled);
        let collection = |text: &str| parse(text).expect("settings").collection();
        let usual = collection("[checkpoints]\nkeep_days = 7\n").expect("by itself");
        assert_eq!((usual.interval, usual.checkpoints.keep, usual.runs), (days(1), days(7), days(90)));
        let short = collection("[pipelines]\nkeep_days = 3\n").expect("by itself");
        assert_eq!((short.runs, short.checkpoints.keep), (days(3), days(30)));
        assert_eq!(collection("[gc]\ninterval = \"off\"\n"), None);
        let phone = "agent = \"claude\"\n[notify.sinks.phone]\ntype = \"webhook\"\nformat = \"ntfy\"\n";
        let notify = parse(&format!("{phone}url = \"https://ntfy.sh/topic\"\n")).expect("settings").notify;
        assert_ne!(notify, parse("").expect("settings").notify);
        let failure = parse(&format!("{phone}url = \"http://ntfy.sh/topic\"\n")).expect_err("in the clear");
        let said = failure.message();
        assert!(
            said.contains("line 2") && said.contains("url uses http") && !said.contains("topic"),
            "{said}"
        );
        let failure = parse("\nagent = 3\n").expect_err("no text");
        assert_eq!(failure.code(), "config_unreadable");
        assert!(failure.message().contains("/c.toml, line"), "{}", failure.message());
    }
}
