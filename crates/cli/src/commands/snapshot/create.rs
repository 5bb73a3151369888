//! `rekindle snapshot create`: takes a snapshot of a session now.

use crate::completers::ids;
use rekindle_client::completion::IdKind;
use rekindle_client::{Exit, Failure, read};
use rekindle_display::hints::brief;
use rekindle_terminal::output;
use rekindle_wire::view::SnapshotView;
use serde_json::json;

use super::{Context, Named};
use crate::session_arg::find_offline;

/// Take a snapshot of a session now, and keep it
///
/// The session is not interrupted.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle snapshot create
  rekindle snapshot create 01khz0p6r8")]
pub(super) struct Args {
    /// The session's id, or the beginning of it [default: this directory's latest]
    #[arg(value_name = "SESSION", add = ids(IdKind::Session))]
    session: Vec<String>,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let named = Named::read(&args.session)?;
    let client = match (context.daemon()?, named.session) {
        (Some(client), _) => client,
        (None, name) => {
            // Nobody is started for a name that means nothing.
            let home = context.offline()?;
            name.map(|name| find_offline(name, &home)).transpose()?;
            context.daemon_or_start()?
        }
    };
    let id = named.find_live(context, &client)?;
    let body = client.post(&format!("/api/sessions/{id}/snapshots"), &json!({}))?;
    let taken: SnapshotView = read(&body)?;
    context.print(&String::from_utf8_lossy(&body).trim_end(), |out| {
        // The name alone, so that a script can take it.
        writeln!(out, "{}", taken.name)?;
        anstream::eprintln!(
            "{} as of record {} is kept, {}",
            brief(&id),
            taken.seq,
            output::size(taken.size_bytes)
        );
        Ok(())
    })
}
