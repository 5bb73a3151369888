//! `rekindle completions`: what a shell needs to complete our commands.

use clap::{Command, CommandFactory};
use clap_complete::Shell;

use rekindle_client::failure::{Exit, Failure};

/// Print what a shell needs to complete commands
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle completions bash > ~/.local/share/bash-completion/completions/rekindle
  rekindle completions zsh > ~/.zfunc/_rekindle     # with fpath+=~/.zfunc before compinit
  rekindle completions fish > ~/.config/fish/completions/rekindle.fish")]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    // What help does not list is not offered either.
    let all = crate::Cli::command();
    let listed = all.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    let mut offered = Command::new("rekindle").args(all.get_arguments().cloned()).subcommands(listed);
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut offered, "rekindle", &mut script);
    std::io::Write::write_all(&mut std::io::stdout(), &script)?;
    Ok(Exit::Ok)
}
