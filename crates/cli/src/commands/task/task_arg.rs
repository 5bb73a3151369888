//! Which task is meant: an id, or the beginning of one that only one task has, or the run of a pipeline that it is.

use std::collections::BTreeSet;

use crate::completers::ids;
use rekindle_client::completion::IdKind;
use rekindle_client::{Client, Failure};
use rekindle_domain::id::TaskId;
use rekindle_wire::code::Code;
use rekindle_wire::view::TaskList;

use crate::commands::pipeline::find_run as find_pipeline;

/// Names a task.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct TaskArg {
    /// The task's id, or the beginning of it; `task_` may be left out. Or the name of a run of a pipeline, `run-…`
    #[arg(value_name = "TASK", add = ids(IdKind::Task))]
    task: String,
}

impl TaskArg {
    /// Finds the task that is meant.
    pub(super) fn find(&self, client: &Client) -> Result<TaskId, Failure> {
        find(&self.task, client)
    }
}

/// Most tasks that are named where one is meant.
const NAMED: usize = 8;

/// Finds the task that a name means.
pub(super) fn find(name: &str, client: &Client) -> Result<TaskId, Failure> {
    if name.starts_with("run-") {
        return find_run(name, client);
    }
    let rest = name.strip_prefix("task_").unwrap_or(name);
    let whole = format!("{}_{rest}", TaskId::PREFIX);
    let id: TaskId = whole.parse().map_err(|_| {
        let shown: String = name.chars().take(48).collect();
        Failure::usage("bad_task_id", format!("{shown:?} is neither a task id nor the beginning of one"))
            .hint("rekindle task ls lists them")
    })?;
    // A whole one needs no look at the others.
    if id.to_ulid().is_some() {
        return Ok(id);
    }
    // Rows follow the log: one that was just added may not be among them. Those that have not ended are known also while the database
    // cannot be asked, and nobody knows of others then.
    let TaskList { tasks, .. } = client.get("/api/tasks/active")?;
    let open = tasks.iter().map(|task| task.id).filter(|id| id.as_str().starts_with(&whole));
    let mut matching: BTreeSet<TaskId> = open.collect();
    match client.get::<TaskList>(&format!("/api/tasks?prefix={whole}&limit={}", NAMED + 1)) {
        Ok(listed) => matching.extend(listed.tasks.iter().map(|task| task.id)),
        Err(error) if error.code() == Code::TasksDbUnavailable.as_str() && !matching.is_empty() => {}
        Err(error) => return Err(error),
    }
    match &*matching.into_iter().collect::<Vec<_>>() {
        [one] => Ok(*one),
        [] => Err(Failure::usage("task_unknown", format!("no task's id begins with {whole}"))
            .hint("rekindle task ls -a lists them")),
        several => {
            let names: Vec<&str> = several.iter().take(NAMED).map(TaskId::as_str).collect();
            Err(Failure::usage(
                "task_ambiguous",
                format!("{whole} is not unique: it may be {}", names.join(", ")),
            )
            .hint("give more of the id; rekindle task ls -a lists them"))
        }
    }
}

/// Finds the task that a run of a pipeline is.
fn find_run(name: &str, client: &Client) -> Result<TaskId, Failure> {
    let run = find_pipeline(name, client)?;
    let number = run.id.to_ulid();
    number
        .map(TaskId::from_ulid)
        .ok_or_else(|| Failure::usage("task_unknown", format!("there is no task {} here", run.run_id)))
}
