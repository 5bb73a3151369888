//! Records of the ledgers of pipeline runs in a few words.

use anstyle::Style;
use rekindle_domain::event::Event;
use rekindle_terminal::output::{BAD, COURSE, DIM, GOOD, WARN, plural};

/// Says in a few words what a record is about; nothing of one that is in no ledger.
pub(crate) fn gist(event: &Event<'_>) -> Option<String> {
    Some(match event {
        Event::PipelineStarted(started) => {
            format!(
                "{} through {} from {}, by {}",
                started.task.id, started.pipeline, started.snapshot_id, started.by
            )
        }
        Event::StepIntended(intended) => match &intended.agent {
            Some(agent) => format!("{} by {}", intended.step_id, agent.name),
            None => intended.step_id.to_string(),
        },
        Event::StepBegan(began) if began.reminder => format!("{}: asked for its outcome", began.step_id),
        Event::StepBegan(began) => {
            format!("{} attempt {} in {}", began.step_id, began.attempt, began.session_id)
        }
        Event::StepFinished(finished) => {
            let cached = if finished.cached { ", cached" } else { "" };
            let files =
                finished.files_touched.as_ref().map(|files| format!(", {}", plural(files.total, "file")));
            format!("{}: {}{cached}{}", finished.step_id, finished.outcome, files.unwrap_or_default())
        }
        Event::StepInterrupted(interrupted) => {
            let detail =
                interrupted.detail.as_deref().map(|detail| format!(": {detail}")).unwrap_or_default();
            format!(
                "{} attempt {}: {}{detail}",
                interrupted.step_id,
                interrupted.attempt,
                interrupted.reason.as_str().replace('_', " ")
            )
        }
        Event::PipelineDrift(drift) => {
            format!(
                "{}: {} differ, {}",
                drift.step_id,
                plural(drift.files.total, "file"),
                drift.decision.as_str()
            )
        }
        Event::PipelineCompleted(end) => reason(end.reason.as_deref(), end.by.as_deref()),
        Event::PipelineFailed(end) => reason(end.reason.as_deref(), end.by.as_deref()),
        Event::PipelineAborted(end) => reason(end.reason.as_deref(), end.by.as_deref()),
        Event::PipelineReopened(end) => reason(end.reason.as_deref(), end.by.as_deref()),
        Event::PipelineBudget(budget) => budget.notice.to_string(),
        Event::PipelineImported(imported) => {
            let from = imported.machine.as_deref().map(|machine| format!("from {machine}"));
            let to = imported.working_dir.as_deref().map(|directory| format!("to {directory}"));
            from.into_iter().chain(to).collect::<Vec<_>>().join(" ")
        }
        _ => return None,
    })
}

fn reason(reason: Option<&str>, by: Option<&str>) -> String {
    let by = by.map(|by| format!("by {by}"));
    [by.as_deref(), reason].into_iter().flatten().collect::<Vec<_>>().join(": ")
}

/// Returns how a kind of record is shown; nothing of one that is in no ledger.
pub(crate) fn style(kind: &str) -> Option<Style> {
    Some(match kind {
        "step.finished" | "pipeline.completed" => GOOD,
        "pipeline.failed" | "pipeline.aborted" => BAD,
        "step.interrupted" | "pipeline.drift" | "pipeline.budget" => WARN,
        "step.intended" => DIM,
        _ if kind.starts_with("pipeline.") || kind.starts_with("step.") => COURSE,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_record_of_a_ledger_says_what_it_is_about() {
        let samples = include_str!("../../domain/src/event/samples.jsonl");
        let of_ledgers = samples.lines().filter(|line| {
            line.starts_with(r#"{"kind":"pipeline."#) || line.starts_with(r#"{"kind":"step."#)
        });
        let mut told = Vec::new();
        for line in of_ledgers {
            let text = line.replacen('{', r#"{"seq":1,"ts":"2026-02-21T10:00:00.000Z","#, 1);
            let line = rekindle_domain::line::Line::parse(text.as_bytes()).expect("a record");
            assert!(style(line.kind).is_some());
            told.push(gist(&line.event().expect("an event")).expect("a gist"));
        }
        assert_eq!(
            told,
            [
                "T-0042 through default from snap-0123456789ab, by user:ada",
                "implement-1 by builder",
                "verify-1",
                "implement-1 attempt 1 in sess_1",
                "implement-1: asked for its outcome",
                "review-1: changes_requested, 1 file",
                "implement-1: completed, cached",
                "implement-1 attempt 1: agent gone: the machine was started again",
                "implement-1: 2 files differ, stop",
                "",
                "review failed",
                "by user:ada: not wanted any more",
                "by user:ada: forced",
                "from laptop to /elsewhere",
                "the run has used 8100 of 10000 tokens",
            ]
        );
    }
}
