//! Runs as tasks: each is one, and the attempts at its steps are parts of it. What is shown here is as of now, from memory; lists of what
//! has ended come from the database of tasks.

use rekindle_domain::event::{TaskKind, TaskStatus};
use rekindle_domain::id::{PipelineId, RunName, TaskId};
use rekindle_domain::pipeline::next_step::Waits;
use rekindle_domain::pipeline::{PipelineState, RunStatus};
use rekindle_domain::session::{PlanProgress, SessionState};
use rekindle_domain::time::Timestamp;
use rekindle_wire::view::{PendingStep, PendingWhy, PipelineView, TaskProgress, TaskUsage, TaskView};

use super::Pipelines;
use crate::error::{Result, ServiceError};
use crate::lock::locked;

/// The agent of a run: it has one for each stage.
const PIPELINE: &str = "pipeline";

/// Runs that have not ended, counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct PipelineCounts {
    /// Whose step an agent or a command works at, or is about to.
    pub(crate) working: usize,
    /// Whose step waits for a place, a directory, a person that its agent has asked, or a while.
    pub(crate) waiting: usize,
    /// That go on when somebody resumes them.
    pub(crate) resting: usize,
}

impl Pipelines {
    /// Counts the runs that have not ended, from memory.
    pub(crate) fn counts(&self) -> PipelineCounts {
        let mut counts = PipelineCounts::default();
        for standing in locked(&self.standings).values() {
            let count = match (standing.waits, standing.rests) {
                (_, Some(_)) => &mut counts.resting,
                (None | Some(Waits::Agent), None) => &mut counts.working,
                (Some(_), None) => &mut counts.waiting,
            };
            *count += 1;
        }
        counts
    }

    /// Returns the run that a task is, if it is one.
    pub(crate) fn run_of(&self, task: TaskId) -> Option<PipelineId> {
        let run = PipelineId::from_ulid(task.to_ulid()?);
        RunName::of(run)?;
        self.store.has_pipeline(run).ok()?.then_some(run)
    }

    /// Shows a run as the task that it is.
    pub(crate) fn show_task(&self, run: PipelineId) -> Result<TaskView> {
        let state = self.open(run)?.fold;
        self.task_view(&state).ok_or_else(ServiceError::moved)
    }

    /// Returns the runs that have not ended, as tasks, each with the attempt that goes on.
    pub(crate) fn active(&self) -> Vec<TaskView> {
        let mut runs: Vec<PipelineId> = locked(&self.standings).keys().copied().collect();
        runs.sort_unstable();
        let mut tasks = Vec::new();
        for run in runs {
            let Ok(opened) = self.open(run) else { continue };
            if opened.fold.status != RunStatus::Running {
                continue;
            }
            let Some(view) = self.task_view(&opened.fold) else { continue };
            let attempt = opened.fold.current_step().and_then(|step| step.open_attempt());
            let session = attempt.and_then(|attempt| self.store.open_session(attempt.session_id).ok());
            let part = session.and_then(|session| part_view(&session.state, view.id));
            tasks.push(view);
            tasks.extend(part);
        }
        tasks
    }

    fn task_view(&self, state: &PipelineState) -> Option<TaskView> {
        let (view, started) = (self.view(state)?, state.started.as_deref()?);
        let (status, reason, waits_for) = standing(&view);
        let title = format!("{}: {}", view.task_id, view.goal.lines().next().unwrap_or_default());
        let told = |tokens: u64| (tokens > 0).then_some(tokens);
        let usage = TaskUsage {
            input_tokens: told(view.usage.input_tokens),
            output_tokens: told(view.usage.output_tokens),
            cost: view.usage.cost,
        };
        let last = view.stages.iter().rev().find(|step| step.outcome.is_some());
        let last_words = last.and_then(|step| Some(format!("{}: {}", step.step_id, step.outcome.as_ref()?)));
        let updated_at = updated_at(&view);
        Some(TaskView {
            kind: TaskKind::Pipeline,
            pipeline_run: Some(view.run_id.clone()),
            title,
            status,
            reason,
            waits_for,
            budget: started.budget,
            created_by: Some(view.by.clone()),
            ended_at: view.ended_at,
            progress: Some(TaskProgress {
                turns: view.stages.iter().map(|step| step.attempts).sum(),
                tool_calls: 0,
                plan: plan(&view),
                last_words,
                usage,
                last_output_at: None,
                stalled: false,
            }),
            ..plain(
                TaskId::from_ulid(state.id.to_ulid()?),
                (PIPELINE.to_owned(), view.working_dir),
                (view.started_at, updated_at),
            )
        })
    }
}

