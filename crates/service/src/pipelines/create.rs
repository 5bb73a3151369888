//! Runs started: what is asked is checked, the directory is captured, and the start is recorded with the first step that is to be done.

use std::path::Path;
use std::sync::Arc;

use rekindle_domain::blob_id::BlobId;
use rekindle_domain::event::{
    Budget, DEFAULT_PIPELINE, Event, OnCut, OnDrift, Options, PipelineStarted, ProjectConfig, TaskConfig,
};
use rekindle_domain::id::{PipelineId, RunName, StepId};
use rekindle_domain::line::Draft;
use rekindle_domain::pipeline::config_change::Refusal;
use rekindle_domain::pipeline::{PipelineState, compose};
use rekindle_domain::time::Timestamp;
use rekindle_store::commit::Append;
use rekindle_wire::code::Code;
use rekindle_wire::request::NewWorktree;
use rekindle_workspace::tree::short_name;

use super::worker::Command;
use super::{Pipelines, refusal};
use crate::commands::check_directory;
use crate::commands::worktree_plan::{Planned, WorktreePlanner};
use crate::drive::environment::{self, Env};
use crate::drive::workspace_files::FilesError;
use crate::error::{Result, ServiceError};
use crate::idempotency::Key;
use crate::ids::{millis, random};
use crate::lock::locked;
use crate::pipeline_config::checked;
use crate::test_knobs::crash_point;
use crate::workspaces::session_worktree::prepare::Surroundings;

/// Names that are drawn for a run before that is given up: two that agree are rarer than anything else that goes wrong.
const TRIES: usize = 8;

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
    /// Results of other runs are not used for it.
    pub(crate) no_cache: bool,
    /// Settings of the sessions of its steps.
    pub(crate) options: Options,
    /// The most that all of its steps may use.
    pub(crate) budget: Option<Budget>,
    /// Variables for its agents.
    pub(crate) env: Env,
}

/// A run that may be started: nothing of it is made yet.
struct Checked {
    id: PipelineId,
    new: NewRun,
    pipeline: String,
    task: TaskConfig,
    /// The worktree that it is to work in, if it has one of its own.
    worktree: Option<Planned>,
}

/// A run that may be recorded.
struct Prepared {
    id: PipelineId,
    records: Vec<Draft>,
    env: Env,
}

/// A run of a request.
enum Asked<T> {
    /// The same request has made it before.
    Made(PipelineId),
    /// It is new.
    New(Box<T>),
}

impl Pipelines {
    /// Starts a run; a request that was made before finds what it made.
    #[cfg(test)]
    pub(crate) fn create(
        self: &Arc<Pipelines>,
        new: NewRun,
        key: Option<&Key>,
        by: &str,
    ) -> Result<PipelineId> {
        let made = self.create_all(vec![new], None, key, by)?;
        made.first().copied().ok_or_else(ServiceError::moved)
    }

    /// Starts runs, all or none, each in a worktree of its own if that is wanted. Whoever repeats a request that was cut short gets the
    /// runs that it had made, and the others.
    pub(crate) fn create_all(
        self: &Arc<Pipelines>,
        all: Vec<NewRun>,
        worktree: Option<&NewWorktree>,
        key: Option<&Key>,
        by: &str,
    ) -> Result<Vec<PipelineId>> {
        // Two with the same key, at the same time: the second finds what the first made.
        let _one_at_a_time = key.map(|key| self.keyed.lock(&key.key));
        let count = all.len();
        let keys: Vec<Option<Key>> =
            (0..count).map(|index| key.map(|key| key_of(key, index, count))).collect();
        // Whatever may be refused is, before anything is made.
        let mut planner = WorktreePlanner::new(&self.views);
        let mut checked = Vec::with_capacity(count);
        for (new, key) in all.into_iter().zip(&keys) {
            checked.push(match key.as_ref().map(|key| self.made_by(key)).transpose()?.flatten() {
                Some(made) => Asked::Made(made),
                None => Asked::New(Box::new(self.check(new, worktree, &mut planner)?)),
            });
        }
        let mut ready = Vec::with_capacity(count);
        for (run, key) in checked.into_iter().zip(&keys) {
            ready.push(match run {
                Asked::Made(made) => Asked::Made(made),
                Asked::New(checked) => Asked::New(Box::new(self.prepare(*checked, key.as_ref(), by)?)),
            });
        }
        let mut made: Vec<PipelineId> = Vec::with_capacity(count);
        for (run, key) in ready.into_iter().zip(&keys) {
            let started = match run {
                Asked::Made(known) => Ok(known),
                Asked::New(prepared) => self.record(*prepared, key.as_ref()),
            };
            match started {
                Ok(id) => made.push(id),
                Err(error) => {
                    // The disk is full or fails: what was begun of the request is not left behind.
                    for id in made {
                        let ended = self.abort(id, Some("not all runs of the request could be started"), by);
                        let _ = ended.inspect_err(|error| tracing::warn!(run = %id, "{}", error.text()));
                    }
                    return Err(error);
                }
            }
        }
        Ok(made)
    }

    /// Finds the runs that a request made before, if it made all of them.
    pub(super) fn all_made_by(&self, key: Option<&Key>, count: usize) -> Result<Option<Vec<PipelineId>>> {
        let Some(key) = key else { return Ok(None) };
        (0..count).map(|index| self.made_by(&key_of(key, index, count))).collect()
    }

