//! `rekindle snapshot ls`: which snapshots of a session are kept.

use rekindle_client::clock::SystemClock;
use rekindle_client::{Exit, Failure};
use rekindle_display::record_text::word;
use rekindle_domain::time::Clock;
use rekindle_terminal::output::{self, BAD, BOLD, DIM, PLAIN, table};
use rekindle_wire::view::SnapshotView;
use rekindle_workspace::tree::short_name;
use serde_json::json;

use super::{Context, Named, list_of};

/// List a session's snapshots, the latest first
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle snapshot ls
  rekindle snapshot ls 01khz0p6r8 --json")]
pub(super) struct Args {
    /// The session's id, or the beginning of it [default: this directory's latest]
    #[arg(value_name = "SESSION")]
    session: Vec<String>,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let named = Named::read(&args.session)?;
    let (id, list) = list_of(context, &named)?;
    let now = SystemClock.now();
    let mut told = json!(list);
    told["session_id"] = json!(id);
    context.print(&told, |out| {
        let row = |one: &SnapshotView| {
            let (style, why) = match (&one.problem, &one.reason) {
                (Some(problem), _) => (BAD, problem.code.replace('_', " ")),
                (None, reason) => (PLAIN, reason.as_ref().map(word).unwrap_or_default()),
            };
            vec![
                (BOLD, one.name.clone()),
                (style, why),
                (PLAIN, output::size(one.size_bytes)),
                (DIM, output::ago(one.created_at, now)),
                (DIM, one.tree.as_ref().map(short_name).unwrap_or_default()),
            ]
        };
        let rows: Vec<_> = list.snapshots.iter().map(row).collect();
        for line in table(&rows).0 {
            writeln!(out, "{}", line.trim_end())?;
        }
        if list.snapshots.is_empty() {
            writeln!(out, "no snapshots of {id}: rekindle snapshot create takes one")?;
        }
        Ok(())
    })
}
