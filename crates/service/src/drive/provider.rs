//! The provider of a session: how its agent is spoken with, which known agent it is, and what that does that others do not.

use std::sync::Arc;

use rekindle_agent::acp::Acp;
use rekindle_agent::exec::Exec;
use rekindle_agent::known::{KnownAgent, Quirks, by_command, by_id, by_name, by_program};
use rekindle_agent::ndjson::Ndjson;
use rekindle_agent::profile::Profile;
use rekindle_domain::event::Provider;
use rekindle_domain::session::SessionState;
use rekindle_wire::code::Code;
use rekindle_wire::hint::Hint;
use rekindle_wire::request::AgentChoice;

use crate::error::{Result, ServiceError};

/// Checks a choice and returns what a session's log says of it.
pub(crate) fn provider(choice: AgentChoice, model: Option<String>) -> Result<Provider> {
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
pub(crate) fn profile(provider: &Provider) -> Result<Arc<dyn Profile>> {
    named_profile(&provider.profile, provider.command.as_deref().unwrap_or_default())
}

fn named_profile(name: &str, command: &[String]) -> Result<Arc<dyn Profile>> {
    match name {
        "acp" => Ok(Arc::new(Acp::default())),
        "exec" => Ok(Arc::new(Exec::of(command))),
        "ndjson" => Ok(Arc::new(Ndjson)),
        other => Err(ServiceError::new(Code::InvalidAgent, format!("there is no agent profile {other:?}"))
            .hint(Hint::ChooseProfile)),
    }
}

pub(super) fn known(name: &str) -> Result<&'static KnownAgent> {
    by_id(name).ok_or_else(|| {
        ServiceError::new(Code::AgentUnknown, format!("there is no agent called {name:?}"))
            .hint(Hint::ListAgents)
    })
}

/// Returns what a session's agent does that others do not: as it has introduced itself, else as it is supposed to be.
pub(crate) fn quirks(state: &SessionState) -> Quirks {
    let info = state.agent.as_ref().and_then(|agent| agent.info.as_ref());
    let info: serde_json::Value =
        info.and_then(|info| serde_json::from_str(info.get()).ok()).unwrap_or_default();
    match info["name"].as_str().and_then(by_name) {
        Some(known) => known.quirks(info["version"].as_str()),
        None => expected_quirks(&state.provider),
    }
}

/// Returns what an agent is supposed to do that others do not, until it has introduced itself.
pub(crate) fn expected_quirks(provider: &Provider) -> Quirks {
    let named = provider.agent.as_deref().and_then(by_id);
    let started = || provider.command.as_deref().and_then(by_command);
    named.or_else(started).map(|agent| agent.quirks(None)).unwrap_or_default()
}

/// Returns the known agent that a session has: by its name, or because its command starts one.
pub(crate) fn known_agent(provider: &Provider) -> Option<&'static KnownAgent> {
    let named = provider.agent.as_deref().and_then(by_id);
    named.or_else(|| by_program(provider.command.as_deref()?))
}
