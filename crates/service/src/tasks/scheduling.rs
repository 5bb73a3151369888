//! The loop of the scheduler: looks at what waits and what runs, asks the domain, and begins what may.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use rekindle_domain::event::TaskStatus;
use rekindle_domain::id::{SessionId, TaskId};
use rekindle_domain::task::dependencies::with_dependents;
use rekindle_domain::task::scheduler::{By, Decision, Hold, Limits, OpenRun, Pending, Why, Work, decide};
use rekindle_domain::task::{Task, TasksState, compose};
use rekindle_domain::time::{Now, Timestamp};
use rekindle_wire::code::Code;

use super::show::why_text;
use super::step_places::{PlaceAnswer, PlacesSeen, WantedPlace};
use super::{Tasks, Wake};
use crate::error::{Result, chain};
use crate::show::SessionEntry;

/// When to look again although nothing has happened: clocks jump, and links change.
const AT_LEAST_EVERY: Duration = Duration::from_secs(60);

/// When to look again after something could not be recorded: room on a disk comes back.
const AGAIN: Duration = Duration::from_secs(1);

/// Records of the stream between two caches of it: that many are read at a start at most.
const CACHED_EVERY: u64 = 2_000;

impl Tasks {
    /// Begins to do what is due, until the tasks are gone; returns at once.
    pub(crate) fn begin_thread(self: &Arc<Tasks>) -> std::io::Result<()> {
        self.database.begin_thread()?;
        let (weak, wake) = (Arc::downgrade(self), self.wake.clone());
        std::thread::Builder::new().name("tasks".into()).spawn(move || run(&weak, &wake)).map(drop)
    }

    /// Leaves: what has not ended is written, so that the next start is short.
    pub(crate) fn leave(&self) {
        self.wake.stop();
        self.database.leave();
        if let Err(error) = self.store.cache_tasks() {
            tracing::warn!("the list of active tasks cannot be written: {}", chain(&error));
        }
    }
}

fn run(weak: &Weak<Tasks>, wake: &Wake) {
    // Sessions whose tasks could not be told what they say.
    let mut behind = weak.upgrade().map(|tasks| tasks.resume_all()).unwrap_or_default();
    let (mut cached, mut due) = (0, Instant::now());
    loop {
        let mut happened = wake.wait(due.saturating_duration_since(Instant::now()));
        let Some(tasks) = weak.upgrade().filter(|_| !happened.stop) else { return };
        happened.sessions.extend(&behind);
        behind = tasks.follow_all(&happened.sessions, &behind);
        // A run that has just begun may have to be looked at before anything else is due.
        let next = Some(()).filter(|()| !happened.sessions.is_empty()).and_then(|()| tasks.next_run_end());
        due = next.map_or(due, |next| due.min(Instant::now() + next));
        // A session whose run goes on makes room for nobody: what it says is no reason to decide about all who wait.
        let makes_room = || happened.sessions.iter().any(|session| !tasks.has_open_run(*session));
        if happened.tasks || Instant::now() >= due || makes_room() {
            due = Instant::now() + tasks.look(&mut cached);
        }
        if !behind.is_empty() {
            due = due.min(Instant::now() + AGAIN);
        }
    }
}

/// Everything that a decision is made from, in memory of its own.
struct Seen {
    pending: Vec<SeenTask>,
    steps: Vec<(WantedPlace, Arc<Path>)>,
    /// Directories that pipeline runs have to themselves.
    held: Vec<(TaskId, Arc<Path>)>,
    open: Vec<(OpenRunOf, Arc<Path>)>,
}

struct SeenTask {
    task: Arc<Task>,
    directory: Arc<Path>,
    agent: String,
    missing: Vec<String>,
}

struct OpenRunOf {
    id: rekindle_domain::id::RunId,
    task: Option<Arc<Task>>,
    /// It is an attempt at a step.
    is_step: bool,
    agent: String,
}

impl Tasks {
    /// Looks at the tasks once: fails what can never begin, begins what may, and returns when to look again.
    fn look(&self, cached: &mut u64) -> Duration {
        let is_asked = self.steps.get().is_some_and(|steps| steps.is_asked());
        let state = match self.state() {
            Ok(state) => state,
            Err(error) => {
                tracing::error!("tasks cannot be checked: {}", error.text());
                // Steps do not wait for tasks of which nobody knows.
                let nobody = TasksState::default();
                let now = self.views.workers.records.time();
                let decided = is_asked.then(|| self.schedule(&nobody, &now));
                return decided.and_then(Result::ok).unwrap_or(AT_LEAST_EVERY);
            }
        };
        let ignores_sessions = state.is_empty() && !self.budgets.concern_runs() && !is_asked;
        self.wake.ignores_sessions.store(ignores_sessions, Ordering::Relaxed);
        let last = state.position().last_seq;
        if last >= *cached + CACHED_EVERY {
            match self.store.cache_tasks() {
                Ok(_) => *cached = last,
                Err(error) => {
                    tracing::warn!("the list of active tasks cannot be written: {}", chain(&error))
                }
            }
        }
        if self.views.workers.is_stopping() || self.views.workers.is_superseded() {
            return AT_LEAST_EVERY;
        }
        let now = self.views.workers.records.time();
        self.end_what_must(&state, &now);
        self.hold_all_to_budgets(&state, &now);
        if !state.has_pending() && !is_asked {
            return self.next_deadline(&state, &now);
        }
        match self.schedule(&state, &now) {
            Ok(patience) => patience.min(self.next_deadline(&state, &now)),
            Err(error) => {
                tracing::warn!("tasks wait: {}", error.text());
                AGAIN
            }
        }
    }

