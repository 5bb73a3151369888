//! `rekindle demo-agent`: the scripted agent, which speaks ACP on stdin and stdout. Demonstrations and tests start
//! it as any other agent; the script is in its prompt.

use std::ffi::OsString;
use std::process::Command;

use rekindle_demo_agent::{Options, default_state, directives_help, linger};

use rekindle_client::failure::{Exit, Failure};

/// Be an agent that does what the script in its prompt says
#[derive(Debug, clap::Args)]
#[command(after_help = directives_help())]
pub(crate) struct Args {
    #[command(flatten)]
    options: Options,
    /// Be a launcher, and have the agent as a child that reads and writes for itself: it outlives its launcher
    #[arg(long)]
    behind_launcher: bool,
    /// Be no agent but a child that one left behind
    #[arg(long, value_name = "SECONDS", hide = true)]
    linger: Option<u64>,
    /// Be such a child in a session of its own, without pipes
    #[arg(long, hide = true, requires = "linger")]
    detach: bool,
}

/// The flag that makes a launcher, which its child is not.
const BEHIND_LAUNCHER: &str = "--behind-launcher";

/// Starts the agent itself, and waits for it.
fn launch() -> std::io::Result<Exit> {
    let arguments = std::env::args_os().skip(1).filter(|argument| argument != BEHIND_LAUNCHER);
    let status = Command::new(std::env::current_exe()?).args(arguments).status()?;
    Ok(if status.success() { Exit::Ok } else { Exit::Failed })
}

pub(super) fn run(args: Args) -> Result<Exit, Failure> {
    let failed = |error| Failure::failed("demo_agent", error);
    if let Some(seconds) = args.linger {
        return linger(seconds, args.detach).map(|()| Exit::Ok).map_err(failed);
    }
    if args.behind_launcher {
        return launch().map_err(|error| Failure::failed("demo_agent", error));
    }
    let state = args.options.state.clone().or_else(default_state).ok_or_else(|| {
        let message = "cannot tell where conversations are kept: $HOME is not set";
        Failure::usage("state_unknown", message.to_owned()).hint("name a directory with --state DIR")
    })?;
    // Without its own path it cannot leave children behind; everything else works.
    let program = std::env::current_exe().map(OsString::from).into_iter();
    let linger_command = program.chain(["demo-agent", "--linger"].map(OsString::from)).collect();
    rekindle_demo_agent::run(args.options, &state, linger_command).map_err(failed)?;
    Ok(Exit::Ok)
}
