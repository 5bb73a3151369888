//! `rekindle snapshot show`: what a session was when a snapshot of it was taken.

use rekindle_client::{Exit, Failure};
use rekindle_display::snapshot_text::write_snapshot;
use serde_json::json;

use super::{Context, LIST, Named, detail_of};

/// Show what a session was when a snapshot was taken
///
/// With --json the whole state is in it.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "rekindle snapshot show [OPTIONS] [SESSION] SNAPSHOT",
    after_help = "Examples:
  rekindle snapshot show 148-1
  rekindle snapshot show 01khz0p6r8 148-1 --json"
)]
pub(super) struct Args {
    /// The snapshot's name, behind the session if it is not this directory's latest
    #[arg(value_name = "SNAPSHOT", required = true, num_args = 1..=2)]
    words: Vec<String>,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let named = Named::read(&args.words)?;
    let &[name] = named.snapshots.as_slice() else {
        return Err(Failure::usage("no_snapshot", "the name of a snapshot is missing".into()).hint(LIST));
    };
    let detail = detail_of(context, &named, name)?;
    context.print(&json!(detail), |out| write_snapshot(out, &detail))
}
