//! The commands of a worker's inbox, carried out: in a session that has an agent, or may have one.

use std::sync::Arc;
use std::time::Duration;

use rekindle_domain::compose::cancel::{self, Agent, Cancel, cancel};
use rekindle_domain::id::HolderId;
use rekindle_domain::line::Draft;
use rekindle_domain::recovery::AgentPresence;
use rekindle_domain::session::Run;
use rekindle_store::{LoadError, OpenSessionError};
use rekindle_wire::code::Code;
use rekindle_wire::hint::Hint;
use rekindle_wire::view::AnswerTaken;

use super::{Answering, Cancelled, Cancelling, Command, Idleness, STOP_GRACE, Worker, Workers};
use crate::drive::answer::{check_answer, consumed_token};
use crate::drive::live::{LiveError, UnsentPrompt, wanted};
use crate::error::{Result, ServiceError, chain};
use crate::test_knobs::crash_point;
use crate::ticks;
use crate::upkeep::is_ingested;

/// Tries of a cancel while runs begin and end.
const TRIES: usize = 16;

impl Worker {
    pub(super) fn execute(&mut self, workers: &Arc<Workers>, command: Command) {
        match command {
            Command::Look => {}
            Command::Retell => self.resend_partial_message(workers),
            Command::Recover { met } => {
                if self.live.is_none() {
                    self.run_steps(workers);
                }
                let _ = met.send(self.live.is_some());
            }
            Command::Tidy(holder) => self.remove_holder_dir(workers, holder),
            Command::Offers { wanted, reply } => {
                let live = self.live.as_mut();
                drop(reply.send(live.and_then(|live| live.why_unoffered(&wanted))));
            }
            Command::Settle => self.apply_settings(workers),
            Command::Prompt(unsent, appended) => self.queue_prompt(workers, unsent, &appended),
            Command::Captured(news) => self.take_news(workers, *news),
            Command::Answer(answering) => {
                let answer = self.answer(workers, &answering);
                let _ = answering.reply.send(answer);
            }
            Command::OpenWait(opening) => {
                let opened = self.open_wait(workers, &opening);
                let _ = opening.reply.send(opened);
            }
            Command::Expire => self.expire_or_warn(workers),
            Command::Cancel(cancelling) => {
                let cancelled = self.cancel(workers, &cancelling);
                let _ = cancelling.reply.send(cancelled);
            }
            Command::SetAside { by, reply } => drop(reply.send(self.set_aside(workers, &by))),
            Command::Remove { by, gone } => {
                self.removal_awaited.push(gone);
                self.stop_or_warn(workers, "the session was removed", &by);
            }
            Command::Stop { why, by } => self.stop_or_warn(workers, why, &by),
            Command::EndIdle => {
                if let Err(error) = self.end_idle_agent(workers) {
                    tracing::warn!("cannot end the agent: {}", error.text());
                }
            }
            Command::Leave => self.leaving = true,
        }
    }

    fn stop_or_warn(&mut self, workers: &Arc<Workers>, why: &'static str, by: &str) {
        if let Err(error) = self.stop(workers, why, by) {
            tracing::warn!("cannot end the agent: {}", error.text());
        }
    }

    /// Ends the agent. One that we have not met yet is met for that, unless the log says already that it is to go.
    fn stop(&mut self, workers: &Arc<Workers>, why: &'static str, by: &str) -> Result<()> {
        let current = match workers.records.store.open_session(self.session) {
            // Nothing can be recorded of it, as of one whose log is damaged.
            Err(OpenSessionError::Load(
                LoadError::Newer { .. } | LoadError::Quarantined { .. } | LoadError::Read(_),
            )) => {
                return self.end_unrecorded(workers, why, by);
            }
            current => current?,
        };
        if current.damage.is_some() {
            return self.end_unrecorded(workers, why, by);
        }
        let state = &current.state;
        let goes = state.deleted || state.closed;
        if self.live.is_none() && !goes && workers.agents.observe(state) == AgentPresence::Lives {
            self.run_steps(workers);
        }
        if let Some(live) = &mut self.live {
            live.stop(why, by, *STOP_GRACE)?;
        }
        if state.deleted {
            // Nothing that it still says is recorded.
            self.live = None;
            self.rest.begin(Some(Duration::ZERO));
        }
        Ok(())
    }

    /// Has a new prompt said, unless it was found in the log by whoever took over the agent since, or was cancelled.
    fn queue_prompt(&mut self, workers: &Workers, unsent: UnsentPrompt, appended: &[Draft]) {
        // One that is about to end is told nothing: the next is launched for this prompt.
        let takes_prompts = self.live.is_some() && self.idleness != Idleness::Ending;
        let (true, Ok(current)) = (takes_prompts, workers.records.store.open_session(self.session)) else {
            return;
        };
        if !current.state.open_run().is_some_and(|run| unsent.is_due(run)) {
            return;
        }
        if self.is_prompt_held(workers, &current.state) {
            self.held_prompt = Some((unsent, appended.to_vec()));
        } else if let Some(live) = &mut self.live {
            live.say(unsent, appended);
        }
    }

