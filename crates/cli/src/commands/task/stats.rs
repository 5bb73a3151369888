//! `rekindle task stats`: how tasks stand, and what came of those that ended in the last day.

use rekindle_client::{Exit, Failure};
use rekindle_display::task::write_stats;
use rekindle_wire::view::TaskStatsView;

use crate::commands::Context;

/// Show how many tasks there are, by status and agent, and the outcome of those that ended in the last 24 hours
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle task stats
  rekindle task stats --json | jq .day")]
pub(super) struct Args {}

pub(super) fn run(context: &Context, _: &Args) -> Result<Exit, Failure> {
    let client = context.daemon_or_start()?;
    let stats: TaskStatsView = client.get("/api/tasks/stats")?;
    let json = serde_json::to_string(&stats).map_err(|error| Failure::failed("output", error))?;
    context.print(&json, |out| write_stats(out, &stats))
}
