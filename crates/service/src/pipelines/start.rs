//! Runs asked for by callers: the project's file is read and trusted, and a run is started for each task.

use std::path::Path;
use std::sync::Arc;

use rekindle_domain::blob_id::BlobId;
use rekindle_domain::event::{Options, Permissions, ProjectConfig, ResumePolicy};
use rekindle_domain::id::PipelineId;
use rekindle_domain::pipeline::RunStatus;
use rekindle_domain::pipeline::config_change::ResumeWish;
use rekindle_domain::time::Timestamp;
use rekindle_wire::code::Code;
use rekindle_wire::hint::Hint;
use rekindle_wire::request::{MAX_PIPELINE_TASKS, NewPipelines, ResumePipeline, Umask};
use rekindle_wire::view::{PipelineResumed, PipelineView};

use super::claims::canonical;
use super::{NewRun, Pipelines, ResumeRun, project_file};
use crate::commands::check_directory;
use crate::config_trust::{self, ConfigInUse};
use crate::error::{Result, ServiceError};
use crate::idempotency::Key;

impl Pipelines {
    /// Starts a run for each task of a request.
    pub(crate) fn start(
        self: &Arc<Pipelines>,
        new: NewPipelines,
        key: Option<&Key>,
        by: &str,
    ) -> Result<Vec<PipelineView>> {
        let invalid = |why: &str| ServiceError::new(Code::InvalidPipeline, why);
        let tasks = new.tasks.clone();
        if tasks.is_empty() || tasks.len() > MAX_PIPELINE_TASKS {
            return Err(invalid(&format!(
                "a request must name 1 to {MAX_PIPELINE_TASKS} tasks, not {}",
                tasks.len()
            )));
        }
        if tasks.len() > 1 && new.worktree.is_none() {
            let why =
                "only one run may write to a directory at a time: several tasks need worktrees of their own";
            return Err(invalid(why).hint(Hint::UseWorktrees));
        }
        if tasks.len() > 1 && new.worktree.as_ref().is_some_and(|worktree| worktree.branch.is_some()) {
            return Err(invalid(
                "each run has a branch of its own: a branch cannot be named for several runs",
            ));
        }
        if new.budget.and_then(|budget| budget.cost).is_some_and(|cost| !cost.is_finite() || cost < 0.0) {
            return Err(invalid("the cost of a budget must not be negative"));
        }
        // Whoever repeats a request is answered whatever has become of the file.
        if let Some(made) = self.all_made_by(key, tasks.len())? {
            return made.into_iter().map(|id| self.show(id)).collect();
        }
        let worktree = new.worktree.clone();
        let wanted = self.read_request(new, by)?;
        let all = tasks.into_iter().map(|task| NewRun { task, ..wanted.clone() }).collect();
        let made = self.create_all(all, worktree.as_ref(), key, by)?;
        made.into_iter().map(|id| self.show(id)).collect()
    }

    /// Reads a request; which task it is about is still to be said.
    fn read_request(&self, new: NewPipelines, by: &str) -> Result<NewRun> {
        check_directory(&new.working_dir)?;
        let file = match new.config {
            Some(file) => file,
            None => project_file::read(&new.working_dir)?,
        };
        // What makes no sense is said before anybody is asked to trust it.
        let config = project_file::parse(&file)?;
        let now: Timestamp = self.views.workers.records.now();
        let home = (&self.disk, self.store.layout());
        project_file::check_trust(home, &new.working_dir, &file, new.trust, (by, now))?;
        Ok(NewRun {
            config,
            config_hash: file.hash(),
            task: String::new(),
            pipeline: new.pipeline,
            working_dir: new.working_dir,
            origin: None,
            on_cut: new.on_cut,
            on_drift: new.on_drift,
            no_cache: new.no_cache,
            options: options(new.permissions, new.resume.unwrap_or_default(), new.umask)?,
            budget: new.budget,
            env: new.env,
        })
    }

    /// Resumes a run as a caller asks for it.
    pub(crate) fn resume_as_asked(
        self: &Arc<Pipelines>,
        id: PipelineId,
        asked: ResumePipeline,
        by: &str,
    ) -> Result<PipelineResumed> {
        self.check_trust_of_run(id, asked.trust, by)?;
        let config = match &asked.config {
            Some(file) => Some(project_file::lenient(file)?),
            None => self.config_now(id)?,
        };
        let ResumePipeline { on_drift, force, accept_config, no_cache, env, .. } = asked;
        let wish = ResumeWish { force, accept_config };
        let by = by.to_owned();
        let resumed = self.resume(id, ResumeRun { config, wish, on_drift, no_cache, env, by })?;
        Ok(PipelineResumed {
            resumed: resumed.goes_on,
            reopened: resumed.reopened,
            config_changes: resumed.changes.iter().map(ToString::to_string).collect(),
            pipeline: self.show(id)?,
        })
    }

    /// Refuses to go on with what nobody here has trusted: a run may have come in a bundle from another machine.
    fn check_trust_of_run(&self, id: PipelineId, said: Option<BlobId>, by: &str) -> Result<()> {
        let state = self.open(id)?.fold;
        let Some(started) = state.started.as_deref().filter(|_| state.status != RunStatus::Completed) else {
            return Ok(());
        };
        let root = canonical(Path::new(&started.origin)).display().to_string();
        let config = ConfigInUse { root: &root, hash: started.config_hash, said, by };
        config_trust::require(&*self.disk, self.store.layout(), config, self.views.workers.records.now())
    }

    /// Reads the configuration where a run was asked for, if there is one: one that is gone changes nothing for a run that has its own.
    fn config_now(&self, id: PipelineId) -> Result<Option<ProjectConfig>> {
        let origin = self.open(id)?.fold.started.as_deref().map(|started| started.origin.clone());
        match origin.map(|origin| project_file::read(&origin)) {
            Some(Ok(file)) => project_file::lenient(&file).map(Some),
            Some(Err(_)) | None => Ok(None),
        }
    }
}

fn options(permissions: Permissions, resume: ResumePolicy, umask: Option<Umask>) -> Result<Options> {
    if resume == ResumePolicy::Never {
        let why = "resume must be auto (a run continues automatically) or ask (it waits for a decision); to end a run, abort it";
        return Err(ServiceError::new(Code::InvalidPipeline, why));
    }
    let mut options = Options { permissions, resume, ..Options::default() };
    if let Some(umask) = umask {
        options.set_umask(umask.0);
    }
    Ok(options)
}
