//! The fold of the ledger of a pipeline run: takes in one record after the other, and refuses what cannot follow. Each call checks
//! first and changes afterwards, so a refused record leaves the state as it was.

use std::borrow::Cow;
use std::sync::Arc;

use super::following::Following;
use super::outcome::{self, is_outcome_of};
use super::state::{
    Attempt, Cut, DriftNote, Ended, Payload, PipelineState, RunStatus, Started, StepResult, StepState,
};
use crate::event::{
    Event, IllegalTransition, OnCut, OnDrift, Options, PipelineBudget, PipelineDrift, PipelineImported,
    PipelineStarted, StepBegan, StepCut, StepFinished, StepIntended, StepInterrupted,
};
use crate::id::StepId;
use crate::time::Timestamp;

impl PipelineState {
    /// Takes in one event that was written at `ts`.
    pub fn apply(&mut self, ts: Timestamp, event: &Event<'_>) -> Result<(), IllegalTransition> {
        self.transition(ts, event).map_err(|why| IllegalTransition { kind: event.name().to_owned(), why })
    }

    fn transition(&mut self, ts: Timestamp, event: &Event<'_>) -> Result<(), String> {
        match event {
            // A newer version wrote it, or the store did; neither changes what is to be done.
            Event::Unknown { .. } | Event::LogRepaired(_) => return Ok(()),
            Event::PipelineStarted(_) if self.started.is_some() => return Err("it was started before".into()),
            Event::PipelineStarted(started) => return self.start(ts, started),
            _ if self.started.is_none() => return Err("a ledger begins with pipeline.started".into()),
            Event::PipelineReopened(_) => return self.reopen(),
            Event::PipelineImported(imported) => return self.import(imported),
            _ if self.status != RunStatus::Running => {
                return Err(format!("the run is {}", self.status.as_str()));
            }
            _ => {}
        }
        let (status, reason, by) = match event {
            Event::StepIntended(intended) => return self.intend(ts, intended),
            Event::StepBegan(began) => return self.begin(ts, began),
            Event::StepFinished(finished) => return self.finish(ts, finished),
            Event::StepInterrupted(interrupted) => return self.interrupt(ts, interrupted),
            Event::PipelineDrift(drift) => return self.note_drift(drift),
            Event::PipelineBudget(budget) => return self.note_budget(budget),
            Event::PipelineCompleted(_) if self.following() != Following::Complete => {
                return Err("not all of its stages are done".into());
            }
            Event::PipelineCompleted(end) => (RunStatus::Completed, &end.reason, &end.by),
            Event::PipelineFailed(_) if self.is_worked_at() => return Err("somebody works at it".into()),
            Event::PipelineFailed(end) => (RunStatus::Failed, &end.reason, &end.by),
            Event::PipelineAborted(end) => (RunStatus::Aborted, &end.reason, &end.by),
            _ => return Err("it does not belong into the ledger of a pipeline run".into()),
        };
        let owned = |words: &Option<Cow<'_, str>>| words.as_deref().map(str::to_owned);
        (self.status, self.ended) =
            (status, Some(Arc::new(Ended { at: ts, reason: owned(reason), by: owned(by) })));
        Ok(())
    }

    fn start(&mut self, ts: Timestamp, started: &PipelineStarted<'_>) -> Result<(), String> {
        let stages = started.config.pipelines.get(&*started.pipeline);
        let stages = stages.filter(|pipeline| !pipeline.stages.is_empty());
        let stages =
            stages.ok_or_else(|| format!("its configuration has no stages of {}", started.pipeline))?;
        self.round_limit = stages.rounds();
        self.started = Some(Arc::new(Started {
            at: ts,
            pipeline: started.pipeline.as_ref().into(),
            stages: stages.clone(),
            config: (*started.config).clone(),
            config_hash: started.config_hash,
            task: (*started.task).clone(),
            snapshot_id: started.snapshot_id.as_ref().into(),
            tree: started.tree,
            working_dir: started.working_dir.as_ref().into(),
            origin: started.origin.as_ref().into(),
            on_cut: started.on_cut,
            on_drift: started.on_drift,
            no_cache: started.no_cache,
            options: started.options.as_deref().cloned().unwrap_or_default(),
            budget: started.budget,
            by: started.by.as_ref().into(),
            idempotency_key: started.idempotency_key.as_ref().map(|key| key.as_ref().into()),
        }));
        Ok(())
    }

