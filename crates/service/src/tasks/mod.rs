//! The tasks of a home: asked for, begun when it is their turn, followed through their sessions, ended. A thread of its own does what
//! is due; every decision is the domain's, and everything that is true of a task is in the stream of tasks.

mod begin;
mod budget_enforcement;
mod canonical_paths;
mod create;
mod daily_usage;
mod follow;
mod list;
mod recovery;
mod resume_prompt;
mod retry;
mod scheduling;
mod show;
mod step_places;
mod update;
mod wake;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use rekindle_domain::event::{EndedTask, TaskStatus};
use rekindle_domain::id::{StreamId, TaskId};
use rekindle_domain::line::Draft;
use rekindle_domain::task::TasksState;
use rekindle_domain::task::scheduler::Limits;
use rekindle_store::commit::{Append, Expect};
use rekindle_store::{AppendError, Store};
use rekindle_wire::code::Code;

pub use self::budget_enforcement::BudgetSettings;
use self::budget_enforcement::Today;
use self::canonical_paths::CanonicalPaths;
pub(crate) use self::step_places::{PlaceAnswer, PlacesSeen, StepPlaces, WantedPlace};
pub(crate) use self::wake::Wake;
use crate::drive::environment::Env;
use crate::error::{Result, ServiceError, damaged_log};
use crate::lock::{NamedLocks, locked};
use crate::show::Views;
use crate::task_database::TaskDatabase;
use crate::task_history::{TaskHistory, read_history};
use crate::task_rows::DatabaseSettings;

/// How tasks are scheduled, as the daemon is configured.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TaskSettings {
    /// Tasks that may run at once; as many as there are processors without it, and two at least.
    pub limit: Option<usize>,
    /// With one agent, by its name.
    pub agents: BTreeMap<String, usize>,
    /// With one label.
    pub labels: BTreeMap<String, usize>,
    /// After how long a task is shown as stalled whose agent says nothing; as usual without it.
    pub stall_after: Option<Duration>,
    /// The most that runs, sessions, tasks and days may use.
    pub budgets: BudgetSettings,
    /// Which database they are written to, for questions.
    pub database: DatabaseSettings,
}

impl TaskSettings {
    fn limits(&self) -> Limits {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Limits {
            total: self.limit.unwrap_or(processors.max(2)),
            agents: self.agents.clone(),
            labels: self.labels.clone(),
            none_before: None,
        }
    }
}

/// The tasks of a home.
pub(crate) struct Tasks {
    store: Arc<Store>,
    views: Arc<Views>,
    limits: Limits,
    stall_after: Option<Duration>,
    budgets: BudgetSettings,
    today: Today,
    /// Where questions about tasks are answered that have ended.
    database: Arc<TaskDatabase>,
    /// What callers brought for agents of tasks that have not begun: in memory only.
    brought: Mutex<HashMap<TaskId, Env>>,
    real: CanonicalPaths,
    /// Who asks for places beside tasks.
    steps: OnceLock<Box<dyn StepPlaces>>,
    pub(crate) wake: Arc<Wake>,
    /// Held by whoever asks for tasks with an idempotency key, in the name of that.
    keyed: NamedLocks,
}

impl Tasks {
    /// Opens the tasks of a home. Nothing begins yet.
    pub(crate) fn new(
        store: Arc<Store>,
        views: Arc<Views>,
        settings: &TaskSettings,
        database: Arc<TaskDatabase>,
        wake: Arc<Wake>,
    ) -> Tasks {
        Tasks {
            store,
            views,
            limits: settings.limits(),
            stall_after: settings.stall_after,
            budgets: settings.budgets,
            today: Today::default(),
            database,
            brought: Mutex::default(),
            real: CanonicalPaths::default(),
            steps: OnceLock::new(),
            wake,
            keyed: NamedLocks::default(),
        }
    }

    /// Decides about steps too, which count among the tasks.
    pub(crate) fn count_steps(&self, steps: Box<dyn StepPlaces>) {
        let _ = self.steps.set(steps);
    }

    /// Returns the tasks that have not ended, as of everything answered before.
    fn state(&self) -> Result<TasksState> {
        let tasks = self.store.open_tasks()?;
        match &tasks.damage {
            None => Ok(tasks.fold),
            Some(damage) => Err(ServiceError::new(Code::TasksDamaged, damaged_log(damage))),
        }
    }

    /// Returns how a task has ended; none if it has not, or there is none.
    fn ended_status(&self, id: TaskId) -> Result<Option<TaskStatus>> {
        let found = self.history(id)?;
        Ok(found.map(|found| found.standing.status).filter(|status| status.is_ended()))
    }

    /// Returns a task that has ended, whole.
    fn ended(&self, id: TaskId) -> Result<Option<EndedTask>> {
        Ok(self.history(id)?.and_then(|found| found.task_ended()))
    }

    /// Reads what the log says of a task.
    fn history(&self, id: TaskId) -> Result<Option<TaskHistory>> {
        read_history(&self.store, id).map_err(|error| ServiceError::caused_by(Code::Storage, error))
    }

    /// Appends to the stream of tasks alone.
    fn append(&self, records: Vec<Draft>) -> Result<()> {
        self.store.append(Append::durable(StreamId::tasks(), records)).map(drop).map_err(refused)
    }

    /// The same, if nothing was added meanwhile to what somebody decided from.
    fn append_to(&self, state: &TasksState, records: Vec<Draft>) -> Result<()> {
        let expect = Expect::LastSeq(state.position().last_seq);
        let append = Append { expect, ..Append::durable(StreamId::tasks(), records) };
        self.store.append(append).map(drop).map_err(refused)
    }

    /// Returns what was brought for a task.
    fn brought(&self, task: TaskId) -> Env {
        locked(&self.brought).get(&task).cloned().unwrap_or_default()
    }
}

/// Says that a task does not stand where something could be done to it; anything else is told as it is.
fn refused(error: AppendError) -> ServiceError {
    match error {
        AppendError::IllegalTransition(illegal) => ServiceError::new(Code::TaskStateConflict, illegal.why),
        error => error.into(),
    }
}
