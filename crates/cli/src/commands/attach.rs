//! `rekindle attach`: a conversation with a session at a terminal; elsewhere it is watched from the beginning of its latest run to that
//! run's end.

use rekindle_client::run_start::find_run_start;
use rekindle_client::{Exit, Failure};
use rekindle_display::hints::ours;
use rekindle_display::live::Goal;
use rekindle_wire::view::RunState;

use super::{Context, converse};
use crate::session_arg::SessionArg;

/// Converse with a session: see what its latest run did and does, type messages, answer questions
///
/// At a terminal: a line to type on below what happens. Messages wait for their turn while the agent works. /help lists commands and
/// keys; Ctrl-D or /detach leaves, and the agent works on.
///
/// Elsewhere, with --json, or with TERM=dumb it watches: the agent's answer goes to stdout, everything else to stderr, and the exit code
/// is that of the run: 0 completed, 1 failed or cancelled, 3 interrupted, 4 waiting.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle attach
  rekindle attach 01khz0p6r8 --all
  rekindle attach 01khz0p6r8 > answer.md")]
pub(crate) struct Args {
    #[command(flatten)]
    session: SessionArg,

    /// Begin with the session's first record
    #[arg(long)]
    all: bool,
}

pub(super) fn run(context: Context, args: &Args) -> Result<Exit, Failure> {
    let client = context.daemon_or_start()?;
    let id = args.session.find_live(&context, &client)?;
    if converse::is_possible_for(&context) {
        return converse::with(context, client, &id, args.all);
    }
    let session = client.session(&id)?;
    let goal = match &session.run {
        // What is held keeps those behind it waiting too.
        Some(run) if session.queued > 0 && session.held.is_none() && exit_is_known(run.state) => Goal::Next,
        Some(run) => Goal::Run(run.run_id.to_string()),
        None if session.queued > 0 => Goal::Next,
        None => {
            anstream::eprintln!(
                "it has not been given a prompt yet: {}",
                ours(format_args!("send {id} TEXT"))
            );
            return Ok(Exit::Ok);
        }
    };
    let after = match (&goal, args.all) {
        (_, true) => 0,
        (Goal::Run(run), false) => find_run_start(&client, &id, session.last_seq, run)?,
        (_, false) => session.last_seq,
    };
    context.watch(&client, id, after, goal)
}

/// Tells whether a run has ended.
fn exit_is_known(state: RunState) -> bool {
    matches!(state, RunState::Completed | RunState::Failed | RunState::Cancelled | RunState::Interrupted)
}
