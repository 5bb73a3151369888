//! From what a session says of its agent to what is launched: the command, the profile, the environment.

use std::ffi::OsStr;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use rekindle_agent::acp::Acp;
use rekindle_agent::environment::is_for_agents;
use rekindle_agent::exec::Exec;
use rekindle_agent::find::{How, find};
use rekindle_agent::known::{KnownAgent, Quirk, Quirks, by_command, by_id, by_name, by_program};
use rekindle_agent::profile::Profile;
use rekindle_domain::event::Provider;
use rekindle_domain::recovery::Held;
use rekindle_domain::session::SessionState;
use rekindle_holder::dir::Limits;

use crate::code::Code;
use crate::core::{Core, Env, locked};
use crate::drive::environment;
use crate::drive::live::Launching;
use crate::error::ServiceError;
use crate::request::AgentChoice;
use crate::test_knobs::hurried;

/// Checks a choice and returns what a session's log says of it.
pub(crate) fn provider(choice: AgentChoice, model: Option<String>) -> Result<Provider, ServiceError> {
    let (profile, agent, command) = match choice {
        AgentChoice::Known(name) => {
            known(&name)?;
            ("acp".to_owned(), Some(name), None)
        }
        AgentChoice::Command { profile, command } => {
            named_profile(&profile, &command)?;
            if command.first().is_none_or(String::is_empty) {
                return Err(ServiceError::new(Code::InvalidAgent, "the agent's command is empty"));
            }
            (profile, None, Some(command))
        }
    };
    Ok(Provider { profile, agent, model, command })
}

/// Returns how a session's agent is spoken with.
pub(crate) fn profile(provider: &Provider) -> Result<Arc<dyn Profile>, ServiceError> {
    named_profile(&provider.profile, provider.command.as_deref().unwrap_or_default())
}

fn named_profile(name: &str, command: &[String]) -> Result<Arc<dyn Profile>, ServiceError> {
    match name {
        "acp" => Ok(Arc::new(Acp::default())),
        "exec" => Ok(Arc::new(Exec::of(command))),
        other => Err(ServiceError::new(Code::InvalidAgent, format!("there is no profile {other:?}"))
            .hint("acp, or exec for any command")),
    }
}

fn known(name: &str) -> Result<&'static KnownAgent, ServiceError> {
    by_id(name).ok_or_else(|| {
        ServiceError::new(Code::AgentUnknown, format!("there is no agent called {name:?}"))
            .hint("rekindle agents lists them; any other is a command: {\"profile\":\"acp\",\"command\":[…]}")
    })
}

/// How long after it was made or loaded a session may be loaded again, of agents that destroy it before. They name its file by
/// the minute; all loads worked that came 62 seconds later.
static LOAD_AGAIN_AFTER: LazyLock<Duration> =
    LazyLock::new(|| hurried("LOAD_AGAIN_AFTER", Duration::from_secs(62)));

/// Returns how long a session's agent must not bring its own session back yet.
pub(crate) fn load_in(core: &Core, state: &SessionState) -> Duration {
    let agent = state.agent.as_ref().filter(|agent| agent.cursor.is_some());
    let Some(opened_at) = agent.and_then(|agent| agent.opened_at) else { return Duration::ZERO };
    if !quirks(state).has(Quirk::LoadWithinAMinuteDestroys) {
        return Duration::ZERO;
    }
    // A clock that was set back makes nobody wait longer than that.
    LOAD_AGAIN_AFTER.saturating_sub(Duration::from_millis(core.now().millis_since(opened_at)))
}

/// Returns what a session's agent does that others do not: as it has introduced itself, else as it is supposed to be.
pub(crate) fn quirks(state: &SessionState) -> Quirks {
    let info = state.agent.as_ref().and_then(|agent| agent.info.as_ref());
    let info: serde_json::Value =
        info.and_then(|info| serde_json::from_str(info.get()).ok()).unwrap_or_default();
    match info["name"].as_str().and_then(by_name) {
        Some(known) => known.quirks(info["version"].as_str()),
        None => supposed(&state.provider),
    }
}

/// Returns what an agent is supposed to do that others do not, until it has introduced itself.
pub(crate) fn supposed(provider: &Provider) -> Quirks {
    let named = provider.agent.as_deref().and_then(by_id);
    let started = || provider.command.as_deref().and_then(by_command);
    named.or_else(started).map(|agent| agent.quirks(None)).unwrap_or_default()
}

