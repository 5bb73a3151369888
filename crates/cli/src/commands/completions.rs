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
  mkdir -p ~/.local/share/bash-completion/completions
  rekindle completions bash \\
    > ~/.local/share/bash-completion/completions/rekindle
  rekindle completions zsh > ~/.zfunc/_rekindle   # fpath+=~/.zfunc first
  rekindle completions fish > ~/.config/fish/completions/rekindle.fish")]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

/// What the script for zsh ends with. A file on `fpath` is read at the first Tab, as the body of a function of its name: without this, that
/// Tab would define how commands are completed and complete nothing.
const ZSH_FIRST_TAB: &str = "\
if [[ $funcstack[1] == _rekindle ]]; then
    _clap_dynamic_completer_rekindle \"$@\"
fi
";

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    let (shells, name) = (Shells::builtins(), args.shell.to_string());
    let shell = shells.completer(&name).ok_or_else(|| {
        Failure::usage("shell_unknown", format!("there are no completions for {name}"))
            .hint("bash, zsh, fish, elvish and powershell are supported")
    })?;
    let mut script = Vec::new();
    shell.write_registration(COMPLETE, "rekindle", "rekindle", "rekindle", &mut script)?;
    if args.shell == Shell::Zsh {
        script.extend_from_slice(ZSH_FIRST_TAB.as_bytes());
    }
    std::io::Write::write_all(&mut std::io::stdout(), &script)?;
    Ok(Exit::Ok)
}
