//! `rekindle task ls`: the tasks that have not ended, or all of them.

use rekindle_client::clock::SystemClock;
use rekindle_client::{Client, Exit, Failure};
use rekindle_display::task::write_tasks;
use rekindle_domain::event::{TaskKind, TaskStatus};
use rekindle_domain::time::Clock;
use rekindle_terminal::output::{self, DIM, styled};
use rekindle_wire::view::{TaskList, TaskView};

use crate::commands::Context;

/// List tasks: those that run, then those that wait, in the order of their turns
///
/// With -a, or with anything that narrows the list, those that have ended too, the newest first. Runs of pipelines are among them, with
/// their steps below.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle task ls
  rekindle task ls -a
  rekindle task ls --status failed,cancelled --label nightly
  rekindle task ls --kind run --here
  rekindle task ls --kind pipeline
  rekindle task ls --json |
    jq -r '.tasks[] | select(.status == \"waiting_input\") | .id'")]
pub(super) struct Args {
    /// All tasks, also those that have ended
    #[arg(long, short)]
    all: bool,

    /// Only those with this status; several, separated by commas
    #[arg(long, value_name = "STATUS", value_parser = status, value_delimiter = ',')]
    status: Vec<TaskStatus>,

    /// Only those of this kind: `task`, `run` for what was begun by hand and for steps, or `pipeline` for runs of pipelines
    #[arg(long, value_name = "KIND", value_parser = ["task", "run", "pipeline"])]
    kind: Option<String>,

    /// Only those with this label
    #[arg(long, value_name = "LABEL")]
    label: Option<String>,

    /// Only those of this agent
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,

    /// Only those in this directory or below
    #[arg(long)]
    here: bool,

    /// Only those with these words in their title
    #[arg(long = "search", short = 'q', value_name = "WORDS")]
    search: Option<String>,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let client = context.daemon_or_start()?;
    let tasks = match query(args)? {
        None => client.get::<TaskList>("/api/tasks/active")?.tasks,
        Some(query) => all(&client, &query)?,
    };
    let list = TaskList { tasks, next: None };
    let json = serde_json::to_string(&list).map_err(|error| Failure::failed("output", error))?;
    context.print(&json, |out| {
        if list.tasks.is_empty() {
            writeln!(
                out,
                "{}",
                if args.all { "there are no tasks" } else { "no such task is running or waiting" }
            )?;
        }
        write_tasks(out, &list.tasks, SystemClock.now())?;
        let has_runs = list.tasks.iter().any(|task| task.kind == TaskKind::Run);
        if args.all && has_runs && args.kind.is_none() && output::is_terminal() {
            writeln!(out, "{}", styled(DIM, "--kind task leaves out the messages of conversations"))?;
        }
        Ok(())
    })
}

/// Returns what is asked of the list of all tasks; nothing if only those that have not ended are wanted.
fn query(args: &Args) -> Result<Option<Vec<(&'static str, String)>>, Failure> {
    let statuses: Vec<&str> = args.status.iter().map(|status| status.as_str()).collect();
    let here = args.here.then(crate::session_arg::current_dir).transpose()?;
    let wanted = [
        ("status", Some(statuses.join(",")).filter(|statuses| !statuses.is_empty())),
        ("kind", args.kind.clone()),
        ("label", args.label.clone()),
        ("agent", args.agent.clone()),
        ("cwd", here),
        ("q", args.search.clone()),
    ];
    let query: Vec<_> = wanted.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    Ok((args.all || !query.is_empty()).then_some(query))
}

/// Reads the list page by page.
fn all(client: &Client, query: &[(&'static str, String)]) -> Result<Vec<TaskView>, Failure> {
    let query: Vec<_> = query.iter().map(|(name, value)| (*name, Some(value.as_str()))).collect();
    client.all("tasks", &query)
}

fn status(text: &str) -> Result<TaskStatus, String> {
    let words = || TaskStatus::ALL.map(|status| status.as_str()).join(", ");
    // As the list shows it.
    let text = if text == "waiting" { TaskStatus::WaitingInput.as_str() } else { text };
    TaskStatus::ALL
        .into_iter()
        .find(|status| status.as_str() == text)
        .ok_or_else(|| format!("expected a status: one of {}", words()))
}
