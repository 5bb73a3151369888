//! `rekindle task`: work that waits for its turn; asked for, listed, shown, cancelled, tried again, merged.

mod add;
mod export;
mod history;
mod list;
mod logs;
mod markdown;
mod show;
mod stats;
mod task_arg;
mod task_file;
mod update;
mod watch;
mod worktree;

use rekindle_client::{Exit, Failure};

use super::Context;

/// Queue work for agents: add tasks, see what they do, cancel and retry them
///
/// A task waits for its turn and becomes a run of a session of its own. It begins when what it waits for has ended, its time has come, no
/// limit is reached, and nobody else works in its directory, above it or below it. Whatever dies, no task is lost and none runs twice.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle task add \"fix the failing test\"
  rekindle task add -f todo.md                    # one for each `- [ ]` in it
  rekindle task add \"now the docs\" --after 01khz0p6r8
  rekindle task ls
  rekindle task ls --status failed
  rekindle task watch                             # as it changes; q ends
  rekindle task show 01khz0p6r8
  rekindle task history 01khz0p6r8                # what happened, by whom, why
  rekindle task cancel 01khz0p6r8
  rekindle task retry 01khz0p6r8 --fresh
  rekindle task add \"try another way\" --worktree  # in a directory of its own
  rekindle task diff 01khz0p6r8                   # what it did there
  rekindle task merge 01khz0p6r8 --rm             # brings it back here

In config.toml:
  [tasks]
  limit = 4                # at once [default: one per processor, at least two]
  agents = { claude = 2 }  # with one agent
  labels = { ci = 1 }      # with one label
  path = \"/data/tasks.db\"  # SQLite [default: tasks.db in the home]
  url = \"env:TASKS_URL\"    # or Postgres: an address, or where it is")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Add(Box<add::Args>),
    Ls(list::Args),
    Show(show::Args),
    Watch(watch::Args),
    Logs(logs::Args),
    History(history::Args),
    Cancel(update::CancelArgs),
    Retry(update::RetryArgs),
    Priority(update::PriorityArgs),
    Stats(stats::Args),
    Export(export::Args),
    Diff(worktree::DiffArgs),
    Merge(worktree::MergeArgs),
    Rm(worktree::RmArgs),
}

pub(super) fn run(context: &Context, args: Args) -> Result<Exit, Failure> {
    match args.command {
        Command::Add(args) => add::run(context, *args),
        Command::Ls(args) => list::run(context, &args),
        Command::Show(args) => show::run(context, &args),
        Command::Watch(args) => watch::run(context, &args),
        Command::Logs(args) => logs::run(context, &args),
        Command::Export(args) => export::run(context, &args),
        Command::Diff(args) => worktree::diff(context, &args),
        Command::Merge(args) => worktree::merge(context, &args),
        Command::Rm(args) => worktree::rm(context, &args),
        Command::History(args) => history::run(context, &args),
        Command::Stats(args) => stats::run(context, &args),
        Command::Cancel(args) => update::cancel(context, &args),
        Command::Retry(args) => update::retry(context, &args),
        Command::Priority(args) => update::set_priority(context, &args),
    }
}
