//! `rekindle pipeline abort`: a run ends, and does not go on by itself.

use rekindle_client::{Exit, Failure};
use rekindle_display::hints::ours;
use rekindle_wire::request::AbortPipeline;

use super::run_arg::{RunArg, path};
use crate::context::Context;

/// End a run: the step that goes on is cancelled, and what it did to files stays
///
/// Only `rekindle pipeline resume --force` continues it. Finished steps stay finished.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle pipeline abort                        # this directory's latest run
  rekindle pipeline abort run-20251020-140818-4f9f29a1 --reason \"not wanted\"")]
pub(super) struct Args {
    #[command(flatten)]
    run: RunArg,

    /// Why, for its ledger
    #[arg(long, value_name = "WORDS")]
    reason: Option<String>,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let mut client = context.daemon_or_start()?;
    let run = args.run.find(&client)?;
    let body = AbortPipeline { reason: args.reason.clone() };
    let answer = client.post_once(&format!("{}/abort", path(&run.run_id)), &body)?;
    let again = ours(format_args!("pipeline resume {} --force", run.run_id));
    context.acknowledge(&answer, format_args!("aborted {}; {again} continues it anyway", run.run_id))
}