    /// Tells whether a run goes on in a session, as far as is known without waiting.
    fn has_open_run(&self, session: SessionId) -> bool {
        self.store.at_hand(session).is_some_and(|current| current.state.open_run().is_some())
    }

    fn schedule(&self, state: &TasksState, now: &Now) -> Result<Duration> {
        let (seen, limits) = (self.see(state), self.limits_now(now));
        let decision = seen.decide(&limits, now);
        let look_again = decision.look_again;
        let of = |id: TaskId| state.get(id).map(Arc::as_ref);
        // All at once: a long chain is not gone along one decision after the other.
        let failed: Vec<_> = with_dependents(state, decision.fail.clone())
            .into_iter()
            .filter_map(|(id, why)| of(id).map(|task| compose::fail_pending(task, why)))
            .collect();
        if !failed.is_empty() {
            self.append(failed)?;
        }
        self.tell_steps(state, &decision);
        for task in decision.begin.iter().filter_map(|id| of(*id)) {
            match self.begin(task) {
                Ok(()) => tracing::info!(task = %task.id, "begun"),
                // Somebody changed it meanwhile, or began something where it works.
                Err(error) if matches!(error.code, Code::TaskStateConflict | Code::Moved) => self.wake.look(),
                Err(error) => return Err(error),
            }
        }
        let patience = look_again.map(|at| Duration::from_millis(at.millis_since(now.wall)));
        Ok(patience
            .map_or(AT_LEAST_EVERY, |patience| patience.clamp(Duration::from_millis(1), AT_LEAST_EVERY)))
    }

    /// Tells the steps of pipeline runs that ask for a place what was decided.
    fn tell_steps(&self, state: &TasksState, decision: &Decision<'_>) {
        let Some(steps) = self.steps.get() else { return };
        let is_step = |id: &TaskId| state.get(*id).is_none();
        for run in decision.begin.iter().filter(|id| is_step(id)) {
            steps.tell(*run, PlaceAnswer::Granted);
        }
        for waiting in decision.wait.iter().filter(|waiting| is_step(&waiting.id)) {
            let is_directory = matches!(waiting.why, Why::Directory(_));
            steps.tell(waiting.id, PlaceAnswer::Waits { why: why_text(&waiting.why), is_directory });
        }
    }

    /// Asks for the end of what runs behind its deadline or has used up its budget, and has every wish for an end carried out that was recorded: whoever
    /// recorded it may have died before anybody was told.
    fn end_what_must(&self, state: &TasksState, now: &Now) {
        for task in state.begun() {
            let is_late = task.spec.deadline_at.is_some_and(|deadline| now.is_past(deadline));
            let ended = match &task.cancel {
                Some(cancel) => self.cancel_run(task, cancel),
                None if is_late => {
                    self.end(task, compose::actor::SCHEDULER, compose::DEADLINE_REASON, TaskStatus::Failed)
                }
                None => Ok(()),
            };
            if let Err(error) = ended {
                tracing::warn!(task = %task.id, "it is due to end, but cannot be cancelled yet: {}", error.text());
            }
        }
    }

    /// Returns how long it is until the first deadline of a task that runs, or the end of the time that something may take.
    fn next_deadline(&self, state: &TasksState, now: &Now) -> Duration {
        let running = state.begun().filter(|task| task.cancel.is_none());
        let deadline = running.filter_map(|task| task.spec.deadline_at).map(|at| now.millis_until(at)).min();
        let deadline = deadline.map(|left| Duration::from_millis(left.max(1)));
        [deadline, self.next_budget_end(state, now)].into_iter().flatten().fold(AT_LEAST_EVERY, Duration::min)
    }

    /// Returns the limits of this moment.
    fn limits_now(&self, now: &Now) -> Limits {
        Limits { none_before: self.none_before(now), ..self.limits.clone() }
    }

