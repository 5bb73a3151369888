//! What is to be done with a session: one step, from what its log says and what was found of its agent.
//!
//! The same question is asked at every start, in every sweep and after every step, so that there is one answer to it
//! and it does not matter who died when. Whoever carries out a step appends to the log, and asks again.

use std::time::Duration;

use crate::checkpoint::due;
use crate::event::{CancelReason, InterruptReason, OnUncertain, ResumePolicy};
use crate::id::MessageId;
use crate::projector::HolderProof;
use crate::session::{End, Interruption, Run, SessionState};

/// Automatic attempts after the first: the third interruption is a person's to look at.
pub const MOST_CONTINUATIONS: u32 = 2;

/// Launches of one run whose agent came to nothing before its prompt reached it.
pub const MOST_LAUNCHES: u32 = 3;

/// How long the first continuation waits; each later one four times as long.
const FIRST_BACK_OFF: Duration = Duration::from_millis(250);

/// How long a launch that something ran out for waits; each later one twice as long, up to the second.
const FIRST_SHORTAGE: Duration = Duration::from_millis(250);
const LONGEST_SHORTAGE: Duration = Duration::from_secs(5);

/// A launch that came to nothing because something ran out: room on the disk, descriptors, processes, or a disk that does not
/// take what is written. It says nothing of the agent, and comes back by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shortage {
    /// Launches in a row for which it was lacking, this one included.
    pub launches: u32,
    /// How long ago the last one was.
    pub ago: Duration,
}

/// The presence of a session's agent, as its recorded holder was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentPresence {
    /// None is recorded, or its end is.
    Nobody,
    /// Its lock is held.
    Lives,
    /// Its lock is held by a holder that does not answer, or nothing can be told: unknown is not dead (I9).
    Silent,
    /// Its lock is free, and what it left can be read.
    Dead,
    /// Nothing is left of it, and its processes are proven gone.
    Vanished {
        /// The machine was started again since.
        rebooted: bool,
    },
}

impl AgentPresence {
    /// Returns what this proves of the holder; nothing of one that may be recorded in a moment.
    pub fn proof(self) -> Option<HolderProof> {
        match self {
            AgentPresence::Lives => Some(HolderProof::Lock),
            AgentPresence::Silent => Some(HolderProof::Unresponsive),
            AgentPresence::Dead | AgentPresence::Vanished { .. } => Some(HolderProof::Gone),
            AgentPresence::Nobody => None,
        }
    }
}

/// What else is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Circumstances {
    /// What was found of the holder.
    pub found: AgentPresence,
    /// The working directory is there.
    pub has_directory: bool,
    /// Every variable that the session's agent had is at hand.
    pub has_environment: bool,
    /// Launches of the open run that came to nothing, through the fault of the agent or its holder.
    pub failed_launches: u32,
    /// The last launch came to nothing because something ran out.
    pub shortage: Option<Shortage>,
    /// How long ago the interruption was noticed.
    pub interrupted_for: Duration,
    /// How long the agent's own session must not be brought back yet, because that would destroy it.
    pub load_in: Duration,
    /// Checkpoints of its directory are taken.
    pub takes_checkpoints: bool,
}

/// Why a session that was cut does not go on by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// It was told to ask.
    Asks,
    /// It was told not to.
    Never,
    /// Side effects are uncertain.
    Uncertain,
    /// A command was cut, which can only be run again.
    Command,
    /// It was tried often enough.
    Budget,
    /// Nobody answered in time.
    TimedOut,
    /// It had asked something, and nobody had answered yet.
    Unanswered,
    /// The working directory is gone.
    NoDirectory,
    /// Only a caller has what the agent needs in its environment.
    NoEnvironment,
}

impl Held {
    /// Returns what people are told.
    pub fn words(self) -> &'static str {
        match self {
            Held::Asks => "it waits for your decision: resume it, or send a message",
            Held::Never => "it does not continue automatically: resume it, or send a message",
            Held::Uncertain => {
                "tool calls may or may not have taken effect: check them, then resume it or send a message"
            }
            Held::Command => {
                "its command was interrupted, and can only run again from the beginning: check what it did, then resume it or send a message"
            }
            Held::Budget => "it was continued twice and interrupted again: resume it when you know why",
            Held::TimedOut => "no answer came in time: send a message to continue",
            Held::Unanswered => {
                "its agent died while it had a question: answer it, resume the session to be asked again, or send a message"
            }
            Held::NoDirectory => "its working directory does not exist",
            Held::NoEnvironment => {
                "its agent needs environment variables that only your shell has: resume it, or send a message"
            }
        }
    }
}

/// The next thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Take over the living agent, in whatever it is doing.
    Adopt,
    /// End the living agent: nobody wants it any more.
    Dismiss,
    /// Read what the dead holder left, and record its end.
    Harvest,
    /// Record that everything of the agent is gone, and the run with it if there is one.
    Bury {
        /// Why its run was cut.
        reason: InterruptReason,
    },
    /// Take the checkpoints that are due: no agent is launched and no run begun before they are recorded.
    Checkpoint,
    /// The run's prompt has reached no agent: launch one, the same run goes on.
    Launch,
    /// The run is to end, and has no agent that could say so.
    Cancel,
    /// The run cannot be begun.
    Fail(Held),
    /// An interrupted run is continued by a new one.
    Continue {
        /// Which attempt that is.
        attempt: u32,
    },
    /// The oldest prompt in the queue gets its turn.
    Begin(MessageId),
    /// Its directory is to be what a tree says before anything begins in it.
    RestoreFiles,
    /// Its worktree is to be made before its first agent is launched.
    AddWorktree,
    /// The deletion is recorded: remove the files.
    Remove,
    /// Ask again then.
    Wait(Duration),
    /// The agent's own session cannot be brought back before then.
    AwaitLoad(Duration),
    /// Nothing, until something happens.
    Rest(Option<Held>),
}

