//! What is to be done with a pipeline run: one step, from what its ledger says and what was found.
//!
//! The same question is asked at every start and after everything that happens, so that there is one answer to it and it does not
//! matter who died when. The order is always: take over or read what an agent left, prove it gone, and only then touch files.

use std::time::Duration;

use super::evidence::{
    AgentFound, CacheFound, Continuation, Evidence, RunFound, SignsOfLife, TreeFound, Verdict,
};
use super::following::{FailReason, Following};
use super::state::{Cut, PipelineState, RunStatus, StepState};
use crate::blob_id::BlobId;
use crate::event::{OnCut, OnDrift, ResumePolicy, StepCut};
use crate::id::StepId;

/// Attempts at one step that begin by themselves: what was cut three times is a person's to look at.
pub const MOST_ATTEMPTS: u32 = 3;

/// The next thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextStep {
    /// Record that this step is to be done.
    Intend(StepId),
    /// Begin the first attempt at the current step, or the next one with the files as they are.
    Begin,
    /// Make the directory what this tree says, then record that the step has the result of a cache.
    UseCached(BlobId),
    /// Nothing, until this is over.
    Await(Waits),
    /// Take over the living agent, in whatever it is doing.
    Adopt,
    /// Read what the agent left, and have its session record its end.
    Harvest,
    /// End the agent, with everything that it started.
    EndAgent,
    /// Ask the agent for the outcome that it has not named.
    Remind,
    /// Capture the directory, and ask again with what is found.
    Capture,
    /// Record that the attempt was cut, with the tree that it left.
    Interrupt(StepCut),
    /// Record what is done about files that are not as expected, before any of them is touched.
    Decide(Decision),
    /// Make the directory the tree that the step begins with, then begin an attempt in a new session.
    RestoreAndRetry(BlobId),
    /// Begin an attempt in the same session, with the files as they are.
    ContinueWithContext,
    /// Record the step's result and what follows.
    Finish(Finish),
    /// Record that the run has completed all of its stages.
    Complete,
    /// Record that the run has failed.
    Fail(FailReason),
    /// Nothing, until something happens.
    Rest(Rest),
}

/// What an attempt comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// What its agent said, or its command's exit code.
    AsSaid,
    /// It has failed: its agent did not say what came of it.
    Unclear,
    /// It has failed: it used more than it may.
    EndedByRule,
}

/// A decision about files that are not as expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// What is done.
    pub what: OnDrift,
    /// The step begins with the files as they are: it is meant anew, with their tree and another key.
    pub intend_anew: bool,
}

/// What a run waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waits {
    /// Its agent.
    Agent,
    /// A person, whom its agent has asked.
    Person,
    /// An agent of which nothing can be told.
    Silence,
    /// Its agent, whose heartbeats are missing.
    Heartbeat,
    /// Its agent, of which nothing was heard for so long that somebody should look.
    Stalled,
    /// Another run that works at the same.
    SameKey,
    /// The directory: somebody else works there.
    Directory,
    /// A place: as many run as may.
    Place,
    /// This time.
    Time(Duration),
}

/// Why a run does not go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// It has no ledger.
    NotStarted,
    /// It is done.
    Completed,
    /// It has failed.
    Failed,
    /// Somebody ended it.
    Aborted,
    /// Somebody else holds it.
    HeldElsewhere,
    /// It was told to ask when a step is cut.
    Asks,
    /// Its daemon ended, and it was told to ask before it goes on under another.
    Left,
    /// A person cancelled its step.
    Cancelled,
    /// Its step was cut too often.
    TooManyAttempts,
    /// The program of its check could not be started.
    NotLaunched,
    /// Its files are not as expected.
    Drift,
    /// Its directory is not there, or cannot be captured.
    NoDirectory,
    /// Only a caller has what the agent needs in its environment.
    NoEnvironment,
    /// What it would be restored to is not there.
    ManifestMissing,
    /// It came here from another home, and waits for somebody to say that it goes on.
    Imported,
}