    fn intend(&mut self, ts: Timestamp, intended: &StepIntended<'_>) -> Result<(), String> {
        let id = &intended.step_id;
        if (id.stage.as_str(), id.round) != (&*intended.stage, intended.round) {
            return Err(format!("step {id} is not of stage {} in round {}", intended.stage, intended.round));
        }
        let again = self.current_step().filter(|step| step.id == *id);
        if let Some(step) = again {
            let accepted = step.drift.is_some_and(|drift| {
                drift.decision == OnDrift::Accept && drift.found == intended.from && drift.found != step.from
            });
            if step.open_attempt().is_some() || !accepted {
                return Err(format!("{id} is meant to be done already"));
            }
        } else {
            match self.following() {
                Following::Step(next) if next == *id => {}
                Following::Step(next) => return Err(format!("{next} is the next step")),
                Following::Unfinished => return Err("the step before it is not finished".into()),
                Following::Complete | Following::Fail(_) => return Err("no step follows".into()),
            }
            if self.expected_tree() != Some(intended.from) {
                return Err(format!("{id} does not begin with what was there before it"));
            }
        }
        let attempts = again.map_or(0, |step| step.attempts);
        let step = StepState {
            id: id.clone(),
            key: intended.key,
            from: intended.from,
            agent: intended.agent.clone(),
            inputs_hash: intended.inputs_hash,
            intended_at: ts,
            attempts,
            has_forgotten: again.is_some_and(|step| step.has_forgotten),
            attempt: None,
            drift: None,
            result: None,
        };
        if again.is_some() {
            self.replace_last(step);
        } else {
            self.is_reopened = false;
            self.push_step(step);
        }
        Ok(())
    }

    fn begin(&mut self, ts: Timestamp, began: &StepBegan) -> Result<(), String> {
        let step = self.unfinished(&began.step_id)?;
        let attempt = if began.reminder {
            let Some(attempt) = step.open_attempt() else {
                return Err("there is nobody to be reminded".into());
            };
            if attempt.reminded {
                return Err("its agent was reminded before".into());
            }
            if (began.attempt, began.session_id) != (step.attempts, attempt.session_id) {
                return Err("another attempt goes on".into());
            }
            Attempt { reminded: true, run_id: began.run_id, ..*attempt }
        } else {
            if step.open_attempt().is_some() {
                return Err(format!("attempt {} continues", step.attempts));
            }
            if began.attempt != step.attempts + 1 {
                return Err(format!("attempt {} is the next one", step.attempts + 1));
            }
            let before = step.attempt.as_ref().filter(|before| before.session_id == began.session_id);
            let is_unseen = |before: &Attempt| {
                before.after_unseen_end || before.cut.is_some_and(|cut| cut.died_at.is_none())
            };
            Attempt {
                session_id: began.session_id,
                run_id: began.run_id,
                began_at: ts,
                reminded: false,
                continues: before.is_some(),
                after_unseen_end: before.is_some_and(is_unseen),
                cut: None,
            }
        };
        self.change(|step| {
            if !began.reminder {
                (step.attempts, step.drift) = (began.attempt, None);
            }
            step.attempt = Some(attempt);
        });
        self.counts.commands += 1;
        self.is_imported = false;
        Ok(())
    }

    /// I11: a step is finished once, and by its key.
    fn finish(&mut self, ts: Timestamp, finished: &StepFinished<'_>) -> Result<(), String> {
        let step = self.unfinished(&finished.step_id)?;
        if finished.key != step.key {
            return Err(format!("{} has another key", step.id));
        }
        match (step.open_attempt(), finished.cached) {
            (Some(_), true) => return Err("somebody works at it".into()),
            (None, false) => return Err("nobody works at it".into()),
            _ => {}
        }
        let Some((_, stage)) = self.stage(&step.id.stage) else {
            return Err(format!("there is no stage {}", step.id.stage));
        };
        if !is_outcome_of(stage, &finished.outcome) {
            return Err(format!("{:?} is no outcome of {}", finished.outcome, step.id.stage));
        }
        if !stage.writes && finished.to != step.from && finished.outcome != outcome::FAILED {
            return Err(format!("{} must leave files alone, and did not", step.id.stage));
        }
        let inline = finished.payload.clone().map(|payload| Payload::Inline(payload.into_owned()));
        let result = StepResult {
            at: ts,
            outcome: finished.outcome.as_ref().into(),
            payload: inline.or(finished.payload_blob.map(Payload::Blob)),
            to: finished.to,
            files_touched: finished.files_touched.clone(),
            usage: finished.usage,
            cached: finished.cached,
            counts: finished.counts,
        };
        self.change(|step| step.result = Some(result));
        let said = &mut self.counts.said;
        said.events = said.events.saturating_add(finished.counts.events);
        said.heartbeats = said.heartbeats.saturating_add(finished.counts.heartbeats);
        said.logs = said.logs.saturating_add(finished.counts.logs);
        self.counts.terminal_events += u64::from(!finished.cached);
        self.is_reopened = false;
        Ok(())
    }

