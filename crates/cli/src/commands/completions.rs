//! `rekindle completions`: the script by which a shell asks us how a command may go on.

use clap_complete::Shell;
use clap_complete::env::Shells;
use rekindle_client::failure::{Exit, Failure};

use crate::COMPLETE;

/// Print a shell completion script
///
/// Commands, options and their values are completed, and so are ids of sessions, tasks, questions and pipeline runs while a daemon runs:
/// none is started for it.
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
    let (shells, name) = (Shells::builtins(), args.shell.to_string());
    let shell = shells.completer(&name).ok_or_else(|| {
        Failure::usage("shell_unknown", format!("there are no completions for {name}"))
            .hint("bash, zsh, fish, elvish and powershell have some")
    })?;
    let mut script = Vec::new();
    shell.write_registration(COMPLETE, "rekindle", "rekindle", "rekindle", &mut script)?;
    std::io::Write::write_all(&mut std::io::stdout(), &script)?;
    Ok(Exit::Ok)
}
