//! `rekindle pipeline show`: one run, whole: its steps, what each took, and what is pending.

use rekindle_client::clock::SystemClock;
use rekindle_client::{Exit, Failure};
use rekindle_display::pipeline::write_run;
use rekindle_domain::time::Clock;
use rekindle_terminal::output;

use super::run_arg::RunArg;
use crate::context::Context;

/// Show a run: its task, its steps with what each took and found, and what is pending
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle pipeline show        # this directory's latest run
  rekindle pipeline show run-20251020-140818-4f9f29a1
  rekindle pipeline show --json |
    jq -r '.stages[] | [.step_id, .outcome, .session_id] | @tsv'")]
pub(super) struct Args {
    #[command(flatten)]
    run: RunArg,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let client = context.daemon_or_start()?;
    let run = args.run.find(&client)?;
    let json = serde_json::to_string(&run).map_err(|error| Failure::failed("output", error))?;
    context.print(&json, |out| Ok(write_run(out, &run, SystemClock.now(), output::width())?))
}
