//! The projection of a pipeline run: what the records of its ledger do to its row. A run is a task, and its steps are runs of sessions
//! that name it as their parent. What a step waits for at this moment is evidence, and in no row. Pure.

use rekindle_domain::event::{
    Event, OnCut, OnDrift, Options, PipelineStarted, Provider, StepCut, StepFinished, StepInterrupted,
    TaskKind, TaskStatus,
};
use rekindle_domain::id::{PipelineId, TaskId};
use rekindle_domain::pipeline::next_step::MOST_ATTEMPTS;
use rekindle_domain::pipeline::template::payload_field;
use rekindle_domain::session::PlanProgress;
use rekindle_domain::task::compose::{BUDGET_REASON, actor};
use rekindle_domain::text_excerpt::{last_line, result};
use rekindle_domain::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::project::Owner;
use crate::row::{TaskRow, TaskUsage, TransitionRow};

/// The agent of a run's row: it has one for each stage.
const PIPELINE: &str = "pipeline";

/// A pipeline run as far as its records are in its row. What it needs to go on is written with the row.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PipelineProjection {
    /// The names of its stages, in order.
    #[serde(default)]
    stages: Vec<String>,
    /// A step that was cut waits for a person.
    #[serde(default)]
    asks: bool,
    /// How long the ledger was.
    #[serde(default)]
    pub bytes: u64,
}

/// Returns the task that a pipeline run is; none of an id that is no number.
pub fn task_of_run(run: PipelineId) -> Option<TaskId> {
    run.to_ulid().map(TaskId::from_ulid)
}

/// Where a run stands after a record, if that is told.
struct Told<'a> {
    status: TaskStatus,
    reason: Option<String>,
    actor: &'a str,
}

impl PipelineProjection {
    /// Does to a run's row what a record says, and returns a line of its history if it stands elsewhere now.
    pub fn push(
        &mut self,
        owner: &Owner,
        run: PipelineId,
        row: &mut Option<TaskRow>,
        event: &Event<'_>,
        at: Timestamp,
    ) -> Option<TransitionRow> {
        if let Event::PipelineStarted(started) = event {
            if row.is_some() {
                return None;
            }
            self.stages = stages(started);
            self.asks = started.on_cut == Some(OnCut::Ask);
            *row = Some(new_row(owner, task_of_run(run)?, started, at));
        }
        let row = row.as_mut()?;
        row.updated_at = at;
        let told = self.told(row, event, at)?;
        Some(step(row, told, at))
    }

    /// Takes over what a record says beside where the run stands, and says where it stands if that changes.
    fn told<'a>(&self, row: &mut TaskRow, event: &'a Event<'_>, at: Timestamp) -> Option<Told<'a>> {
        let told = |status, reason: Option<&str>, actor| {
            Some(Told { status, reason: reason.map(str::to_owned), actor })
        };
        let is_waiting = row.status == TaskStatus::WaitingInput;
        match event {
            Event::PipelineStarted(started) => told(TaskStatus::Running, None, &started.by),
            Event::StepIntended(intended) => {
                let now = Some(intended.step_id.to_string());
                row.progress.get_or_insert_default().plan = Some(self.plan(Some(&intended.stage), now));
                None
            }
            Event::StepBegan(began) => {
                if !began.reminder {
                    row.progress.get_or_insert_default().turns += 1;
                }
                let reason = format!("{} goes on", began.step_id);
                let on = is_waiting.then_some(reason);
                on.and_then(|reason| told(TaskStatus::Running, Some(&reason), actor::RECOVERY))
            }
            Event::StepFinished(finished) => {
                finish(row, finished);
                is_waiting.then(|| told(TaskStatus::Running, None, actor::AGENT)).flatten()
            }
            Event::StepInterrupted(cut) => {
                let why = self.waits_after(cut)?;
                told(TaskStatus::WaitingInput, Some(&why), actor::RECOVERY)
            }
            Event::PipelineDrift(drift) if drift.decision == OnDrift::Stop => {
                let why = format!("drift: files are not as {} expects them", drift.step_id);
                told(TaskStatus::WaitingInput, Some(&why), actor::RECOVERY)
            }
            Event::PipelineDrift(drift) if is_waiting => {
                let why = format!("drift: {}", drift.decision.as_str());
                told(TaskStatus::Running, Some(&why), drift.by.as_deref().unwrap_or("user"))
            }
            Event::PipelineCompleted(end) => {
                row.progress.get_or_insert_default().plan = Some(self.plan(None, None));
                told(TaskStatus::Completed, end.reason.as_deref(), actor::AGENT)
            }
            Event::PipelineFailed(end) => {
                let is_budget = end.reason.as_deref().is_some_and(|why| why.starts_with(BUDGET_REASON));
                let by = if is_budget { actor::BUDGET } else { actor::AGENT };
                told(TaskStatus::Failed, end.reason.as_deref(), by)
            }
            Event::PipelineAborted(end) => {
                let reason = end.reason.as_deref().or(Some("aborted"));
                told(TaskStatus::Cancelled, reason, end.by.as_deref().unwrap_or("user"))
            }
            Event::PipelineImported(imported) => {
                if let Some(directory) = &imported.working_dir {
                    row.working_dir = directory.as_ref().to_owned();
                }
                // Those of elsewhere do not count here.
                (row.options, row.idempotency_key) = (Options::default(), None);
                let rests = "it came here from elsewhere, and goes on when somebody resumes it";
                let goes_on = !row.status.is_ended();
                goes_on.then(|| told(TaskStatus::WaitingInput, Some(rests), actor::RECOVERY)).flatten()
            }
            Event::PipelineReopened(again) => {
                row.attempt += 1;
                row.started_at = Some(at);
                told(TaskStatus::Running, Some("reopened"), again.by.as_deref().unwrap_or("user"))
            }
            _ => None,
        }
    }

