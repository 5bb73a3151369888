//! The environment of agents: the daemon's own, through a list, and variables that callers bring, whose values are kept in
//! memory only. Their names are in the log, so that after a restart no agent is silently launched without them.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::Mutex;

use rekindle_agent::environment::is_for_agents;
use rekindle_domain::compose::environment::update_environment;
use rekindle_domain::event::Provider;
use rekindle_domain::id::SessionId;
use rekindle_domain::line::Draft;
use rekindle_domain::recovery::Held;
use rekindle_domain::session::SessionState;
use rekindle_wire::code::Code;
use rekindle_wire::request::Umask;

use super::env_file;
use super::provider::known_agent;
use crate::error::{Result, ServiceError};
use crate::lock::locked;

/// Values of environment variables, by name.
pub(crate) type Env = BTreeMap<String, String>;

/// Refuses what no process can have in its environment: it would be found out only when the agent is launched.
pub(crate) fn check(env: &Env) -> Result<()> {
    let wrong = |message: String| Err(ServiceError::new(Code::InvalidEnv, message));
    for (name, value) in env {
        if name.is_empty() || name.contains(['=', '\0']) {
            return wrong(format!(
                "{name:?} is not the name of a variable: it is empty, or contains a = or a NUL"
            ));
        }
        // What a variable is worth is told to nobody.
        if value.contains('\0') {
            return wrong(format!("the value of {name:?} contains a NUL"));
        }
    }
    Ok(())
}

/// What the environments of agents are built from.
pub(crate) struct Environment {
    /// Our own, from which every agent's is built.
    own: Env,
    /// The umask of agents whose callers bring none.
    umask: u32,
    /// Files with variables of agents, by the names of these.
    files: BTreeMap<String, PathBuf>,
    /// What callers brought for their agents: in memory only.
    brought: Mutex<HashMap<SessionId, Env>>,
}

impl Environment {
    pub(crate) fn new(own: Env, umask: u32, files: BTreeMap<String, PathBuf>) -> Environment {
        Environment { own, umask, files, brought: Mutex::default() }
    }

    /// Returns what the file of an agent says, if it has one that may be used.
    pub(crate) fn of_file(&self, provider: &Provider) -> Env {
        let Some(path) = self.files.get(&provider.name()) else { return Env::new() };
        env_file::read(path).unwrap_or_else(|why| {
            tracing::warn!("the variables of {} are not used: {why}", provider.name());
            Env::new()
        })
    }

    /// Returns a variable of the daemon's own.
    pub(crate) fn own_variable(&self, name: &str) -> Option<&str> {
        self.own.get(name).map(String::as_str)
    }

    /// Returns the umask of a session's agent.
    pub(crate) fn umask(&self, state: &SessionState) -> u32 {
        state.options.umask().unwrap_or(self.umask)
    }

    /// Keeps what a caller brought, over what was brought before.
    pub(crate) fn keep(&self, session: SessionId, env: Env) {
        if !env.is_empty() {
            locked(&self.brought).entry(session).or_default().extend(env);
        }
    }

    /// Keeps what was brought for one session for another too.
    pub(crate) fn share(&self, from: SessionId, with: SessionId) {
        let brought = locked(&self.brought).get(&from).cloned().unwrap_or_default();
        self.keep(with, brought);
    }

    /// Keeps what a caller brings, and returns the record that adds the names of all that was brought to those that the session
    /// has, and a umask that is not the one it has; none if it has them all.
    pub(crate) fn remember(&self, state: &SessionState, env: &Env, umask: Option<Umask>) -> Option<Draft> {
        self.keep(state.id, env.clone());
        let brought = locked(&self.brought).get(&state.id).cloned().unwrap_or_default();
        update_environment(state, names_to_keep(&brought), umask.map(|umask| umask.0))
    }