/// Decides what is to be done next.
pub fn next_step(state: &PipelineState, about: &Evidence) -> NextStep {
    let rest = match state.status {
        _ if about.is_held_elsewhere => Some(Rest::HeldElsewhere),
        _ if state.started.is_none() => Some(Rest::NotStarted),
        RunStatus::Completed => Some(Rest::Completed),
        RunStatus::Failed => Some(Rest::Failed),
        RunStatus::Aborted => Some(Rest::Aborted),
        // Nothing starts by itself because a file was taken in.
        RunStatus::Running if state.is_imported && about.word.is_none() => Some(Rest::Imported),
        RunStatus::Running => None,
    };
    if let Some(rest) = rest {
        return NextStep::Rest(rest);
    }
    match (state.following(), state.current_step()) {
        (Following::Step(step), _) => NextStep::Intend(step),
        // That nothing is pending does not make it so: the outcomes of all stages do.
        (Following::Complete, _) => NextStep::Complete,
        (Following::Fail(why), _) => NextStep::Fail(why),
        (Following::Unfinished, Some(step)) if step.open_attempt().is_some() => {
            with_attempt(state, step, about)
        }
        (Following::Unfinished, Some(step)) => without_attempt(state, step, about),
        (Following::Unfinished, None) => NextStep::Rest(Rest::NotStarted),
    }
}

/// An attempt has begun, and neither its result nor its end is recorded.
fn with_attempt(state: &PipelineState, step: &StepState, about: &Evidence) -> NextStep {
    match about.agent {
        AgentFound::Unread => return NextStep::Harvest,
        AgentFound::Lives => return NextStep::Adopt,
        AgentFound::Silent => return NextStep::Await(Waits::Silence),
        AgentFound::Followed | AgentFound::Gone => {}
    }
    let end = match about.run {
        // The agent is gone, and its session does not know yet.
        RunFound::Open | RunFound::WaitsForPerson if about.agent == AgentFound::Gone => {
            return NextStep::Harvest;
        }
        RunFound::Open | RunFound::WaitsForPerson if about.spent.is_some() => return NextStep::EndAgent,
        // Whatever it says: it is done again, with the files of before.
        _ if is_done_again(state, about) => Err(StepCut::NotContinued),
        RunFound::WaitsForPerson => return NextStep::Await(Waits::Person),
        RunFound::Open if about.is_overdue => return NextStep::EndAgent,
        RunFound::Open => {
            return NextStep::Await(match about.signs {
                SignsOfLife::Heard => Waits::Agent,
                SignsOfLife::Missing => Waits::Heartbeat,
                SignsOfLife::Stalled => Waits::Stalled,
            });
        }
        RunFound::Completed(Verdict::Unclear) if !is_reminded(step) => {
            return match held_after_start(state, about) {
                Some(rest) => NextStep::Rest(rest),
                None => attempt(about, NextStep::Remind),
            };
        }
        RunFound::Completed(Verdict::Clear) | RunFound::Failed => Ok(Finish::AsSaid),
        RunFound::Completed(Verdict::Unclear | Verdict::Lost) => Ok(Finish::Unclear),
        RunFound::EndedByRule => Ok(Finish::EndedByRule),
        RunFound::Cancelled => Err(StepCut::Cancelled),
        RunFound::Interrupted => Err(StepCut::AgentGone),
        RunFound::TryLater => Err(StepCut::TryLater),
        RunFound::NotLaunched => Err(StepCut::NotLaunched),
    };
    // What it left counts once nothing of it can change that any more.
    if about.agent == AgentFound::Followed {
        return NextStep::EndAgent;
    }
    match (about.tree, end) {
        (TreeFound::NotCaptured, _) => NextStep::Capture,
        (TreeFound::Unreadable, Ok(_)) => NextStep::Rest(Rest::NoDirectory),
        (TreeFound::Captured { .. }, Ok(finish)) => NextStep::Finish(finish),
        (TreeFound::Captured { .. } | TreeFound::Unreadable, Err(cut)) => NextStep::Interrupt(cut),
    }
}

/// Tells whether a step that nobody works at waits for a place before anybody looks at its directory. One whose files are known not to be as
/// expected rests until somebody says more, and one whose result is there already needs nobody to work.
pub fn asks_for_place(step: &StepState, about: &Evidence) -> bool {
    let is_stopped = step.drift.is_some_and(|drift| drift.decision == OnDrift::Stop) && about.word.is_none();
    !about.has_place && !is_stopped && !matches!(about.cache, CacheFound::Hit(_))
}

