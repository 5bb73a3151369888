//! The worker of a pipeline run, on a thread of its own: everything that is added to the run's ledger passes through it, one thing
//! after the other. It asks what is next, does it, and asks again, so that going on after a crash is nothing else.

mod attempt;
mod budget;
mod cache_lookup;
mod carry_out;
mod drift;
mod finish;
mod liveness;
mod ndjson;
mod observe;
mod payload;
mod stage;
mod use_cached;
mod wishes;

use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use rekindle_domain::budget::Used;
use rekindle_domain::event::OnDrift;
use rekindle_domain::id::{PipelineId, RunId, SessionId, StepKey};
use rekindle_domain::pipeline::next_step;
use rekindle_wire::view::PipelineDriftView;
use tracing::Span;

pub(crate) use self::wishes::{ResumeRun, Resumed};
use super::Pipelines;
use crate::error::Result;
use crate::lock::locked;
use crate::worker_pool::{self, BackOff, Inbox, Rest, Work};

/// A worker that has nothing to do ends after this.
const IDLE: Duration = Duration::from_secs(30);

/// How long what does not answer is left alone at most.
const MOST_SILENCE: Duration = Duration::from_secs(60);

/// Something for a worker to do.
pub(crate) enum Command {
    /// Something has changed: decide again.
    Look,
    /// Somebody wants the run to go on.
    Resume { asked: Box<ResumeRun>, reply: SyncSender<Result<Resumed>> },
    /// Somebody wants the run to end.
    Abort { reason: Option<String>, by: String, reply: SyncSender<Result<()>> },
    /// The daemon goes; agents work on.
    Leave,
}

/// What others see of a worker.
pub(crate) struct Seat {
    inbox: Inbox<Command>,
}

/// Where a run stood when its worker last looked, beside what its ledger says.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Standing {
    /// What it waits for.
    pub(crate) waits: Option<next_step::Waits>,
    /// Why it does not go on by itself.
    pub(crate) rests: Option<next_step::Rest>,
    /// Both in words, or what keeps the worker from going on.
    pub(crate) held: Option<String>,
    /// The files that are not as expected, if it rests for them.
    pub(crate) drift: Option<Box<PipelineDriftView>>,
}

impl Seat {
    pub(super) fn new() -> io::Result<Arc<Seat>> {
        Ok(Arc::new(Seat { inbox: Inbox::new()? }))
    }

    /// Tells the worker something.
    pub(super) fn tell(&self, command: Command) {
        self.inbox.push(command);
    }
}

impl worker_pool::Seat for Seat {
    type Command = Command;

    fn inbox(&self) -> &Inbox<Command> {
        &self.inbox
    }
}

/// One worker.
pub(crate) struct Worker {
    pipelines: Weak<Pipelines>,
    id: PipelineId,
    /// Whatever it logs is about its run.
    span: Span,
    seat: Arc<Seat>,
    leaving: bool,
    /// It has looked at its run.
    looked: bool,
    /// When there is something to do although nothing happens.
    rest: Rest,
    /// How long an agent that does not answer is left alone.
    back_off: BackOff,
    /// What somebody said about files that are not as expected, and who. It counts until an attempt begins.
    word: Option<(OnDrift, String)>,
    /// A run of a session that goes on from another, and whether its agent came back without that.
    restored: Option<(RunId, bool)>,
    /// The run of a session whose agent was told to end, and when.
    told_to_end: Option<(RunId, Instant)>,
    /// What the sessions of its attempts had used when it was last looked at, if the run has a budget.
    used_before: Option<BTreeMap<SessionId, Option<Used>>>,
    /// The step for which a cached result was found that cannot be used.
    passed_over: Option<StepKey>,
}

impl Work for Worker {
    fn work(&mut self) -> Option<Duration> {
        let pipelines = self.pipelines.upgrade()?;
        let _in_run = self.span.clone().entered();
        while let Some(command) = self.seat.inbox.pop() {
            self.rest.end();
            self.execute(&pipelines, command);
        }
        if self.leaving {
            self.let_go(&pipelines);
            pipelines.pool.dismiss(self.id, &self.seat, true);
            return None;
        }
        if self.rest.left().is_none_or(|left| left.is_zero()) {
            self.run_steps(&pipelines);
        }
        Some(self.rest.left().unwrap_or(IDLE))
    }

    fn wait(&self, most: Duration) -> bool {
        self.seat.inbox.wait(None, Some(most))
    }

    fn is_idle(&self) -> bool {
        self.rest.left().is_none()
    }

    fn leave(&mut self) -> bool {
        let Some(pipelines) = self.pipelines.upgrade() else { return true };
        let left = pipelines.pool.dismiss(self.id, &self.seat, false);
        if left {
            self.let_go(&pipelines);
        }
        left
    }
}

impl Worker {
    pub(super) fn new(pipelines: &Arc<Pipelines>, id: PipelineId, seat: &Arc<Seat>) -> Worker {
        Worker {
            pipelines: Arc::downgrade(pipelines),
            id,
            span: tracing::info_span!("pipeline", run = %id),
            seat: seat.clone(),
            leaving: false,
            looked: false,
            rest: Rest::default(),
            back_off: BackOff::new(MOST_SILENCE),
            word: None,
            restored: None,
            told_to_end: None,
            used_before: None,
            passed_over: None,
        }
    }

    fn execute(&mut self, at: &Arc<Pipelines>, command: Command) {
        match command {
            Command::Look => {}
            Command::Resume { asked, reply } => {
                if !self.looked {
                    self.run_steps(at);
                }
                let resumed = self.resume(at, *asked);
                let _ = reply.send(resumed);
            }
            Command::Abort { reason, by, reply } => {
                let aborted = self.abort(at, reason.as_deref(), &by);
                let _ = reply.send(aborted);
            }
            Command::Leave => self.leaving = true,
        }
    }

    /// Nobody works at the run here any more.
    fn let_go(&self, at: &Pipelines) {
        at.leave_place(self.id);
        at.release(self.id);
        locked(&at.sessions).retain(|_, run| *run != self.id);
        at.store.close_pipeline(self.id);
    }

    fn stand(&self, standing: Standing) {
        if let Some(pipelines) = self.pipelines.upgrade() {
            pipelines.stand(self.id, Some(standing));
        }
    }

    /// Returns where the run stood when it was last looked at.
    fn standing(&self) -> Standing {
        self.pipelines.upgrade().map(|pipelines| pipelines.standing(self.id)).unwrap_or_default()
    }

    /// Somebody said that the run is to go on, and what becomes of files that are not as expected.
    fn set_word(&mut self, word: OnDrift, by: String) {
        self.word = Some((word, by));
        self.stand(Standing::default());
        self.rest.end();
    }
}