    fn interrupt(&mut self, ts: Timestamp, interrupted: &StepInterrupted<'_>) -> Result<(), String> {
        let step = self.unfinished(&interrupted.step_id)?;
        let attempt = step.open_attempt().filter(|_| interrupted.attempt == step.attempts);
        let Some(attempt) = attempt.copied() else {
            return Err(format!("attempt {} does not go on", interrupted.attempt));
        };
        let cut =
            Cut { at: ts, reason: interrupted.reason, died_at: interrupted.died_at, tree: interrupted.tree };
        self.change(|step| {
            step.attempt = Some(Attempt { cut: Some(cut), ..attempt });
            step.has_forgotten |= interrupted.reason == StepCut::NotContinued;
        });
        Ok(())
    }

    fn note_drift(&mut self, drift: &PipelineDrift<'_>) -> Result<(), String> {
        let step = self.unfinished(&drift.step_id)?;
        if step.open_attempt().is_some() {
            return Err("somebody works at it".into());
        }
        if drift.expected != step.from {
            return Err("another tree is expected".into());
        }
        let note = DriftNote { found: drift.found, decision: drift.decision };
        self.change(|step| step.drift = Some(note));
        Ok(())
    }

    fn note_budget(&mut self, budget: &PipelineBudget) -> Result<(), String> {
        if self.budget_noted.is_some() {
            return Err("that was said before".into());
        }
        self.budget_noted = Some(budget.notice);
        Ok(())
    }

    fn reopen(&mut self) -> Result<(), String> {
        if !matches!(self.status, RunStatus::Failed | RunStatus::Aborted) {
            return Err(format!("the run is {}", self.status.as_str()));
        }
        // Whatever used its rounds up, it gets as many again.
        let rounds = self.started.as_ref().map_or(0, |started| started.stages.rounds());
        self.round_limit = self.round().saturating_add(rounds);
        (self.status, self.ended, self.is_reopened) = (RunStatus::Running, None, true);
        self.reopened = self.reopened.saturating_add(1);
        (self.is_imported, self.budget_noted) = (false, None);
        Ok(())
    }

    /// It is here now, and nothing of it goes on by itself. Settings of elsewhere are not taken over: with them agents might ask for
    /// nothing. What an attempt was in the middle of stayed there, with its files: it counts, and the step begins again.
    fn import(&mut self, imported: &PipelineImported<'_>) -> Result<(), String> {
        let Some(started) = &self.started else { return Err("it was not started".into()) };
        let mut started = (**started).clone();
        if let Some(directory) = &imported.working_dir {
            (started.working_dir, started.origin) = (directory.as_ref().into(), directory.as_ref().into());
        }
        started.options = Options::default();
        started.on_cut = started.on_cut.filter(|on_cut| *on_cut == OnCut::Ask).or(Some(OnCut::Restore));
        (started.on_drift, started.idempotency_key) = (None, None);
        (self.started, self.is_imported) = (Some(Arc::new(started)), true);
        if self.current_step().is_some() {
            self.change(|step| (step.attempt, step.drift) = (None, None));
        }
        Ok(())
    }

    fn is_worked_at(&self) -> bool {
        self.current_step().is_some_and(|step| step.open_attempt().is_some())
    }

    /// Returns the step that is not finished, if it is this one.
    fn unfinished(&self, id: &StepId) -> Result<&StepState, String> {
        let current = self.current_step().ok_or("no step is meant to be done")?;
        if current.id == *id { Ok(current) } else { Err(format!("{} is the step to be done", current.id)) }
    }

    /// Changes the last step. What may go wrong was looked at before: nothing is changed by halves.
    fn change(&mut self, change: impl FnOnce(&mut StepState)) {
        if let Some(step) = self.last_mut() {
            change(step);
        }
    }
}
