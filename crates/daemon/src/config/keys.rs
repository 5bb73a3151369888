//! Every key of the configuration with its default: the list that unknown keys are found by, that `rekindle config show` fills in,
//! and that `docs/guide/configuration.md` is held to. A test holds the list to the structures that the file is read into.

/// A key of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    /// Where it stands, as `checkpoints.keep_days`. A `*` is a name that people choose.
    pub(super) path: &'static str,
    /// What holds where it is not set.
    pub(super) default: DefaultValue,
    /// Its value may be, or may contain, a secret.
    pub(super) is_secret: bool,
}

/// What holds where a key is not set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DefaultValue {
    /// A value, as TOML.
    Toml(&'static str),
    /// Something that no value says, in words.
    Words(&'static str),
}

impl Key {
    /// Returns the section that the key belongs to, and its name there; the section is empty for keys at the top of the file.
    pub(super) fn split(&self) -> (&'static str, &'static str) {
        self.path.rsplit_once('.').unwrap_or(("", self.path))
    }

    const fn secret(mut self) -> Key {
        self.is_secret = true;
        self
    }
}

const fn toml(path: &'static str, value: &'static str) -> Key {
    Key { path, default: DefaultValue::Toml(value), is_secret: false }
}

const fn words(path: &'static str, text: &'static str) -> Key {
    Key { path, default: DefaultValue::Words(text), is_secret: false }
}

const NONE: &str = "none";
const NO_LIMIT: &str = "no limit";
const REQUIRED: &str = "required";

/// Every key, section by section.
pub(super) const KEYS: &[Key] = &[
    words("agent", "the only installed agent"),
    words("agents.*.env_file", NONE),
    toml("serve.listen", "[]"),
    words("serve.tls_cert", NONE),
    words("serve.tls_key", NONE),
    toml("serve.hosts", "[]"),
    toml("log.filter", "\"info\""),
    toml("log.format", "\"text\""),
    toml("workspace.exclude", "[]"),
    toml("workspace.include", "[]"),
    toml("checkpoints.mode", "\"auto\""),
    toml("checkpoints.keep_days", "30"),
    toml("checkpoints.max_bytes", "\"20GiB\""),
    toml("persistence.enabled", "true"),
    toml("persistence.interval", "\"5m\""),
    toml("persistence.on_exit", "true"),
    toml("persistence.keep", "10"),
    words("persistence.max_age", NO_LIMIT),
    toml("persistence.compression", "\"zstd\""),
    toml("idle_agents.after", "\"10m\""),
    toml("idle_agents.max", "16"),
    toml("gc.interval", "\"1d\""),
    toml("cache.keep_days", "30"),
    toml("cache.max_bytes", "\"5GiB\""),
    toml("pipelines.keep_days", "90"),
    words("tasks.limit", "the number of processors, at least 2"),
    words("tasks.agents.*", NO_LIMIT),
    words("tasks.labels.*", NO_LIMIT),
    words("tasks.stall_after", "10 minutes; 30 for plain commands"),
    toml("tasks.keep", "\"90d\""),
    toml("tasks.keep_history", "\"365d\""),
    words("tasks.path", "`tasks.db` in the home"),
    words("tasks.url", NONE).secret(),
    words("tasks.ca_file", "the system's certificates"),
    words("budgets.run.tokens", NO_LIMIT),
    words("budgets.run.cost", NO_LIMIT),
    words("budgets.run.wall", NO_LIMIT),
    words("budgets.run.turns", NO_LIMIT),
    words("budgets.session.tokens", NO_LIMIT),
    words("budgets.session.cost", NO_LIMIT),
    words("budgets.session.wall", NO_LIMIT),
    words("budgets.session.turns", NO_LIMIT),
    words("budgets.task.tokens", NO_LIMIT),
    words("budgets.task.cost", NO_LIMIT),
    words("budgets.task.wall", NO_LIMIT),
    words("budgets.task.turns", NO_LIMIT),
    words("budgets.day.tokens", NO_LIMIT),
    words("budgets.day.cost", NO_LIMIT),
    words("budgets.day.wall", NO_LIMIT),
    words("budgets.day.turns", NO_LIMIT),
    words("waits.timeout", NO_LIMIT),
    toml("waits.token_lifetime", "\"24h\""),
    words("worktree.dir", "`rekindle/worktrees` in `$XDG_DATA_HOME` or `~/.local/share`"),
    toml("worktree.copy", "[]"),
    words("worktree.setup", NONE),
    words("notify.base_url", NONE),
    toml("notify.settle", "\"2s\""),
    words("notify.quiet_hours", NONE),
    toml("notify.progress_every", "\"15m\""),
    words("notify.sinks.*.type", REQUIRED),
    toml(
        "notify.sinks.*.events",
        "[\"waiting\", \"completed\", \"failed\", \"interrupted\", \"stalled\", \"budget\", \"queue_empty\"]",
    ),
    toml("notify.sinks.*.include", "\"title\""),
    toml("notify.sinks.*.when", "\"unattended\""),
    toml("notify.sinks.*.urgent", "[]"),
    words("notify.sinks.*.quiet_hours", "as in `[notify]`"),
    toml("notify.sinks.*.rate", "30"),
    toml("notify.sinks.*.agents", "[]"),
    toml("notify.sinks.*.directories", "[]"),
    words("notify.sinks.*.command", REQUIRED).secret(),
    words("notify.sinks.*.env", NONE),
    words("notify.sinks.*.url", REQUIRED).secret(),
    words("notify.sinks.*.format", "`\"json\"`"),
    words("notify.sinks.*.secret", NONE).secret(),
    words("notify.sinks.*.headers.*", NONE).secret(),
    words("notify.sinks.*.allow_private", "`false`"),
    words("notify.sinks.*.ca_file", "the system's certificates"),
];

#[cfg(test)]
mod tests;
