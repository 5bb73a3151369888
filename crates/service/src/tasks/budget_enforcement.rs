//! Budgets held to: a run that has used what it, its session, its task or everything on one day may use is cancelled, and one that has
//! nearly done so says it.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::tz::TimeZone;
use rekindle_domain::budget::{Used, budget_notice, nothing_left, worst_notice};
use rekindle_domain::event::{
    Budget, BudgetNotice, BudgetScope, CancelReason, RunBudget, TaskChanged, TaskStatus,
};
use rekindle_domain::id::SessionId;
use rekindle_domain::session::{Run, SessionState};
use rekindle_domain::task::compose::{BUDGET_REASON, actor};
use rekindle_domain::task::{Task, TasksState};
use rekindle_domain::time::{Now, Timestamp};
use rekindle_wire::code::Code;

use super::Tasks;
use super::daily_usage::DailyUsage;
use crate::commands::cancel_run::cancel;
use crate::error::Result;
use crate::show::SessionEntry;
use crate::test_knobs::crash_point;

/// The budgets of everything in a home, as the daemon is configured.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct BudgetSettings {
    /// Of each run, with all attempts at it.
    pub run: Option<Budget>,
    /// Of each session.
    pub session: Option<Budget>,
    /// Of each task that brings none.
    pub task: Option<Budget>,
    /// Of everything on one day.
    pub day: Option<Budget>,
}

impl BudgetSettings {
    /// Tells whether runs have a budget that are no tasks.
    pub(super) fn concern_runs(&self) -> bool {
        self.of_runs().next().is_some()
    }

    fn of_runs(&self) -> impl Iterator<Item = &Budget> {
        [&self.run, &self.session, &self.day].into_iter().flatten()
    }
}

/// What was used on the day that it is, once anybody asked.
#[derive(Debug, Default)]
pub(super) struct Today(Mutex<Option<DailyUsage>>);

impl Tasks {
    /// Holds what goes on in all sessions to its budgets.
    pub(super) fn hold_all_to_budgets(&self, state: &TasksState, now: &Now) {
        if self.has_budgets(state) {
            self.used_today(None, now);
            for entry in self.open_runs() {
                self.hold_to_budgets(state, &entry.state, now);
            }
        }
    }

    /// Tells whether anything that goes on has a budget.
    fn has_budgets(&self, state: &TasksState) -> bool {
        self.budgets != BudgetSettings::default() || state.begun().any(|task| task.spec.budget.is_some())
    }

    /// Holds what goes on in a session to its budgets.
    pub(super) fn hold_session_to_budgets(&self, state: &TasksState, session: SessionId) {
        if !self.has_budgets(state) {
            return;
        }
        let entry = self.views.directory.get(self.views.store(), session);
        if let Some(entry) = entry.filter(|entry| !entry.state.deleted) {
            self.hold_to_budgets(state, &entry.state, &self.views.workers.records.time());
        }
    }

    fn hold_to_budgets(&self, state: &TasksState, session: &SessionState, now: &Now) {
        let of_day = self.used_today(Some(session), now);
        let Some(run) = session.open_run().filter(|run| run.cancel.is_none()) else { return };
        let task = run.task_id.and_then(|id| state.get(id)).map(|task| &**task);
        let of_task = task
            .and_then(|task| Some((task.spec.budget.or(self.budgets.task)?, self.used_by_task(task, now))));
        let budgets = [
            (BudgetScope::Task, of_task),
            (BudgetScope::Run, self.budgets.run.map(|budget| (budget, session.used_by_run(now)))),
            (BudgetScope::Session, self.budgets.session.map(|budget| (budget, session.used(now)))),
            (BudgetScope::Day, self.budgets.day.zip(of_day.map(|(used, _)| used))),
        ];
        let notices = budgets.into_iter().filter_map(|(scope, budget)| {
            let (budget, used) = budget?;
            budget_notice(scope, &budget, &used)
        });
        let Some(notice) = worst_notice(notices) else { return };
        let held = Held { session: session.id, run, task, notice };
        let outcome = if notice.exceeded { self.end_by_budget(&held) } else { self.note_budget(&held) };
        if let Err(error) = outcome {
            tracing::warn!(session = %session.id, "its budget is not enforced yet: {}", error.text());
        }
    }

    /// Notes that most of a budget is used, once for each run.
    fn note_budget(&self, held: &Held<'_>) -> Result<()> {
        if held.run.budget.is_some() {
            return Ok(());
        }
        self.record_budget(held)?;
        let Some(task) = held.task.filter(|task| task.cancel.is_none()) else { return Ok(()) };
        let reason = format!("{BUDGET_REASON}most of the {} is used", held.part());
        let actor = actor::BUDGET.into();
        let noted = TaskChanged { task_id: task.id, actor, priority: None, reason: Some(reason.into()) };
        self.append(vec![noted.into()])
    }

    /// Cancels a run that has used up a budget, and says before which one.
    fn end_by_budget(&self, held: &Held<'_>) -> Result<()> {
        if !held.run.budget.is_some_and(|noted| noted.exceeded) {
            self.record_budget(held)?;
        }
        crash_point("budget.noted");
        if let Some(task) = held.task {
            let reason = format!("{BUDGET_REASON}{}", held.part());
            return match task.cancel {
                None => self.end(task, actor::BUDGET, &reason, TaskStatus::Failed),
                Some(_) => Ok(()),
            };
        }
        match cancel(&self.views.workers, held.session, CancelReason::Budget, actor::BUDGET) {
            // It has just ended by itself.
            Err(error) if error.code == Code::NothingRunning => Ok(()),
            outcome => outcome.map(drop),
        }
    }

