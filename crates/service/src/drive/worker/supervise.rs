//! Supervision of a living agent, hearing what it says and doing what has to be done about it by ourselves: policies,
//! deadlines, cancels that do not end, the next prompt in the queue.

use std::sync::Arc;
use std::time::Duration;

use rekindle_domain::compose::interrupt::Ending;
use rekindle_domain::event::{CancelReason, WaitKind};
use rekindle_domain::id::WaitId;
use rekindle_domain::recovery::AgentPresence;
use rekindle_domain::session::{Run, SessionState};
use rekindle_domain::time::Moment;

use super::heartbeat::{Beat, Pulse};
use super::{CANCELLED_WITHIN, Idleness, SNAPSHOT_AFTER, SNAPSHOT_EVERY, STOP_GRACE, Worker, Workers};
use crate::drive::answer::{ChosenAnswer, chosen_by_policy};
use crate::drive::connection_state::ConnectionEvent;
use crate::drive::live::{LiveAgent, LiveError, Progress, UnsentPrompt};
use crate::drive::sign_in::refusal_text;
use crate::error::{Result, chain};
use crate::ticks;

/// When what could not be done about a run is tried again.
const MIND_AGAIN: Duration = Duration::from_secs(1);

impl Worker {
    pub(super) fn attach(&mut self, workers: &Arc<Workers>, mut live: LiveAgent) {
        let (watcher, session) = (workers.watcher.clone(), self.session);
        let (clock, seat) = (workers.records.clock().clone(), self.seat.clone());
        live.listen(Arc::new(move |delta| {
            seat.note_delta(clock.now(), delta);
            watcher.said(session, delta);
        }));
        self.live = Some(live);
        self.withhold_prompt(workers);
        self.pulse = Pulse::new(ticks::now());
        self.idleness = Idleness::Busy;
        self.unanswered = false;
        // Whoever followed before there was a connection may be in the middle of a message.
        self.resend_partial_message(workers);
        if let Err(error) = self.update_deadline(workers) {
            tracing::warn!("{}", error.text());
        }
        self.set_presence(AgentPresence::Lives);
        self.set_held(None);
    }

    /// Keeps a prompt back that was found in the log of one who waits for a checkpoint.
    fn withhold_prompt(&mut self, workers: &Workers) {
        let current = workers.records.store.open_session(self.session);
        let held = current.is_ok_and(|current| self.is_prompt_held(workers, &current.state));
        if let Some(live) = self.live.as_mut().filter(|_| held) {
            live.forget_prompt();
        }
    }

    /// Tells what there is of a message that has no record yet, from its beginning: who has heard more is not disturbed.
    pub(super) fn resend_partial_message(&self, workers: &Workers) {
        if let Some(half) = self.live.as_ref().and_then(|live| live.connection().half_message()) {
            workers.watcher.said(self.session, &half);
        }
    }

    /// Whoever has spoken with the holder may have been told news with the answer: nobody would be woken for these.
    fn poll_again(&mut self) {
        self.rest.begin(Some(Duration::ZERO));
    }

    /// Listens to the agent, and does what follows.
    pub(super) fn step_agent(&mut self, workers: &Arc<Workers>) {
        self.rest.end();
        let Some(live) = &mut self.live else { return };
        let stepped = live.step();
        // Whoever reads as fast as the agent writes has nothing left: only then are files looked at.
        let behind = stepped.as_ref().map_or(true, |progress| progress.more);
        self.seat.unread.set(if behind { live.unread() } else { 0 });
        match stepped {
            Ok(progress) => {
                if let Some(heartbeat) = &progress.heartbeat {
                    self.seat.note_heartbeat(workers.records.now(), heartbeat);
                }
                let heard = ConnectionEvent::Heard(live.connection().phase());
                let turn = if live.is_loading() { ConnectionEvent::Loads } else { heard };
                self.update_connection(turn);
                if let Err(error) = self.check_heartbeat(progress.heard) {
                    return self.drop_agent(&error);
                }
                if let Err(error) = self.follow_up(workers, &progress) {
                    tracing::warn!("{}", error.text());
                }
            }
            Err(error) => self.drop_agent(&error),
        }
    }

    /// The agent cannot be spoken with any more; whoever takes it over begins with what is in the log.
    fn drop_agent(&mut self, error: &LiveError) {
        tracing::warn!("lost the agent: {}", chain(error));
        self.live = None;
        self.update_connection(ConnectionEvent::Ends);
        // What could not be written can be in a while; it is in the journal until then.
        let refused = matches!(error, LiveError::Append(_)) || error.is_shortage();
        if refused {
            self.set_held(Some(chain(error)));
        }
        self.rest.begin(Some(if refused { Duration::from_secs(1) } else { Duration::ZERO }));
    }

