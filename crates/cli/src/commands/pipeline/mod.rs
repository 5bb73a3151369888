//! `rekindle pipeline`: what agents do in a directory, written down in its `rekindle.toml`.

mod init;
mod validate;

use rekindle_client::failure::{Exit, Failure};

use super::Context;

/// Write down what agents do in a directory, and check it
///
/// `rekindle.toml` names agents, tasks, and pipelines: stages that a task goes through in their order, each an agent with a
/// prompt or a command that checks. The default is to implement, to review until nothing is found, and to bring the
/// documentation in line.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle pipeline init        writes a rekindle.toml to begin with
  rekindle pipeline validate    says what is wrong with it, by line and column")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Init(init::Args),
    Validate(validate::Args),
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    match &args.command {
        Command::Init(args) => init::run(context, args),
        Command::Validate(args) => validate::run(context, args),
    }
}