/// Decides what is to be done next.
pub fn next_step(state: &SessionState, about: &Circumstances) -> Step {
    match about.found {
        AgentPresence::Lives if state.deleted || state.closed => return Step::Dismiss,
        AgentPresence::Lives => return Step::Adopt,
        AgentPresence::Silent => return Step::Wait(Duration::from_secs(1)),
        AgentPresence::Dead => return Step::Harvest,
        // Its journal was removed before it, or by somebody else: there is nothing to record of a session that is to go.
        AgentPresence::Vanished { .. } if state.deleted => return Step::Remove,
        AgentPresence::Vanished { rebooted } => {
            use InterruptReason::{MachineRestart, ProcessRestart};
            return Step::Bury { reason: if rebooted { MachineRestart } else { ProcessRestart } };
        }
        AgentPresence::Nobody => {}
    }
    if state.deleted {
        return Step::Remove;
    }
    if state.restoring.is_some() {
        // What the run before left is captured first: afterwards nobody could tell.
        let owes_end = about.takes_checkpoints && due(state).end.is_some();
        return if owes_end { Step::Checkpoint } else { Step::RestoreFiles };
    }
    if let Some(run) = state.open_run() {
        return with_open_run(state, run, about);
    }
    if about.takes_checkpoints && !due(state).is_nothing() {
        return Step::Checkpoint;
    }
    if let (Some(run), Some(cut)) = (&state.run, &state.recovery.interruption) {
        return after_interruption(state, run, cut, about);
    }
    next_in_queue(state)
}

/// The oldest prompt that waits has its turn, if there is one.
fn next_in_queue(state: &SessionState) -> Step {
    state.queue.first().filter(|_| !state.closed).map_or(Step::Rest(None), |message| Step::Begin(*message))
}

/// Nobody has the run: had its prompt reached an agent, that one's end would have ended the run.
fn with_open_run(state: &SessionState, run: &Run, about: &Circumstances) -> Step {
    if run.cancel.is_some() {
        return Step::Cancel;
    }
    if state.missing_worktree().is_some() {
        return Step::AddWorktree;
    }
    if !about.has_directory {
        return Step::Fail(Held::NoDirectory);
    }
    if about.failed_launches >= MOST_LAUNCHES {
        return Step::Fail(Held::Budget);
    }
    // No room is a reason to wait, however long, and none to fail.
    match about.shortage.and_then(still_to_wait) {
        Some(left) => Step::Wait(left),
        None if !about.load_in.is_zero() => Step::AwaitLoad(about.load_in),
        // As late as can be: whoever waits for variables may change the directory meanwhile.
        None if about.takes_checkpoints && about.has_environment && !due(state).is_nothing() => {
            Step::Checkpoint
        }
        None => Step::Launch,
    }
}

/// Returns how long the next launch still waits after one that something ran out for.
fn still_to_wait(shortage: Shortage) -> Option<Duration> {
    let doubled = FIRST_SHORTAGE * 2_u32.saturating_pow(shortage.launches.saturating_sub(1).min(10));
    doubled.min(LONGEST_SHORTAGE).checked_sub(shortage.ago).filter(|left| !left.is_zero())
}

fn after_interruption(state: &SessionState, run: &Run, cut: &Interruption, about: &Circumstances) -> Step {
    // A cancel is never undone (I13).
    if run.cancel.is_some_and(|why| why != CancelReason::WaitTimeout) {
        return next_in_queue(state);
    }
    let uncertain = !cut.uncertain.is_empty() || cut.uncertain_turn;
    let waited = matches!(run.end, Some(End::Interrupted { waiting: true, .. }));
    let timed_out = matches!(run.end, Some(End::Interrupted { reason: InterruptReason::WaitTimeout, .. }));
    let held = match state.options.resume {
        _ if state.closed => None,
        _ if timed_out => Some(Held::TimedOut),
        ResumePolicy::Ask => Some(Held::Asks),
        ResumePolicy::Never => Some(Held::Never),
        ResumePolicy::Auto if run.attempt > MOST_CONTINUATIONS => Some(Held::Budget),
        ResumePolicy::Auto if uncertain && state.options.on_uncertain == OnUncertain::Ask => {
            Some(if state.provider.is_command() { Held::Command } else { Held::Uncertain })
        }
        // A person has to answer in any case, and the answer to what was asked is not lost this way.
        ResumePolicy::Auto if waited && state.options.on_uncertain == OnUncertain::Ask => {
            Some(Held::Unanswered)
        }
        ResumePolicy::Auto if !about.has_directory => Some(Held::NoDirectory),
        ResumePolicy::Auto if !about.has_environment => Some(Held::NoEnvironment),
        ResumePolicy::Auto => {
            let wait = back_off(run.attempt);
            return match wait.checked_sub(about.interrupted_for).filter(|left| !left.is_zero()) {
                Some(left) => Step::Wait(left),
                None => Step::Continue { attempt: run.attempt + 1 },
            };
        }
    };
    Step::Rest(held)
}

fn back_off(attempt: u32) -> Duration {
    FIRST_BACK_OFF * 4_u32.saturating_pow(attempt.saturating_sub(1).min(6))
}

#[cfg(test)]
mod tests;
