//! The steps of a worker, carried out one after the other: what was decided becomes records, processes and connections.

use std::sync::Arc;
use std::time::Duration;

use rekindle_domain::checkpoint::due;
use rekindle_domain::compose::interrupt::Ending;
use rekindle_domain::compose::launch::bury;
use rekindle_domain::recovery::{AgentPresence, Circumstances, Held, Shortage, Step, next_step};
use rekindle_domain::session::SessionState;
use rekindle_wire::code::Code;

use super::{Worker, Workers};
use crate::drive::agents::load_in;
use crate::error::{Result, ServiceError, chain, damaged_log};
use crate::test_knobs::crash_point;
use crate::ticks;
use crate::upkeep::launched;

/// Steps in a row before others get their turn: far more than any session needs.
const MOST_STEPS: usize = 64;

/// How long a holder that does not answer is left alone at most.
pub(super) const MOST_SILENCE: Duration = Duration::from_secs(60);

/// The outcome of a step.
pub(super) enum StepOutcome {
    /// Ask again.
    Again,
    /// Wait for something to happen, or for a while.
    Rest(Option<Duration>),
}

impl Worker {
    /// Does what is to be done until there is nothing more, or an agent to listen to.
    pub(super) fn run_steps(&mut self, workers: &Arc<Workers>) {
        let _pass = workers.gate.enter();
        for _ in 0..MOST_STEPS {
            match self.run_step(workers) {
                Ok(StepOutcome::Again) if self.live.is_some() => {
                    self.rest.begin(Some(Duration::ZERO));
                    // Of one that was taken over the run may have ended, or be cancelled, since before we were here.
                    return self.supervise_run(workers);
                }
                Ok(StepOutcome::Again) => {}
                Ok(StepOutcome::Rest(most)) => return self.rest.begin(most),
                // It is removed: nothing is left to do.
                Err(error) if error.code == Code::SessionUnknown => {
                    self.removed = true;
                    return;
                }
                Err(error) => {
                    tracing::warn!("{}", error.text());
                    self.set_held(Some(error.text()));
                    return self.rest.begin(Some(Duration::from_secs(5)));
                }
            }
        }
        self.rest.begin(Some(Duration::from_secs(1)));
    }

