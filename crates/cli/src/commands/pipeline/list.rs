//! `rekindle pipeline ls`: runs as a table that fits the terminal.

use std::io::Write;

use clap::builder::styling::Style;
use rekindle_client::clock::SystemClock;
use rekindle_client::{Exit, Failure};
use rekindle_domain::pipeline::RunStatus;
use rekindle_domain::time::{Clock, Timestamp};
use rekindle_terminal::output::{self, BOLD, DIM, PLAIN, WARN, ago, cut, styled};
use rekindle_terminal::sanitise;
use rekindle_wire::view::{PipelineList, PipelineView};

use super::progress::status_style;
use super::words::{pending_text, used};
use crate::context::Context;

/// Where there is less room than this, a run's task is left out.
const LEAST_WORDS: usize = 8;

/// List runs of pipelines, the newest first
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle pipeline ls
  rekindle pipeline ls --here --status running,failed
  rekindle pipeline ls --json | jq -r '.pipelines[] | select(.pending.why == \"drift\") | .run_id'")]
pub(super) struct Args {
    /// Only those with this status; several, divided by commas
    #[arg(long, value_name = "STATUS", value_parser = status, value_delimiter = ',')]
    status: Vec<RunStatus>,

    /// Only those of this task
    #[arg(long, short, value_name = "ID")]
    task: Option<String>,

    /// Only those in this directory or below
    #[arg(long)]
    here: bool,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let client = context.daemon_or_start()?;
    let statuses: Vec<&str> = args.status.iter().map(|status| status.as_str()).collect();
    let statuses = statuses.join(",");
    let here = args.here.then(crate::session_arg::current_dir).transpose()?;
    let filters = [
        ("status", Some(statuses.as_str()).filter(|statuses| !statuses.is_empty())),
        ("task", args.task.as_deref()),
        ("cwd", here.as_deref()),
    ];
    let pipelines: Vec<PipelineView> = client.all("pipelines", &filters)?;
    let list = PipelineList { pipelines, next: None };
    let json = serde_json::to_string(&list).map_err(|error| Failure::failed("output", error))?;
    context.print(&json, |out| {
        if list.pipelines.is_empty() {
            writeln!(out, "there are no such runs; `rekindle pipeline run` starts one")?;
        }
        Ok(write_runs(out, &list.pipelines, SystemClock.now(), output::width())?)
    })
}

/// Writes a line for each run, and below it what it rests for.
pub(super) fn write_runs(
    out: &mut dyn Write,
    runs: &[PipelineView],
    now: Timestamp,
    width: usize,
) -> std::io::Result<()> {
    let rows: Vec<_> = runs.iter().map(|run| row(run, now)).collect();
    let (lines, used) = output::table(&rows);
    for (run, mut line) in runs.iter().zip(lines) {
        let room = width.saturating_sub(used);
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
    let rests = run.pending.as_ref().is_some_and(|pending| pending.why.rests());
    let (style, status) =
        if rests { (WARN, "rests") } else { (status_style(run.status), run.status.as_str()) };
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
        (Some(pending), _) if pending.why.rests() => {
            Some(format!("{} {} {}", pending.stage, pending.round, pending_text(pending.why)))
        }
        (_, RunStatus::Failed | RunStatus::Aborted) => run.reason.clone().filter(|reason| !reason.is_empty()),
        _ => None,
    }
}

fn status(text: &str) -> Result<RunStatus, String> {
    let words = || RunStatus::ALL.map(|status| status.as_str()).join(", ");
    RunStatus::ALL
        .into_iter()
        .find(|status| status.as_str() == text)
        .ok_or_else(|| format!("a status is one of {}", words()))
}

#[cfg(test)]
mod tests {
    use rekindle_wire::view::PendingWhy;

    use super::*;
    use crate::commands::pipeline::samples::{plain, run as sample};

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
            "run-20251020-140818-4f9f29a1  running  review 1  1 hour ago      cost 0.42  T-0042: Make the parser accept co…\n\
             run-20251020-140818-4f9f29a1  rests    review 1  1 hour ago      cost 0.42  T-0042: Make the parser accept co…\n    \
             review 1 stops: files are not as it expects them\n\
             run-20251020-140818-4f9f29a1  failed   review 1  55 minutes ago  cost 0.42  T-0042: Make the parser accept co…\n    \
             step review-1 failed\n"
        );
        assert!(shown(80).lines().all(|line| output::columns(line) <= 80), "{}", shown(80));
    }
}
