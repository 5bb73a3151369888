//! Notices of pipeline runs, from the records of their ledgers: that a run has ended, that a person is needed for it to go on, or that most
//! of its budget is used. What an
//! agent of a step asks is told of its session.

use rekindle_domain::event::{Event, OnCut, OnDrift, StepCut};
use rekindle_domain::id::{PipelineId, TaskId};
use rekindle_domain::line::Line;
use rekindle_domain::pipeline::next_step::MOST_ATTEMPTS;
use rekindle_domain::pipeline::{PipelineState, RunStatus, Started};

use super::{Derived, budget_text, event_id, one_line};
use crate::notice::{Notice, NoticeKind};

/// Returns the notice that a record of a run's ledger makes, if it makes one.
pub fn pipeline_notice(run: PipelineId, started: &Started, line: &Line<'_>) -> Option<Derived> {
    let event = line.event().ok()?;
    let (kind, reason) = match &event {
        Event::PipelineCompleted(_) => (NoticeKind::Completed, None),
        Event::PipelineFailed(end) => (NoticeKind::Failed, end.reason.as_deref().map(str::to_owned)),
        // Whoever cancelled it knows.
        Event::StepInterrupted(cut) if cut.reason == StepCut::Cancelled => return None,
        Event::StepInterrupted(cut) if cut.attempt >= MOST_ATTEMPTS => {
            let why = format!(
                "{} was interrupted {} times: it continues when it is resumed",
                cut.step_id, cut.attempt
            );
            (NoticeKind::Waiting, Some(why))
        }
        Event::StepInterrupted(cut) if started.on_cut == Some(OnCut::Ask) => {
            let why = format!("{} was interrupted: it continues when it is resumed", cut.step_id);
            (NoticeKind::Waiting, Some(why))
        }
        Event::PipelineDrift(drift) if drift.decision == OnDrift::Stop => {
            let why = format!("files are not as {} expects them", drift.step_id);
            (NoticeKind::Waiting, Some(why))
        }
        Event::PipelineBudget(budget) => (NoticeKind::Budget, Some(budget_text(&budget.notice))),
        // Whoever aborted it knows.
        _ => return None,
    };
    let title = format!("{}: {}", started.task.id, started.task.goal.lines().next().unwrap_or_default());
    let notice = Notice {
        event_id: event_id(run.into(), line.seq),
        kind,
        at: line.happened_at(),
        session_id: None,
        run_id: None,
        task_id: run.to_ulid().map(TaskId::from_ulid),
        title,
        agent: None,
        directory: Some(started.working_dir.clone()),
        reason: reason.map(|reason| one_line(&reason)).filter(|reason| !reason.is_empty()),
        question: None,
        last_words: None,
    };
    Some(Derived { notice, recorded_at: line.time(), continues: None })
}

/// Returns the pipeline run that a notice is about, if it is about one.
pub fn pipeline_of(notice: &Notice) -> Option<PipelineId> {
    notice.event_id.rsplit_once('.')?.0.parse().ok()
}

/// Tells whether what a notice of a run says is still so.
pub fn still_holds_of_run(notice: &Notice, state: &PipelineState) -> bool {
    let rests = || state.current_step().is_some_and(|step| step.open_attempt().is_none());
    notice.kind != NoticeKind::Waiting || state.status == RunStatus::Running && rests()
}