    fn record_budget(&self, held: &Held<'_>) -> Result<()> {
        let record = RunBudget { run_id: held.run.run_id, notice: held.notice };
        self.views.workers.records.append(held.session, vec![record.into()]).map(drop)
    }

    /// Returns what a task has used so far, in all its sessions.
    fn used_by_task(&self, task: &Task, now: &Now) -> Used {
        let sessions = task.earlier_sessions.iter().copied().chain(task.session_id);
        let current = |session| self.store.at_hand(session).or_else(|| self.store.open_session(session).ok());
        let used = sessions.filter_map(current).map(|current| current.state.used(now));
        let sum = used.fold(Used::default(), |sum, used| sum.plus(&used));
        Used { wall_ms: task.wall_ms(now), turns: task.attempt.into(), ..sum }
    }

    /// Returns what was used today and when today ends, if the day has a budget; takes in how a session stands. Messages are refused
    /// from the moment on at which nothing is left.
    fn used_today(&self, session: Option<&SessionState>, now: &Now) -> Option<(Used, Timestamp)> {
        let budget = self.budgets.day?;
        let mut today = self.today.0.lock().unwrap_or_else(PoisonError::into_inner);
        if today.as_ref().is_none_or(|day| !day.has(now.wall)) {
            let mut day = DailyUsage::new(now.wall, &TimeZone::system());
            let concerned = |entry: &SessionEntry| day.concerns(&entry.state);
            for entry in self.views.directory.find_all(self.views.store(), concerned) {
                day.add(&self.store, &entry.state, now);
            }
            *today = Some(day);
        }
        let day = today.as_mut()?;
        for open in day.open() {
            if let Some(current) = self.store.at_hand(open) {
                day.add(&self.store, &current.state, now);
            }
        }
        if let Some(state) = session {
            day.add(&self.store, state, now);
        }
        let (used, end) = (day.used(), day.end);
        let spent = nothing_left(BudgetScope::Day, &budget, &used).map(|notice| (notice, end));
        self.views.workers.budgets.set_day(spent);
        Some((used, end))
    }

    /// Returns when tasks may begin again, if the budget of the day is used up.
    pub(super) fn none_before(&self, now: &Now) -> Option<Timestamp> {
        let (used, end) = self.used_today(None, now)?;
        nothing_left(BudgetScope::Day, &self.budgets.day?, &used).map(|_| end)
    }

    /// Returns how long it is until the time is used up that runs may take which are no tasks.
    pub(super) fn next_run_end(&self) -> Option<Duration> {
        if !self.budgets.of_runs().any(|budget| budget.wall_s.is_some()) {
            return None;
        }
        self.next_budget_end(&self.state().ok()?, &self.views.workers.records.time())
    }

    /// Returns how long it is until the time of something that runs is used up, or nearly so.
    pub(super) fn next_budget_end(&self, state: &TasksState, now: &Now) -> Option<Duration> {
        let left = |most: Option<u64>, used: u64, at_once: u64| {
            let most = most?.saturating_mul(1000);
            // Once it is nearly used up, and once it is.
            let next = [most / 10 * 8, most].into_iter().find(|at| *at > used)?;
            Some(Duration::from_millis(((next - used) / at_once.max(1)).max(1)))
        };
        let running = state.begun().filter(|task| task.cancel.is_none());
        let of_tasks = running.filter_map(|task| {
            let budget = task.spec.budget.or(self.budgets.task)?;
            left(budget.wall_s, task.wall_ms(now), 1)
        });
        let of_runs = self.budgets.of_runs().any(|budget| budget.wall_s.is_some()).then(|| {
            let open = self.open_runs();
            let wall = |budget: Option<Budget>| budget.and_then(|budget| budget.wall_s);
            let of_run = |entry: &SessionEntry| {
                let state = &entry.state;
                let run = left(wall(self.budgets.run), state.used_by_run(now).wall_ms, 1);
                run.into_iter().chain(left(wall(self.budgets.session), state.used(now).wall_ms, 1)).min()
            };
            let of_day = self.used_today(None, now).filter(|_| !open.is_empty());
            let of_day =
                of_day.and_then(|(used, _)| left(wall(self.budgets.day), used.wall_ms, open.len() as u64));
            open.iter().filter_map(of_run).chain(of_day).min()
        });
        of_tasks.chain(of_runs.flatten()).min()
    }

    /// Returns the sessions in which a run goes on that nobody has cancelled.
    fn open_runs(&self) -> Vec<SessionEntry> {
        let is_open = |entry: &SessionEntry| entry.state.open_run().is_some_and(|run| run.cancel.is_none());
        self.views.directory.find_all(self.views.store(), is_open)
    }
}

/// A run that is held to a budget.
struct Held<'a> {
    session: SessionId,
    run: &'a Run,
    task: Option<&'a Task>,
    notice: BudgetNotice,
}

impl Held<'_> {
    /// Returns which part of which budget it is, in words.
    fn part(&self) -> String {
        let BudgetNotice { scope, part, .. } = self.notice;
        match scope {
            BudgetScope::Task => part.name().to_owned(),
            scope => format!("{} of the {}", part.name(), scope.as_str()),
        }
    }
}
