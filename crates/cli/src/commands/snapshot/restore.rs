//! `rekindle snapshot restore`: goes on from a snapshot, beside the session or in its place.

use std::io::Write;
use std::path::Path;

use rekindle_client::{Client, Exit, Failure, read};
use rekindle_display::hints::{brief, ours};
use rekindle_terminal::sanitise;
use rekindle_wire::request::NewSnapshotRestore;
use rekindle_wire::view::{RestoredSession, SnapshotDetail};

use super::{Context, LIST, Named};
use crate::commands::workspace;
use crate::confirm::{can_ask, confirmed};
use crate::restored_files::finish;

/// Go on from a snapshot: in a new session, or in the session's place
///
/// The new session has the history up to the snapshot, or to the end of the run before it, and the agent and settings that the session
/// has now; its agent is told with the first prompt what happened up to there. With --in-place it takes over the session's title,
/// directory and key, and the session is closed. With --files the directory is made what it was then: what is overwritten or removed
/// is kept first, and the log tells the way back.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "rekindle snapshot restore [OPTIONS] [SESSION] SNAPSHOT",
    after_help = "Examples:
  rekindle snapshot restore 148-1     a fork of this directory's latest session
  rekindle snapshot restore 01khz0p6r8 148-1 --in-place --files
  rekindle send $(rekindle snapshot restore 148-1) \"try it the other way\""
)]
pub(super) struct Args {
    /// The snapshot's name, behind the session if it is not this directory's latest
    #[arg(value_name = "SNAPSHOT", required = true, num_args = 1..=2)]
    words: Vec<String>,

    /// Take the session's place, which is closed
    #[arg(long)]
    in_place: bool,

    /// Restore the files of the directory too
    #[arg(long)]
    files: bool,

    /// With --files, also while another session's agent is at work in the directory, above it or below it
    #[arg(long, requires = "files")]
    force: bool,

    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let named = Named::read(&args.words)?;
    let &[name] = named.snapshots.as_slice() else {
        return Err(Failure::usage("no_snapshot", "the name of a snapshot is missing".into()).hint(LIST));
    };
    let mut client = context.daemon_or_start()?;
    let id = named.find_live(context, &client)?;
    let path = format!("/api/sessions/{id}/snapshots/{name}");
    if (args.in_place || args.files) && !args.yes && can_ask(context) {
        show(context, &client, &path, &id, args)?;
        if !confirmed("restore it?")? {
            return Ok(Exit::Ok);
        }
    }
    let new = NewSnapshotRestore { in_place: args.in_place, files: args.files, force: args.force };
    let body = client.post_once(&format!("{path}/restore"), &new)?;
    let restored: RestoredSession = read(&body)?;
    if context.json {
        context.acknowledge(&body, "")?;
        return finish(context, &client, &restored.session, restored.files);
    }
    // The id alone, so that a script can take it.
    writeln!(std::io::stdout(), "{}", restored.session.id)?;
    let behind = restored.session.forked_from.map_or(0, |from| from.seq);
    match restored.replaces {
        Some(replaced) => {
            anstream::eprintln!(
                "{} is closed; this session replaces it, as of record {behind}",
                brief(replaced)
            )
        }
        None => anstream::eprintln!("continues from {} after record {behind}", brief(&id)),
    }
    let exit = finish(context, &client, &restored.session, restored.files)?;
    for warning in &restored.warnings {
        anstream::eprintln!("note: {}: {}", warning.code, sanitise::line(&warning.message));
    }
    anstream::eprintln!("continue with: {}", ours(format_args!("send {} TEXT", brief(restored.session.id))));
    Ok(exit)
}

/// Shows what would change.
fn show(context: &Context, client: &Client, path: &str, id: &str, args: &Args) -> Result<(), Failure> {
    let detail: SnapshotDetail = client.get(path)?;
    if args.in_place {
        anstream::eprintln!(
            "{} is closed, and another session continues as of record {}",
            brief(id),
            detail.seq
        );
    }
    match detail.tree {
        Some(tree) if args.files && context.server.is_none() => {
            workspace::show_changes(context, Path::new(&detail.working_dir), tree)
        }
        _ if args.files => {
            anstream::eprintln!("the files in {} are restored to what they were then", detail.working_dir);
            Ok(())
        }
        _ => Ok(()),
    }
}