    /// Has the agent asked for the mode and the model that the session wants now.
    fn apply_settings(&mut self, workers: &Workers) {
        if let (Some(live), Ok(current)) = (&mut self.live, workers.records.store.open_session(self.session))
        {
            live.set_wanted(wanted(&current.state));
        }
    }

    /// Removes the directory of a dead holder whose journal is in the log. Only we launch agents of this session, so
    /// nobody is about to use it.
    fn remove_holder_dir(&self, workers: &Workers, holder: HolderId) {
        let Ok(current) = workers.records.store.open_session(self.session) else { return };
        let ingested = is_ingested(&current.state, holder, || workers.records.store.reader(self.session));
        if !ingested.unwrap_or(false) {
            return;
        }
        if let Err(error) = workers.agents.holders.remove(&workers.agents.holder_dir(holder)) {
            tracing::debug!(%holder, "its directory cannot be removed: {}", chain(&error));
        }
    }

    fn answer(&mut self, workers: &Arc<Workers>, asked: &Answering) -> Result<AnswerTaken> {
        let hash = asked.answer.hash();
        // Looked at here, where nobody else can answer at the same time.
        let current = workers.records.store.open_session(self.session)?;
        if let Some(taken) = check_answer(&current, asked.wait, asked.token, &hash, workers.records.time())? {
            return Ok(taken);
        }
        let run = current.state.run.as_ref();
        let run_id = run.map(|run| run.run_id).ok_or_else(|| ServiceError::wait_closed(asked.wait))?;
        let outside = run.and_then(|run| run.wait(asked.wait)).filter(|wait| wait.kind.is_outside());
        if let Some(wait) = outside {
            return self.answer_outside(workers, &current, run_id, wait, asked);
        }
        if self.live.is_none() {
            self.run_steps(workers);
        }
        let Some(live) = &mut self.live else {
            return Err(ServiceError::new(
                Code::AgentUnreachable,
                "the agent cannot be reached at the moment",
            )
            .hint(Hint::TryAgain));
        };
        crash_point("answer.before_record");
        let answered = live.answer(asked.wait, asked.answer.as_answer(), &asked.by, asked.token, &hash);
        if let Err(LiveError::Append(_)) = &answered {
            // What it was about to say is not in the log: whoever takes the agent over again begins with what is.
            self.live = None;
        }
        answered?;
        let after = workers.records.store.open_session(self.session)?;
        Ok(AnswerTaken {
            run_id,
            resume_token_id: consumed_token(&after.tokens, asked.wait).map(|(id, _)| id),
        })
    }

    /// Records a cancel, and tells the agent if there is one. Runs begin and end while we look: then it is looked again.
    fn cancel(&mut self, workers: &Arc<Workers>, asked: &Cancelling) -> Result<Cancelled> {
        let mut outcome = self.cancel_once(workers, asked);
        for _ in 1..TRIES {
            match &outcome {
                Err(error) if error.code == Code::NotNow => {}
                _ => break,
            }
            // What it was about to say is not in the log: whoever takes the agent over again begins with what is.
            self.live = None;
            outcome = self.cancel_once(workers, asked);
        }
        outcome
    }

    fn cancel_once(&mut self, workers: &Arc<Workers>, asked: &Cancelling) -> Result<Cancelled> {
        let Cancelling { why, by, .. } = asked;
        let behind = asked.behind.clone();
        let state = workers.records.store.open_session(self.session)?.state;
        // An agent that lives is told together with the record, if it can be met.
        if self.live.is_none() && workers.agents.observe(&state) == AgentPresence::Lives {
            self.run_steps(workers);
        }
        let current = workers.records.store.open_session(self.session)?;
        // What is at work may not be in what is left of the log.
        if let Some(damage) = &current.damage {
            return Err(ServiceError::damaged(damage));
        }
        let state = &current.state;
        if let Some(seq) = asked.after {
            // A message comes instead of an answer: there has to be a question, and nothing may have come since.
            let waits = state.open_run().is_some_and(Run::has_asked);
            if !waits || seq != state.last_seq {
                return Err(ServiceError::moved());
            }
        } else if !cancel::is_possible(state) {
            return Err(ServiceError::nothing_running());
        }
        // Those that wait now: one that waited when the cancel was asked for may have had its turn since.
        let dropped = if asked.after.is_none() { state.queue.clone() } else { Vec::new() };
        // The run that has ended is not cancelled with what waits behind it.
        let run_id = cancel::pending_run(state).map(|run| run.run_id);
        let open = state.open_run().filter(|run| run.cancel.is_none());
        crash_point("cancel.before_record");
        if let (Some(live), Some(run)) = (&mut self.live, open) {
            let recorded = live.cancel(*why, by, dropped, behind)?;
            self.cancelled = Some((run.run_id, ticks::now()));
            return Ok(Cancelled { run_id, recorded });
        }
        let asked = Cancel { why: *why, by, dropped, agent: Agent::Absent, behind };
        let records = cancel(state, &current.tokens, asked);
        let recorded = match records.is_empty() {
            true => None,
            false => Some(workers.records.append(self.session, records)?),
        };
        crash_point("cancel.after_record");
        Ok(Cancelled { run_id, recorded })
    }
}
