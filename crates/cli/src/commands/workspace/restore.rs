//! `rekindle workspace restore`: makes a directory what a snapshot says.

use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};

use rekindle_client::failure::{Exit, Failure};
use rekindle_domain::blob_id::BlobId;
use rekindle_domain::session::SessionState;
use rekindle_service::workspaces::Workspaces;
use rekindle_store::Loaded;
use rekindle_terminal::output::{self, BOLD, DIM, WARN, grouped, plural, shell_word, styled, wrap};
use rekindle_terminal::sanitise;
use rekindle_workspace::path_name::PathName;
use rekindle_workspace::restore::{DoneWhat, Restored};
use rekindle_workspace::tree::short_name;
use serde_json::{Value, json};

use super::resolve::{self, Named};
use super::{Context, capture_options, directory, failure, workspaces};
use crate::commands::tree_diff::{Compared, show};

/// Make a directory what a snapshot says
///
/// Only what differs is written. What was there is kept first, ignored files that are overwritten too, and the way back is told. Files
/// that the snapshot's rules ignore or that a capture skipped are left alone, and so is `.git`. Interrupted at any moment, the same
/// command finishes it. Refused while a session's agent is at work in the directory, above it or below it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle workspace restore snap-1a2b3c4d5e6f --dry-run   what would change
  rekindle workspace restore snap-1a2b3c4d5e6f             asks, then does it
  rekindle workspace restore snap-1a2b3c4d5e6f --yes --directory ~/project")]
pub(super) struct Args {
    /// The snapshot: `snap-` and its first digits, or its whole hash
    snapshot: String,
    /// The directory [default: this one]
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// Also while an agent is at work there
    #[arg(long)]
    force: bool,
}

/// Paths that are shown; JSON has the rest.
const MAX_SHOWN: usize = 20;

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let directory = directory(args.directory.as_ref());
    let workspaces = workspaces(context, false)?;
    let Named { tree: wanted, facts } = resolve::find(context, &workspaces, &args.snapshot)?;
    let options = || capture_options(&directory);
    if args.dry_run {
        let now = workspaces.capture_for_now(options()?).map_err(failure)?.tree;
        return show(context, &workspaces, &Compared::new(now, wanted), true);
    }
    if !args.force {
        refuse_open_runs(context, &directory)?;
    }
    if !args.yes && !context.json && output::is_terminal() {
        let now = workspaces.capture_for_now(options()?).map_err(failure)?.tree;
        if !confirmed(context, &workspaces, now, wanted)? {
            return Ok(Exit::Ok);
        }
    }
    let restored = match &facts {
        Some(facts) => workspaces.restore_with(wanted, facts, options()?),
        None => workspaces.restore(wanted, options()?),
    };
    let restored = restored.map_err(failure)?;
    context.print(&body(&restored), |out| text(out, &restored, args, &directory))?;
    Ok(if restored.is_complete() { Exit::Ok } else { Exit::Failed })
}

/// Shows what would change and asks a person.
fn confirmed(
    context: &Context,
    workspaces: &Workspaces,
    now: BlobId,
    wanted: BlobId,
) -> Result<bool, Failure> {
    show(context, workspaces, &Compared::new(now, wanted), true)?;
    if now == wanted {
        return Ok(false);
    }
    eprint!("change these files? [y/N] ");
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Refuses a directory in which an agent is at work, or above or below which one is.
fn refuse_open_runs(context: &Context, directory: &Path) -> Result<(), Failure> {
    let Some(offline) = context.offline_if_any()? else { return Ok(()) };
    let root = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    let mut busy = None;
    let overlaps = |state: &SessionState| {
        let at = Path::new(&state.working_dir);
        state.open_run().is_some() && (at.starts_with(&root) || root.starts_with(at))
    };
    offline.survey(|session, loaded: Result<Loaded, _>| {
        if loaded.is_ok_and(|loaded| overlaps(&loaded.state)) {
            busy = Some(session);
        }
    })?;
    let Some(session) = busy else { return Ok(()) };
    let message =
        format!("session {session} has a run that has not ended in, above or below {}", root.display());
    let hint = format!("rekindle cancel {session} ends it; --force restores anyway");
    Err(Failure::failed("run_open", anyhow::anyhow!(message)).hint(hint))
}

fn body(restored: &Restored) -> Value {
    let path = |path: &[u8], field: &str, value: Value| {
        let mut one = json!(PathName::from(path));
        one[field] = value;
        one
    };
    let done = restored.done.iter().map(|done| path(&done.path, "done", json!(word(done.what))));
    let left = restored.left.iter().map(|left| path(&left.path, "why", json!(left.why.to_string())));
    json!({
        "tree": restored.tree,
        "snapshot": short_name(&restored.tree),
        "undo": restored.undo,
        "undo_snapshot": short_name(&restored.undo),
        "done": done.collect::<Vec<_>>(),
        "left": left.collect::<Vec<_>>(),
        "resumed": restored.resumed,
        "git_head_moved": restored.head_moved,
    })
}

fn word(what: DoneWhat) -> &'static str {
    match what {
        DoneWhat::FileWritten => "written",
        DoneWhat::LinkMade => "linked",
        DoneWhat::DirectoryMade => "directory_made",
        DoneWhat::ModeChanged => "mode_changed",
        DoneWhat::Removed => "removed",
        DoneWhat::DirectoryRemoved => "directory_removed",
    }
}

fn text(out: &mut dyn Write, restored: &Restored, args: &Args, directory: &Path) -> Result<(), Failure> {
    if restored.resumed {
        writeln!(out, "{}", styled(DIM, "an earlier restore had been interrupted; it is finished now"))?;
    }
    for left in restored.left.iter().take(MAX_SHOWN) {
        let told = sanitise::line(&left.to_string());
        writeln!(
            out,
            "{}",
            wrap(&format!("{} {told}", styled(WARN, "left")), output::width(), "  ", "    ")
        )?;
    }
    if let Some(more) = restored.left.len().checked_sub(MAX_SHOWN).filter(|more| *more > 0) {
        writeln!(out, "  {}", styled(DIM, format!("and {} more; --json lists them", grouped(more as u64))))?;
    }
    if restored.head_moved {
        writeln!(
            out,
            "  {} git's HEAD is not where it was when the snapshot was taken",
            styled(WARN, "note")
        )?;
    }
    let (snap, undo) = (short_name(&restored.tree), short_name(&restored.undo));
    let count = plural(restored.done.len() as u64, "change");
    writeln!(out, "{}  {}", styled(BOLD, snap), styled(DIM, format!("{count} in {}", directory.display())))?;
    if !restored.done.is_empty() {
        let named = args.directory.as_ref().map(|directory| shell_word(&directory.to_string_lossy()));
        let place = named.map(|directory| format!(" --directory {directory}")).unwrap_or_default();
        writeln!(out, "to undo it: rekindle workspace restore {undo}{place}")?;
    }
    Ok(())
}
