//! `rekindle task add`: one task from words, or many from a file.

use crate::completers::ids;
use rekindle_client::completion::IdKind;
use std::io::Write;
use std::path::PathBuf;

use rekindle_client::clock::SystemClock;
use rekindle_client::{Exit, Failure, read};
use rekindle_display::hints::{brief, id_alone, ours};
use rekindle_display::task::write_tasks;
use rekindle_domain::age::Age;
use rekindle_domain::event::{Budget, DEFAULT_ATTEMPTS};
use rekindle_domain::time::{Clock, Timestamp};
use rekindle_terminal::output::plural;
use rekindle_wire::request::{Content, NewDependency, NewSession, NewTask, NewTasks};
use rekindle_wire::view::{TaskList, TaskView};

use super::task_arg::find;
use super::task_file;
use crate::commands::Context;
use crate::prompt_arg::prompt;
use crate::session_options::{SessionOptions, seconds};

/// Add a task, or one for each item of a file
///
/// A file has a task in each line, as a JSON object (`{"prompt": "…", "priority": 5, "ref": "a", "after": ["b"]}`; what it
/// does not say is as the options say), or is Markdown with a task in each `- [ ]` item. All of them are added, or none.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle task add \"fix the failing test\"
  rekindle task add \"tidy up\" --not-before 2h --label nightly --agent codex
  rekindle task add -f todo.md --priority 10
  jq -c '.[]' jobs.json | rekindle task add -f -
  rekindle task add \"review it\" --after 01khz0p6r8
  rekindle task add \"run the suite\" --repeatable -- make test")]
pub(crate) struct Args {
    /// What to ask [default: what stdin has, if it is no terminal]
    #[arg(conflicts_with = "file")]
    prompt: Option<String>,

    /// Add a task for each item of a file; `-` is stdin
    #[arg(long, short, value_name = "FILE")]
    file: Option<PathBuf>,

    /// Start when this task has completed; several, separated by commas
    #[arg(long, value_name = "TASK", value_delimiter = ',', add = ids(IdKind::Task))]
    after: Vec<String>,

    /// Its priority, from -100 to 100; each hour of waiting adds one
    #[arg(long, short, default_value_t = 0, value_parser = clap::value_parser!(i8).range(-100..=100), allow_hyphen_values = true)]
    priority: i8,

    /// Do not start before this: a time, or how long from now, for example 2h
    #[arg(long, value_name = "TIME", value_parser = time)]
    not_before: Option<Timestamp>,

    /// The deadline: after it the task fails if it has not started, and is cancelled if it has
    #[arg(long, value_name = "TIME", value_parser = time)]
    deadline: Option<Timestamp>,

    /// How often it may be attempted, including continuations after an interruption
    #[arg(long, value_name = "N", default_value_t = DEFAULT_ATTEMPTS, value_parser = clap::value_parser!(u32).range(1..=100))]
    max_attempts: u32,

    /// Stop it when it has used this many tokens, as far as its agent reports them
    #[arg(long, value_name = "N")]
    max_tokens: Option<u64>,

    /// Stop it when it has cost this much, as far as its agent reports it
    #[arg(long, value_name = "AMOUNT")]
    max_cost: Option<f64>,

    /// Stop it when it has run for this long, for example 2h
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    max_time: Option<u64>,

    /// It may be repeated safely: it is attempted again even if it may have taken effect already
    #[arg(long)]
    repeatable: bool,

    /// It may work in a directory that others work in
    #[arg(long)]
    shared: bool,

    /// A label, for finding and limiting tasks; several, separated by commas
    #[arg(long, value_name = "LABEL", value_delimiter = ',')]
    label: Vec<String>,

    #[command(flatten)]
    session: SessionOptions,
}

pub(super) fn run(context: &Context, args: Args) -> Result<Exit, Failure> {
    let elsewhere = context.elsewhere()?;
    let session = args.session.session(context, elsewhere.as_ref())?;
    let items = match &args.file {
        Some(file) => Some(task_file::read(file)?),
        None => None,
    };
    let text = match &items {
        Some(_) => None,
        None => Some(prompt(args.prompt.as_deref(), None)?.ok_or_else(|| {
            Failure::usage("no_prompt", "the prompt is missing".into())
                .hint("rekindle task add \"fix the failing test\"; -f FILE adds a task for each of its items")
        })?),
    };
    let mut client = match elsewhere {
        Some(client) => client,
        None => context.daemon_or_start()?,
    };
    let after = args.after.iter().map(|name| find(name, &client)).collect::<Result<Vec<_>, _>>()?;
    let usual = |prompt: &str| {
        let after = after.iter().map(|id| NewDependency::Name(id.to_string())).collect();
        new_task(&args, &session, after, prompt)
    };
    let Some(items) = items else {
        let body = client.post_once("/api/tasks", &usual(&text.unwrap_or_default()))?;
        let task: TaskView = read(&body)?;
        if context.json {
            return context.acknowledge(&body, "");
        }
        // The id alone, so that a script can take it.
        writeln!(std::io::stdout(), "{}", id_alone(task.id))?;
        anstream::eprintln!(
            "it waits for its turn; see it with: {}",
            ours(format_args!("task show {}", brief(task.id)))
        );
        return Ok(Exit::Ok);
    };
    let tasks = items.iter().map(|item| item.task(&usual)).collect::<Result<Vec<_>, _>>()?;
    let body = client.post_once("/api/tasks", &NewTasks { tasks })?;
    let made: TaskList = read(&body)?;
    context.print(&String::from_utf8_lossy(&body).trim_end(), |out| {
        write_tasks(out, &made.tasks, SystemClock.now())?;
        Ok(writeln!(out, "{} added", plural(made.tasks.len() as u64, "task"))?)
    })
}

fn new_task(args: &Args, session: &NewSession, after: Vec<NewDependency>, prompt: &str) -> NewTask {
    NewTask {
        priority: args.priority,
        not_before: args.not_before,
        deadline_at: args.deadline,
        max_attempts: args.max_attempts,
        repeatable: args.repeatable,
        shared: args.shared,
        budget: Some(Budget {
            tokens: args.max_tokens,
            cost: args.max_cost,
            wall_s: args.max_time,
            turns: None,
        })
        .filter(|budget| *budget != Budget::default()),
        labels: args.label.clone(),
        after,
        ..NewTask::of_session(session, Content::text(prompt))
    }
}

/// Reads a time: as the log writes them, or how long from now.
fn time(text: &str) -> Result<Timestamp, String> {
    if let Ok(time) = text.parse() {
        return Ok(time);
    }
    let Age(length) = text.parse::<Age>().map_err(|_| {
        "expected a time such as 2026-02-21T10:00:00Z, or a duration from now such as 2h".to_owned()
    })?;
    Ok(SystemClock.now().plus_millis(i64::try_from(length.as_millis()).unwrap_or(i64::MAX)))
}
