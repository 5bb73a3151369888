//! What a run of a pipeline goes on with when it is resumed.

use std::io::{Result, Write};

use rekindle_domain::pipeline::RunStatus;
use rekindle_terminal::output::{DIM, plural, styled};
use rekindle_terminal::sanitise;
use rekindle_wire::view::PipelineView;

use super::words::{cut_text, pending_text, status_word};

/// Writes what a run goes on with.
pub fn write_report(out: &mut dyn Write, run: &PipelineView) -> Result<()> {
    let mut line = |name: &str, text: &str| {
        writeln!(out, "{} {}", styled(DIM, format_args!("{name:<10}")), sanitise::line(text))
    };
    line("run", &run.run_id)?;
    line("task", &format!("{}: {}", run.task_id, run.goal))?;
    line("snapshot", &format!("{} (pinned)", run.snapshot_id))?;
    let why = run.reason.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
    line("status", &format!("{}{why}", status_word(run)))?;
    let stage = run.current_stage.as_deref().unwrap_or("none yet");
    line("stage", &format!("{stage}, round {} of at most {}", run.round, run.max_rounds.max(run.round)))?;
    let counts = run.counts;
    let events = counts.events.max(counts.terminal_events);
    line(
        "ledger",
        &format!(
            "{}, {}, {}",
            plural(counts.commands, "command"),
            plural(events, "event"),
            plural(counts.heartbeats, "heartbeat")
        ),
    )?;
    line("pending", &pending(run))
}

/// Says what is pending: that nothing is does not make a run complete.
fn pending(run: &PipelineView) -> String {
    match (&run.pending, run.status) {
        (Some(pending), _) => {
            let cut = run.stages.last().and_then(|step| step.cut);
            let cut = cut.map(|cut| format!(" ({})", cut_text(cut))).unwrap_or_default();
            format!("1 step: {} {}{cut}", pending.step_id, pending_text(pending.why))
        }
        (None, RunStatus::Running) => "no step; the next one is being determined".into(),
        (None, RunStatus::Completed) => "nothing".into(),
        // What continues it all the same is said where that is refused.
        (None, RunStatus::Failed | RunStatus::Aborted) => "nothing: it has ended".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::samples::run;

    fn shown(run: &PipelineView) -> String {
        let mut out = Vec::new();
        write_report(&mut out, run).expect("written");
        anstream::adapter::strip_bytes(&out).into_vec().iter().map(|byte| char::from(*byte)).collect()
    }

    #[test]
    fn a_report_says_what_a_run_goes_on_with() {
        assert_eq!(
            shown(&run()),
            "run        run-20251020-140818-4f9f29a1\n\
             task       T-0042: Make the parser accept comments\n\
             snapshot   snap-d0ab7e60b764 (pinned)\n\
             status     running\n\
             stage      review, round 1 of at most 3\n\
             ledger     2 commands, 1 event, 3 heartbeats\n\
             pending    1 step: review-1 was cut (its agent is gone)\n"
        );
    }

    #[test]
    fn nothing_pending_is_not_complete() {
        let pending = |status| pending(&PipelineView { status, pending: None, ..run() });
        assert_eq!(pending(RunStatus::Completed), "nothing");
        assert!(pending(RunStatus::Running).starts_with("no step"));
        assert_eq!(pending(RunStatus::Aborted), "nothing: it has ended");
    }
}
