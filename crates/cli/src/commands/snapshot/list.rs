//! `rekindle snapshot ls`: which snapshots of a session are kept.

use crate::completers::ids;
use rekindle_client::completion::IdKind;
use rekindle_client::{Exit, Failure};
use rekindle_display::hints::brief;
use rekindle_display::snapshot_text::write_snapshots;
use serde_json::json;

use super::{Context, Named, list_of};

/// List a session's snapshots, the latest first
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle snapshot ls
  rekindle snapshot ls 01khz0p6r8 --json")]
pub(super) struct Args {
    /// The session's id, or the beginning of it [default: this directory's latest]
    #[arg(value_name = "SESSION", add = ids(IdKind::Session))]
    session: Vec<String>,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let named = Named::read(&args.session)?;
    let (id, list) = list_of(context, &named)?;
    let mut told = json!(list);
    told["session_id"] = json!(id);
    context.print(&told, |out| {
        write_snapshots(out, &list.snapshots)?;
        if list.snapshots.is_empty() {
            writeln!(out, "no snapshots of {}: rekindle snapshot create takes one", brief(&id))?;
        }
        Ok(())
    })
}
