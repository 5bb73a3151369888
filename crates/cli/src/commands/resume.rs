//! `rekindle resume`: continues an interrupted session, and watches it.

use rekindle_client::{Exit, Failure, read};
use rekindle_display::hints::attach;
use rekindle_display::live::Goal;
use rekindle_wire::request::Resume;
use rekindle_wire::view::{RunState, RunView};
use serde_json::{Value, json};

use super::Context;
use crate::env_arg::{environment_of, umask_for};
use crate::session_arg::SessionArg;

/// Continue an interrupted session from where it was
///
/// Finished work is not repeated: the agent is told where it was interrupted and what is uncertain. A plain command remembers
/// nothing: it runs again from the beginning, with the same prompt.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle resume
  rekindle resume 01khz0p6r8 --detach")]
pub(crate) struct Args {
    #[command(flatten)]
    session: SessionArg,

    /// Pass an environment variable to the agent: NAME from this shell, or NAME=VALUE
    #[arg(long, value_name = "NAME[=VALUE]")]
    env: Vec<String>,

    /// Do not watch it: return as soon as it runs
    #[arg(long, short)]
    detach: bool,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let mut client = context.daemon_or_start()?;
    let id = args.session.find_live(context, &client)?;
    let session = client.session(&id)?;
    let env = environment_of(context, &session, &args.env, |env| format!("resume {id}{env}"))?;
    let body = Resume { env, umask: umask_for(context), ..Resume::default() };
    let body = match client.post_once(&format!("/api/sessions/{id}/resume"), &body) {
        // It goes on already: by itself, or because a daemon that died did as we said.
        Err(failure) if failure.code() == "nothing_to_resume" => {
            let now = client.session(&id)?;
            let old = session.run.as_ref().map(|run| run.run_id);
            let goes_on = |run: &RunView| {
                run.attempt > 1
                    && matches!(run.state, RunState::Checkpointing | RunState::Running | RunState::Waiting)
            };
            let run = now.run.filter(|run| old != Some(run.run_id) || goes_on(run)).ok_or(failure)?;
            json!({"run_id": run.run_id}).to_string().into()
        }
        other => other?,
    };
    if args.detach {
        return context.acknowledge(&body, format_args!("{id} continues; watch it with: {}", attach(&id)));
    }
    let resumed: Value = read(&body)?;
    let goal = match resumed["run_id"].as_str() {
        Some(run) => Goal::Run(run.to_owned()),
        None => Goal::Next,
    };
    context.watch(&client, id, session.last_seq, goal)
}
