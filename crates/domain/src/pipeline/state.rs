//! The state of a pipeline run: what its ledger amounts to.
//!
//! A copy shares everything with what it was copied from, so that taking one, for whoever looks or as the way back, costs nothing
//! however many steps there are.

use std::sync::Arc;

use rpds::VectorSync;

use super::outcome;
use crate::blob_id::BlobId;
use crate::budget::{Used, budget_notice};
use crate::chain::Position;
use crate::event::{
    AgentIdentity, BlobRef, Budget, BudgetNotice, BudgetScope, FilesTouched, OnCut, OnDrift, Options,
    PipelineConfig, ProjectConfig, Raw, StageConfig, StepCounts, StepCut, TaskConfig, Usage,
};
use crate::id::{PipelineId, RunId, SessionId, StepId, StepKey};
use crate::string_enum::string_enums;
use crate::time::Timestamp;

string_enums! {
    /// Where a pipeline run stands.
    #[derive(Default, schemars::JsonSchema)]
    pub enum RunStatus {
        /// It goes on, or waits for something.
        #[default]
        Running = "running",
        /// It has gone through all of its stages.
        Completed = "completed",
        /// A step failed and nothing was to follow, or there were too many rounds.
        Failed = "failed",
        /// Somebody ended it.
        Aborted = "aborted",
    }
}

/// A pipeline run.
#[derive(Debug, Clone)]
pub struct PipelineState {
    /// The id of its ledger.
    pub id: PipelineId,
    /// How far into the ledger the state has come.
    position: Position,
    /// What it goes by; none before its first record.
    pub started: Option<Arc<Started>>,
    /// Where it stands.
    pub status: RunStatus,
    /// How it came to its end, if it has.
    pub ended: Option<Arc<Ended>>,
    /// The steps before the last, in the order in which they were meant to be done: all of them are finished.
    earlier: VectorSync<Arc<StepState>>,
    /// The step that was meant to be done last: the only one that still changes.
    last: Option<Arc<StepState>>,
    /// Rounds that it may have.
    pub(super) round_limit: u32,
    /// It goes on after an end that its last step had come to.
    pub(super) is_reopened: bool,
    /// How often somebody had it go on after it had ended.
    pub(super) reopened: u32,
    /// What was said when most of its budget was used.
    pub(super) budget_noted: Option<BudgetNotice>,
    /// It came here from another home, and nobody has said yet that it goes on.
    pub is_imported: bool,
    /// What was asked and said, counted.
    pub counts: Counts,
}

/// What a run was started with.
#[derive(Debug, Clone, PartialEq)]
pub struct Started {
    /// When.
    pub at: Timestamp,
    /// The name of its pipeline.
    pub pipeline: String,
    /// The stages that it goes through.
    pub stages: PipelineConfig,
    /// The whole configuration.
    pub config: ProjectConfig,
    /// BLAKE3 of the file that it was read from.
    pub config_hash: BlobId,
    /// The task.
    pub task: TaskConfig,
    /// The name of the snapshot that the first step begins with.
    pub snapshot_id: String,
    /// The tree of that.
    pub tree: BlobId,
    /// Where its steps work.
    pub working_dir: String,
    /// The directory that it was asked for in.
    pub origin: String,
    /// What becomes of a step whose agent was cut, if somebody said that.
    pub on_cut: Option<OnCut>,
    /// What becomes of files that a step that has not begun does not expect, if somebody said that.
    pub on_drift: Option<OnDrift>,
    /// Results of other runs are not used for it.
    pub no_cache: bool,
    /// Settings of the sessions of its steps.
    pub options: Options,
    /// The most that all of its steps may use.
    pub budget: Option<Budget>,
    /// Who started it.
    pub by: String,
    /// The key that it was asked for with, as it is stored.
    pub idempotency_key: Option<String>,
}

/// The end of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// When.
    pub at: Timestamp,
    /// Why.
    pub reason: Option<String>,
    /// Who, if it was a person.
    pub by: Option<String>,
}

/// What was asked and said in a run, counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Commands: every attempt is one, and every reminder.
    pub commands: u64,
    /// Results that agents and checks came to; those of a cache are none.
    pub terminal_events: u64,
    /// What agents said of finished steps.
    pub said: StepCounts,
}

