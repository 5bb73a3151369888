//! Ends of attempts: a result and what follows it, or a cut. Recorded when the agent is proven gone and what it left is captured.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use rekindle_domain::event::{
    BlobRef, BudgetPart, ChangedFile, Event, Raw, StageConfig, StepCounts, StepCut, StepFinished,
    StepInterrupted, Usage,
};
use rekindle_domain::id::{SessionId, StepId};
use rekindle_domain::pipeline::PipelineState;
use rekindle_domain::pipeline::compose::{self, MAX_INLINE_PAYLOAD};
use rekindle_domain::pipeline::drift::{MachineLife, proven_death};
use rekindle_domain::pipeline::next_step::Finish;
use rekindle_domain::pipeline::outcome::{self, without_block};
use rekindle_domain::session::{End, SessionState};
use rekindle_wire::code::Code;

use super::super::agent_events::count;
use super::super::trees::shown;
use super::super::{Pipelines, said};
use super::Worker;
use super::ndjson;
use super::observe::{Looked, Seen};
use super::payload::{Payload, failed};
use super::stage::current;
use crate::error::{Result, ServiceError};
use crate::log_search::find_last_event;
use crate::show::run_end_reason;

/// Files that an error names: the rest are counted.
const NAMED: usize = 20;

impl Worker {
    /// Records what follows a result that is recorded alone.
    pub(super) fn follow(&self, at: &Pipelines, state: &PipelineState) -> Result<()> {
        let blobs = at.store.blobs();
        let from = state.expected_tree().ok_or_else(ServiceError::moved)?;
        let intention = |then: &PipelineState, step: &StepId| at.sources(&blobs).intention(then, step, from);
        let records = compose::follow(state, intention).map_err(illegal)?;
        self.append(at, state, records)
    }

    /// Records the result of the current step, and what follows it.
    pub(super) fn finish(
        &mut self,
        at: &Arc<Pipelines>,
        state: &PipelineState,
        seen: &Seen,
        found: &Looked,
        how: Finish,
    ) -> Result<()> {
        let (started, step, stage) = current(state)?;
        let (Some(session), Looked::Captured { tree, changed, .. }) = (seen.session.as_deref(), found) else {
            return Err(ServiceError::moved());
        };
        let root = Path::new(&started.working_dir);
        let store = &*at.views.workers.records.store;
        let told = match how {
            Finish::AsSaid => ndjson::result(store, &*at.trees, root, stage, session)?,
            Finish::Unclear | Finish::EndedByRule => None,
        };
        let (mut outcome, mut payload) = told.unwrap_or_else(|| result(at, stage, session, how));
        if !stage.writes && *tree != step.from {
            outcome = outcome::FAILED.into();
            payload.error = Some(changed_anyway(changed));
        }
        let json = Raw::from_value(&payload).map_err(ServiceError::internal)?;
        let is_large = json.as_json().len() > MAX_INLINE_PAYLOAD;
        // On disk before the record that names it.
        let kept = if is_large { Some(self.keep(at, json.as_json().as_bytes())?) } else { None };
        let (usage, counts) = self.used(at, &step.id);
        let finished = StepFinished {
            step_id: step.id.clone(),
            key: step.key,
            outcome: outcome.into(),
            payload: Some(json).filter(|_| !is_large),
            payload_blob: kept,
            to: *tree,
            files_touched: at.trees.touched(step.from, *tree).map(Box::new),
            usage,
            cached: false,
            counts,
        };
        tracing::info!(step = %step.id, outcome = %finished.outcome, "finished");
        self.record_finish(at, state, finished.clone(), seen.evidence.spent)?;
        self.share(at, stage, &finished);
        Ok(())
    }

    /// Records a result, and what follows it.
    pub(super) fn record_finish(
        &self,
        at: &Pipelines,
        state: &PipelineState,
        finished: StepFinished<'static>,
        spent: Option<BudgetPart>,
    ) -> Result<()> {
        let blobs = at.store.blobs();
        let to = finished.to;
        let intention = |then: &PipelineState, next: &StepId| at.sources(&blobs).intention(then, next, to);
        let records = match spent {
            Some(part) => compose::finish_spent(state, finished, part),
            None => compose::finish(state, finished, intention),
        };
        let records = records.map_err(illegal)?;
        self.append(at, state, records)
    }

    /// Records that the attempt was cut.
    pub(super) fn interrupt(
        &self,
        at: &Pipelines,
        state: &PipelineState,
        seen: &Seen,
        found: &Looked,
        reason: StepCut,
    ) -> Result<()> {
        let (_, step, _) = current(state)?;
        let tree = match found {
            Looked::Captured { tree, .. } => Some(*tree),
            Looked::NotYet | Looked::Unreadable(_) => None,
        };
        let session = seen.session.as_deref();
        let reader = session.and_then(|session| at.views.workers.records.store.reader(session.id).ok());
        let holder = session.and_then(|session| session.agent.as_ref()).map(|agent| agent.holder_id);
        let seen =
            reader.as_ref().zip(holder).and_then(|(reader, holder)| said::proven_death(reader, holder));
        let supervisor = &at.views.workers.agents.supervisor;
        let life = supervisor.life();
        let now =
            life.machine_boot.as_deref().map(|boot| MachineLife { boot, began: supervisor.steady.began() });
        let run = session.and_then(|session| session.run.as_ref());
        let died_at = proven_death(seen, run.and_then(|run| run.machine_boot.as_deref()), now);
        let why = session.zip(reader.as_ref()).and_then(|(session, reader)| run_end_reason(session, reader));
        tracing::info!(step = %step.id, reason = reason.as_str(), "cut");
        let interrupted = StepInterrupted {
            step_id: step.id.clone(),
            attempt: step.attempts,
            reason,
            detail: why.map(Into::into),
            died_at,
            tree,
        };
        self.append(at, state, vec![interrupted.into()])
    }