/// Returns where a run stands as a task, why, and what its step waits for before it begins.
fn standing(view: &PipelineView) -> (TaskStatus, Option<String>, Option<String>) {
    let ended = |status: TaskStatus| (status, view.reason.clone(), None);
    match view.status {
        RunStatus::Completed => return ended(TaskStatus::Completed),
        RunStatus::Failed => return ended(TaskStatus::Failed),
        RunStatus::Aborted => return ended(TaskStatus::Cancelled),
        RunStatus::Running => {}
    }
    let Some(PendingStep { step_id, why, detail, .. }) = &view.pending else {
        return (TaskStatus::Running, None, None);
    };
    let words = detail.clone().unwrap_or_else(|| why.as_str().to_owned());
    let said = format!("{step_id}: {words}");
    match why {
        why if why.rests() || *why == PendingWhy::Person => (TaskStatus::WaitingInput, Some(said), None),
        PendingWhy::Working | PendingWhy::Intended => (TaskStatus::Running, None, None),
        _ => (TaskStatus::Running, Some(said.clone()), Some(said)),
    }
}

fn plan(view: &PipelineView) -> Option<PlanProgress> {
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let total = number(view.stage_names.len());
    let Some(pending) = &view.pending else {
        let done = if view.status == RunStatus::Completed { total } else { 0 };
        return (done > 0).then_some(PlanProgress { done, total, now: None });
    };
    let done = view.stage_names.iter().position(|name| *name == pending.stage).map_or(0, number);
    Some(PlanProgress { done, total, now: Some(pending.step_id.to_string()) })
}

fn updated_at(view: &PipelineView) -> Timestamp {
    let steps = view.stages.iter().flat_map(|step| [step.ended_at, step.began_at, Some(step.intended_at)]);
    steps.chain([view.ended_at]).flatten().fold(view.started_at, Timestamp::max)
}

/// Shows the attempt that goes on in a session of a run.
fn part_view(session: &SessionState, parent: TaskId) -> Option<TaskView> {
    let run = session.open_run()?;
    let status = if run.waits.is_empty() { TaskStatus::Running } else { TaskStatus::WaitingInput };
    Some(TaskView {
        kind: TaskKind::Run,
        parent_id: Some(parent),
        title: session.title.clone(),
        status,
        session_id: Some(session.id),
        run_id: Some(run.run_id),
        ..plain(
            TaskId::from_ulid(run.origin_run_id.to_ulid()?),
            (session.provider.name(), session.working_dir.clone()),
            (run.started_at, session.updated_at),
        )
    })
}

/// Returns a task that has begun, of which little is known.
fn plain(
    id: TaskId,
    (agent, working_dir): (String, String),
    (began_at, updated_at): (Timestamp, Timestamp),
) -> TaskView {
    TaskView {
        id,
        kind: TaskKind::Run,
        parent_id: None,
        pipeline_run: None,
        title: String::new(),
        working_dir,
        branch: None,
        agent,
        status: TaskStatus::Running,
        reason: None,
        attempt: 1,
        max_attempts: 1,
        session_id: None,
        run_id: None,
        priority: 0,
        not_before: None,
        deadline_at: None,
        budget: None,
        labels: Vec::new(),
        after: Vec::new(),
        created_by: None,
        created_at: began_at,
        updated_at,
        started_at: Some(began_at),
        ended_at: None,
        position: None,
        waits_for: None,
        progress: None,
        files_touched: None,
        result: None,
        exit: None,
    }
}