    fn run_step(&mut self, workers: &Arc<Workers>) -> Result<StepOutcome> {
        let current = workers.records.store.open_session(self.session)?;
        let state = current.state;
        let found = workers.agents.observe(&state);
        self.set_presence(if self.unanswered && found == AgentPresence::Lives {
            AgentPresence::Silent
        } else {
            found
        });
        if let Some(damage) = &current.damage {
            // What is done could not be recorded: an agent that lives works on, and its journal keeps what it says.
            let why = damaged_log(damage);
            tracing::error!("{why}");
            self.set_held(Some(why));
            workers.watcher.changed(self.session);
            return Ok(StepOutcome::Rest(None));
        }
        self.drop_unneeded_capture(workers, &state);
        let step = next_step(&state, &self.circumstances(workers, &state, found));
        tracing::debug!(?found, ?step, "next step");
        match step {
            // Agents that nobody has met are met to be ended; for the rest the next daemon is there.
            Step::Launch
            | Step::Continue { .. }
            | Step::Begin(_)
            | Step::RestoreFiles
            | Step::AddWorktree
                if workers.is_stopping() =>
            {
                return Ok(StepOutcome::Rest(None));
            }
            Step::Checkpoint if workers.is_stopping() && due(&state).end.is_none() => {
                return Ok(StepOutcome::Rest(None));
            }
            Step::Checkpoint => return self.checkpoint(workers, &state),
            Step::Adopt => return self.adopt(workers, &state),
            Step::Dismiss => return self.dismiss_agent(workers, &state),
            Step::Harvest => return self.harvest(workers, &state),
            Step::Launch => return self.launch(workers, &state),
            Step::Bury { reason } => {
                workers.records.append(self.session, bury(&state, &current.tokens, reason))?;
            }
            Step::Cancel => self.end_run(workers, &state, Ending::Cancelled)?,
            Step::Fail(Held::NoDirectory) => {
                let error = format!("the working directory {} does not exist", state.working_dir);
                self.end_run(workers, &state, Ending::Failed { error })?;
            }
            Step::Fail(_) => {
                let how = self.last_exit_text(workers);
                let error = format!("the agent ended before it could be given its prompt{how}");
                self.end_run(workers, &state, Ending::Failed { error })?;
            }
            Step::Continue { .. } => self.begin_continuation(workers, &state)?,
            Step::Begin(message) => self.begin(workers, message)?,
            Step::RestoreFiles => return self.restore_files(workers, &state),
            Step::AddWorktree => return self.add_worktree(workers, &state),
            Step::Remove => {
                self.remove(workers)?;
                return Ok(StepOutcome::Rest(None));
            }
            Step::Wait(_) if found == AgentPresence::Silent => {
                return Ok(StepOutcome::Rest(Some(self.back_off.next())));
            }
            Step::Wait(most) => {
                // It goes on by itself: whatever held it does not any more. What ran out is said already.
                if self.shortage.is_none() {
                    self.set_held(None);
                }
                return Ok(StepOutcome::Rest(Some(most)));
            }
            Step::AwaitLoad(most) => {
                self.set_held(Some(format!(
                    "its agent starts in {} s: this agent loses a conversation that is loaded within a minute of the last time",
                    most.as_secs() + 1
                )));
                // Looked at every second: it is shown, and the clock may be set.
                return Ok(StepOutcome::Rest(Some(most.min(Duration::from_secs(1)))));
            }
            Step::Rest(held) => {
                let why = held.map(|held| workers.agents.environment.held_text(&state, held));
                self.set_held_for(workers, held, why);
                return Ok(StepOutcome::Rest(None));
            }
        }
        Ok(StepOutcome::Again)
    }

    /// Removes the files of a session whose deletion is recorded and whose agent is gone.
    pub(super) fn remove(&mut self, workers: &Workers) -> Result<()> {
        crash_point("delete.before_remove");
        self.remove_holders(workers);
        crash_point("delete.after_holders");
        workers.records.store.remove(self.session).map_err(ServiceError::internal)?;
        crash_point("delete.after_remove");
        workers.watcher.removed(self.session);
        for gone in self.removal_awaited.drain(..) {
            let _ = gone.send(());
        }
        Ok(())
    }

    /// Removes what its dead holders left: whoever deletes a session means what its agents said too. The log, which names
    /// them, goes after them.
    fn remove_holders(&self, workers: &Workers) {
        let launched = workers.records.store.reader(self.session).and_then(|reader| launched(&reader));
        for holder in launched.unwrap_or_default() {
            let dir = workers.agents.holder_dir(holder);
            if workers.agents.holders.exists(&dir)
                && let Err(error) = workers.agents.holders.remove(&dir)
            {
                tracing::warn!(%holder, "the directory of a dead holder cannot be removed: {}", chain(&error));
            }
        }
    }

    fn circumstances(
        &mut self,
        workers: &Workers,
        state: &SessionState,
        found: AgentPresence,
    ) -> Circumstances {
        let open = state.open_run().map(|run| run.run_id);
        if self.failed_launches.0 != open {
            (self.failed_launches, self.shortage) = ((open, 0), None);
        }
        let shortage = self.shortage.map(|(launches, last)| Shortage { launches, ago: ticks::since(last) });
        let cut = state.recovery.interruption.as_ref();
        if self.interrupted.map(|(run, _)| run) != cut.map(|cut| cut.run_id) {
            self.interrupted = cut.map(|cut| (cut.run_id, ticks::now()));
        }
        Circumstances {
            failed_launches: self.failed_launches.1,
            shortage,
            interrupted_for: self.interrupted.map_or(Duration::ZERO, |(_, since)| ticks::since(since)),
            load_in: load_in(state, workers.records.now()),
            ..workers.agents.circumstances(state, found)
        }
    }
}