/// A step of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct StepState {
    /// The step.
    pub id: StepId,
    /// Its key.
    pub key: StepKey,
    /// The tree that it begins with.
    pub from: BlobId,
    /// Who is to work; nobody if a command checks.
    pub agent: Option<Box<AgentIdentity>>,
    /// The hash of the task's inputs.
    pub inputs_hash: BlobId,
    /// When it was meant to be done.
    pub intended_at: Timestamp,
    /// Attempts that have begun.
    pub attempts: u32,
    /// One of them was to go on in the session of the one before, and its agent came back without that.
    pub has_forgotten: bool,
    /// The latest of them, unless the step was meant anew since.
    pub attempt: Option<Attempt>,
    /// What was decided last about files that are not as expected.
    pub drift: Option<DriftNote>,
    /// What came of it, once it is finished.
    pub result: Option<StepResult>,
}

/// An attempt at a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt {
    /// The session in which it is done.
    pub session_id: SessionId,
    /// The latest run of it.
    pub run_id: RunId,
    /// When it began.
    pub began_at: Timestamp,
    /// Its agent was asked for an outcome that it had not named.
    pub reminded: bool,
    /// It goes on in the session of the one before.
    pub continues: bool,
    /// It goes on from one whose end nobody saw: what that left may be anybody's.
    pub after_unseen_end: bool,
    /// It came to nothing.
    pub cut: Option<Cut>,
}

/// The cut of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// When it was recorded.
    pub at: Timestamp,
    /// Why.
    pub reason: StepCut,
    /// A moment at which its agent was proven dead.
    pub died_at: Option<Timestamp>,
    /// The tree that it left.
    pub tree: Option<BlobId>,
}

/// A decision about files that are not as expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DriftNote {
    /// The tree that was found: the decision is about no other.
    pub found: BlobId,
    /// What was decided.
    pub decision: OnDrift,
}

/// What came of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct StepResult {
    /// When it was recorded.
    pub at: Timestamp,
    /// The outcome.
    pub outcome: String,
    /// What its agent said with that.
    pub payload: Option<Payload>,
    /// The tree that it left.
    pub to: BlobId,
    /// The files that are not what they were.
    pub files_touched: Option<Box<FilesTouched>>,
    /// What was used for it.
    pub usage: Option<Usage>,
    /// The result was there before.
    pub cached: bool,
    /// What its agent said, counted.
    pub counts: StepCounts,
}

/// What an agent said with an outcome.
#[derive(Debug, Clone, PartialEq)]
pub enum Payload {
    /// It is in the ledger.
    Inline(Raw<'static>),
    /// It is a blob.
    Blob(BlobRef),
}

impl StepState {
    /// Returns the attempt that goes on, if one does.
    pub fn open_attempt(&self) -> Option<&Attempt> {
        self.attempt.as_ref().filter(|attempt| attempt.cut.is_none() && self.result.is_none())
    }

    /// Returns how the latest attempt was cut, if it was and nothing has happened since.
    pub fn cut(&self) -> Option<Cut> {
        self.attempt.as_ref().and_then(|attempt| attempt.cut).filter(|_| self.result.is_none())
    }

    /// Returns the moment after which nothing of its cut attempts has changed a file, if one is known.
    pub fn proven_death(&self) -> Option<Timestamp> {
        let attempt = self.attempt.as_ref().filter(|attempt| !attempt.after_unseen_end)?;
        attempt.cut?.died_at
    }

    /// Returns how many attempts count: one whose agent only came back without its session was none.
    pub fn attempts_that_count(&self) -> u32 {
        self.attempts - u32::from(self.has_forgotten).min(self.attempts)
    }

    /// Tells whether it is finished and has failed.
    pub fn has_failed(&self) -> bool {
        self.result.as_ref().is_some_and(|result| result.outcome == outcome::FAILED)
    }
}

impl PipelineState {
    /// Returns the state of a run whose ledger has no record yet.
    pub fn empty(id: PipelineId) -> PipelineState {
        PipelineState {
            id,
            position: Position::default(),
            started: None,
            status: RunStatus::Running,
            ended: None,
            earlier: VectorSync::new_sync(),
            last: None,
            round_limit: 0,
            is_reopened: false,
            reopened: 0,
            budget_noted: None,
            is_imported: false,
            counts: Counts::default(),
        }
    }