    /// Returns how far a run has come that is at a stage, or behind all of them.
    fn plan(&self, stage: Option<&str>, now: Option<String>) -> PlanProgress {
        let place = stage.and_then(|stage| self.stages.iter().position(|name| name == stage));
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let total = number(self.stages.len());
        PlanProgress { done: place.map_or(total, number), total, now }
    }

    /// Returns why a step that was cut waits for a person, if it does.
    fn waits_after(&self, cut: &StepInterrupted<'_>) -> Option<String> {
        let step = &cut.step_id;
        match cut.reason {
            StepCut::Cancelled => Some(format!("{step} was cancelled")),
            _ if cut.attempt >= MOST_ATTEMPTS => Some(format!("{step} was cut {} times", cut.attempt)),
            reason if self.asks => Some(format!("{step} was cut: {}", reason.as_str())),
            _ => None,
        }
    }
}

/// Takes over what came of a step.
fn finish(row: &mut TaskRow, finished: &StepFinished<'_>) {
    let progress = row.progress.get_or_insert_default();
    let json = finished.payload.as_ref().map(|payload| payload.as_json());
    let summary = json.and_then(|json| payload_field(json, "summary"));
    let said = summary.as_deref().and_then(last_line);
    let outcome = format!("{}: {}", finished.step_id, finished.outcome);
    progress.last_words = Some(match said {
        Some(said) => format!("{outcome}: {said}"),
        None => outcome,
    });
    row.result = summary.as_deref().and_then(result).or_else(|| row.result.take());
    let Some(used) = finished.usage.filter(|_| !finished.cached) else { return };
    let sum = row.usage.get_or_insert_with(TaskUsage::default);
    let plus = |known: Option<u64>, more: u64| match (known, more) {
        (None, 0) => None,
        (known, more) => Some(known.unwrap_or(0).saturating_add(more)),
    };
    sum.input_tokens = plus(sum.input_tokens, used.input_tokens);
    sum.output_tokens = plus(sum.output_tokens, used.output_tokens);
    sum.cost = [sum.cost, used.cost].into_iter().flatten().reduce(|one, other| one + other);
}

/// Moves a row on, and returns what its history says of that.
fn step(row: &mut TaskRow, told: Told<'_>, at: Timestamp) -> TransitionRow {
    let from_status = (row.transitions > 0).then_some(row.status);
    row.transitions += 1;
    row.status = told.status;
    row.reason.clone_from(&told.reason);
    row.ended_at = told.status.is_ended().then_some(at);
    TransitionRow {
        task_id: row.task_id,
        n: row.transitions,
        from_status,
        to_status: told.status,
        reason: told.reason,
        actor: told.actor.to_owned(),
        at,
        metadata: None,
    }
}

fn stages(started: &PipelineStarted<'_>) -> Vec<String> {
    let pipeline = started.config.pipelines.get(&*started.pipeline);
    pipeline
        .map(|pipeline| pipeline.stages.iter().map(|stage| stage.name.clone()).collect())
        .unwrap_or_default()
}

fn new_row(owner: &Owner, task_id: TaskId, started: &PipelineStarted<'_>, created_at: Timestamp) -> TaskRow {
    let task = &started.task;
    TaskRow {
        task_id,
        home_id: owner.home_id.clone(),
        host: owner.host.clone(),
        kind: TaskKind::Pipeline,
        parent_id: None,
        title: format!("{}: {}", task.id, task.goal.lines().next().unwrap_or_default()),
        prompt: serde_json::Value::from(task.goal.as_str()).to_string(),
        working_dir: started.working_dir.as_ref().to_owned(),
        agent: Provider { profile: PIPELINE.into(), ..Provider::default() },
        agent_name: PIPELINE.into(),
        options: started.options.as_deref().cloned().unwrap_or_default(),
        env_names: Vec::new(),
        branch: None,
        priority: 0,
        not_before: None,
        deadline_at: None,
        max_attempts: 1,
        repeatable: false,
        budget: started.budget,
        labels: Vec::new(),
        after: Vec::new(),
        created_by: Some(started.by.as_ref().to_owned()),
        idempotency_key: started.idempotency_key.as_deref().map(str::to_owned),
        status: TaskStatus::Running,
        reason: None,
        attempt: 1,
        session_id: None,
        run_id: None,
        resume_prompt: None,
        progress: None,
        files_touched: None,
        result: None,
        usage: None,
        exit: None,
        created_at,
        updated_at: created_at,
        started_at: Some(created_at),
        ended_at: None,
        transitions: 0,
    }
}
