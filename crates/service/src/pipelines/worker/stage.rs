//! The stage of the step that is to be done: with what its run was started with, and who works at it.

use rekindle_domain::event::{AgentConfig, Provider, StageConfig};
use rekindle_domain::pipeline::{PipelineState, Started, StepState};
use rekindle_wire::request::AgentChoice;

use crate::drive::provider::provider;
use crate::error::{Result, ServiceError};

/// How a command is run that checks: as any command, its words as they are.
const EXEC: &str = "exec";

/// What a known agent speaks.
const ACP: &str = "acp";

/// Returns the step that is to be done, with its stage and what its run was started with.
pub(super) fn current(state: &PipelineState) -> Result<(&Started, &StepState, &StageConfig)> {
    let started = state.started.as_deref();
    let step = state.current_step();
    let stage = step.and_then(|step| state.stage(&step.id.stage));
    match (started, step, stage) {
        (Some(started), Some(step), Some((_, stage))) => Ok((started, step, stage)),
        _ => Err(ServiceError::moved()),
    }
}

/// Returns who answers in the sessions of a stage.
pub(super) fn provider_of(started: &Started, stage: &StageConfig) -> Result<Provider> {
    let command = |profile: &str, command: &[String]| AgentChoice::Command {
        profile: profile.to_owned(),
        command: command.to_vec(),
    };
    if let Some(check) = &stage.check {
        return provider(command(EXEC, check), None);
    }
    let agent = stage.agent.as_ref().and_then(|name| started.config.agents.get(name));
    let agent = agent.ok_or_else(ServiceError::moved)?;
    let profile = agent.profile.as_deref().unwrap_or(ACP);
    let choice = match (&agent.agent, &agent.command) {
        (Some(name), _) => AgentChoice::Known(name.clone()),
        (None, words) => command(profile, words.as_deref().unwrap_or_default()),
    };
    // Others have no settings; their model counts for the key alone.
    let model = agent.model.clone().filter(|_| profile == ACP || agent.agent.is_some());
    provider(choice, model)
}

/// Tells whether the agent of a stage takes commands in JSON.
pub(super) fn speaks_ndjson(started: &Started, stage: &StageConfig) -> bool {
    let agent = stage.agent.as_ref().and_then(|name| started.config.agents.get(name));
    agent.is_some_and(AgentConfig::speaks_ndjson)
}
