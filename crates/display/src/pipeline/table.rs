//! Runs of pipelines as a table that fits the terminal.

use std::io::{Result, Write};

use anstyle::Style;
use rekindle_domain::pipeline::RunStatus;
use rekindle_domain::time::Timestamp;
use rekindle_terminal::output::{self, BOLD, DIM, PLAIN, WARN, ago, cut, styled};
use rekindle_terminal::sanitise;
use rekindle_wire::view::PipelineView;

use super::progress::status_style;
use super::words::{pending_text, rests, status_word, used};

/// Where there is less room than this, a run's task is left out.
const LEAST_WORDS: usize = 8;

/// Writes a heading, and a line for each run, and below it what it rests for.
pub fn write_runs(out: &mut dyn Write, runs: &[PipelineView], now: Timestamp, width: usize) -> Result<()> {
    if runs.is_empty() {
        return Ok(());
    }
    let heading = output::heading(&["RUN", "STATUS", "STAGE", "SINCE", "USED"]);
    let rows: Vec<_> = [heading].into_iter().chain(runs.iter().map(|run| row(run, now))).collect();
    let (lines, used) = output::table(&rows);
    let mut lines = lines.into_iter();
    let room = width.saturating_sub(used);
    let task = if room >= LEAST_WORDS { "TASK" } else { "" };
    if let Some(heading) = lines.next() {
        writeln!(out, "{}", format!("{heading}{}", styled(DIM, task)).trim_end())?;
    }
    for (run, mut line) in runs.iter().zip(lines) {
        if room >= LEAST_WORDS {
            line.push_str(&cut(&sanitise::line(&format!("{}: {}", run.task_id, run.goal)), room));
        }
        writeln!(out, "{}", line.trim_end())?;
        if let Some(why) = why(run) {
            let text = cut(&sanitise::line(&why), width.saturating_sub(4));
            writeln!(out, "    {}", styled(WARN, text))?;
        }
    }
    Ok(())
}

fn row(run: &PipelineView, now: Timestamp) -> Vec<(Style, String)> {
    let style = if rests(run) { WARN } else { status_style(run.status) };
    let status = status_word(run);
    let stage = match (&run.pending, &run.current_stage) {
        (Some(pending), _) => format!("{} {}", pending.stage, pending.round),
        (None, Some(stage)) if run.status != RunStatus::Completed => format!("{stage} {}", run.round),
        (None, _) if run.round > 1 => format!("{} rounds", run.round),
        (None, _) => "1 round".to_owned(),
    };
    let (tokens, cost) = used(run.usage);
    let took = if cost.is_empty() { tokens } else { cost };
    vec![
        (BOLD, run.run_id.clone()),
        (style, status.to_owned()),
        (PLAIN, sanitise::line(&stage)),
        (DIM, ago(run.ended_at.unwrap_or(run.started_at), now)),
        (DIM, took),
    ]
}

/// Returns what somebody should know of a run: why it rests, or how it ended.
fn why(run: &PipelineView) -> Option<String> {
    match (&run.pending, run.status) {
        (Some(pending), _) if pending.why.rests() || pending.why.passes() => {
            Some(format!("{} {} {}", pending.stage, pending.round, pending_text(pending.why)))
        }
        (_, RunStatus::Failed | RunStatus::Aborted) => run.reason.clone().filter(|reason| !reason.is_empty()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rekindle_wire::view::PendingWhy;

    use super::*;
    use crate::pipeline::samples::{plain, run as sample};

    #[test]
    fn runs_are_lines_that_fit_with_what_they_rest_for_below() {
        let mut resting = sample();
        resting.pending.as_mut().expect("a step").why = PendingWhy::Drift;
        let ended = PipelineView {
            status: RunStatus::Failed,
            pending: None,
            ended_at: Some(Timestamp::from_millis(1_760_969_598_000)),
            reason: Some("step review-1 failed".into()),
            ..sample()
        };
        let now = Timestamp::from_millis(1_760_969_298_000 + 3_600_000);
        let shown = |width| {
            let mut out = Vec::new();
            write_runs(&mut out, &[sample(), resting.clone(), ended.clone()], now, width).expect("written");
            plain(&out)
        };
        assert_eq!(
            shown(110),
            "RUN                           STATUS   STAGE     SINCE           USED       TASK\n\
             run-20251020-140818-4f9f29a1  running  review 1  1 hour ago      cost 0.42  T-0042: Make the parser accept co…\n\
             run-20251020-140818-4f9f29a1  rests    review 1  1 hour ago      cost 0.42  T-0042: Make the parser accept co…\n    \
             review 1 stopped: files are not as it expects them\n\
             run-20251020-140818-4f9f29a1  failed   review 1  55 minutes ago  cost 0.42  T-0042: Make the parser accept co…\n    \
             step review-1 failed\n"
        );
        assert!(shown(80).lines().all(|line| output::columns(line) <= 80), "{}", shown(80));
    }
}
