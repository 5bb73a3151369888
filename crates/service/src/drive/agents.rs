//! The agents of a home: who supervises them and where their holders live, and what is launched for a session.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use rekindle_agent::find::{How, find};
use rekindle_agent::known::Quirk;
use rekindle_domain::id::HolderId;
use rekindle_domain::recovery::{AgentPresence, Circumstances};
use rekindle_domain::session::SessionState;
use rekindle_domain::time::Timestamp;
use rekindle_holder::dir::{HolderDir, Limits};
use rekindle_wire::code::Code;
use rekindle_wire::hint::Hint;

use super::checkpoints::Captures;
use super::environment::{Environment, missing_variables};
use super::holders::{HolderPaths, Holders};
use super::live::{Launching, Supervisor};
use super::provider::{known, quirks};
use crate::error::ServiceError;
use crate::test_knobs::hurried;

/// How long after it was made or loaded a session may be loaded again, of agents that destroy it before. They name its file by
/// the minute; all loads worked that came 62 seconds later.
static LOAD_AGAIN_AFTER: LazyLock<Duration> =
    LazyLock::new(|| hurried("LOAD_AGAIN_AFTER", Duration::from_secs(62)));

/// Names the variable of the daemon's that says how many bytes of the home's disk stay free before agents pause.
const MIN_FREE_BYTES: &str = "REKINDLE_MIN_FREE_BYTES";

/// The agents of a home.
pub(crate) struct Agents {
    pub(crate) supervisor: Supervisor,
    pub(crate) holders: Arc<dyn Holders>,
    pub(crate) places: HolderPaths,
    pub(crate) environment: Environment,
    /// Who captures directories.
    pub(crate) captures: Arc<dyn Captures>,
}

/// What keeps an agent from being launched.
pub(crate) enum Obstacle {
    /// Variables that the session had and nobody has now.
    Env(Vec<String>),
    /// It is not here, or was never known.
    Agent(ServiceError),
}

impl Agents {
    /// Returns the directory of a holder.
    pub(crate) fn holder_dir(&self, holder: HolderId) -> HolderDir {
        HolderDir::new(self.places.holders.join(holder.to_string()))
    }

    /// Looks for the recorded holder of a session.
    pub(crate) fn observe(&self, state: &SessionState) -> AgentPresence {
        self.holders.find(&self.places.holders, state)
    }

    /// Returns how things stand for a session in which nobody works: nothing has been tried, and nothing is waited for.
    pub(crate) fn circumstances(&self, state: &SessionState, found: AgentPresence) -> Circumstances {
        Circumstances {
            found,
            has_directory: has_directory(state),
            has_environment: self.environment.missing_env_text(state).is_none(),
            failed_launches: 0,
            shortage: None,
            interrupted_for: Duration::MAX,
            load_in: Duration::ZERO,
            takes_checkpoints: self.captures.is_on(state),
        }
    }

    /// Returns what to launch for a session.
    pub(crate) fn launching(&self, state: &SessionState) -> Result<Launching, Obstacle> {
        let mut env = self.environment.of(state);
        let missing = missing_variables(&env, state);
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
                    let error = ServiceError::new(Code::AgentMissing, format!("{} is missing", known.title));
                    return Err(Obstacle::Agent(
                        error.hint(Hint::InstallAgent { command: known.install.to_owned() }),
                    ));
                }
                found.command
            }
            (None, None) => {
                let error =
                    ServiceError::new(Code::AgentMissing, "the session does not say which agent it has");
                return Err(Obstacle::Agent(error));
            }
        };
        let umask = Some(self.environment.umask(state));
        Ok(Launching { agent, argv, env, umask, limits: limits(&self.environment) })
    }
}

/// Returns how long a session's agent must not bring its own session back yet.
pub(crate) fn load_in(state: &SessionState, now: Timestamp) -> Duration {
    let agent = state.agent.as_ref().filter(|agent| agent.cursor.is_some());
    let Some(opened_at) = agent.and_then(|agent| agent.opened_at) else { return Duration::ZERO };
    if !quirks(state).has(Quirk::LoadWithinAMinuteDestroys) {
        return Duration::ZERO;
    }
    // A clock that was set back makes nobody wait longer than that.
    LOAD_AGAIN_AFTER.saturating_sub(Duration::from_millis(now.millis_since(opened_at)))
}

/// Returns the bounds of a holder: the usual ones, but for the room that its agent leaves on the disk.
fn limits(environment: &Environment) -> Limits {
    let usual = Limits::default();
    let free = environment.own_variable(MIN_FREE_BYTES).and_then(|text| text.trim().parse().ok());
    Limits { free_bytes: free.unwrap_or(usual.free_bytes), ..usual }
}

/// Tells whether a session has a place to work in.
fn has_directory(state: &SessionState) -> bool {
    Path::new(&state.working_dir).is_dir()
}
