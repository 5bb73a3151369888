//! Wishes of people: that the run goes on, or that it ends.

use std::path::Path;

use rekindle_domain::event::{OnDrift, ProjectConfig};
use rekindle_domain::id::StepId;
use rekindle_domain::pipeline::config_change::{ConfigChange, Refusal, ResumeAnswer, ResumeWish, may_resume};
use rekindle_domain::pipeline::next_step::Waits;
use rekindle_domain::pipeline::{PipelineState, RunStatus, builtin, compose};
use rekindle_wire::code::Code;
use rekindle_wire::hint::Hint;

use super::super::{Pipelines, refusal};
use super::{Standing, Worker};
use crate::drive::environment::Env;
use crate::drive::worker::Command as SessionCommand;
use crate::error::{Result, ServiceError, damaged_log};
use crate::lock::locked;
use crate::test_knobs::crash_point;

/// What somebody resumes a run with.
#[derive(Debug, Clone, Default)]
pub(crate) struct ResumeRun {
    /// The configuration as it is now; as the run was started without it.
    pub(crate) config: Option<ProjectConfig>,
    /// What may have changed.
    pub(crate) wish: ResumeWish,
    /// What becomes of files that are not as expected.
    pub(crate) on_drift: Option<OnDrift>,
    /// Results of other runs are not used for it any more.
    pub(crate) no_cache: bool,
    /// Variables for its agents.
    pub(crate) env: Env,
    /// Who.
    pub(crate) by: String,
}

/// What became of a wish that a run goes on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Resumed {
    /// It does; else it is complete.
    pub(crate) goes_on: bool,
    /// It had ended.
    pub(crate) reopened: bool,
    /// What the configuration says otherwise by now.
    pub(crate) changes: Vec<ConfigChange>,
}

impl Worker {
    /// Has the run go on, or says why it does not.
    pub(super) fn resume(&mut self, at: &Pipelines, asked: ResumeRun) -> Result<Resumed> {
        let opened = at.open(self.id)?;
        if let Some(damage) = &opened.damage {
            return Err(ServiceError::new(Code::RunDamaged, damaged_log(damage)));
        }
        let state = opened.fold;
        let Some(started) = state.started.as_deref() else { return Err(refusal(&Refusal::LedgerMissing)) };
        let Standing { waits, rests, held, .. } = self.standing();
        let is_at_work = match waits {
            Some(Waits::Agent | Waits::Heartbeat | Waits::Stalled | Waits::Person) => true,
            // What keeps it waiting may be what somebody has something to say about.
            Some(Waits::Silence | Waits::SameKey | Waits::Directory | Waits::Place | Waits::Time(_)) => false,
            None => rests.is_none() && held.is_none(),
        };
        if is_at_work && self.bring_variables(at, &state, &asked.env)? {
            return Ok(Resumed { goes_on: true, ..Resumed::default() });
        }
        if state.status == RunStatus::Running && is_at_work {
            let by = format!("the daemon (pid {})", std::process::id());
            return Err(refusal(&Refusal::RunLocked { by }));
        }
        let now = asked.config.map_or_else(|| started.config.clone(), builtin::resolved);
        let (reopen, changes) = match may_resume(&state, &now, asked.wish) {
            ResumeAnswer::NothingToDo => return Ok(Resumed::default()),
            ResumeAnswer::Refused(why) => return Err(refusal(&why)),
            ResumeAnswer::GoesOn { reopen, changes } => (reopen, changes),
        };
        let on_drift = asked.on_drift.unwrap_or_default();
        self.check_manifest(at, &state, on_drift)?;
        locked(&at.brought).entry(self.id).or_default().extend(asked.env);
        let stage = state.current_step().and_then(|step| state.stage(&step.id.stage));
        let missing = stage.map(|(_, stage)| self.missing(at, &state, stage)).unwrap_or_default();
        if !missing.is_empty() {
            let message = format!("its agent needs {}, which this daemon does not have", missing.join(", "));
            return Err(ServiceError::new(Code::EnvMissing, message).hint(Hint::BringVariables));
        }
        if reopen {
            let blobs = at.store.blobs();
            let from = state.expected_tree().unwrap_or(started.tree);
            let intention =
                |then: &PipelineState, step: &StepId| at.sources(&blobs).intention(then, step, from);
            let records = compose::reopen(&state, None, &asked.by, intention)
                .map_err(|why| ServiceError::caused_by(Code::NotNow, why))?;
            crash_point("pipeline.before_reopen");
            at.with_reopened(self.id, |_| self.append(at, &state, records))?;
        }
        locked(&at.left).remove(&self.id);
        if asked.no_cache {
            at.shared.set_apart(self.id);
        }
        self.set_word(on_drift, asked.by);
        Ok(Resumed { goes_on: true, reopened: reopen, changes })
    }

    /// Gives the agent of an attempt that has begun the variables without which it is not launched; tells whether that was all it lacked.
    fn bring_variables(&self, at: &Pipelines, state: &PipelineState, env: &Env) -> Result<bool> {
        let attempt = state.current_step().and_then(|step| step.open_attempt());
        let Some(session) = attempt.map(|attempt| attempt.session_id).filter(|_| !env.is_empty()) else {
            return Ok(false);
        };
        let session = at.store.open_session(session)?.state;
        let environment = &at.views.workers.agents.environment;
        if environment.missing(&session).is_empty() {
            return Ok(false);
        }
        environment.keep(session.id, env.clone());
        locked(&at.brought).entry(self.id).or_default().extend(env.clone());
        at.views.workers.send(session.id, SessionCommand::Look)?;
        Ok(environment.missing(&session).is_empty())
    }

    /// Refuses to go on where files would have to be restored to what is not there any more.
    fn check_manifest(&self, at: &Pipelines, state: &PipelineState, on_drift: OnDrift) -> Result<()> {
        let (Some(started), Some(from)) = (state.started.as_deref(), state.expected_tree()) else {
            return Ok(());
        };
        if on_drift == OnDrift::Accept || at.trees.has(from) {
            return Ok(());
        }
        // Whoever captures what is the same has it again.
        let now = at.trees.capture(Path::new(&started.working_dir));
        if now.is_ok_and(|now| now == from) {
            return Ok(());
        }
        let snapshot = rekindle_workspace::tree::short_name(&from);
        Err(refusal(&Refusal::ManifestMissing { snapshot }))
    }

    /// Ends the run: recorded first, then its step's session is cancelled.
    pub(super) fn abort(&mut self, at: &Pipelines, reason: Option<&str>, by: &str) -> Result<()> {
        let opened = at.open(self.id)?;
        if let Some(damage) = &opened.damage {
            return Err(ServiceError::new(Code::RunDamaged, damaged_log(damage)));
        }
        match opened.fold.status {
            RunStatus::Running => {
                crash_point("pipeline.before_abort");
                self.append(at, &opened.fold, vec![compose::abort(reason, by)])
            }
            RunStatus::Aborted => Ok(()),
            RunStatus::Completed => {
                Err(ServiceError::new(Code::RunCompleted, "the run is complete: there is nothing to abort"))
            }
            RunStatus::Failed => {
                Err(ServiceError::new(Code::RunFailed, "the run has failed: there is nothing to abort"))
            }
        }
    }
}