    fn keep(&self, at: &Pipelines, bytes: &[u8]) -> Result<BlobRef> {
        let kept = at.store.blobs().put(bytes)?;
        Ok(BlobRef { blob: kept.blob, size: bytes.len() as u64 })
    }

    /// Returns what was used for a step and what was said in it, over all attempts.
    fn used(&self, at: &Pipelines, step: &StepId) -> (Option<Usage>, StepCounts) {
        let mut sessions: BTreeSet<SessionId> = BTreeSet::new();
        let mut counts = StepCounts::default();
        let Ok(reader) = at.store.ledger_reader(self.id) else { return (None, counts) };
        // Its records stand at the end, behind the result of the step before: however long the ledger is.
        let read = find_last_event(&reader, |event| match event {
            Event::StepBegan(began) if began.step_id == *step => {
                sessions.insert(began.session_id);
                None
            }
            Event::StepFinished(_) => Some(()),
            _ => None,
        });
        if read.is_err() {
            return (None, counts);
        }
        let mut usage = Usage { input_tokens: 0, output_tokens: 0, cost: None };
        for session in sessions {
            // One that was removed has taken with it what it used.
            let Ok(current) = at.store.open_session(session) else { continue };
            let used = current.state.usage.shown();
            usage.input_tokens = usage.input_tokens.saturating_add(used.input_tokens);
            usage.output_tokens = usage.output_tokens.saturating_add(used.output_tokens);
            usage.cost = match (usage.cost, used.cost) {
                (Some(one), Some(other)) => Some(one + other),
                (one, other) => one.or(other),
            };
            if !current.state.provider.speaks_ndjson() {
                continue;
            }
            let said = at.views.workers.records.store.reader(session).and_then(|reader| count(&reader));
            match said {
                Ok(said) => {
                    counts.events += said.events;
                    counts.heartbeats += said.heartbeats;
                    counts.logs += said.logs;
                }
                Err(error) => tracing::warn!(%session, "what its agent said cannot be counted: {error}"),
            }
        }
        // What an agent does not report is unknown, and not nothing.
        let is_told = usage.input_tokens > 0 || usage.output_tokens > 0 || usage.cost.is_some();
        (is_told.then_some(usage), counts)
    }
}

/// Returns the outcome of an attempt, and what was said with it.
fn result(at: &Pipelines, stage: &StageConfig, session: &SessionState, how: Finish) -> (String, Payload) {
    let store = &*at.views.workers.records.store;
    let run = session.run.as_ref();
    let run_id = run.map(|run| run.run_id);
    let why = || store.reader(session.id).ok().and_then(|reader| run_end_reason(session, &reader));
    let completed = run.is_some_and(|run| run.end == Some(End::Completed));
    if session.provider.is_command() {
        let printed = run_id.map(|run| said::output(store, session.id, run)).unwrap_or_default();
        let last = printed.lines().next_back().map(str::to_owned);
        let passed = completed && how == Finish::AsSaid;
        let error = if passed { None } else { why() };
        let outcome = if passed { outcome::COMPLETED } else { outcome::FAILED };
        return (
            outcome.into(),
            Payload { findings: Some(printed), summary: last, error, ..Payload::default() },
        );
    }
    let message = run_id.and_then(|run| said::last_message(store, session.id, run));
    let summary = message.as_deref().map(|message| without_block(message).to_owned());
    match (how, completed) {
        (Finish::AsSaid, true) => match said::verdict(stage, message.as_deref()) {
            Ok(said) => (said.outcome, Payload { findings: said.findings, summary, ..Payload::default() }),
            Err(why) => failed(summary, why.to_string()),
        },
        (Finish::AsSaid, false) => failed(summary, why().unwrap_or_else(|| "its agent failed".into())),
        (Finish::Unclear, _) => {
            let why = said::verdict(stage, message.as_deref()).err().map(|why| why.to_string());
            failed(summary, format!("its agent did not report an outcome: {}", why.unwrap_or_default()))
        }
        (Finish::EndedByRule, _) => {
            failed(summary, format!("it was ended: {}", why().unwrap_or_else(|| "by a rule".into())))
        }
    }
}

/// Names the files that a stage changed which was to leave them alone.
fn changed_anyway(changed: &[ChangedFile]) -> String {
    let named: Vec<String> = changed.iter().take(NAMED).map(|file| shown(&file.path)).collect();
    let more = match changed.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("it changed files that it must not change: {}{more}; they stay as they are", named.join(", "))
}

fn illegal(why: rekindle_domain::event::IllegalTransition) -> ServiceError {
    ServiceError::caused_by(Code::Internal, why)
}
