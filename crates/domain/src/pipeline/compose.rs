//! The records of a pipeline run, composed: which of them make up each append, so that a crash leaves all of one or nothing.

use std::borrow::Cow;

use super::following::{FailReason, Following};
use super::key::KeyError;
use super::state::{PipelineState, StepState};
use crate::blob_id::BlobId;
use crate::event::{
    AgentIdentity, BudgetPart, IllegalTransition, OnDrift, PipelineAborted, PipelineCompleted, PipelineDrift,
    PipelineFailed, PipelineReopened, PipelineStarted, StepBegan, StepFinished, StepIntended,
};
use crate::id::{PipelineId, RunId, SessionId, StepId, StepKey};
use crate::line::Draft;
use crate::time::Timestamp;

/// The most bytes of a payload that is in the ledger itself; a larger one is a blob.
pub const MAX_INLINE_PAYLOAD: usize = 64 << 10;

/// What a step that is to be done begins with, and its key.
#[derive(Debug, Clone, PartialEq)]
pub struct Intention {
    /// Its key.
    pub key: StepKey,
    /// The tree that it begins with.
    pub from: BlobId,
    /// Who is to work; nobody if a command checks.
    pub agent: Option<AgentIdentity>,
    /// The hash of the task's inputs.
    pub inputs_hash: BlobId,
}

/// Composes the record of a step that is to be done.
pub fn intend(step_id: StepId, intention: Intention) -> Draft {
    let Intention { key, from, agent, inputs_hash } = intention;
    StepIntended {
        stage: Cow::Owned(step_id.stage.clone()),
        round: step_id.round,
        action: Cow::Owned(step_id.stage.clone()),
        step_id,
        key,
        from,
        agent: agent.map(Box::new),
        inputs_hash,
    }
    .into()
}

/// Composes the start of a run: `pipeline.started` + the first `step.intended`.
pub fn start(
    id: PipelineId,
    started: PipelineStarted<'static>,
    first: Intention,
) -> Result<Vec<Draft>, IllegalTransition> {
    after(&PipelineState::empty(id), vec![started.into()], |_, _| Ok(first))
}

/// Composes the beginning of an attempt: it belongs into one append with the first records of its run.
pub fn begin(step: &StepState, session_id: SessionId, run_id: RunId) -> Draft {
    let attempt = step.attempts + 1;
    StepBegan { step_id: step.id.clone(), session_id, run_id, attempt, reminder: false }.into()
}

/// Composes that an agent is asked for its outcome: it belongs into one append with the message to its session and the run of that.
/// Nothing if no attempt goes on.
pub fn remind(step: &StepState, run_id: RunId) -> Option<Draft> {
    let session_id = step.open_attempt()?.session_id;
    let attempt = step.attempts;
    Some(StepBegan { step_id: step.id.clone(), session_id, run_id, attempt, reminder: true }.into())
}

/// Composes a result and what follows it: `step.finished` + the next `step.intended`, `pipeline.completed` or `pipeline.failed`. What a
/// step left may be without a file that is an input of the next one: that has no key, and the run fails.
pub fn finish(
    state: &PipelineState,
    finished: StepFinished<'static>,
    intention: impl FnOnce(&PipelineState, &StepId) -> Result<Intention, KeyError>,
) -> Result<Vec<Draft>, IllegalTransition> {
    after(state, vec![finished.into()], intention)
}

/// Composes a result behind which nothing is left of a part of the run's budget: `step.finished` + `pipeline.failed`, unless all is done.
pub fn finish_spent(
    state: &PipelineState,
    finished: StepFinished<'static>,
    part: BudgetPart,
) -> Result<Vec<Draft>, IllegalTransition> {
    let mut then = state.clone();
    then.apply(Timestamp::default(), &finished.clone().into())?;
    let end = match then.following() {
        Following::Complete => PipelineCompleted { reason: None, by: None }.into(),
        _ => fail(FailReason::Budget(part).to_string()),
    };
    Ok(vec![finished.into(), end])
}

/// Composes what follows a result that is recorded alone: a ledger that another version wrote, or of which the end was cut.
pub fn follow(
    state: &PipelineState,
    intention: impl FnOnce(&PipelineState, &StepId) -> Result<Intention, KeyError>,
) -> Result<Vec<Draft>, IllegalTransition> {
    after(state, Vec::new(), intention)
}

/// Composes a decision about files that are not as expected; one to take them as they are with the step meant anew, if it begins with
/// them: `pipeline.drift` + `step.intended`.
pub fn decide_drift(drift: PipelineDrift<'static>, anew: Option<Intention>) -> Vec<Draft> {
    let again = anew.filter(|_| drift.decision == OnDrift::Accept);
    let again = again.map(|intention| intend(drift.step_id.clone(), intention));
    [drift.into()].into_iter().chain(again).collect()
}

/// Composes the end that a person puts to a run. It belongs into one append with the cancel of the session of the step that goes on.
pub fn abort(reason: Option<&str>, by: &str) -> Draft {
    PipelineAborted { reason: reason.map(owned), by: Some(owned(by)) }.into()
}

/// Composes that a run goes on after it had failed or was aborted: `pipeline.reopened`, and the next `step.intended` unless one is
/// not finished.
pub fn reopen(
    state: &PipelineState,
    reason: Option<&str>,
    by: &str,
    intention: impl FnOnce(&PipelineState, &StepId) -> Result<Intention, KeyError>,
) -> Result<Vec<Draft>, IllegalTransition> {
    let reopened = PipelineReopened { reason: reason.map(owned), by: Some(owned(by)) };
    after(state, vec![reopened.into()], intention)
}

/// Adds to some records what follows them; what a step begins with is asked of the state behind them.
fn after(
    state: &PipelineState,
    mut records: Vec<Draft>,
    intention: impl FnOnce(&PipelineState, &StepId) -> Result<Intention, KeyError>,
) -> Result<Vec<Draft>, IllegalTransition> {
    let mut then = state.clone();
    for record in &records {
        // The time of a record decides nothing.
        then.apply(Timestamp::default(), &record.event)?;
    }
    records.extend(match then.following() {
        Following::Unfinished => None,
        Following::Step(step) => Some(match intention(&then, &step) {
            Ok(intention) => intend(step, intention),
            Err(why) => fail(why.to_string()),
        }),
        Following::Complete => Some(PipelineCompleted { reason: None, by: None }.into()),
        Following::Fail(why) => Some(fail(why.to_string())),
    });
    Ok(records)
}

fn fail(why: String) -> Draft {
    PipelineFailed { reason: Some(why.into()), by: None }.into()
}

fn owned(text: &str) -> Cow<'static, str> {
    Cow::Owned(text.to_owned())
}
