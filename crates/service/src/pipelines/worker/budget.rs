//! The budget of a run: what its steps used, in all attempts, whether anything is left, and whether it is time to say that not much is.

use std::time::Duration;

use rekindle_domain::budget::{Used, budget_notice, nothing_left};
use rekindle_domain::event::{BudgetPart, BudgetScope, Event, PipelineBudget};
use rekindle_domain::id::SessionId;
use rekindle_domain::pipeline::PipelineState;

use super::super::Pipelines;
use super::Worker;
use crate::error::Result;
use crate::log_search::for_each_line;

impl Worker {
    /// Returns the part of the run's budget of which nothing is left: for what goes on, or else for another attempt.
    pub(super) fn spent(&mut self, at: &Pipelines, state: &PipelineState) -> Option<BudgetPart> {
        let budget = state.budget()?;
        let used = self.used_so_far(at, state);
        let goes_on = state.current_step().is_some_and(|step| step.open_attempt().is_some());
        let told = if goes_on { budget_notice } else { nothing_left };
        let notice = told(BudgetScope::Run, &budget, &used).filter(|notice| notice.exceeded)?;
        Some(notice.part)
    }

    /// Notes in the ledger that most of the run's budget is used, if that is so: whoever records it tells people elsewhere. Tells whether
    /// it was noted.
    pub(super) fn note_budget(&mut self, at: &Pipelines, state: &PipelineState) -> Result<bool> {
        if state.budget().is_none() {
            return Ok(false);
        }
        let used = self.used_so_far(at, state);
        let Some(notice) = state.budget_notice(&used) else { return Ok(false) };
        tracing::info!("{notice}");
        self.append(at, state, vec![PipelineBudget { notice }.into()])?;
        Ok(true)
    }

    /// Returns how long it is until the time that the run may take is used up, or nearly so, if one goes on.
    pub(super) fn budget_time_left(&mut self, at: &Pipelines, state: &PipelineState) -> Option<Duration> {
        let most = state.budget()?.wall_s?.saturating_mul(1000);
        state.current_step()?.open_attempt()?;
        let used = self.used_so_far(at, state).wall_ms;
        let next = [most / 10 * 8, most].into_iter().find(|at| *at > used).unwrap_or(most);
        Some(Duration::from_millis(next.saturating_sub(used).max(1)))
    }

    /// Returns what all sessions of the run have used. One that was removed has taken with it what it used.
    fn used_so_far(&mut self, at: &Pipelines, state: &PipelineState) -> Used {
        let now = at.views.workers.records.time();
        let mut used = self.used_before.take().unwrap_or_else(|| self.sessions_of_ledger(at));
        let current =
            state.last_step().and_then(|step| step.attempt.as_ref()).map(|attempt| attempt.session_id);
        if let Some(current) = current {
            used.entry(current).or_default();
        }
        for (session, known) in &mut used {
            // Nothing is added to those of before.
            if known.is_some() && Some(*session) != current {
                continue;
            }
            let found = at.store.at_hand(*session).or_else(|| at.store.open_session(*session).ok());
            *known = found.map(|found| found.state.used(&now)).or(*known);
        }
        let sum = used.values().flatten().fold(Used::default(), |sum, used| sum.plus(used));
        self.used_before = Some(used);
        sum
    }

    fn sessions_of_ledger(&self, at: &Pipelines) -> std::collections::BTreeMap<SessionId, Option<Used>> {
        let mut sessions = std::collections::BTreeMap::new();
        if let Ok(reader) = at.store.ledger_reader(self.id) {
            let read = for_each_line(&reader, |line| {
                if let Ok(Event::StepBegan(began)) = line.event() {
                    sessions.insert(began.session_id, None);
                }
            });
            if let Err(error) = read {
                tracing::warn!("the usage of its steps is not fully known: {error}");
            }
        }
        sessions
    }
}
