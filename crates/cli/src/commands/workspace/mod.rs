//! `rekindle workspace`: snapshots of a directory's files, kept in the home, listed, shown, compared and restored.

mod diff;
mod gc;
mod list;
mod resolve;
mod restore;
mod show;
mod snapshot;

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rekindle_client::failure::{Exit, Failure};
use rekindle_daemon::config::Config;
use rekindle_domain::blob_id::BlobId;
use rekindle_domain::time::Timestamp;
use rekindle_service::workspaces::Workspaces;
use rekindle_store::home;
use rekindle_store::layout::Layout;
use rekindle_workspace::CaptureOptions;
use rekindle_workspace::rules::Selection;

use super::Context;
use crate::commands::tree_diff::{self, Compared};
use crate::workspace_failure::failure;

/// Snapshots of a directory: take, list, show, compare, restore
///
/// A snapshot has every file that git tracks or would track, with its mode, links and empty directories: what `.gitignore`,
/// `.rekindleignore` and `[workspace]` in the configuration leave out is not in it, nor is `.git`. Equal contents have the same
/// snapshot on every machine. Contents are kept once, compressed, in the home; nothing is written into the directory.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle workspace snapshot                keeps this directory as it is
  rekindle workspace ls                      which snapshots there are
  rekindle workspace diff snap-1a2b3c4d5e6f  what changed here since
  rekindle workspace show snap-1a2b3c4d5e6f  what is in it
  rekindle workspace restore snap-1a2b3c4d5e6f
                                             makes this directory what it was")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Snapshot(snapshot::Args),
    Ls(list::Args),
    Show(show::Args),
    Diff(diff::Args),
    Restore(restore::Args),
    Gc(gc::Args),
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    match &args.command {
        Command::Snapshot(args) => snapshot::run(context, args),
        Command::Ls(args) => list::run(context, args),
        Command::Show(args) => show::run(context, args),
        Command::Diff(args) => diff::run(context, args),
        Command::Restore(args) => restore::run(context, args),
        Command::Gc(args) => gc::run(context, args),
    }
}

/// Returns the workspaces of the home; `makes_home` for whoever writes.
pub(super) fn workspaces(context: &Context, makes_home: bool) -> Result<Workspaces, Failure> {
    let (disk, layout) = (context.disk(), Layout::new(&context.home));
    if makes_home {
        home::prepare(&*disk, &layout)?;
    } else {
        home::check(&*disk, &layout)?;
    }
    Ok(Workspaces::new(disk, layout))
}

/// Shows what would change in a directory if it became what a tree says.
pub(super) fn show_changes(context: &Context, directory: &Path, wanted: BlobId) -> Result<(), Failure> {
    let workspaces = workspaces(context, false)?;
    let now = workspaces.capture_for_now(capture_options(directory)?).map_err(failure)?.tree;
    tree_diff::show(context, &workspaces, &Compared::new(now, wanted), true).map(drop)
}

/// Returns how a directory is captured.
pub(crate) fn capture_options(directory: &Path) -> Result<CaptureOptions<'static>, Failure> {
    let config = Config::read()?.workspace;
    let selection = Selection { exclude: config.exclude, include: config.include };
    Ok(CaptureOptions { selection, ..CaptureOptions::new(directory) })
}

/// Returns the directory that is meant.
fn directory(given: Option<&PathBuf>) -> PathBuf {
    given.cloned().unwrap_or_else(|| ".".into())
}

/// Returns a time of a file as ours.
fn timestamp(at: SystemTime) -> Timestamp {
    let millis = at.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    Timestamp::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
}
