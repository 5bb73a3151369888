//! `rekindle task history`: what happened to a task, who did it and why.

use rekindle_client::{Exit, Failure};
use rekindle_display::task::write_history;
use rekindle_wire::view::TransitionList;

use super::task_arg::TaskArg;
use crate::commands::Context;

/// Show what happened to a task: every change, by whom and why
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle task history 01khz0p6r8
  rekindle task history 01khz0p6r8 --json | jq -r '.transitions[].reason'")]
pub(super) struct Args {
    #[command(flatten)]
    task: TaskArg,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let client = context.daemon_or_start()?;
    let id = args.task.find(&client)?;
    let list: TransitionList = client.get(&format!("/api/tasks/{id}/transitions"))?;
    let json = serde_json::to_string(&list).map_err(|error| Failure::failed("output", error))?;
    context.print(&json, |out| write_history(out, &list.transitions))
}
