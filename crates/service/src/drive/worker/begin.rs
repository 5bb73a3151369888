//! Beginnings: an agent for a run, a run for a prompt, a run that continues another.

use std::sync::Arc;

use rekindle_domain::compose::begin::{continuation, from_queue};
use rekindle_domain::compose::interrupt::{Ending, end_run};
use rekindle_domain::event::Event;
use rekindle_domain::id::{MessageId, RunId};
use rekindle_domain::recovery::MOST_LAUNCHES;
use rekindle_domain::session::SessionState;
use rekindle_store::AppendError;
use rekindle_wire::hint::Hint;

use super::step::StepOutcome;
use super::{Worker, Workers};
use crate::drive::agents::Obstacle;
use crate::drive::connection_state::ConnectionEvent;
use crate::drive::environment::env_missing_text;
use crate::drive::live::{LiveAgent, LiveError};
use crate::drive::provider::profile;
use crate::error::{Result, chain};
use crate::ids::{millis, random};
use crate::log_search::find_last_event;
use crate::test_knobs::crash_point;
use crate::ticks;

impl Worker {
    pub(super) fn launch(&mut self, workers: &Arc<Workers>, state: &SessionState) -> Result<StepOutcome> {
        let launching = match workers.agents.launching(state) {
            Ok(launching) => launching,
            Err(Obstacle::Env(missing)) => {
                self.set_held(Some(env_missing_text(&missing)));
                return Ok(StepOutcome::Rest(None));
            }
            Err(Obstacle::Agent(error)) => {
                let install = match &error.hint {
                    Some(Hint::InstallAgent { command }) => format!("; {command}"),
                    _ => String::new(),
                };
                let error = format!("{}{install}", error.text());
                self.end_run(workers, state, Ending::Failed { error })?;
                return Ok(StepOutcome::Again);
            }
        };
        crash_point("start.before_launch");
        let profile = profile(&state.provider)?;
        self.update_connection(ConnectionEvent::Begins);
        let context = workers.context(self.session, profile);
        let error = match LiveAgent::launch(context, &workers.agents.places, launching) {
            Ok(live) => {
                crash_point("start.after_launch");
                self.shortage = None;
                self.attach(workers, live);
                return Ok(StepOutcome::Again);
            }
            Err(error) => error,
        };
        // No other try would come to anything else.
        let hopeless = matches!(
            error,
            LiveError::ArgumentTooLong { .. } | LiveError::Append(AppendError::TooLarge { .. })
        );
        if !hopeless && matches!(error, LiveError::Append(_) | LiveError::Session(_)) {
            return Err(error.into());
        }
        self.update_connection(ConnectionEvent::Fails);
        let why = chain(&error);
        if error.is_shortage() {
            // It says nothing of the agent. Whatever there is of it is found and read by the next step, and not counted.
            let launches = self.shortage.map_or(0, |(launches, _)| launches).saturating_add(1);
            self.shortage = Some((launches, ticks::now()));
            let why = format!("its agent cannot be launched yet: {why}");
            if launches == 1 {
                tracing::warn!("{why}");
            }
            self.set_held(Some(why));
            return Ok(StepOutcome::Again);
        }
        if !hopeless {
            tracing::warn!("launch failed: {why}");
            let after = workers.records.store.open_session(self.session)?.state;
            // Whatever there is of it is found, read and counted by the next step.
            if after.agent.as_ref().is_some_and(|agent| !agent.exited) {
                return Ok(StepOutcome::Again);
            }
            self.note_failed_launch(workers)?;
        }
        if hopeless || self.failed_launches.1 >= MOST_LAUNCHES {
            let error = format!("the agent could not be launched: {why}");
            self.end_run(workers, state, Ending::Failed { error })?;
        }
        Ok(StepOutcome::Again)
    }

    /// Returns how the last agent ended, for people.
    pub(super) fn last_exit_text(&self, workers: &Workers) -> String {
        let Ok(reader) = workers.records.store.reader(self.session) else { return String::new() };
        let end = find_last_event(&reader, |event| match event {
            Event::AgentExited(end) => {
                let how = match (end.code, end.signal) {
                    (Some(code), _) => format!(", with exit code {code}"),
                    (None, Some(signal)) => format!(", by signal {signal}"),
                    (None, None) => String::new(),
                };
                let said = end.stderr_tail.as_deref().map(str::trim).filter(|said| !said.is_empty());
                Some(format!("{how}{}", said.map(|said| format!(": {said}")).unwrap_or_default()))
            }
            _ => None,
        });
        end.ok().flatten().unwrap_or_default()
    }

    /// An agent is gone and its run is still open: it was launched for nothing.
    pub(super) fn note_failed_launch(&mut self, workers: &Workers) -> Result<()> {
        // One for which something ran out is no failure of the agent's.
        if self.shortage.is_some() {
            return Ok(());
        }
        let state = workers.records.store.open_session(self.session)?.state;
        if let Some(run) = state.open_run() {
            let before = if self.failed_launches.0 == Some(run.run_id) { self.failed_launches.1 } else { 0 };
            self.failed_launches = (Some(run.run_id), before + 1);
        }
        Ok(())
    }

    /// Ends the open run, which no agent ends.
    pub(super) fn end_run(&mut self, workers: &Workers, state: &SessionState, ending: Ending) -> Result<()> {
        if let Some(run) = state.open_run() {
            let tokens = workers.records.store.open_session(self.session)?.tokens;
            workers.records.append(self.session, end_run(run, &tokens, ending))?;
        }
        Ok(())
    }

    /// Begins a run that continues the one that was cut.
    pub(super) fn begin_continuation(&mut self, workers: &Workers, state: &SessionState) -> Result<()> {
        let Some(cut) = &state.run else { return Ok(()) };
        let run_id = RunId::mint(millis(workers.records.now()), random()?);
        let started = continuation(cut, run_id, &workers.agents.supervisor.life());
        crash_point("resume.before_start");
        workers.records.append(self.session, vec![started.into()])?;
        crash_point("resume.after_start");
        Ok(())
    }

    /// Gives the oldest prompt of the queue its turn.
    pub(super) fn begin(&mut self, workers: &Workers, message: MessageId) -> Result<()> {
        let run_id = RunId::mint(millis(workers.records.now()), random()?);
        let started = from_queue(message, run_id, &workers.agents.supervisor.life());
        workers.records.append(self.session, vec![started.into()])?;
        Ok(())
    }
}
