//! `rekindle task show`: one task, whole; of a pipeline run the sessions of its steps too.

use rekindle_client::clock::SystemClock;
use rekindle_client::{Exit, Failure};
use rekindle_display::task::{write_task, write_tasks, write_worktree};
use rekindle_domain::time::Clock;
use rekindle_wire::view::TaskView;
use serde::Serialize;

use super::task_arg::TaskArg;
use super::worktree::in_its_place;
use crate::commands::Context;

/// Show a task: where it stands and why, its attempts, its session
///
/// A run of a pipeline is a task too, and may be named as one. Below it stand the sessions of its steps; with --json they are its
/// `steps`, each as a task.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle task show 01khz0p6r8
  rekindle task show 01khz0p6r8 --json | jq -r .session_id
  rekindle task show run-20251020-140818-4f9f29a1 --json |
    jq -r '.steps[].session_id'")]
pub(super) struct Args {
    #[command(flatten)]
    task: TaskArg,
}

/// A task as JSON.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    task: &'a TaskView,
    /// The sessions of its steps, of a run of a pipeline.
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<&'a [TaskView]>,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let client = context.daemon_or_start()?;
    let id = args.task.find(&client)?;
    let task: TaskView = client.get(&format!("/api/tasks/{id}"))?;
    // What became of its worktree is the session's to tell; one that is gone tells nothing.
    let session = task.session_id.filter(|_| task.branch.is_some() && !context.json);
    let session = session.and_then(|session| in_its_place(&client, session).ok());
    let session = session.and_then(|session| client.session(session.as_str()).ok());
    let worktree = session.and_then(|session| session.worktree);
    let is_run = task.pipeline_run.is_some();
    let steps = if is_run { client.all("tasks", &[("parent", Some(id.as_str()))])? } else { Vec::new() };
    let shown = Shown { task: &task, steps: is_run.then_some(&steps) };
    let json = serde_json::to_string(&shown).map_err(|error| Failure::failed("output", error))?;
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
