//! `rekindle pipeline ls`: runs as a table that fits the terminal.

use rekindle_client::clock::SystemClock;
use rekindle_client::{Exit, Failure};
use rekindle_display::pipeline::write_runs;
use rekindle_domain::pipeline::RunStatus;
use rekindle_domain::time::Clock;
use rekindle_terminal::output;
use rekindle_wire::view::{PipelineList, PipelineView};

use crate::context::Context;

/// List runs of pipelines, the newest first
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle pipeline ls
  rekindle pipeline ls --here --status running,failed
  rekindle pipeline ls --json |
    jq -r '.pipelines[] | select(.pending.why == \"drift\") | .run_id'")]
pub(super) struct Args {
    /// Only those with this status; several, separated by commas
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
            writeln!(out, "there are no such runs; start one with `rekindle pipeline run`")?;
        }
        Ok(write_runs(out, &list.pipelines, SystemClock.now(), output::width())?)
    })
}

fn status(text: &str) -> Result<RunStatus, String> {
    let words = || RunStatus::ALL.map(|status| status.as_str()).join(", ");
    RunStatus::ALL
        .into_iter()
        .find(|status| status.as_str() == text)
        .ok_or_else(|| format!("expected a status: one of {}", words()))
}
