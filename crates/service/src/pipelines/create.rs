//! Runs started: what is asked is checked, the directory is captured, and the start is recorded with the first step that is to be done.

use std::path::Path;
use std::sync::Arc;

use rekindle_agent::exec::PLACEHOLDER;
use rekindle_agent::known::by_id;
use rekindle_domain::blob_id::BlobId;
use rekindle_domain::event::{
    AgentConfig, DEFAULT_PIPELINE, Event, OnCut, OnDrift, Options, PipelineConfig, PipelineStarted,
    ProjectConfig, StageConfig,
};
use rekindle_domain::id::{PipelineId, RunName, StepId};
use rekindle_domain::pipeline::config_change::Refusal;
use rekindle_domain::pipeline::{PipelineState, builtin, compose, validate};
use rekindle_domain::time::Timestamp;
use rekindle_store::commit::Append;
use rekindle_wire::code::Code;
use rekindle_wire::hint::Hint;
use rekindle_workspace::tree::short_name;

use super::worker::Command;
use super::{Pipelines, refusal};
use crate::commands::check_directory;
use crate::drive::environment::{self, Env};
use crate::error::{Result, ServiceError};
use crate::idempotency::Key;
use crate::ids::{millis, random};
use crate::lock::locked;
use crate::test_knobs::crash_point;

/// What a configuration is refused with.
const INVALID: Code = Code::InvalidPipeline;

/// Names that are drawn for a run before that is given up: two that agree are rarer than anything else that goes wrong.
const TRIES: usize = 8;

/// Problems of a configuration that are told at once.
const TOLD: usize = 20;

/// A run that is asked for.
#[derive(Debug, Clone)]
pub(crate) struct NewRun {
    /// The configuration, as its file says it.
    pub(crate) config: ProjectConfig,
    /// BLAKE3 of that file.
    pub(crate) config_hash: BlobId,
    /// The id of the task.
    pub(crate) task: String,
    /// Which of the configuration's pipelines.
    pub(crate) pipeline: Option<String>,
    /// Where its steps work.
    pub(crate) working_dir: String,
    /// Where it was asked for, if that is another directory.
    pub(crate) origin: Option<String>,
    /// What becomes of a step whose agent is cut.
    pub(crate) on_cut: Option<OnCut>,
    /// What becomes of files that a step that has not begun does not expect.
    pub(crate) on_drift: Option<OnDrift>,
    /// Settings of the sessions of its steps.
    pub(crate) options: Options,
    /// Variables for its agents.
    pub(crate) env: Env,
}

impl Pipelines {
    /// Starts a run; a request that was made before finds what it made.
    pub(crate) fn create(
        self: &Arc<Pipelines>,
        new: NewRun,
        key: Option<&Key>,
        by: &str,
    ) -> Result<PipelineId> {
        // Two with the same key, at the same time: the second finds what the first made.
        let _one_at_a_time = key.map(|key| self.keyed.lock(&key.key));
        if let Some(made) = key.map(|key| self.made_by(key)).transpose()?.flatten() {
            return Ok(made);
        }
        let NewRun {
            config,
            config_hash,
            task,
            pipeline,
            working_dir,
            origin,
            on_cut,
            on_drift,
            options,
            env,
        } = new;
        let pipeline = pipeline.unwrap_or_else(|| DEFAULT_PIPELINE.to_owned());
        let config = checked(config, &pipeline)?;
        let Some(task) = config.task(&task).cloned() else {
            return Err(refusal(&Refusal::TaskMissing { task }));
        };
        check_directory(&working_dir)?;
        environment::check(&env)?;
        let stages = &config.pipelines[&pipeline];
        let on_cut = on_cut.or(stages.on_cut);
        let tree = self.trees.capture(Path::new(&working_dir)).map_err(|why| {
            let message = format!("the working directory {working_dir} cannot be captured: {why}");
            ServiceError::new(Code::InvalidWorkingDir, message)
        })?;
        let started = PipelineStarted {
            pipeline: pipeline.into(),
            config: Box::new(config),
            config_hash,
            task: Box::new(task),
            snapshot_id: short_name(&tree).into(),
            tree,
            origin: origin.unwrap_or_else(|| working_dir.clone()).into(),
            working_dir: working_dir.into(),
            on_cut,
            on_drift,
            options: Some(Box::new(options)).filter(|options| **options != Options::default()),
            by: by.to_owned().into(),
            idempotency_key: key.map(|key| key.as_stored().into()),
        };
        let id = self.make()?;
        locked(&self.brought).insert(id, env);
        let recorded = self.record_start(id, started);
        if recorded.is_err() {
            locked(&self.brought).remove(&id);
            self.store.close_pipeline(id);
        }
        recorded?;
        if let Some(key) = key {
            self.note_key(&key.as_stored(), id);
        }
        self.write_summary(id);
        self.send(id, Command::Look)?;
        Ok(id)
    }

