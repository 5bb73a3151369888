//! The idleness of a session's agent: since when it has nothing to do, and its end when that is too long. The next message launches it
//! again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rekindle_domain::session::SessionState;

use super::idle_agents::IdleAgentPolicy;
use super::{Command, STOP_GRACE, Worker, Workers};
use crate::error::Result;
use crate::ticks;

/// How it stands with the idleness of a session's agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Idleness {
    /// It works, or there is none.
    #[default]
    Busy,
    /// It has nothing to do.
    Since(Instant),
    /// It was told to end: nothing is said to it any more.
    Ending,
}

impl Idleness {
    /// Returns how long an agent stays that is left alone.
    pub(super) fn patience(self, policy: IdleAgentPolicy) -> Option<Duration> {
        match self {
            Idleness::Since(since) => Some(policy.after?.saturating_sub(ticks::since(since))),
            Idleness::Busy | Idleness::Ending => None,
        }
    }
}

impl Worker {
    /// Looks whether the agent has nothing to do, and ends it if it has been so for long. Where there are too many, the one that has
    /// been idle longest is asked to end.
    pub(super) fn watch_idleness(&mut self, workers: &Arc<Workers>) -> Result<()> {
        let policy = workers.idle_policy;
        if policy == IdleAgentPolicy::KEEP_ALL || self.idleness == Idleness::Ending {
            return Ok(());
        }
        if !self.can_be_ended(workers)? {
            self.end_idleness(workers);
            return Ok(());
        }
        let since = match self.idleness {
            Idleness::Since(since) => since,
            Idleness::Busy | Idleness::Ending => ticks::now(),
        };
        self.idleness = Idleness::Since(since);
        let oldest = workers.idle_agents.note(self.session, since, policy.most);
        let is_due = policy.after.is_some_and(|after| ticks::since(since) >= after);
        if is_due || oldest == Some(self.session) {
            return self.end_idle_agent(workers);
        }
        if let Some(other) = oldest {
            workers.send_if_present(other, Command::EndIdle);
        }
        Ok(())
    }

    /// Ends the agent if it has nothing to do.
    pub(super) fn end_idle_agent(&mut self, workers: &Arc<Workers>) -> Result<()> {
        if !matches!(self.idleness, Idleness::Since(_)) || !self.can_be_ended(workers)? {
            return Ok(());
        }
        if let Some(live) = &mut self.live {
            tracing::info!("its agent is idle: it is ended, and comes back with the next message");
            live.stop("it was idle", "daemon", *STOP_GRACE)?;
            self.idleness = Idleness::Ending;
            workers.idle_agents.forget(self.session);
        }
        Ok(())
    }

    /// The agent has something to do, or is gone.
    pub(super) fn end_idleness(&mut self, workers: &Workers) {
        if std::mem::take(&mut self.idleness) != Idleness::Busy {
            workers.idle_agents.forget(self.session);
        }
    }

    /// Tells whether the agent has nothing to do and its conversation can be brought back.
    fn can_be_ended(&self, workers: &Workers) -> Result<bool> {
        let Some(live) = self.live.as_ref().filter(|live| !live.is_busy()) else { return Ok(false) };
        let can = live.connection().capabilities();
        if !(can.load || can.resume) || live.connection().cursor().is_none() || self.captures.need_care() {
            return Ok(false);
        }
        let state = workers.records.store.open_session(self.session)?.state;
        Ok(has_nothing_to_do(&state))
    }
}

fn has_nothing_to_do(state: &SessionState) -> bool {
    state.open_run().is_none() && state.queue.is_empty() && state.restoring.is_none()
}
