//! `rekindle workspace gc`: lets go of old snapshots, and frees the room that nobody needs any more.

use std::time::SystemTime;

use rekindle_client::clock::SystemClock;
use rekindle_client::failure::{Exit, Failure};
use rekindle_daemon::config::Config;
use rekindle_domain::age::Age;
use rekindle_domain::time::Clock;
use rekindle_service::workspaces::KeptTree;
use rekindle_terminal::output::{self, BOLD, DIM, plural, styled};
use rekindle_wire::request::Collect;
use rekindle_workspace::tree::short_name;
use serde_json::json;

use super::{Context, failure, timestamp, workspaces};
use crate::commands::gc::collect;

/// Let go of old snapshots, and free the room that nobody needs any more
///
/// Snapshots that were last taken longer ago than `--older-than`, or than `keep_days` of `[checkpoints]` in the configuration, are kept
/// by name no more; nor are the files of checkpoints around runs that are as old, or beyond `max_bytes`. Then everything goes that nobody names and that is older than a day, as with `rekindle gc`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle workspace gc --dry-run
  rekindle workspace gc --older-than 7d")]
pub(super) struct Args {
    /// Show what could be deleted, and delete nothing
    #[arg(long)]
    dry_run: bool,
    /// How old a snapshot may be, as 7d [default: keep_days of the configuration, else 30d]
    #[arg(long, value_name = "AGE")]
    older_than: Option<Age>,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let usual = Config::read()?.checkpoints.retention();
    let most = args.older_than.map_or(usual.keep, |age| age.0);
    let workspaces = workspaces(context, false)?;
    let expired = workspaces.expire(most, SystemTime::now(), args.dry_run).map_err(failure)?;
    let freed = collect(
        context,
        &Collect {
            dry_run: args.dry_run,
            checkpoints_older_than_s: Some(most.as_secs()),
            checkpoints_max_bytes: Some(usual.max_bytes),
            ..Collect::default()
        },
    )?;
    let described = expired.iter().map(|KeptTree { manifest, taken }| {
        json!({"snapshot": short_name(&manifest.tree), "tree": manifest.tree, "taken_at": timestamp(*taken)})
    });
    let body = json!({"expired": described.collect::<Vec<_>>(), "bytes": freed.bytes(), "gone": freed.gone,
        "left": freed.left, "failed": freed.failed, "dry_run": args.dry_run});
    context.print(&body, |out| {
        let now = SystemClock.now();
        for KeptTree { manifest, taken } in &expired {
            let taken = output::ago(timestamp(*taken), now);
            writeln!(out, "  {}  {}", styled(BOLD, short_name(&manifest.tree)), styled(DIM, taken))?;
        }
        let (word, count) =
            (if args.dry_run { "would let" } else { "let" }, plural(expired.len() as u64, "snapshot"));
        writeln!(out, "{word} go of {count}, freed {} that nothing uses", output::size(freed.bytes()))?;
        Ok(())
    })?;
    Ok(if freed.failed.is_empty() { Exit::Ok } else { Exit::Failed })
}
