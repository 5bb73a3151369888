//! What follows a finished step: another stage, in this round or the next one, or the end of the run. The outcome decides, by the
//! stages as they were when the run was started.

use std::fmt;

use super::outcome;
use super::state::{PipelineState, StepState};
use crate::event::{BudgetPart, StageConfig};
use crate::id::StepId;
use crate::task::compose::BUDGET_REASON;

/// What follows in a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Following {
    /// Its last step is not finished.
    Unfinished,
    /// This step.
    Step(StepId),
    /// Nothing: it has gone through all stages, which is not recorded yet.
    Complete,
    /// Nothing: it has failed, which is not recorded yet.
    Fail(FailReason),
}

/// Why a run fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FailReason {
    /// A step failed, and its stage says no more of that.
    StepFailed(StepId),
    /// An outcome of a step leads here.
    Outcome(StepId, String),
    /// There would be another round, and it has had as many as it may.
    Rounds(u32),
    /// What follows is a stage that there is not.
    NoStage(String),
    /// Nothing is left of this part of its budget.
    Budget(BudgetPart),
}

impl fmt::Display for FailReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FailReason::StepFailed(step) => write!(f, "step {step} failed"),
            FailReason::Outcome(step, outcome) => write!(f, "step {step} had the outcome {outcome}"),
            FailReason::Rounds(most) => write!(f, "max_rounds: it is not finished after round {most}"),
            FailReason::Budget(part) => write!(f, "{BUDGET_REASON}{}", part.name()),
            FailReason::NoStage(stage) => write!(f, "there is no stage {stage}"),
        }
    }
}

impl PipelineState {
    /// Returns what follows now.
    pub fn following(&self) -> Following {
        let Some(step) = self.last_step() else {
            let stages = self.started.as_ref().map(|started| started.stages.stages.as_slice());
            return match stages.unwrap_or_default() {
                [first, ..] => Following::Step(StepId { stage: first.name.clone(), round: 1 }),
                [] => Following::Unfinished,
            };
        };
        match &step.result {
            None => Following::Unfinished,
            Some(result) => match self.following_after(step, &result.outcome) {
                // Somebody wants the run to go on: what failed is done again, and that is a round of its own.
                Following::Fail(_) if self.is_reopened => self.jump(step, &step.id.stage),
                following => following,
            },
        }
    }

    /// Returns what follows a step if it comes to this outcome.
    pub fn following_after(&self, step: &StepState, outcome: &str) -> Following {
        let Some((place, stage)) = self.stage(&step.id.stage) else {
            return Following::Fail(FailReason::NoStage(step.id.stage.clone()));
        };
        match target(stage, outcome) {
            outcome::NEXT => match self.stages().get(place + 1) {
                Some(next) => Following::Step(StepId { stage: next.name.clone(), round: step.id.round }),
                None => Following::Complete,
            },
            outcome::FAIL if outcome == outcome::FAILED => {
                Following::Fail(FailReason::StepFailed(step.id.clone()))
            }
            outcome::FAIL => Following::Fail(FailReason::Outcome(step.id.clone(), outcome.to_owned())),
            stage => self.jump(step, stage),
        }
    }

    /// Returns the step of a stage that comes after another step. A jump back, or to the same stage, begins a round.
    fn jump(&self, step: &StepState, stage: &str) -> Following {
        let (Some((from, _)), Some((to, _))) = (self.stage(&step.id.stage), self.stage(stage)) else {
            return Following::Fail(FailReason::NoStage(stage.to_owned()));
        };
        let round = if to <= from { step.id.round.saturating_add(1) } else { step.id.round };
        if round > self.round_limit {
            return Following::Fail(FailReason::Rounds(self.round_limit));
        }
        Following::Step(StepId { stage: stage.to_owned(), round })
    }

    fn stages(&self) -> &[StageConfig] {
        self.started.as_ref().map_or(&[], |started| &started.stages.stages)
    }
}

/// Returns where an outcome of a stage leads: `next`, `fail`, or the name of a stage.
fn target<'a>(stage: &'a StageConfig, outcome: &str) -> &'a str {
    match stage.outcomes.get(outcome) {
        _ if outcome == outcome::FAILED => stage.on_fail.as_deref().unwrap_or(outcome::FAIL),
        Some(target) => target,
        None => outcome::NEXT,
    }
}
