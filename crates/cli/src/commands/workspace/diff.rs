//! `rekindle workspace diff`: what is different between two snapshots, or between one and the directory now.

use std::path::PathBuf;

use rekindle_client::failure::{Exit, Failure};

use super::{Context, capture_options, directory, failure, resolve, workspaces};
use crate::commands::tree_diff::{Compared, show};

/// Show what is different between two snapshots, or between one and the directory now
///
/// As a diff that `git apply` takes. Exits 0 whether or not there is a difference.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle workspace diff snap-1a2b3c4d5e6f            from it to this directory
  rekindle workspace diff snap-1a2b3c4d5e6f snap-77c0  from one to the other
  rekindle workspace diff snap-1a2b3c4d5e6f --stat     which files")]
pub(super) struct Args {
    /// The snapshot to begin from
    from: String,
    /// The other one [default: the directory as it is now]
    to: Option<String>,
    /// The directory [default: this one]
    #[arg(long, value_name = "DIR", conflicts_with = "to")]
    directory: Option<PathBuf>,
    /// Only list the files, with how many lines were added and removed
    #[arg(long)]
    stat: bool,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let workspaces = workspaces(context, false)?;
    let from = resolve::find(context, &workspaces, &args.from)?.tree;
    let to = match &args.to {
        Some(name) => resolve::find(context, &workspaces, name)?.tree,
        None => {
            let options = capture_options(&directory(args.directory.as_ref()))?;
            workspaces.capture_for_now(options).map_err(failure)?.tree
        }
    };
    show(context, &workspaces, &Compared::new(from, to), args.stat)
}
