//! `rekindle task cancel`, `retry` and `priority`: what may be changed of a task.

use std::collections::BTreeMap;

use rekindle_client::{Client, Exit, Failure, read};
use rekindle_display::task::write_task;
use rekindle_domain::id::TaskId;
use rekindle_wire::request::{CancelTask, RetryTask, TaskPriority};
use rekindle_wire::view::TaskView;
use serde::Serialize;

use super::task_arg::TaskArg;
use crate::commands::Context;
use crate::env_arg::environment_for;

/// Cancel a task: one that waits ends at once, one that runs ends with its run
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle task cancel 01khz0p6r8 --reason \"not needed any more\"")]
pub(super) struct CancelArgs {
    #[command(flatten)]
    task: TaskArg,

    /// Why, for its history
    #[arg(long)]
    reason: Option<String>,
}

/// Attempt a task again that failed or was cancelled
///
/// The next attempt continues in the session of the last one.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle task retry task_01khz0p6r8vk6mqj3b8y2c9d4e
  rekindle task retry task_01khz0p6r8vk6mqj3b8y2c9d4e --fresh")]
pub(super) struct RetryArgs {
    #[command(flatten)]
    task: TaskArg,

    /// Start in a new session
    #[arg(long)]
    fresh: bool,

    /// Pass an environment variable to the agent: NAME from this shell, or NAME=VALUE
    #[arg(long, value_name = "NAME[=VALUE]")]
    env: Vec<String>,
}

/// Change the priority of a task
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle task priority 01khz0p6r8 50")]
pub(super) struct PriorityArgs {
    #[command(flatten)]
    task: TaskArg,

    /// From -100 to 100
    #[arg(value_parser = clap::value_parser!(i8).range(-100..=100), allow_hyphen_values = true)]
    priority: i8,
}

pub(super) fn cancel(context: &Context, args: &CancelArgs) -> Result<Exit, Failure> {
    change(context, &args.task, "cancel", |_, _| Ok(CancelTask { reason: args.reason.clone() }))
}

pub(super) fn retry(context: &Context, args: &RetryArgs) -> Result<Exit, Failure> {
    change(context, &args.task, "retry", |client, id| {
        // What is on everybody's list, and what was named.
        let env = match args.env.is_empty() {
            true => BTreeMap::new(),
            false => {
                let task: TaskView = client.get(&format!("/api/tasks/{id}"))?;
                environment_for(context, Some(&task.agent), &args.env)?
            }
        };
        Ok(RetryTask { fresh: args.fresh, env })
    })
}

pub(super) fn set_priority(context: &Context, args: &PriorityArgs) -> Result<Exit, Failure> {
    change(context, &args.task, "priority", |_, _| Ok(TaskPriority { priority: args.priority }))
}

/// Asks for a change of a task, and shows what it is then.
fn change<T: Serialize>(
    context: &Context,
    task: &TaskArg,
    what: &str,
    body: impl FnOnce(&Client, TaskId) -> Result<T, Failure>,
) -> Result<Exit, Failure> {
    let client = context.daemon_or_start()?;
    let id = task.find(&client)?;
    let answer = client.post(&format!("/api/tasks/{id}/{what}"), &body(&client, id)?)?;
    let task: TaskView = read(&answer)?;
    context.print(&String::from_utf8_lossy(&answer).trim_end(), |out| write_task(out, &task))
}