/// Tells whether an attempt is worth nothing because its agent came back without its session: it goes on all the same only where that
/// was said at the start.
pub fn is_done_again(state: &PipelineState, about: &Evidence) -> bool {
    let wanted = state.started.as_ref().and_then(|started| started.on_cut);
    about.has_forgotten && wanted != Some(OnCut::Continue)
}

fn is_reminded(step: &StepState) -> bool {
    step.attempt.as_ref().is_some_and(|attempt| attempt.reminded)
}

/// The step is to be done, and nobody works at it.
fn without_attempt(state: &PipelineState, step: &StepState, about: &Evidence) -> NextStep {
    // A cut is recorded when its agent is proven gone. If that is not so, no file may be touched.
    match about.agent {
        AgentFound::Gone => {}
        AgentFound::Unread => return NextStep::Harvest,
        AgentFound::Silent => return NextStep::Await(Waits::Silence),
        AgentFound::Followed | AgentFound::Lives => return NextStep::EndAgent,
    }
    // What it would be finished with is not there any more; a result that others came to costs nothing.
    if let Some(part) = about.spent.filter(|_| !matches!(about.cache, CacheFound::Hit(_))) {
        return NextStep::Fail(FailReason::Budget(part));
    }
    if let Some(rest) = step.cut().and_then(|cut| held_after_cut(state, step, cut, about)) {
        return NextStep::Rest(rest);
    }
    if let Some(rest) = held_after_start(state, about) {
        return NextStep::Rest(rest);
    }
    if !about.is_directory_free {
        return NextStep::Await(Waits::Directory);
    }
    if about.cache == CacheFound::BeingMade {
        return NextStep::Await(Waits::SameKey);
    }
    if !about.retry_in.is_zero() {
        return NextStep::Await(Waits::Time(about.retry_in));
    }
    // Nobody looks at a directory in which somebody else may be at work.
    if asks_for_place(step, about) {
        return attempt(about, NextStep::Begin);
    }
    let files = match about.tree {
        TreeFound::NotCaptured => return NextStep::Capture,
        TreeFound::Unreadable => return NextStep::Rest(Rest::NoDirectory),
        TreeFound::Captured { tree, after_cut, unknown_author } => Files { tree, after_cut, unknown_author },
    };
    // What lies between two trees because we were interrupted on the way is nobody's change.
    let is_ours = |wanted: BlobId| files.tree == wanted || about.restoring == Some(wanted);
    if let CacheFound::Hit(to) = about.cache
        && (is_ours(to) || files.are_as_expected(step) || is_restoring(step, about, files))
    {
        return NextStep::UseCached(to);
    }
    let continues = step.cut().is_some() && on_cut(state, step, about) == OnCut::Continue;
    if continues && !is_restoring(step, about, files) {
        return match decided(step, about, files) {
            // Whatever else it finds, the agent is told.
            _ if files.after_cut == 0 => attempt(about, NextStep::ContinueWithContext),
            Decided::Now(OnDrift::Accept) => attempt(about, NextStep::ContinueWithContext),
            decided => carry_out(step, about, decided, false),
        };
    }
    if files.tree == step.from && step.cut().is_none() {
        return attempt(about, NextStep::Begin);
    }
    if files.are_as_expected(step) || is_restoring(step, about, files) {
        return restore(step, about);
    }
    carry_out(step, about, decided(step, about, files), true)
}

/// Files as they were found.
#[derive(Debug, Clone, Copy)]
struct Files {
    tree: BlobId,
    after_cut: u64,
    unknown_author: u64,
}

impl Files {
    /// Tells whether the files are what the step begins with, or differ from that by what its cut attempt did alone.
    fn are_as_expected(self, step: &StepState) -> bool {
        self.tree == step.from || step.cut().is_some() && self.after_cut == 0 && self.unknown_author == 0
    }
}

/// Tells whether the files are on their way to what the step begins with: that was decided, and has begun.
fn is_restoring(step: &StepState, about: &Evidence, files: Files) -> bool {
    about.restoring == Some(step.from)
        || step.drift.is_some_and(|drift| drift.decision == OnDrift::Restore && drift.found == files.tree)
}