    /// Returns how far into the ledger the state has come.
    pub fn position(&self) -> Position {
        self.position
    }

    /// Moves the state to a position without looking at the record there.
    pub fn set_position(&mut self, position: Position) {
        self.position = position;
    }

    /// Returns its steps, in the order in which they were meant to be done.
    pub fn steps(&self) -> impl DoubleEndedIterator<Item = &Arc<StepState>> {
        self.earlier.iter().chain(&self.last)
    }

    /// Returns the step that was meant to be done last.
    pub fn last_step(&self) -> Option<&Arc<StepState>> {
        self.last.as_ref()
    }

    /// Adds a step that is to be done; the one before it is finished.
    pub(super) fn push_step(&mut self, step: StepState) {
        if let Some(before) = self.last.replace(Arc::new(step)) {
            self.earlier.push_back_mut(before);
        }
    }

    /// Puts a step in the place of the last.
    pub(super) fn replace_last(&mut self, step: StepState) {
        self.last = Some(Arc::new(step));
    }

    /// Returns the last step to change it; whoever shares it keeps it as it was.
    pub(super) fn last_mut(&mut self) -> Option<&mut StepState> {
        self.last.as_mut().map(Arc::make_mut)
    }

    /// Returns the step that is not finished, if there is one.
    pub fn current_step(&self) -> Option<&Arc<StepState>> {
        self.last_step().filter(|step| step.result.is_none())
    }

    /// Returns what came last of a stage.
    pub fn latest_result(&self, stage: &str) -> Option<(&StepState, &StepResult)> {
        let of_stage = self.steps().rev().filter(|step| step.id.stage == stage);
        of_stage.filter_map(|step| Some((&**step, step.result.as_ref()?))).next()
    }

    /// Returns the round that it is in.
    pub fn round(&self) -> u32 {
        self.last_step().map_or(1, |step| step.id.round)
    }

    /// Returns the tree that its directory is expected to have while nobody works in it.
    pub fn expected_tree(&self) -> Option<BlobId> {
        match self.last_step() {
            Some(step) => Some(step.result.as_ref().map_or(step.from, |result| result.to)),
            None => self.started.as_ref().map(|started| started.tree),
        }
    }

    /// Returns the most that its steps may use: what it was started with, and as much again for each time that it was reopened.
    pub fn budget(&self) -> Option<Budget> {
        let Budget { tokens, cost, wall_s, turns } = self.started.as_ref()?.budget?;
        let times = u64::from(self.reopened) + 1;
        let often = |most: Option<u64>| most.map(|most| most.saturating_mul(times));
        let cost = cost.map(|cost| cost * times as f64);
        Some(Budget { tokens: often(tokens), cost, wall_s: often(wall_s), turns: often(turns) })
    }

    /// Tells that most of its budget is used, if that is so and was not said yet.
    pub fn budget_notice(&self, used: &Used) -> Option<BudgetNotice> {
        let is_asked = self.status == RunStatus::Running && self.budget_noted.is_none();
        let notice = budget_notice(BudgetScope::Run, &self.budget()?, used)?;
        (is_asked && !notice.exceeded).then_some(notice)
    }

    /// Returns a stage that it goes through, and its place among them.
    pub fn stage(&self, name: &str) -> Option<(usize, &StageConfig)> {
        self.started.as_ref()?.stages.stage(name)
    }
}

impl PartialEq for PipelineState {
    /// What it says of the run; how it is held in memory does not count.
    fn eq(&self, other: &PipelineState) -> bool {
        (self.id, self.position, self.status, self.round_limit, self.is_reopened, self.reopened, self.counts)
            == (
                other.id,
                other.position,
                other.status,
                other.round_limit,
                other.is_reopened,
                other.reopened,
                other.counts,
            )
            && (self.is_imported, self.budget_noted) == (other.is_imported, other.budget_noted)
            && (&self.started, &self.ended) == (&other.started, &other.ended)
            && self.steps().eq(other.steps())
    }
}
