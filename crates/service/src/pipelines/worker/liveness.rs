//! Signs of life of whoever works at a step: when it was last heard, and what that says.

use std::time::Duration;

use rekindle_domain::event::StageConfig;
use rekindle_domain::pipeline::evidence::SignsOfLife;
use rekindle_domain::pipeline::next_step::Waits;
use rekindle_domain::pipeline::{PipelineState, StepState};
use rekindle_domain::session::SessionState;
use rekindle_domain::time::Timestamp;

use super::super::Pipelines;
use super::Worker;
use super::stage::current;

/// What is known of the silence of whoever works at a step.
pub(super) struct Signs {
    pub(super) now: SignsOfLife,
    /// In how long that may be another thing, if nothing is heard.
    pub(super) change_in: Option<Duration>,
    /// When it was last heard.
    heard_at: Timestamp,
    /// Its last word for how it is.
    health: Option<String>,
}

impl Worker {
    /// Tells whether anything was heard of an attempt. Whatever is recorded in its session counts, and what is not: heartbeats, words
    /// that are being said.
    pub(super) fn signs(
        &self,
        at: &Pipelines,
        state: &PipelineState,
        step: &StepState,
        stage: &StageConfig,
        session: &SessionState,
    ) -> Signs {
        let seat = at.views.workers.pool.get(session.id);
        let seen = seat.map(|seat| seat.sighting()).unwrap_or_default();
        let began = step.attempt.as_ref().map_or(step.intended_at, |attempt| attempt.began_at);
        let heard_at = began.max(session.updated_at).max(seen.heard_at.unwrap_or(began));
        let silent_for = Duration::from_millis(at.views.workers.records.time().millis_since(heard_at));
        let config = state.started.as_deref().map(|started| &started.config.agents);
        let agent = stage.agent.as_ref().zip(config).and_then(|(name, agents)| agents.get(name));
        let heartbeat = agent.and_then(|agent| agent.heartbeat());
        let (now, change_in) = SignsOfLife::of(silent_for, heartbeat, stage.stalled_after());
        Signs { now, change_in, heard_at, health: seen.health }
    }

    /// Returns in how long silence would be told of whoever works at the current step.
    pub(super) fn signs_change_in(&self, at: &Pipelines, state: &PipelineState) -> Option<Duration> {
        self.current_signs(at, state)?.change_in
    }

    /// Says since when nothing is heard, and what can be done. Nobody is ended for it.
    pub(super) fn silence_text(&self, at: &Pipelines, state: &PipelineState, what: Waits) -> Option<String> {
        let Signs { heard_at, health, .. } = self.current_signs(at, state)?;
        let health = health.map(|health| format!(", when it was {health}")).unwrap_or_default();
        let session = state.current_step()?.attempt.as_ref()?.session_id;
        Some(match what {
            Waits::Stalled => format!(
                "no sign of life since {heard_at}{health}: keep waiting, cancel its session {session} and resume the run, or abort the run"
            ),
            _ => format!("no heartbeat since {heard_at}{health}: still waiting for it"),
        })
    }

    fn current_signs(&self, at: &Pipelines, state: &PipelineState) -> Option<Signs> {
        let (_, step, stage) = current(state).ok()?;
        let session = step.attempt.as_ref()?.session_id;
        let session = at.store.open_session(session).ok()?.state;
        Some(self.signs(at, state, step, stage, &session))
    }
}
