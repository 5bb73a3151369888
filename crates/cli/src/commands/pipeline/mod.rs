//! `rekindle pipeline`: what agents do in a directory, written down in its `rekindle.toml`, and the runs of that.

mod abort;
mod execution_args;
mod follow;
mod graph;
mod init;
mod ledger;
mod list;
mod log;
mod project_dir;
mod resume;
mod run;
mod run_arg;
mod show;
mod trust;
mod validate;

use rekindle_client::failure::{Exit, Failure};

pub(super) use self::run_arg::find as find_run;
use super::Context;

/// Write down what agents do in a directory, and have it done stage by stage
///
/// `rekindle.toml` names agents, tasks, and pipelines: stages that a task goes through in their order, each an agent with a
/// prompt or a command that checks. The default is to implement, to review until nothing is found, and to bring the
/// documentation in line. Every step of a run is on record before it is done, and none that is finished is done again.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle pipeline init             writes a rekindle.toml to begin with
  rekindle pipeline validate         says what is wrong with it
  rekindle pipeline graph            where each outcome leads
  rekindle pipeline run --task T-1   runs a task, and follows it to the end
  rekindle pipeline ls               the runs there are
  rekindle pipeline show             this directory's latest, step by step
  rekindle pipeline resume           has one go on that rests")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Init(init::Args),
    Validate(validate::Args),
    Run(Box<run::Args>),
    Resume(resume::Args),
    Abort(abort::Args),
    Ls(list::Args),
    Show(show::Args),
    Log(log::Args),
    Graph(graph::Args),
}

impl Args {
    /// Tells whether it works on a file alone: whose home it is does not matter then.
    pub(super) fn is_about_file(&self) -> bool {
        matches!(self.command, Command::Init(_) | Command::Validate(_))
    }
}

pub(super) fn run(context: &Context, args: Args) -> Result<Exit, Failure> {
    match args.command {
        Command::Init(args) => init::run(context, &args),
        Command::Validate(args) => validate::run(context, &args),
        Command::Run(args) => run::run(context, *args),
        Command::Resume(args) => resume::run(context, &args),
        Command::Abort(args) => abort::run(context, &args),
        Command::Ls(args) => list::run(context, &args),
        Command::Show(args) => show::run(context, &args),
        Command::Log(args) => log::run(context, &args),
        Command::Graph(args) => graph::run(context, &args),
    }
}