    /// Returns the environment of a session's agent: ours through the list, over it what the agent's file says, and over that what
    /// callers brought.
    pub(crate) fn of(&self, state: &SessionState) -> Env {
        let prefixes = known_agent(&state.provider).map_or(&[][..], |known| known.environment);
        let ours = self.own.iter().filter(|(name, _)| is_for_agents(OsStr::new(name), prefixes));
        let mut env: Env = ours.map(|(name, value)| (name.clone(), value.clone())).collect();
        env.extend(self.of_file(&state.provider));
        if let Some(brought) = locked(&self.brought).get(&state.id) {
            env.extend(brought.clone());
        }
        env
    }

    /// Returns the umask of agents whose callers bring none.
    pub(crate) fn default_umask(&self) -> u32 {
        self.umask
    }

    /// Returns the environment of a command that is for no agent: ours through the list, and what its caller brought.
    pub(crate) fn for_everybody(&self, brought: &Env) -> Env {
        let ours = self.own.iter().filter(|(name, _)| is_for_agents(OsStr::new(name), &[]));
        ours.chain(brought).map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// Returns the variables of a list that an agent would lack, with what else it gets.
    pub(crate) fn lacking(&self, names: &[String], provider: &Provider, more: [&Env; 2]) -> Vec<String> {
        let prefixes = known_agent(provider).map_or(&[][..], |known| known.environment);
        let has = |name: &String| {
            more.iter().any(|env| env.contains_key(name))
                || is_for_agents(OsStr::new(name), prefixes) && self.own.contains_key(name)
        };
        names.iter().filter(|name| !has(name)).cloned().collect()
    }

    /// Returns what people are told of a session whose agent cannot be launched without variables that nobody has.
    pub(crate) fn missing_env_text(&self, state: &SessionState) -> Option<String> {
        let missing = missing_variables(&self.of(state), state);
        (!missing.is_empty()).then(|| env_missing_text(&missing))
    }

    /// Returns the variables without which no agent of a session can be launched here, unless one lives that has them.
    pub(crate) fn missing(&self, state: &SessionState) -> Vec<String> {
        let lives = state.agent.as_ref().is_some_and(|agent| !agent.exited && agent.process.is_some());
        if lives || state.env_names.is_empty() {
            Vec::new()
        } else {
            missing_variables(&self.of(state), state)
        }
    }

    /// Tells people why a session that was cut does not go on by itself, with the names of what is missing.
    pub(crate) fn held_text(&self, state: &SessionState, held: Held) -> String {
        let missing = (held == Held::NoEnvironment).then(|| self.missing_env_text(state)).flatten();
        missing.unwrap_or_else(|| held.words().to_owned())
    }
}

/// Returns the names of variables that a session's agent needs and an environment does not have.
pub(super) fn missing_variables(env: &Env, state: &SessionState) -> Vec<String> {
    state.env_names.iter().filter(|name| !env.contains_key(*name)).cloned().collect()
}

/// Says what a launch waits for.
pub(crate) fn env_missing_text(names: &[String]) -> String {
    let names = names.join(", ");
    format!(
        "its agent needs {names}, which this daemon does not have: resume it, or send a message, from a shell where it is set"
    )
}

/// Returns those names of what a caller brings that no launch may be without: all that are not everybody's.
pub(crate) fn names_to_keep(env: &Env) -> Vec<String> {
    env.keys().filter(|name| !is_for_agents(OsStr::new(name), &[])).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(name: &str, value: &str) -> Env {
        Env::from([(name.to_owned(), value.to_owned())])
    }

    #[test]
    fn what_no_process_can_have_is_refused_without_telling_its_value() {
        assert_eq!(check(&env("A_KEY", "a = value")), Ok(()));
        for (name, value) in [("", "x"), ("A=B", "x"), ("A\0", "x"), ("A", "secret\0")] {
            let refused = check(&env(name, value)).expect_err(name);
            assert_eq!(refused.code, Code::InvalidEnv);
            assert!(!refused.message.contains("secret"), "{}", refused.message);
        }
    }

    #[test]
    fn names_that_everybody_has_are_not_kept() {
        let brought = [env("PATH", "x"), env("NEW", "x")].into_iter().flatten().collect();
        assert_eq!(names_to_keep(&brought), ["NEW"]);
    }
}
