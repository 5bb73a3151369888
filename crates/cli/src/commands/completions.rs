//! `rekindle completions`: what a shell needs to complete our commands.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::failure::{Exit, Failure};

/// Print what a shell needs to complete commands
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle completions bash > ~/.local/share/bash-completion/completions/rekindle
  rekindle completions zsh > ~/.zfunc/_rekindle
  rekindle completions fish > ~/.config/fish/completions/rekindle.fish")]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::Cli::command(), "rekindle", &mut script);
    std::io::Write::write_all(&mut std::io::stdout(), &script)?;
    Ok(Exit::Ok)
}
