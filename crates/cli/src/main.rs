//! The `rekindle` command: arguments in, text and exit codes out. It has no rules of its own.

mod agent_choice;
mod bundle_progress;
mod commands;
mod completers;
mod confirm;
mod context;
mod env_arg;
mod home_arg;
mod offline_session;
mod passphrase;
mod possible_values;
mod prompt_arg;
mod restored_files;
mod server_arg;
mod session_arg;
mod session_options;
mod workspace_failure;

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{CommandFactory, Parser};
use clap_complete::CompleteEnv;
use rekindle_client::failure::{Exit, Failure};
use rekindle_client::server::Server;
use rekindle_store::crash_report::{self, Work};
use rekindle_terminal::output::for_stderr;

use self::context::Context;

/// Runs coding agents in the background, so that a crash never costs you work.
#[derive(Debug, Parser)]
#[command(
    name = "rekindle",
    version,
    after_help = "Examples:
  rekindle agents                        which agents are here, or missing
  rekindle run \"fix the failing test\"    a session; Ctrl-C leaves it running
  rekindle ps                            what every session is doing
  rekindle attach                        a conversation with the latest session
  rekindle                               the same, or begins a session
  rekindle --server https://box:7700 ps  those elsewhere, see rekindle token

Exit codes:
  0  done                             3  interrupted
  1  failed, or problems were found   4  waiting for an answer
  2  wrong usage, or no usable home   5  no daemon running"
)]
struct Cli {
    #[command(flatten)]
    shared: Shared,
    // Without one, at a terminal, a conversation is held with this directory's session.
    #[command(subcommand)]
    command: Option<commands::Command>,
}

/// What every command takes.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Shared {
    #[command(flatten)]
    home: home_arg::HomeArg,
    #[command(flatten)]
    server: server_arg::ServerArg,
    /// Print JSON instead of text; errors become a JSON object on stderr
    #[arg(long, global = true, help_heading = "Everywhere")]
    json: bool,
}

impl Shared {
    /// Returns the daemon elsewhere that is meant, if one is.
    fn elsewhere(&self) -> Result<Option<Arc<Server>>, Failure> {
        self.server.find(self.home.given().is_some())
    }

    /// Returns the context of a command that has to do with a home.
    fn context(&self) -> Result<Context, Failure> {
        let server = self.elsewhere()?;
        let home = match &server {
            // It is elsewhere too.
            Some(_) => self.home.path().unwrap_or_default(),
            None => self.home.path()?,
        };
        Ok(Context { home, json: self.json, server })
    }

    /// Has hints name whom this command speaks to, as the command line does.
    fn remember(&self) {
        let [server, token_file, ca] = self.server.given();
        rekindle_display::hints::remember(&[("--home", self.home.given()), server, token_file, ca]);
    }
}

/// Has a panic name the session that was worked on: a bug that one log brings out ends every command that reads it.
fn name_session_in_panics() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        print(panic);
        if let Some(Work { session, doing }) = crash_report::current() {
            // Nobody may be reading what we say.
            let _ = writeln!(
                std::io::stderr(),
                "this happened while working on {session} ({doing}): it is a bug, please report it"
            );
        }
    }));
}

/// The variable by which a completion script of a shell asks us.
const COMPLETE: &str = "REKINDLE_COMPLETE";

fn main() -> ExitCode {
    CompleteEnv::with_factory(Cli::command).var(COMPLETE).complete();
    name_session_in_panics();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(refused) => return usage(&refused).into(),
    };
    let json = cli.shared.json;
    cli.shared.remember();
    let outcome = match cli.command {
        Some(command) => commands::run(cli.shared, command),
        None => match commands::converse(cli.shared) {
            Some(outcome) => outcome,
            None => return no_command(json).into(),
        },
    };
    match outcome {
        Ok(exit) => exit.into(),
        // Whoever reads our output has seen enough.
        Err(failure) if failure.is_broken_pipe() => Exit::Ok.into(),
        Err(failure) => {
            failure.report(json);
            failure.exit.into()
        }
    }
}

/// Says why nothing is done where a command is missing, and which there are.
fn no_command(json: bool) -> Exit {
    let why = rekindle_conversation::obstacle().filter(|_| !json);
    let why = why.map(|why| format!("no conversation can be held here: {why}"));
    let why = why.unwrap_or_else(|| "a command is missing".into());
    if json {
        Failure::usage("usage", why).hint("rekindle --help").report(true);
    } else {
        anstream::eprintln!("{}\n\n{}", for_stderr(&why), Cli::command().render_help().ansi());
    }
    Exit::Usage
}

/// Reports arguments that make no sense, or prints the help that was asked for.
fn usage(refused: &clap::Error) -> Exit {
    let wants_json = std::env::args_os().take_while(|arg| arg != "--").any(|arg| arg == "--json");
    if refused.use_stderr() && wants_json {
        let text = refused.render().to_string();
        let message = text.lines().next().unwrap_or_default();
        let message = message.strip_prefix("error: ").unwrap_or(message).to_owned();
        Failure::usage("usage", message).hint("rekindle --help").report(true);
    } else {
        // Help that nobody reads any more is no failure.
        let _ = refused.print();
    }
    if refused.use_stderr() { Exit::Usage } else { Exit::Ok }
}

#[cfg(test)]
mod tests {
    use rekindle_terminal::output::columns;

    use super::*;

    /// Returns the lines of examples that a terminal of the usual width would break, of a command and of all below it.
    fn too_wide(path: &str, command: &clap::Command) -> Vec<String> {
        let path = format!("{path} {}", command.get_name());
        let help = [command.get_after_help(), command.get_after_long_help()];
        let help: Vec<String> = help.into_iter().flatten().map(ToString::to_string).collect();
        let wide = help.iter().flat_map(|text| text.lines()).filter(|line| columns(line) > 80);
        let wide = wide.map(|line| format!("{path}: {line}"));
        let below = command.get_subcommands().filter(|command| !command.is_hide_set());
        wide.chain(below.flat_map(|command| too_wide(&path, command))).collect()
    }

    #[test]
    fn examples_in_help_fit_into_80_columns() {
        let wide = too_wide("", &Cli::command());
        assert!(wide.is_empty(), "{wide:#?}");
    }
}
