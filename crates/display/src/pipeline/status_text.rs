//! Where a run stands, in words: what it took in all, and why it rests.

use rekindle_terminal::output::{WARN, plural, styled};
use rekindle_terminal::sanitise;
use rekindle_wire::view::{PendingWhy, PipelineView};

use super::progress::drift_lines;
use super::words::{pending_text, took, used, way_on};
use crate::hints::ours;

/// Says what a run took in all.
pub fn sum_text(view: &PipelineView) -> String {
    let steps = view.stages.iter().filter(|step| step.outcome.is_some()).count() as u64;
    let cached = view.stages.iter().filter(|step| step.cached).count();
    let cached = if cached == 0 { String::new() } else { format!(" ({cached} cached)") };
    let time = view.ended_at.map(|at| format!(" in {}", took(at.millis_since(view.started_at))));
    let (tokens, cost) = used(view.usage);
    let told = [format!("{}{cached}{}", plural(steps, "step"), time.unwrap_or_default()), tokens, cost];
    let told: Vec<String> = told.into_iter().filter(|text| !text.is_empty()).collect();
    format!("{} {}: {}", view.run_id, view.status.as_str(), told.join(", "))
}

/// Says what a run that rests waits for, and what has it go on.
pub fn rest_lines(view: &PipelineView) -> Vec<String> {
    let Some(pending) = &view.pending else { return Vec::new() };
    // Where the word says it all, more words would say it again.
    let says_more = !matches!(
        pending.why,
        PendingWhy::Asks | PendingWhy::Left | PendingWhy::Cancelled | PendingWhy::TooManyAttempts
    );
    let detail = pending.detail.as_deref().filter(|_| says_more);
    let detail = detail.map(|detail| format!(": {}", sanitise::line(detail)));
    let what = pending_text(pending.why);
    let mut lines = vec![styled(
        WARN,
        format_args!("{} {} {what}{}", pending.stage, pending.round, detail.unwrap_or_default()),
    )];
    if let Some(drift) = &pending.drift {
        let files = drift_lines(&drift.files, &drift.after_cut, &drift.unknown_author);
        lines.extend(files.into_iter().map(|line| format!("  {line}")));
    }
    if pending.why.rests() {
        let resume = ours(format_args!("pipeline resume {}", view.run_id));
        lines.push(format!("continue it with: {resume}{}", way_on(pending.why)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use rekindle_domain::pipeline::RunStatus;
    use rekindle_domain::time::Timestamp;
    use rekindle_wire::view::PipelineDriftView;

    use super::*;
    use crate::pipeline::samples::{plain, run as sample};

    fn rests(why: PendingWhy, change: impl FnOnce(&mut PipelineView)) -> String {
        let mut run = sample();
        if let Some(pending) = &mut run.pending {
            (pending.why, pending.detail) = (why, Some("look at it".into()));
        }
        change(&mut run);
        plain(rest_lines(&run).join("\n").as_bytes())
    }

    #[test]
    fn a_run_that_rests_says_why_and_what_has_it_go_on() {
        assert_eq!(
            rests(PendingWhy::TooManyAttempts, |_| {}),
            "review 1 was interrupted too often to continue automatically\n\
             continue it with: rekindle pipeline resume run-20251020-140818-4f9f29a1"
        );
        let drift = r#"{"expected":"T","found":"T","files":{"total":2,"first":[{"path":"a.rs","change":"added"}]},
            "after_cut":{"total":1,"first":[{"path":"a.rs"}]},"unknown_author":{"total":0,"first":[]},"decision":null}"#;
        let drift = drift.replace("\"T\"", &format!("{:?}", "01".repeat(32)));
        let drift: PipelineDriftView = serde_json::from_str(&drift).expect("drift");
        let told = rests(PendingWhy::Drift, |run| {
            if let Some(pending) = &mut run.pending {
                pending.drift = Some(drift);
            }
        });
        assert!(told.contains(
            "files are not as it expects them: look at it\n  added     a.rs  (after the agent was gone)\n"
        ));
        assert!(told.contains("and 1 more\n") && told.contains("--on-drift restore"), "{told}");
        assert_eq!(rests(PendingWhy::Working, |run| run.pending = None), "");
        assert!(!rests(PendingWhy::Working, |_| {}).contains("continue it with"));
    }

    #[test]
    fn a_run_is_summed_up() {
        let ended = PipelineView {
            status: RunStatus::Completed,
            ended_at: Some(Timestamp::from_millis(1_760_969_298_000 + 200_000)),
            ..sample()
        };
        assert_eq!(
            sum_text(&ended),
            "run-20251020-140818-4f9f29a1 completed: 1 step in 3m 20s, 12,300 tokens, cost 0.42"
        );
    }
}
