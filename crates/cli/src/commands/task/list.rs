//! `rekindle task ls`: the tasks that have not ended.

use rekindle_client::clock::SystemClock;
use rekindle_client::{Exit, Failure};
use rekindle_domain::time::Clock;
use rekindle_wire::view::TaskList;

use super::table::write_tasks;
use crate::commands::Context;

/// List the tasks that have not ended: those that run, then those that wait, in the order of their turns
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle task ls
  rekindle task ls --json | jq -r '.tasks[] | select(.status == \"waiting_input\") | .id'")]
pub(super) struct Args {}

pub(super) fn run(context: &Context, _: &Args) -> Result<Exit, Failure> {
    let client = context.daemon_or_start()?;
    let list: TaskList = client.get("/api/tasks/active")?;
    let json = serde_json::to_string(&list).map_err(|error| Failure::failed("output", error))?;
    context.print(&json, |out| {
        if list.tasks.is_empty() {
            writeln!(out, "no task runs or waits")?;
        }
        write_tasks(out, &list.tasks, SystemClock.now())
    })
}
