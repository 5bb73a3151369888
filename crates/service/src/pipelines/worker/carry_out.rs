//! The steps of a run, carried out one after the other: what was decided becomes records, sessions and files.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use rekindle_domain::compose::cancel::is_possible;
use rekindle_domain::event::{CancelReason, PipelineCompleted, PipelineFailed};
use rekindle_domain::line::Draft;
use rekindle_domain::pipeline::next_step::{NextStep, Rest, Waits, is_done_again, next_step};
use rekindle_domain::pipeline::{PipelineState, RunStatus};
use rekindle_domain::session::SessionState;
use rekindle_store::AppendError;
use rekindle_store::commit::{Append, Expect};
use rekindle_wire::code::Code;

use super::super::Pipelines;
use super::cache_lookup::Cached;
use super::observe::{Looked, Seen};
use super::stage::{current, provider_of};
use super::{Standing, Worker};
use crate::drive::worker::{Cancelling, Command as SessionCommand};
use crate::error::{Result, ServiceError, damaged_log};
use crate::test_knobs::crash_point;
use crate::ticks;

/// Steps in a row before others get their turn: far more than one stage needs.
const MOST_STEPS: usize = 64;

/// When what could not be done is tried again: room on a disk comes back, and so may a directory.
const AGAIN: Duration = Duration::from_secs(5);

/// When a directory is looked at again in which somebody works who is no run of ours.
const BUSY: Duration = Duration::from_secs(1);

/// After how long an agent is told again to end.
const TOLD_AGAIN: Duration = Duration::from_secs(10);

/// Who ends agents whose steps are over.
const BY: &str = "pipeline";

/// A worker that waits for something that is told looks again all the same.
const AT_LEAST_EVERY: Duration = Duration::from_secs(600);

/// What came of a step.
pub(super) enum Outcome {
    /// Ask again.
    Again,
    /// Wait for something to happen, or for a while.
    Rest(Option<Duration>),
}

impl Worker {
    /// Does what is to be done until there is nothing more, or something to wait for.
    pub(super) fn run_steps(&mut self, at: &Arc<Pipelines>) {
        self.looked = true;
        let _pass = at.gate.enter();
        let mut looked = Looked::NotYet;
        for _ in 0..MOST_STEPS {
            match self.run_step(at, &mut looked) {
                Ok(Outcome::Again) => {}
                Ok(Outcome::Rest(most)) => return self.rest.begin(most),
                // Somebody spoke in the session meanwhile.
                Err(error) if matches!(error.code, Code::Moved) => looked = Looked::NotYet,
                Err(error) => {
                    tracing::warn!("{}", error.text());
                    self.stand(Standing { held: Some(error.text()), ..Standing::default() });
                    return self.rest.begin(Some(AGAIN));
                }
            }
        }
        self.rest.begin(Some(Duration::from_secs(1)));
    }

    fn run_step(&mut self, at: &Arc<Pipelines>, looked: &mut Looked) -> Result<Outcome> {
        let Some(opened) = at.store.open_pipeline(self.id)? else { return Ok(Outcome::Rest(None)) };
        let state = opened.fold;
        if let Some(damage) = &opened.damage {
            let why = damaged_log(damage);
            self.stand(Standing { held: Some(why), ..Standing::default() });
            return Ok(Outcome::Rest(None));
        }
        if state.started.is_none() {
            return Ok(Outcome::Rest(None));
        }
        let seen = self.observe(at, &state, looked)?;
        if state.status != RunStatus::Running {
            return Ok(self.after_end(at, &state, &seen));
        }
        let step = next_step(&state, &seen.evidence);
        tracing::debug!(?step, evidence = ?seen.evidence, "next step");
        if at.views.workers.is_superseded() || at.views.workers.is_stopping() && begins(&step) {
            return Ok(Outcome::Rest(None));
        }
        if self.note_budget(at, &state)? {
            return Ok(Outcome::Again);
        }
        // What the directory was is worth nothing once anything was done.
        let found = match step {
            NextStep::Capture => {
                *looked = self.look(at, &state);
                return Ok(Outcome::Again);
            }
            _ => std::mem::take(looked),
        };
        match step {
            NextStep::Capture => {}
            NextStep::Intend(_) => self.follow(at, &state)?,
            NextStep::Complete => {
                self.append(at, &state, vec![PipelineCompleted { reason: None, by: None }.into()])?;
            }
            NextStep::Fail(why) => {
                let reason = Some(why.to_string().into());
                self.append(at, &state, vec![PipelineFailed { reason, by: None }.into()])?;
            }
            NextStep::Begin => self.begin(at, &state)?,
            NextStep::RestoreAndRetry(tree) => return self.restore_and_begin(at, &state, tree),
            NextStep::ContinueWithContext => self.continue_attempt(at, &state, &seen)?,
            NextStep::Remind => self.remind(at, &state, &seen)?,
            NextStep::UseCached(_) => return self.use_cached(at, &state, (&seen, &found)),
            NextStep::Interrupt(cut) => self.interrupt(at, &state, &seen, &found, cut)?,
            NextStep::Decide(decision) => self.decide(at, &state, &found, decision)?,
            NextStep::Finish(how) => self.finish(at, &state, &seen, &found, how)?,
            NextStep::Adopt | NextStep::Harvest => {
                self.wake_session(at, &state)?;
                return Ok(Outcome::Rest(Some(self.back_off.next())));
            }
            NextStep::EndAgent => {
                let is_spent = seen.evidence.spent.is_some();
                if is_done_again(&state, &seen.evidence) && !is_spent {
                    self.stop_agent(at, seen.session.as_deref(), "it came back without its session")?;
                } else {
                    let why = if is_spent { CancelReason::Budget } else { CancelReason::Deadline };
                    self.end_agent(at, seen.session.as_deref(), why)?;
                }
                return Ok(Outcome::Rest(Some(self.back_off.next())));
            }
            NextStep::Await(what) => return Ok(self.wait_for(at, &state, (what, &seen.cached))),
            NextStep::Rest(why) => {
                self.rest_for(at, &state, &found, why);
                return Ok(Outcome::Rest(passes(why).then_some(AGAIN)));
            }
        }
        self.back_off.reset();
        Ok(Outcome::Again)
    }