    /// Asks a holder that says nothing while its agent is at work whether it is there, and shows what comes of it.
    fn check_heartbeat(&mut self, heard: bool) -> Result<(), LiveError> {
        let Some(live) = &mut self.live else { return Ok(()) };
        match self.pulse.update(ticks::now(), heard, live.is_busy()) {
            Some(Beat::Ask) => live.send_heartbeat()?,
            Some(Beat::Silent) => {
                tracing::warn!("the agent's holder does not answer");
                self.set_presence(AgentPresence::Silent);
            }
            Some(Beat::Back) => {
                tracing::info!("the agent's holder answers again");
                self.set_presence(AgentPresence::Lives);
            }
            None => {}
        }
        Ok(())
    }

    fn follow_up(&mut self, workers: &Arc<Workers>, progress: &Progress) -> Result<()> {
        if progress.exited || progress.lost {
            // Whether it is dead is told by its lock, and by nothing else.
            self.live = None;
            self.end_idleness(workers);
            self.update_connection(ConnectionEvent::Ends);
            self.rest.begin(Some(Duration::ZERO));
            if progress.exited {
                self.note_failed_launch(workers)?;
            }
            return Ok(());
        }
        if progress.more {
            self.poll_again();
        }
        if let Some(live) = &self.live {
            let paused = live.trouble().map(|why| format!("its agent is paused: {why}"));
            self.set_held(paused);
        }
        if let Some(refused) = &progress.refused {
            let state = workers.records.store.open_session(self.session)?.state;
            let why =
                self.live.as_ref().map(|live| refusal_text(refused, &state.provider, live.connection()));
            let error = format!("the agent refused: {}", why.unwrap_or_default());
            self.end_run(workers, &state, Ending::Failed { error })?;
            if let Some(live) = &mut self.live {
                live.stop("the agent cannot create a session", "daemon", *STOP_GRACE)?;
            }
            self.poll_again();
            return Ok(());
        }
        for wait in &progress.waits {
            self.answer_by_policy(workers, *wait)?;
        }
        if !progress.waits.is_empty() {
            self.update_deadline(workers)?;
        }
        self.cancel_if_overdue(workers)?;
        self.snapshot_if_due(workers, progress);
        let is_pending = self.cancelled.is_some() || self.unminded || self.captures.need_care();
        if progress.ended.is_some() || is_pending {
            self.supervise_run(workers);
        }
        self.watch_idleness(workers)
    }

    /// Looks after the open run. What cannot be done, for want of room in the log for example, is tried again in a moment.
    pub(super) fn supervise_run(&mut self, workers: &Arc<Workers>) {
        let minded = self.try_supervise_run(workers);
        self.unminded = minded.is_err() && self.live.is_some();
        if let Err(error) = minded {
            tracing::warn!("{}", error.text());
            self.set_held(Some(error.text()));
            self.rest.shorten(MIND_AGAIN);
        }
    }

    /// Takes a snapshot when it is time.
    fn snapshot_if_due(&mut self, workers: &Workers, progress: &Progress) {
        let now = ticks::now();
        if self.snapshot_at.is_some_and(|at| at <= now) {
            self.snapshot(workers);
        }
        let next = now + if progress.ended.is_some() { SNAPSHOT_AFTER } else { SNAPSHOT_EVERY };
        self.snapshot_at = Some(self.snapshot_at.map_or(next, |at| at.min(next)));
    }

    /// Takes a snapshot if anything has happened, so that whoever starts next reads little of the log.
    pub(super) fn snapshot(&mut self, workers: &Workers) {
        self.snapshot_at = None;
        let Ok(current) = workers.records.store.open_session(self.session) else { return };
        if current.state.last_seq == self.snapshot_of {
            return;
        }
        match workers.records.store.snapshot(self.session) {
            Ok(_) => self.snapshot_of = current.state.last_seq,
            Err(error) => tracing::debug!("no snapshot: {}", chain(&error)),
        }
    }

