//! `rekindle workspace snapshot`: keeps a directory as it is.

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use rekindle_client::failure::{Exit, Failure};
use rekindle_terminal::output::{self, BOLD, DIM, WARN, grouped, plural, styled, wrap};
use rekindle_terminal::sanitise;
use rekindle_workspace::path_name::PathName;
use rekindle_workspace::tree::short_name;
use rekindle_workspace::{Captured, Skip};
use serde_json::{Value, json};

use super::{Context, capture_options, directory, failure, workspaces};

/// Keep a directory as it is
///
/// On disk, with everything in it, when the command ends. What could not be captured is named with the reason. Taking the same
/// files again costs a look at each, and no room.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle workspace snapshot
  rekindle workspace snapshot ~/project --json")]
pub(super) struct Args {
    /// The directory [default: this one]
    directory: Option<PathBuf>,
}

/// Paths that are shown; JSON has the rest.
const MAX_SHOWN: usize = 20;

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let directory = directory(args.directory.as_ref());
    let options = capture_options(&directory)?;
    let workspaces = workspaces(context, true)?;
    let begun = Instant::now();
    let captured = workspaces.snapshot(options).map_err(failure)?;
    let seconds = begun.elapsed().as_secs_f64();
    context.print(&body(&captured), |out| text(out, &captured, seconds))
}

/// Returns what programs are told of a capture.
pub(super) fn body(captured: &Captured) -> Value {
    let skipped = &captured.skipped;
    let named = |skip: &Skip| {
        let mut one = json!(PathName::from(skip.path.as_slice()));
        one["reason"] = json!(skip.reason);
        one
    };
    json!({
        "snapshot": short_name(&captured.tree),
        "tree": captured.tree,
        "files": captured.totals.files,
        "links": captured.totals.links,
        "directories": captured.totals.directories,
        "bytes": captured.totals.bytes,
        "files_read": captured.files_read,
        "git": captured.git.as_ref().map(|git| json!({"ref": git.reference, "commit": git.commit})),
        "rules": captured.rules,
        "skipped": {"total": skipped.total(), "by_reason": skipped.totals,
            "first": skipped.first.iter().map(named).collect::<Vec<_>>(), "all": skipped.all},
        "notes": captured.notes,
    })
}

fn text(out: &mut dyn Write, captured: &Captured, seconds: f64) -> Result<(), Failure> {
    let totals = &captured.totals;
    let facts = format!(
        "{}, {}; {} read in {seconds:.2} s",
        plural(totals.files, "file"),
        output::size(totals.bytes),
        grouped(captured.files_read)
    );
    writeln!(out, "{}  {}", styled(BOLD, short_name(&captured.tree)), styled(DIM, facts))?;
    let skipped = &captured.skipped;
    for skip in skipped.first.iter().take(MAX_SHOWN) {
        let (path, reason) = (String::from_utf8_lossy(&skip.path), json!(skip.reason));
        let reason = reason.as_str().unwrap_or_default().replace('_', " ");
        writeln!(out, "  {} {}: {reason}", styled(WARN, "skipped"), sanitise::line(&path))?;
    }
    if let Some(more) = skipped.total().checked_sub(MAX_SHOWN as u64).filter(|more| *more > 0) {
        writeln!(out, "  {}", styled(DIM, format!("and {} more; --json lists them", grouped(more))))?;
    }
    for note in &captured.notes {
        writeln!(out, "{}", wrap(&sanitise::line(note), output::width(), "  ", "  "))?;
    }
    Ok(())
}
