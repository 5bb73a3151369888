//! Tasks shown: where they stand, how far they have come, and what those wait for that wait for their turn.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use rekindle_domain::event::TaskStatus;
use rekindle_domain::id::TaskId;
use rekindle_domain::stall::stall_limit;
use rekindle_domain::task::scheduler::{By, Hold, Why};
use rekindle_domain::task::{Task, TasksState};
use rekindle_domain::time::Timestamp;
use rekindle_wire::view::{TaskList, TaskProgress, TaskUsage, TaskView};

use super::Tasks;
use super::list::row_view;
use super::update::unknown;
use crate::error::Result;
use crate::feed::{Feed, FollowTask, TaskFollowing, TaskPoint};

impl Tasks {
    /// Shows a task, open or ended.
    pub(crate) fn show(&self, id: TaskId) -> Result<TaskView> {
        let state = self.state()?;
        if let Some(task) = state.get(id) {
            let waits = self.waits(&state);
            return Ok(self.view_open(task, &waits));
        }
        // The database knows where it is; without one the log is read.
        let rows = self.database.tasks(vec![id]).unwrap_or_default();
        if let Some(row) = rows.into_iter().next() {
            return Ok(row_view(row));
        }
        let found = self.history(id)?.ok_or_else(|| unknown(id))?;
        let status = found.standing.status;
        let mut view = view(&found.task);
        (view.status, view.reason, view.ended_at) = (status, found.reason, found.ended_at);
        view.updated_at = found.ended_at.unwrap_or(view.updated_at);
        Ok(view)
    }

    /// Follows a task, behind an event or from its beginning.
    pub(crate) fn follow_task(
        &self,
        feed: &Arc<Feed>,
        id: TaskId,
        since: Option<TaskPoint>,
    ) -> Result<FollowTask> {
        let following = TaskFollowing::open(feed, &self.views, &self.store, id, since)?;
        following.ok_or_else(|| self.not_queued(id))
    }

    /// Shows several tasks that were just asked for.
    pub(crate) fn show_all(&self, ids: &[TaskId]) -> Result<Vec<TaskView>> {
        let state = self.state()?;
        let waits = self.waits(&state);
        ids.iter()
            .map(|id| match state.get(*id) {
                Some(task) => Ok(self.view_open(task, &waits)),
                None => self.show(*id),
            })
            .collect()
    }

    /// Lists the tasks that have not ended: those that run first, then those that wait, by rank.
    pub(crate) fn active(&self) -> Result<TaskList> {
        let state = self.state()?;
        let waits = self.waits(&state);
        let mut tasks: Vec<TaskView> = state.iter().map(|task| self.view_open(task, &waits)).collect();
        tasks.sort_by_key(|task| (task.status == TaskStatus::Pending, task.position, task.created_at));
        Ok(TaskList { tasks, next: None })
    }

    fn view_open(&self, task: &Task, waits: &HashMap<TaskId, (usize, String)>) -> TaskView {
        let mut view = view(task);
        if let Some((position, why)) = waits.get(&task.id).filter(|_| task.status == TaskStatus::Pending) {
            (view.position, view.waits_for) = (Some(*position), Some(why.clone()));
        }
        view.progress = self.progress(task);
        view
    }

    fn progress(&self, task: &Task) -> Option<TaskProgress> {
        let session = task.session_id.filter(|_| task.status != TaskStatus::Pending)?;
        let session = self.views.session(&self.views.directory.get(self.views.store(), session)?);
        let current = self.store.at_hand(session.id);
        let run = current.as_ref().and_then(|current| current.state.run.as_ref());
        let told = |tokens: u64| (tokens > 0).then_some(tokens);
        Some(TaskProgress {
            turns: task.attempt,
            tool_calls: run.map_or(0, |run| run.tool_calls),
            plan: run.and_then(|run| run.plan.clone()),
            last_words: session.last_words,
            usage: TaskUsage {
                input_tokens: told(session.usage.input_tokens),
                output_tokens: told(session.usage.output_tokens),
                cost: session.usage.cost,
            },
            last_output_at: session.evidence.last_output_at,
            stalled: self.is_stalled(task, session.evidence.last_output_at),
        })
    }

    /// Tells whether a task runs and nothing was heard of it for long. Nobody ends it for that.
    fn is_stalled(&self, task: &Task, last_output_at: Option<Timestamp>) -> bool {
        let most = stall_limit(self.stall_after, task.spec.provider.is_command());
        let heard = last_output_at.max(task.started_at).unwrap_or(task.updated_at);
        let now = self.views.workers.records.now();
        task.status == TaskStatus::Running && Duration::from_millis(now.millis_since(heard)) >= most
    }

    /// Returns the place of each task that waits, and what it waits for.
    fn waits(&self, state: &TasksState) -> HashMap<TaskId, (usize, String)> {
        if !state.has_pending() {
            return HashMap::new();
        }
        self.explain(state, |decision| {
            let begin = decision.begin.iter().map(|id| (*id, "its turn".to_owned()));
            let wait = decision.wait.iter().map(|waiting| (waiting.id, why_text(&waiting.why)));
            let both = begin.chain(wait).enumerate();
            both.map(|(at, (id, why))| (id, (at + 1, why))).collect()
        })
    }
}

/// Returns what a task is, without what only its session knows.
fn view(task: &Task) -> TaskView {
    let spec = &task.spec;
    TaskView {
        id: task.id,
        kind: spec.kind,
        parent_id: spec.parent_id,
        pipeline_run: None,
        title: spec.title.clone(),
        working_dir: spec.working_dir.clone(),
        branch: spec.worktree.as_ref().map(|worktree| worktree.branch.clone()),
        agent: spec.provider.name(),
        status: task.status,
        reason: task.reason.clone(),
        attempt: task.attempt,
        max_attempts: spec.max_attempts,
        session_id: task.session_id,
        run_id: task.run_id,
        priority: task.priority,
        not_before: task.not_before,
        deadline_at: spec.deadline_at,
        budget: spec.budget,
        labels: spec.labels.clone(),
        after: spec.after.clone(),
        created_by: spec.created_by.clone(),
        created_at: task.created_at,
        updated_at: task.updated_at,
        started_at: task.started_at,
        ended_at: None,
        position: None,
        waits_for: None,
        progress: None,
        files_touched: None,
        result: None,
        exit: None,
    }
}

/// Writes a time for people: nobody waits for a thousandth of a second.
fn to_the_second(at: Timestamp) -> String {
    let text = at.to_string();
    let second = text.get(..19).unwrap_or(&text).replace('T', " ");
    format!("{second} UTC")
}

/// Says what a task waits for.
pub(super) fn why_text(why: &Why<'_>) -> String {
    match why {
        Why::Held(Hold::Until(at)) => format!("not before {}", to_the_second(*at)),
        Why::Held(Hold::After(task)) => format!("after {task}"),
        Why::Held(Hold::DependencyFailed(task)) => format!("{task} has not ended successfully"),
        Why::Held(Hold::MissingVariables(names)) => format!("env_missing: {}", names.join(", ")),
        Why::Total => "the limit of running tasks is reached".into(),
        Why::Agent(agent) => format!("the limit of running tasks with {agent} is reached"),
        Why::Label(label) => format!("the limit of running tasks with the label {label} is reached"),
        Why::Directory(By::Run(run)) => format!("{run} is working in its directory"),
        Why::DayBudget(until) => format!("the budget of the day is used up, until {}", to_the_second(*until)),
        Why::Directory(By::Task(task)) => format!("{task} is working in its directory, or about to"),
    }
}