    /// Looks after the open run: one that is to be cancelled ends in time, and after one that has ended comes the next.
    fn try_supervise_run(&mut self, workers: &Arc<Workers>) -> Result<()> {
        if self.live.is_none() {
            return Ok(());
        }
        let state = workers.records.store.open_session(self.session)?.state;
        match state.open_run() {
            Some(run) if run.cancel.is_some() => {
                let since = match self.cancelled {
                    Some((known, since)) if known == run.run_id => since,
                    _ => ticks::now(),
                };
                self.cancelled = Some((run.run_id, since));
                let Some(live) = &mut self.live else { return Ok(()) };
                // Some can be told nothing but to end.
                if !live.connection().capabilities().cancel && self.told_to_end != Some(run.run_id) {
                    live.stop("the run was cancelled", "daemon", *STOP_GRACE)?;
                    self.told_to_end = Some(run.run_id);
                    self.poll_again();
                } else if ticks::since(since) >= *CANCELLED_WITHIN {
                    tracing::warn!("a cancelled turn does not end: ending the agent");
                    live.stop("a cancelled turn did not end", "daemon", *STOP_GRACE)?;
                    self.cancelled = None;
                    self.poll_again();
                }
            }
            open => {
                self.cancelled = None;
                if self.awaits_checkpoints(workers, &state)? {
                    return Ok(());
                }
                match open {
                    Some(run) => self.send_due_prompt(workers, run)?,
                    None if state.restoring.is_some() && workers.is_stopping() => {}
                    None => {
                        self.restore_files_beside_agent(workers, &state)?;
                        self.begin_next_message(workers, &state)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Finds out which open question has to be answered first.
    pub(super) fn update_deadline(&mut self, workers: &Workers) -> Result<()> {
        let state = workers.records.store.open_session(self.session)?.state;
        let waits = state.open_run().map(|run| run.waits.as_slice()).unwrap_or_default();
        self.deadline = waits.iter().filter_map(|wait| wait.deadline_at).min();
        Ok(())
    }

    /// Cancels what has waited long enough; nothing does while the clock is behind the newest record.
    fn cancel_if_overdue(&mut self, workers: &Workers) -> Result<()> {
        let Some(deadline) = self.deadline.filter(|deadline| workers.records.time().steady >= *deadline)
        else {
            return Ok(());
        };
        // What a program waits for ends by itself, and the run goes on: no agent is kept by it.
        self.expire(workers)?;
        let state = workers.records.store.open_session(self.session)?.state;
        let moment = Moment { now: workers.records.time(), newest: state.updated_at };
        if self.deadline == Some(deadline)
            && moment.is_past(deadline)
            && let Some(live) = &mut self.live
        {
            live.cancel(CancelReason::WaitTimeout, "deadline", Vec::new(), Vec::new())?;
            self.cancelled = state.open_run().map(|run| (run.run_id, ticks::now()));
            self.deadline = None;
            self.poll_again();
        }
        Ok(())
    }

    /// Gives a living agent the next prompt.
    fn begin_next_message(&mut self, workers: &Arc<Workers>, state: &SessionState) -> Result<()> {
        let Some(message) = state.queue.first().filter(|_| !state.closed && !workers.is_stopping()) else {
            return Ok(());
        };
        self.begin(workers, *message)?;
        let state = workers.records.store.open_session(self.session)?.state;
        if self.awaits_checkpoints(workers, &state)? {
            return Ok(());
        }
        state.open_run().map_or(Ok(()), |run| self.send_due_prompt(workers, run))
    }

    /// Has the prompt of a run said that was begun by its record alone. A command was given its own when it was started.
    fn send_due_prompt(&mut self, workers: &Workers, run: &Run) -> Result<()> {
        if self.idleness == Idleness::Ending {
            return Ok(());
        }
        let Some(live) = &mut self.live else { return Ok(()) };
        if run.prompted || live.has_prompt_of(run.run_id) || live.connection().profile().process_is_turn() {
            return Ok(());
        }
        let held = self.held_prompt.take().filter(|(held, _)| held.run_id == run.run_id);
        if let Some((unsent, appended)) = held {
            live.say(unsent, &appended);
            self.poll_again();
            return Ok(());
        }
        if let Some(unsent) =
            UnsentPrompt::find(&*workers.records.store, self.session, run, live.connection().profile())?
        {
            live.say(unsent, &[]);
            self.poll_again();
        }
        Ok(())
    }

    fn answer_by_policy(&mut self, workers: &Arc<Workers>, wait: WaitId) -> Result<()> {
        let state = workers.records.store.open_session(self.session)?.state;
        let chosen = chosen_by_policy(state.options.permissions);
        let asked = state.open_run().and_then(|run| run.wait(wait)).map(|wait| wait.kind);
        let (Some(kind), Some(WaitKind::Permission)) = (chosen, asked) else { return Ok(()) };
        let answer = ChosenAnswer::Kind(kind.into());
        let hash = answer.hash();
        if let Some(live) = &mut self.live {
            live.answer(wait, answer.as_answer(), "policy", None, &hash)?;
            self.poll_again();
        }
        Ok(())
    }
}
