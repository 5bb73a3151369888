//! `rekindle task logs`: what happened in the session of a task.

use rekindle_client::{Exit, Failure};
use rekindle_wire::view::TaskView;

use super::task_arg::TaskArg;
use crate::commands::{Context, log};

/// Show what happened in the session of a task, record by record
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle task logs 01khz0p6r8
  rekindle task logs 01khz0p6r8 -f")]
pub(super) struct Args {
    #[command(flatten)]
    task: TaskArg,

    /// Keep printing new records as they happen
    #[arg(long, short)]
    follow: bool,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let client = context.daemon_or_start()?;
    let id = args.task.find(&client)?;
    let task: TaskView = client.get(&format!("/api/tasks/{id}"))?;
    let session = task.session_id.ok_or_else(|| {
        let why = task.waits_for.map(|why| format!(": {why}")).unwrap_or_default();
        Failure::failed("not_begun", anyhow::anyhow!("{id} has not started{why}"))
    })?;
    log::run_of(context, session.to_string(), args.follow)
}