/// Returns why a run does not go on by itself under another daemon than it was begun under.
fn held_after_start(state: &PipelineState, about: &Evidence) -> Option<Rest> {
    let policy = state.started.as_ref().map(|started| started.options.resume).unwrap_or_default();
    (about.is_left && about.word.is_none() && policy != ResumePolicy::Auto).then_some(Rest::Left)
}

/// Returns why a step that was cut does not go on by itself.
fn held_after_cut(state: &PipelineState, step: &StepState, cut: Cut, about: &Evidence) -> Option<Rest> {
    // Somebody said that it is to go on.
    if about.word.is_some() {
        return None;
    }
    let asks = state.started.as_ref().is_some_and(|started| started.on_cut == Some(OnCut::Ask));
    match cut.reason {
        // A cancel is never undone (I13).
        StepCut::Cancelled => Some(Rest::Cancelled),
        // The same program would fail in the same way: somebody has to install it, or to correct PATH.
        StepCut::NotLaunched if is_check(state, step) => Some(Rest::NotLaunched),
        _ if step.attempts_that_count() >= MOST_ATTEMPTS => Some(Rest::TooManyAttempts),
        _ if asks => Some(Rest::Asks),
        _ => None,
    }
}

/// Tells whether a command checks at a step, and no agent works.
fn is_check(state: &PipelineState, step: &StepState) -> bool {
    state.stage(&step.id.stage).is_some_and(|(_, stage)| stage.check.is_some())
}

/// Returns what becomes of a cut step: what was said at the start of the run, as far as its agent can do that.
fn on_cut(state: &PipelineState, step: &StepState, about: &Evidence) -> OnCut {
    let wanted = state.started.as_ref().and_then(|started| started.on_cut);
    let able = match wanted {
        Some(OnCut::Restore) => return OnCut::Restore,
        Some(OnCut::Continue) => Continuation::Told,
        // It has been tried: this agent does not bring its session back.
        Some(OnCut::Ask) | None if step.has_forgotten => return OnCut::Restore,
        // Whoever was asked said that it is to go on, and no more.
        Some(OnCut::Ask) | None => Continuation::Native,
    };
    if about.continuation >= able { OnCut::Continue } else { OnCut::Restore }
}

/// What is decided about files that are not as expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Decided {
    /// It is recorded, and about these very files.
    Now(OnDrift),
    /// It is to be recorded.
    ToRecord(OnDrift),
}

fn decided(step: &StepState, about: &Evidence, files: Files) -> Decided {
    let recorded = step.drift.filter(|drift| drift.found == files.tree).map(|drift| drift.decision);
    match (recorded, about.word.unwrap_or_default()) {
        (Some(OnDrift::Stop), OnDrift::Stop) => Decided::Now(OnDrift::Stop),
        (None | Some(OnDrift::Stop), word) => Decided::ToRecord(word),
        (Some(recorded), _) => Decided::Now(recorded),
    }
}

fn carry_out(step: &StepState, about: &Evidence, decided: Decided, intend_anew: bool) -> NextStep {
    match decided {
        Decided::ToRecord(OnDrift::Accept) | Decided::Now(OnDrift::Accept) => {
            NextStep::Decide(Decision { what: OnDrift::Accept, intend_anew })
        }
        // Whether that can be done is asked before it is promised.
        Decided::ToRecord(OnDrift::Restore) if !about.has_manifest => NextStep::Rest(Rest::ManifestMissing),
        Decided::ToRecord(what) => NextStep::Decide(Decision { what, intend_anew: false }),
        Decided::Now(OnDrift::Restore) => restore(step, about),
        Decided::Now(OnDrift::Stop) => NextStep::Rest(Rest::Drift),
    }
}

fn restore(step: &StepState, about: &Evidence) -> NextStep {
    if about.has_manifest {
        attempt(about, NextStep::RestoreAndRetry(step.from))
    } else {
        NextStep::Rest(Rest::ManifestMissing)
    }
}

/// Nothing is begun, and no file touched for it, without what the agent needs and a place for it.
fn attempt(about: &Evidence, step: NextStep) -> NextStep {
    match (about.has_environment, about.has_place) {
        (false, _) => NextStep::Rest(Rest::NoEnvironment),
        (true, false) => NextStep::Await(Waits::Place),
        (true, true) => step,
    }
}
