//! `rekindle service`: the daemon as a service of the user's own. Agents never notice.

mod install;
mod status;
mod uninstall;

use rekindle_client::failure::{Exit, Failure};

use super::Context;

/// Keep the daemon running as a service of yours (systemd, without root)
///
/// The service starts the daemon with your login, or with the machine if you linger, and again when it dies. It ends the
/// daemon's own process only: agents work on while it is stopped, replaced or removed. Each home has a service of its own.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle service install
  rekindle service status
  rekindle service uninstall")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Install(install::Args),
    Status(status::Args),
    Uninstall(uninstall::Args),
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    match &args.command {
        Command::Install(args) => install::run(context, args),
        Command::Status(args) => status::run(context, args),
        Command::Uninstall(args) => uninstall::run(context, args),
    }
}
