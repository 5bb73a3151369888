//! Budgets of tasks held to: a task that has used what it may use is ended, and one that has nearly done so says it.

use std::time::Duration;

use rekindle_domain::event::{TaskChanged, TaskStatus};
use rekindle_domain::task::budget::{BudgetState, Used, budget_state};
use rekindle_domain::task::compose::{BUDGET_REASON, actor};
use rekindle_domain::task::{Task, TasksState};
use rekindle_domain::time::Now;

use super::Tasks;
use crate::error::Result;

impl Tasks {
    /// Ends a task that has used what it may use, and notes it of one that has nearly done so.
    pub(super) fn hold_to_budget(&self, task: &Task, now: &Now) -> Result<()> {
        let Some(budget) = &task.spec.budget else { return Ok(()) };
        match budget_state(budget, &self.used(task, now)) {
            BudgetState::Within => Ok(()),
            BudgetState::Exceeded(what) => {
                self.end(task, actor::BUDGET, &format!("{BUDGET_REASON}{what}"), TaskStatus::Failed)
            }
            BudgetState::Nearly(_)
                if task.reason.as_deref().is_some_and(|why| why.starts_with(BUDGET_REASON)) =>
            {
                Ok(())
            }
            BudgetState::Nearly(what) => {
                let reason = Some(format!("{BUDGET_REASON}most of its {what} is used").into());
                let noted =
                    TaskChanged { task_id: task.id, actor: actor::BUDGET.into(), priority: None, reason };
                self.append(vec![noted.into()])
            }
        }
    }

    /// Returns what a task has used so far.
    fn used(&self, task: &Task, now: &Now) -> Used {
        let current = task.session_id.and_then(|session| {
            self.store.at_hand(session).or_else(|| self.store.open_session(session).ok())
        });
        let usage = current.map(|current| current.state.usage.shown());
        let tokens = usage.as_ref().map(|usage| usage.input_tokens.saturating_add(usage.output_tokens));
        Used {
            // An agent that tells none has not used none.
            tokens: tokens.filter(|tokens| *tokens > 0),
            cost: usage.and_then(|usage| usage.cost),
            wall_s: task.wall_ms(now) / 1000,
            turns: task.attempt.into(),
        }
    }
}

/// Returns how long it is until the time of a task that runs is used up.
pub(super) fn next_budget_end(state: &TasksState, now: &Now) -> Option<Duration> {
    let running = state.iter().filter(|task| task.status != TaskStatus::Pending && task.cancel.is_none());
    let left = running.filter_map(|task| {
        let most = task.spec.budget.as_ref()?.wall_s?.saturating_mul(1000);
        // Once it is nearly used up, and once it is.
        let used = task.wall_ms(now);
        let next = [most / 10 * 8, most].into_iter().find(|at| *at > used)?;
        Some(Duration::from_millis((next - used).max(1)))
    });
    left.min()
}