    /// Adds records to the ledger, which nobody else does.
    pub(super) fn append(&self, at: &Pipelines, state: &PipelineState, records: Vec<Draft>) -> Result<()> {
        let expect = Expect::LastSeq(state.position().last_seq);
        self.record(at, Append { expect, ..Append::durable(self.id, records) })
    }

    /// The same for records that others belong to.
    pub(super) fn record(&self, at: &Pipelines, append: Append) -> Result<()> {
        crash_point("pipeline.before_record");
        at.store.append(append).map_err(|error| match error {
            // What it was composed from is not so any more.
            AppendError::IllegalTransition(_) => ServiceError::moved(),
            // Whoever listed the runs let go of it just now.
            AppendError::NotOpen(stream) if stream.pipeline().is_some() => ServiceError::moved(),
            error => error.into(),
        })?;
        crash_point("pipeline.after_record");
        at.write_summary(self.id);
        Ok(())
    }

    /// Takes the directory for the run, which is about to work there.
    pub(super) fn take_directory(&self, at: &Pipelines, root: &str) -> Result<()> {
        at.claims.take(self.id, Path::new(root)).map_err(|_| ServiceError::moved())
    }

    /// Has the session's worker look at it: it takes over what lives, and reads what is dead.
    fn wake_session(&self, at: &Pipelines, state: &PipelineState) -> Result<()> {
        let attempt = state.current_step().and_then(|step| step.attempt.as_ref());
        attempt.map_or(Ok(()), |attempt| at.views.workers.send(attempt.session_id, SessionCommand::Look))
    }

    /// Ends what goes on in a session: its run is cancelled, and its agent told to end when that is over.
    fn end_agent(&mut self, at: &Pipelines, session: Option<&SessionState>, why: CancelReason) -> Result<()> {
        let Some(session) = session else { return Ok(()) };
        match session.open_run() {
            Some(open) if open.cancel.is_some() => Ok(()),
            Some(_) if is_possible(session) => {
                let (reply, _) = sync_channel(1);
                let (by, behind, after) = (BY.to_owned(), Vec::new(), None);
                let cancelling = Box::new(Cancelling { why, by, behind, after, reply });
                at.views.workers.send(session.id, SessionCommand::Cancel(cancelling))
            }
            _ => self.stop_agent(at, Some(session), "its step is over"),
        }
    }

    /// Tells the agent of a session to end, whatever it does; again only after a while.
    fn stop_agent(
        &mut self,
        at: &Pipelines,
        session: Option<&SessionState>,
        why: &'static str,
    ) -> Result<()> {
        let Some(session) = session else { return Ok(()) };
        let Some(run) = session.run.as_ref().map(|run| run.run_id) else { return Ok(()) };
        let told = self.told_to_end.filter(|(told, _)| *told == run).map(|(_, when)| ticks::since(when));
        if told.is_some_and(|ago| ago < TOLD_AGAIN) {
            return Ok(());
        }
        self.told_to_end = Some((run, ticks::now()));
        at.views.workers.send(session.id, SessionCommand::Stop { why, by: BY.to_owned() })
    }

    /// The run has ended. If somebody ended it while its step went on, that ends too.
    fn after_end(&mut self, at: &Arc<Pipelines>, state: &PipelineState, seen: &Seen) -> Outcome {
        use rekindle_domain::pipeline::evidence::AgentFound;
        let goes_on = state.current_step().is_some_and(|step| step.open_attempt().is_some());
        let agent = seen.evidence.agent;
        if goes_on && agent != AgentFound::Gone {
            let ended = match agent {
                AgentFound::Unread => self.wake_session(at, state),
                _ => self.end_agent(at, seen.session.as_deref(), CancelReason::User),
            };
            if let Err(error) = ended {
                tracing::warn!("its step cannot be ended yet: {}", error.text());
            }
            return Outcome::Rest(Some(self.back_off.next()));
        }
        at.stand(self.id, None);
        at.leave_place(self.id);
        at.release(self.id);
        at.write_over(self.id);
        at.compress(state);
        Outcome::Rest(None)
    }