    /// Decides as the scheduler would now, for whoever wants to know why a task waits.
    pub(super) fn explain<T>(&self, state: &TasksState, tell: impl FnOnce(&Decision<'_>) -> T) -> T {
        let (seen, now) = (self.see(state), self.views.workers.records.time());
        tell(&seen.decide(&self.limits_now(&now), &now))
    }

    fn see(&self, state: &TasksState) -> Seen {
        // Before sessions are: a step that begins meanwhile is seen twice, and not never.
        let PlacesSeen { wanted, held } = self.steps.get().map(|steps| steps.see()).unwrap_or_default();
        let environment = &self.views.workers.agents.environment;
        let mut files = HashMap::new();
        let pending = state
            .iter()
            .filter(|task| task.status == TaskStatus::Pending)
            .map(|task| SeenTask {
                directory: self.real.of(&task.spec.working_dir),
                agent: task.spec.provider.name(),
                missing: match task.spec.env_names.is_empty() {
                    true => Vec::new(),
                    false => {
                        let (provider, brought) = (&task.spec.provider, self.brought(task.id));
                        // Once for all tasks of an agent.
                        let file =
                            files.entry(provider.name()).or_insert_with(|| environment.of_file(provider));
                        environment.lacking(&task.spec.env_names, provider, [&brought, file])
                    }
                },
                task: task.clone(),
            })
            .collect();
        let is_open = |entry: &SessionEntry| entry.state.open_run().is_some();
        let open = self.views.directory.find_all(self.views.store(), is_open);
        let open = open
            .iter()
            .filter_map(|entry| {
                let run = entry.state.open_run()?;
                let task = run.task_id.and_then(|id| state.get(id)).cloned();
                let agent = entry.state.provider.name();
                let directory = self.real.of(&entry.state.working_dir);
                let is_step = entry.state.parent.is_some();
                Some((OpenRunOf { id: run.run_id, task, is_step, agent }, directory))
            })
            .collect();
        let steps = wanted.into_iter().map(|wanted| {
            let directory = self.real.of(&wanted.directory);
            (wanted, directory)
        });
        let held = held.into_iter().map(|(run, directory)| (run, Arc::from(directory)));
        Seen { pending, steps: steps.collect(), held: held.collect(), open }
    }
}

impl Seen {
    fn decide<'a>(&'a self, limits: &'a Limits, now: &Now) -> Decision<'a> {
        let waiting = self.steps.iter().filter(|(step, _)| !step.granted);
        let waiting = waiting.map(|(step, directory)| step_pending(step, directory));
        let pending = self.pending.iter().map(|task| task.pending(now)).chain(waiting).collect();
        let granted = self.steps.iter().filter(|(step, _)| step.granted).map(|(step, directory)| OpenRun {
            by: By::Task(step.task),
            work: step_work(step, directory),
            is_task: true,
        });
        let held = self.held.iter().map(|(run, directory)| OpenRun {
            by: By::Task(*run),
            work: Work { agent: "", directory, is_shared: false, labels: &[] },
            is_task: false,
        });
        let open: Vec<OpenRun<'a>> = self
            .open
            .iter()
            .map(|(run, directory)| OpenRun {
                by: By::Run(run.id),
                work: Work {
                    agent: &run.agent,
                    directory,
                    is_shared: run.task.as_ref().is_some_and(|task| task.spec.shared),
                    labels: run.task.as_ref().map_or(&[], |task| &task.spec.labels),
                },
                is_task: run.task.is_some() || run.is_step,
            })
            .chain(granted)
            .chain(held)
            .collect();
        decide(pending, &open, limits, now.wall)
    }
}

/// A step that waits for its place, as the scheduler sees it.
fn step_pending<'a>(step: &'a WantedPlace, directory: &'a Path) -> Pending<'a> {
    Pending {
        id: step.task,
        priority: 0,
        created_at: step.started_at,
        eligible_at: step.asked_at,
        hold: None,
        deadline: None,
        work: step_work(step, directory),
    }
}

/// What a step takes up. In a directory that its run has nobody else works, and it is in nobody's way there.
fn step_work<'a>(step: &'a WantedPlace, directory: &'a Path) -> Work<'a> {
    Work { agent: &step.agent, directory, is_shared: step.has_directory, labels: &[] }
}

impl SeenTask {
    fn pending(&self, now: &Now) -> Pending<'_> {
        let task = &self.task;
        // What only a clock says that was set ahead is not too late.
        let is_credible = |deadline: &Timestamp| *deadline > now.wall || now.is_past(*deadline);
        let hold = match (task.failed_dependency, task.unmet.first()) {
            (Some(on), _) => Some(Hold::DependencyFailed(on)),
            (None, Some(on)) => Some(Hold::After(on.task_id)),
            (None, None) if !self.missing.is_empty() => Some(Hold::MissingVariables(&self.missing)),
            (None, None) => task.not_before.map(Hold::Until),
        };
        Pending {
            id: task.id,
            priority: task.priority,
            created_at: task.created_at,
            eligible_at: task.eligible_at,
            hold,
            deadline: task.spec.deadline_at.filter(is_credible),
            work: Work {
                agent: &self.agent,
                directory: &self.directory,
                is_shared: task.spec.shared,
                labels: &task.spec.labels,
            },
        }
    }
}
