//! Whether a run may be resumed: where it stands, who holds it, and what of the configuration has changed since it was started. A run
//! goes by what it was started with; whoever changed the file is told where that is another thing.

use std::collections::BTreeSet;
use std::fmt;

use super::key::AgentKey;
use super::state::{PipelineState, RunStatus, Started};
use crate::event::{AgentConfig, ProjectConfig};

/// A change of the configuration since a run was started.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConfigChange {
    /// The names of the variables that an agent gets.
    Environment(String),
    /// The model that an agent is asked for.
    Model(String),
    /// The goal of the task.
    Goal,
    /// An input of the task.
    Input(String),
    /// The stages of the pipeline, or its rounds.
    Stages,
}

impl fmt::Display for ConfigChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigChange::Environment(agent) => write!(f, "agents.{agent}.env"),
            ConfigChange::Model(agent) => write!(f, "agents.{agent}.model"),
            ConfigChange::Goal => f.write_str("the goal of the task"),
            ConfigChange::Input(input) => write!(f, "inputs.{input} of the task"),
            ConfigChange::Stages => f.write_str("the stages of the pipeline"),
        }
    }
}

/// Why a run is not resumed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// There is no such run.
    RunUnknown,
    /// It is there, and its ledger is not.
    LedgerMissing,
    /// Somebody else holds it.
    RunLocked {
        /// Who.
        by: String,
    },
    /// Somebody ended it.
    RunAborted,
    /// It has failed.
    RunFailed,
    /// The configuration has no such task any more.
    TaskMissing {
        /// The task.
        task: String,
    },
    /// An agent that it needs is another one, or is not there any more.
    AgentChanged {
        /// Its name in the configuration.
        agent: String,
    },
    /// What its directory is to be compared with, or made, is not there any more.
    ManifestMissing {
        /// The snapshot.
        snapshot: String,
    },
    /// Something changed on which finished steps hang.
    ConfigChanged(Vec<ConfigChange>),
}

impl Refusal {
    /// Returns the word for it that programs know.
    pub fn code(&self) -> &'static str {
        match self {
            Refusal::RunUnknown => "run_unknown",
            Refusal::LedgerMissing => "ledger_missing",
            Refusal::RunLocked { .. } => "run_locked",
            Refusal::RunAborted => "run_aborted",
            Refusal::RunFailed => "run_failed",
            Refusal::TaskMissing { .. } => "task_missing",
            Refusal::AgentChanged { .. } => "agent_changed",
            Refusal::ManifestMissing { .. } => "manifest_missing",
            Refusal::ConfigChanged(_) => "config_changed",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::RunUnknown => f.write_str("there is no such run"),
            Refusal::LedgerMissing => {
                f.write_str("the ledger of the run is missing: restore ledger.ndjson from a copy")
            }
            Refusal::RunLocked { by } => write!(f, "{by} is working on the run"),
            Refusal::RunAborted => f.write_str("the run was aborted"),
            Refusal::RunFailed => f.write_str("the run has failed"),
            Refusal::TaskMissing { task } => write!(f, "rekindle.toml no longer has the task {task}"),
            Refusal::AgentChanged { agent } => write!(f, "the agent {agent} has changed"),
            Refusal::ManifestMissing { snapshot } => {
                write!(f, "some contents of {snapshot} are missing; a bundle of the run may have them")
            }
            Refusal::ConfigChanged(changes) => {
                let named: Vec<String> = changes.iter().map(ToString::to_string).collect();
                write!(f, "finished steps depend on what has changed since: {}", named.join(", "))
            }
        }
    }
}

/// What a resume of a run is asked with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResumeWish {
    /// It is to go on though it failed or was aborted.
    pub force: bool,
    /// It is to go on though the configuration has changed.
    pub accept_config: bool,
}

/// What becomes of a resume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResumeAnswer {
    /// There is nothing to be done: the run is complete.
    NothingToDo,
    /// It goes on.
    GoesOn {
        /// It had ended: that it goes on is to be recorded.
        reopen: bool,
        /// What has changed and does not matter, or was accepted.
        changes: Vec<ConfigChange>,
    },
    /// It does not.
    Refused(Refusal),
}

/// Decides whether a run goes on; `now` is its configuration as it is now, with what is built in written out.
pub fn may_resume(state: &PipelineState, now: &ProjectConfig, wish: ResumeWish) -> ResumeAnswer {
    let Some(started) = state.started.as_deref() else {
        return ResumeAnswer::Refused(Refusal::LedgerMissing);
    };
    let reopen = match state.status {
        RunStatus::Completed => return ResumeAnswer::NothingToDo,
        RunStatus::Failed if !wish.force => return ResumeAnswer::Refused(Refusal::RunFailed),
        RunStatus::Aborted if !wish.force => return ResumeAnswer::Refused(Refusal::RunAborted),
        RunStatus::Failed | RunStatus::Aborted => true,
        RunStatus::Running => false,
    };
    let has_finished = state.steps().any(|step| step.result.is_some());
    match changes(started, now) {
        Err(refusal) => ResumeAnswer::Refused(refusal),
        Ok(changes) => {
            let risky: Vec<ConfigChange> =
                changes.iter().filter(|change| is_risky(change)).cloned().collect();
            if has_finished && !risky.is_empty() && !wish.accept_config {
                return ResumeAnswer::Refused(Refusal::ConfigChanged(risky));
            }
            ResumeAnswer::GoesOn { reopen, changes }
        }
    }
}

/// Tells whether results that are there may be others with a change.
fn is_risky(change: &ConfigChange) -> bool {
    !matches!(change, ConfigChange::Environment(_))
}

/// Returns what has changed since a run was started, or why it cannot go on with that.
fn changes(started: &Started, now: &ProjectConfig) -> Result<Vec<ConfigChange>, Refusal> {
    let mut changes = Vec::new();
    let was = &started.task;
    let is = now.task(&was.id).ok_or_else(|| Refusal::TaskMissing { task: was.id.clone() })?;
    if was.goal != is.goal {
        changes.push(ConfigChange::Goal);
    }
    let inputs: BTreeSet<&String> = was.inputs.keys().chain(is.inputs.keys()).collect();
    let changed = inputs.into_iter().filter(|input| was.inputs.get(*input) != is.inputs.get(*input));
    changes.extend(changed.map(|input| ConfigChange::Input(input.clone())));
    let used: BTreeSet<&String> =
        started.stages.stages.iter().filter_map(|stage| stage.agent.as_ref()).collect();
    for name in used {
        let (Some(was), Some(is)) = (started.config.agents.get(name), now.agents.get(name)) else {
            return Err(Refusal::AgentChanged { agent: name.clone() });
        };
        if !is_same_agent(was, is) {
            return Err(Refusal::AgentChanged { agent: name.clone() });
        }
        if AgentKey::of(was) != AgentKey::of(is) {
            changes.push(ConfigChange::Model(name.clone()));
        }
        if was.env != is.env {
            changes.push(ConfigChange::Environment(name.clone()));
        }
    }
    if now.pipelines.get(&started.pipeline) != Some(&started.stages) {
        changes.push(ConfigChange::Stages);
    }
    changes.sort();
    Ok(changes)
}

fn is_same_agent(was: &AgentConfig, is: &AgentConfig) -> bool {
    (&was.agent, &was.command, &was.profile) == (&is.agent, &is.command, &is.profile)
}

#[cfg(test)]
mod tests;