    fn wait_for(
        &mut self,
        at: &Pipelines,
        state: &PipelineState,
        (what, cached): (Waits, &Cached),
    ) -> Outcome {
        if what == Waits::Place {
            self.want_place(at, state);
            return Outcome::Rest(Some(AT_LEAST_EVERY));
        }
        at.leave_place(self.id);
        let step = state.current_step().map(|step| &**step);
        let stage = step.and_then(|step| state.stage(&step.id.stage)).map(|(_, stage)| stage);
        let words = |text: &str| Some(text.to_owned());
        let (held, most) = match what {
            Waits::Agent => {
                self.back_off.reset();
                let session = step.and_then(|step| step.attempt.as_ref()).map(|attempt| attempt.session_id);
                let seat = session.and_then(|session| at.views.workers.pool.get(session));
                let held = seat.and_then(|seat| seat.sighting().held);
                let left = step.zip(stage).and_then(|(step, stage)| self.time_left(at, step, stage));
                let others = [self.signs_change_in(at, state), self.budget_time_left(at, state)];
                (held, others.into_iter().chain([left]).flatten().min())
            }
            Waits::Person => (words("its agent has a question: answer it"), self.budget_time_left(at, state)),
            Waits::Silence => (
                words("it is not known whether its agent is alive: it is not treated as dead"),
                Some(self.back_off.next()),
            ),
            Waits::Heartbeat | Waits::Stalled => (self.silence_text(at, state, what), Some(BUSY)),
            Waits::SameKey => (Some(cached.waits_text()), Some(BUSY)),
            Waits::Directory => {
                let root = state.started.as_deref().map(|started| started.working_dir.clone());
                let who = root.and_then(|root| self.who_works_in(at, step, Path::new(&root)));
                let who = who.unwrap_or_else(|| "somebody else".into());
                (Some(format!("{who} is working in its directory")), Some(BUSY))
            }
            Waits::Place => (None, None),
            Waits::Time(left) => (words("its step was interrupted and starts again in a moment"), Some(left)),
        };
        self.stand(Standing { waits: Some(what), held, ..Standing::default() });
        let most = most.map_or(AT_LEAST_EVERY, |most| most.max(Duration::from_millis(1)));
        Outcome::Rest(Some(most.min(AT_LEAST_EVERY)))
    }

    /// Asks for a place for the current step.
    fn want_place(&self, at: &Pipelines, state: &PipelineState) {
        let Ok((started, _, stage)) = current(state) else { return };
        let Ok(provider) = provider_of(started, stage) else { return };
        at.want_place(self.id, provider.name(), started);
    }

    fn rest_for(&mut self, at: &Pipelines, state: &PipelineState, found: &Looked, why: Rest) {
        let held = self.rest_text(at, state, found, why);
        tracing::info!("it does not continue automatically: {held}");
        let drift = self.drift_view(state, found).filter(|_| why == Rest::Drift).map(Box::new);
        self.stand(Standing { rests: Some(why), held: Some(held), drift, ..Standing::default() });
        at.leave_place(self.id);
        at.release(self.id);
        at.write_summary(self.id);
    }
}

/// Tells whether a reason to rest may be over without a word: then the run looks again by itself.
fn passes(why: Rest) -> bool {
    match why {
        // It may be mounted late, or made again.
        Rest::NoDirectory | Rest::HeldElsewhere => true,
        Rest::NotStarted
        | Rest::Completed
        | Rest::Failed
        | Rest::Aborted
        | Rest::Asks
        | Rest::Left
        | Rest::Imported
        | Rest::Cancelled
        | Rest::TooManyAttempts
        | Rest::NotLaunched
        | Rest::Drift
        | Rest::NoEnvironment
        | Rest::ManifestMissing => false,
    }
}

/// Tells whether a step begins something.
fn begins(step: &NextStep) -> bool {
    match step {
        NextStep::Begin
        | NextStep::RestoreAndRetry(_)
        | NextStep::ContinueWithContext
        | NextStep::Remind
        | NextStep::UseCached(_) => true,
        NextStep::Intend(_)
        | NextStep::Await(_)
        | NextStep::Adopt
        | NextStep::Harvest
        | NextStep::EndAgent
        | NextStep::Capture
        | NextStep::Interrupt(_)
        | NextStep::Decide(_)
        | NextStep::Finish(_)
        | NextStep::Complete
        | NextStep::Fail(_)
        | NextStep::Rest(_) => false,
    }
}