    /// Checks what is asked, and where a worktree would be.
    fn check(
        &self,
        new: NewRun,
        worktree: Option<&NewWorktree>,
        planner: &mut WorktreePlanner<'_>,
    ) -> Result<Checked> {
        let pipeline = new.pipeline.clone().unwrap_or_else(|| DEFAULT_PIPELINE.to_owned());
        let config = checked(new.config, &pipeline)?;
        let new = NewRun { config, ..new };
        let Some(task) = new.config.task(&new.task).cloned() else {
            return Err(refusal(&Refusal::TaskMissing { task: new.task }));
        };
        check_directory(&new.working_dir)?;
        environment::check(&new.env)?;
        let id = self.draw()?;
        let title = format!("{} {}", task.id, task.goal);
        let place = worktree.map(|wanted| planner.plan(&new.working_dir, wanted, (&title, id.as_str())));
        Ok(Checked { id, pipeline, task, worktree: place.transpose()?, new })
    }

    /// Makes the worktree of a run, if it has one, and captures its directory.
    fn prepare(&self, checked: Checked, key: Option<&Key>, by: &str) -> Result<Prepared> {
        let Checked { id, new, pipeline, task, worktree } = checked;
        let origin = new.origin.clone().unwrap_or_else(|| new.working_dir.clone());
        let working_dir = match worktree {
            Some(planned) => self.add_worktree(planned, &new)?,
            None => new.working_dir,
        };
        let on_cut = new.on_cut.or(new.config.pipelines.get(&pipeline).and_then(|stages| stages.on_cut));
        let tree = self.trees.capture(Path::new(&working_dir)).map_err(|why| {
            let message = format!("the working directory {working_dir} cannot be captured: {why}");
            ServiceError::new(Code::InvalidWorkingDir, message)
        })?;
        let started = PipelineStarted {
            pipeline: pipeline.into(),
            config: Box::new(new.config),
            config_hash: new.config_hash,
            task: Box::new(task),
            snapshot_id: short_name(&tree).into(),
            tree,
            origin: origin.into(),
            working_dir: working_dir.into(),
            on_cut,
            on_drift: new.on_drift,
            no_cache: new.no_cache,
            options: Some(Box::new(new.options)).filter(|options| **options != Options::default()),
            budget: new.budget,
            by: by.to_owned().into(),
            idempotency_key: key.map(|key| key.as_stored().into()),
        };
        Ok(Prepared { id, records: self.first_records(id, started)?, env: new.env })
    }

    /// Makes the worktree of a run; whoever dies over it leaves a directory in which nobody works.
    fn add_worktree(&self, planned: Planned, new: &NewRun) -> Result<String> {
        let workers = &self.views.workers;
        let environment = &workers.agents.environment;
        let around = Surroundings {
            env: &environment.for_everybody(&new.env),
            umask: new.options.umask().unwrap_or(environment.default_umask()),
            is_stopping: &|| workers.is_stopping() || workers.is_superseded(),
        };
        crash_point("pipeline.before_worktree");
        let added =
            workers.files.add_session_worktree(&planned.worktree, Path::new(&planned.working_dir), &around);
        match added {
            Ok(_) => Ok(planned.working_dir),
            Err(FilesError::NotYet(why) | FilesError::Failed(why)) => {
                let message = format!("the worktree of the run cannot be made: {why}");
                Err(ServiceError::new(Code::WorktreeImpossible, message))
            }
        }
    }

    /// Records the start of a run, and has somebody begin it.
    fn record(self: &Arc<Pipelines>, prepared: Prepared, key: Option<&Key>) -> Result<PipelineId> {
        let Prepared { id, records, env } = prepared;
        self.store.create_pipeline(id).map_err(|error| ServiceError::caused_by(Code::Storage, error))?;
        locked(&self.brought).insert(id, env);
        crash_point("pipeline.before_start");
        let recorded = self.store.append(Append::durable(id, records));
        if recorded.is_err() {
            locked(&self.brought).remove(&id);
            self.store.abandon_pipeline(id);
        }
        recorded?;
        crash_point("pipeline.after_start");
        if let Some(key) = key {
            self.note_key(&key.as_stored(), id);
        }
        self.write_summary(id);
        self.send(id, Command::Look)?;
        Ok(id)
    }

    /// Draws a name that no run has.
    fn draw(&self) -> Result<PipelineId> {
        for _ in 0..TRIES {
            let now = millis(self.views.workers.records.now());
            let id = RunName::mint(now, u64::try_from(random()? >> 64).unwrap_or_default()).pipeline_id();
            if self.store.open_pipeline(id)?.is_none() {
                return Ok(id);
            }
        }
        Err(ServiceError::new(Code::NoRandomness, "no free name was found for the run"))
    }

    /// Composes the first records of a run: its start, and the first step that is to be done.
    fn first_records(&self, id: PipelineId, started: PipelineStarted<'static>) -> Result<Vec<Draft>> {
        let from = started.tree;
        let blobs = self.store.blobs();
        // The first step, as of the record before it.
        let mut state = PipelineState::empty(id);
        let wrong = |why: &dyn std::fmt::Display| ServiceError::new(Code::InvalidPipeline, why);
        state.apply(Timestamp::default(), &Event::from(started.clone())).map_err(|why| wrong(&why))?;
        let stage = state.started.as_deref().and_then(|started| started.stages.stages.first());
        let first = StepId { stage: stage.map(|stage| stage.name.clone()).unwrap_or_default(), round: 1 };
        let intention = self.sources(&blobs).intention(&state, &first, from).map_err(|why| wrong(&why))?;
        compose::start(id, started, intention).map_err(|why| wrong(&why))
    }
}

/// Returns the key of one run of a request.
fn key_of(key: &Key, index: usize, count: usize) -> Key {
    let name = if count == 1 { key.key.clone() } else { format!("{}/{index}", key.key) };
    Key { key: name, body: key.body }
}