    /// Draws a name, and makes the directory of the run.
    fn make(&self) -> Result<PipelineId> {
        let mut tries = 0;
        loop {
            let now = millis(self.views.workers.records.now());
            let id = RunName::mint(now, u64::try_from(random()? >> 64).unwrap_or_default()).pipeline_id();
            match self.store.create_pipeline(id) {
                Ok(()) => return Ok(id),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && tries < TRIES => {
                    tries += 1
                }
                Err(error) => return Err(ServiceError::caused_by(Code::Storage, error)),
            }
        }
    }

    fn record_start(&self, id: PipelineId, started: PipelineStarted<'static>) -> Result<()> {
        let from = started.tree;
        let blobs = self.store.blobs();
        // The first step, as of the record before it.
        let mut state = PipelineState::empty(id);
        let wrong = |why: &dyn std::fmt::Display| ServiceError::new(INVALID, why);
        state.apply(Timestamp::default(), &Event::from(started.clone())).map_err(|why| wrong(&why))?;
        let stage = state.started.as_deref().and_then(|started| started.stages.stages.first());
        let first = StepId { stage: stage.map(|stage| stage.name.clone()).unwrap_or_default(), round: 1 };
        let intention = self.sources(&blobs).intention(&state, &first, from).map_err(|why| wrong(&why))?;
        let records = compose::start(id, started, intention).map_err(|why| wrong(&why))?;
        crash_point("pipeline.before_start");
        self.store.append(Append::durable(id, records))?;
        crash_point("pipeline.after_start");
        Ok(())
    }
}

/// Returns a configuration with what is built in written out, if a run may go by it.
fn checked(config: ProjectConfig, pipeline: &str) -> Result<ProjectConfig> {
    let problems = validate::problems(&config, |name| by_id(name).is_some());
    if !problems.is_empty() {
        let mut told: Vec<String> = problems.iter().take(TOLD).map(ToString::to_string).collect();
        if problems.len() > TOLD {
            told.push(format!("{} more", problems.len() - TOLD));
        }
        return Err(ServiceError::new(Code::ConfigInvalid, told.join("; ")).hint(Hint::CheckConfig));
    }
    let config = builtin::resolved(config);
    let Some(stages) = config.pipelines.get(pipeline) else {
        let names: Vec<&str> = config.pipelines.keys().map(String::as_str).collect();
        let message = format!("there is no pipeline {pipeline:?}; there are {}", names.join(", "));
        return Err(ServiceError::new(INVALID, message));
    };
    match not_built(&config, stages) {
        Some(why) => Err(ServiceError::new(INVALID, why)),
        None => Ok(config),
    }
}

/// Says what a pipeline asks for that this version cannot do.
fn not_built(config: &ProjectConfig, pipeline: &PipelineConfig) -> Option<String> {
    let agent =
        |stage: &StageConfig| -> Option<AgentConfig> { config.agents.get(stage.agent.as_ref()?).cloned() };
    pipeline.stages.iter().find_map(|stage| {
        let name = &stage.name;
        if agent(stage).is_some_and(|agent| agent.profile.as_deref() == Some("ndjson")) {
            return Some(format!(
                "stage {name} asks for an agent with the profile ndjson, which this version does not speak; use acp or exec"
            ));
        }
        if stage.cache {
            return Some(format!(
                "stage {name} has cache = true, but results are not shared between runs in this version; leave it out"
            ));
        }
        let is_place = |word: &String| word == PLACEHOLDER || word.ends_with(&format!("={PLACEHOLDER}"));
        stage.check.as_ref().filter(|check| check.iter().skip(1).any(is_place)).map(|_| {
            format!("the check of stage {name} has {PLACEHOLDER} in it, but a check is told nothing; leave it out")
        })
    })
}