/// What keeps an agent from being launched.
pub(crate) enum Obstacle {
    /// Variables that the session had and nobody has now.
    Env(Vec<String>),
    /// It is not here, or was never known.
    Agent(ServiceError),
}

/// Returns what to launch for a session.
pub(crate) fn launching(core: &Core, state: &SessionState) -> Result<Launching, Obstacle> {
    let mut env = environment(core, state);
    let missing = lacking(&env, state);
    if !missing.is_empty() {
        return Err(Obstacle::Env(missing));
    }
    let agent = state.provider.agent.clone();
    let argv = match (&state.provider.command, &agent) {
        (Some(command), _) => command.clone(),
        (None, Some(name)) => {
            let known = known(name).map_err(Obstacle::Agent)?;
            env.extend(known.set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
            let found = find(known, OsStr::new(env.get("PATH").map_or("", String::as_str)));
            if found.how == How::Missing {
                let error = ServiceError::new(Code::AgentMissing, format!("{} is not here", known.title));
                return Err(Obstacle::Agent(error.hint(known.install)));
            }
            found.command
        }
        (None, None) => {
            let error = ServiceError::new(Code::AgentMissing, "the session does not say what its agent is");
            return Err(Obstacle::Agent(error));
        }
    };
    let umask = Some(environment::umask(state).unwrap_or(core.umask));
    Ok(Launching { agent, argv, env, umask, limits: limits(core) })
}

/// Names the variable of the daemon's that says how many bytes of the home's disk stay free before agents pause.
const MIN_FREE_BYTES: &str = "REKINDLE_MIN_FREE_BYTES";

/// Returns the bounds of a holder: the usual ones, but for the room that its agent leaves on the disk.
fn limits(core: &Core) -> Limits {
    let usual = Limits::default();
    let free = core.env.get(MIN_FREE_BYTES).and_then(|text| text.trim().parse().ok());
    Limits { free_bytes: free.unwrap_or(usual.free_bytes), ..usual }
}

fn lacking(env: &Env, state: &SessionState) -> Vec<String> {
    state.env_names.iter().filter(|name| !env.contains_key(*name)).cloned().collect()
}

/// Returns what people are told of a session whose agent cannot be launched without variables that nobody has.
pub(crate) fn lacks_environment(core: &Core, state: &SessionState) -> Option<String> {
    let missing = lacking(&environment(core, state), state);
    (!missing.is_empty()).then(|| env_missing(&missing))
}

/// Tells people why a session that was cut does not go on by itself, with the names of what is missing.
pub(crate) fn held_words(core: &Core, state: &SessionState, held: Held) -> String {
    let missing = (held == Held::NoEnvironment).then(|| lacks_environment(core, state)).flatten();
    missing.unwrap_or_else(|| held.words().to_owned())
}

/// Says what a launch waits for.
pub(crate) fn env_missing(names: &[String]) -> String {
    let names = names.join(", ");
    format!(
        "its agent needs {names}, which this daemon does not have: resume it, or send a message, where that is set"
    )
}

/// Returns the environment of a session's agent: ours through the list, and what callers brought over it.
pub(crate) fn environment(core: &Core, state: &SessionState) -> Env {
    let prefixes = prefixes(&state.provider);
    let ours = core.env.iter().filter(|(name, _)| is_for_agents(OsStr::new(name), prefixes));
    let mut env: Env = ours.map(|(name, value)| (name.clone(), value.clone())).collect();
    if let Some(brought) = locked(&core.brought).get(&state.id) {
        env.extend(brought.clone());
    }
    env
}

fn prefixes(provider: &Provider) -> &'static [&'static str] {
    known_agent(provider).map_or(&[], |known| known.environment)
}

/// Returns the known agent that a session has: by its name, or because its command starts one.
pub(crate) fn known_agent(provider: &Provider) -> Option<&'static KnownAgent> {
    let named = provider.agent.as_deref().and_then(by_id);
    named.or_else(|| by_program(provider.command.as_deref()?))
}

/// Returns the variables without which no agent of a session can be launched here, unless one lives that has them.
pub(crate) fn missing_env(core: &Core, state: &SessionState) -> Vec<String> {
    let lives = state.agent.as_ref().is_some_and(|agent| !agent.exited && agent.process.is_some());
    if lives || state.env_names.is_empty() { Vec::new() } else { lacking(&environment(core, state), state) }
}
