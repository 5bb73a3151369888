//! `rekindle snapshot rm`: lets go of snapshots.

use std::io::Write;

use rekindle_client::{Exit, Failure};
use rekindle_display::hints::brief;
use rekindle_store::kept_snapshots::SnapshotError;
use rekindle_terminal::output;
use serde_json::json;

use super::{Context, LIST, Named, failure, kept};

/// Remove snapshots of a session
///
/// The session itself and its log stay as they are.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "rekindle snapshot rm [OPTIONS] [SESSION] SNAPSHOT...",
    after_help = "Examples:
  rekindle snapshot rm 96-1
  rekindle snapshot rm 01khz0p6r8 96-1 148-1"
)]
pub(super) struct Args {
    /// The snapshots' names, behind the session if it is not this directory's latest
    #[arg(value_name = "SNAPSHOT", required = true)]
    words: Vec<String>,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let named = Named::read(&args.words)?;
    if named.snapshots.is_empty() {
        return Err(Failure::usage("no_snapshot", "the name of a snapshot is missing".into()).hint(LIST));
    }
    let client = match context.daemon()? {
        Some(client) => client,
        None => {
            // Nobody is started for names that mean nothing.
            let home = context.offline()?;
            let id = named.find_offline(&home)?;
            let there = kept(&home).list(id).map_err(failure)?;
            let missing = named.snapshots.iter().find(|name| !there.iter().any(|file| file.name == **name));
            if let Some(name) = missing {
                return Err(failure(SnapshotError::NotFound { session: id, name: *name }));
            }
            context.daemon_or_start()?
        }
    };
    let id = named.find_live(context, &client)?;
    let mut out = output::stdout();
    for name in &named.snapshots {
        client.delete(&format!("/api/sessions/{id}/snapshots/{name}"))?;
        if context.json {
            writeln!(out, "{}", json!({"removed": name.to_string(), "session_id": id}))?;
        } else {
            writeln!(out, "removed {name} of {}", brief(&id))?;
        }
        out.flush()?;
    }
    Ok(Exit::Ok)
}
