//! `rekindle task show`: one task, whole.

use rekindle_client::clock::SystemClock;
use rekindle_client::{Exit, Failure};
use rekindle_display::task::{write_task, write_tasks, write_worktree};
use rekindle_domain::time::Clock;
use rekindle_wire::view::TaskView;

use super::task_arg::TaskArg;
use super::worktree::in_its_place;
use crate::commands::Context;

/// Show a task: where it stands and why, its attempts, its session
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle task show 01khz0p6r8
  rekindle task show 01khz0p6r8 --json | jq -r .session_id")]
pub(super) struct Args {
    #[command(flatten)]
    task: TaskArg,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let client = context.daemon_or_start()?;
    let id = args.task.find(&client)?;
    let task: TaskView = client.get(&format!("/api/tasks/{id}"))?;
    let json = serde_json::to_string(&task).map_err(|error| Failure::failed("output", error))?;
    // What became of its worktree is the session's to tell; one that is gone tells nothing.
    let session = task.session_id.filter(|_| task.branch.is_some() && !context.json);
    let session = session.and_then(|session| in_its_place(&client, session).ok());
    let session = session.and_then(|session| client.session(session.as_str()).ok());
    let worktree = session.and_then(|session| session.worktree);
    let is_run = task.pipeline_run.is_some() && !context.json;
    let steps = if is_run { client.all("tasks", &[("parent", Some(id.as_str()))])? } else { Vec::new() };
    context.print(&json, |out| {
        write_task(out, &task)?;
        if !steps.is_empty() {
            writeln!(out)?;
            write_tasks(out, &steps, SystemClock.now())?;
        }
        match &worktree {
            Some(worktree) => write_worktree(out, worktree),
            None => Ok(()),
        }
    })
}
