//! `rekindle workspace ls`: which snapshots are kept by name.

use rekindle_client::clock::SystemClock;
use rekindle_client::failure::{Exit, Failure};
use rekindle_domain::time::Clock;
use rekindle_service::workspaces::KeptTree;
use rekindle_terminal::output::{self, BOLD, DIM, PLAIN, plural, table};
use rekindle_workspace::tree::short_name;
use serde_json::json;

use super::{Context, failure, timestamp, workspaces};

/// List the snapshots that are kept, the latest first
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle workspace ls
  rekindle workspace ls --json")]
pub(super) struct Args {}

pub(super) fn run(context: &Context, _: &Args) -> Result<Exit, Failure> {
    let kept = match workspaces(context, false) {
        // Where there is no home there are none.
        Err(failure) if failure.code() == "home_missing" => Vec::new(),
        workspaces => workspaces?.list().map_err(failure)?,
    };
    let now = SystemClock.now();
    let described = kept.iter().map(|KeptTree { manifest, taken }| {
        json!({"snapshot": short_name(&manifest.tree), "tree": manifest.tree, "files": manifest.files,
            "bytes": manifest.bytes, "taken_at": timestamp(*taken)})
    });
    context.print(&json!({"snapshots": described.collect::<Vec<_>>()}), |out| {
        let row = |KeptTree { manifest, taken }: &KeptTree| {
            vec![
                (BOLD, short_name(&manifest.tree)),
                (PLAIN, plural(manifest.files, "file")),
                (PLAIN, output::size(manifest.bytes)),
                (DIM, output::ago(timestamp(*taken), now)),
            ]
        };
        let rows: Vec<_> = kept.iter().map(row).collect();
        for line in table(&rows).0 {
            writeln!(out, "{}", line.trim_end())?;
        }
        if kept.is_empty() {
            writeln!(out, "no workspace snapshots: rekindle workspace snapshot takes one")?;
        }
        Ok(())
    })
}
