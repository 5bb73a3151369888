//! `rekindle stop` and `rekindle restart`: the daemon goes, agents stay, unless everything is to end.

use std::time::Duration;

use rekindle_holder::client::{Keeper, LockState, inspect_all};
use serde_json::json;

use super::Context;
use crate::client::Client;
use crate::client::start::{self, wait_until_free};
use crate::failure::{Exit, Failure};
use crate::output;

/// How long a daemon may take to leave; one that ends its agents gives them their time first.
const LEAVES: Duration = Duration::from_secs(60);

/// Stop the daemon; agents work on
///
/// What they say is kept, and the next daemon takes them over. With --all they are cancelled and ended too.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle stop
  rekindle stop --all")]
pub(crate) struct Args {
    /// Cancel every run and end every agent too
    #[arg(long)]
    all: bool,
}

/// Replace the daemon, by this version; agents work on
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle restart")]
pub(crate) struct RestartArgs {}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    // What is to end without a daemon is ended by one that is started for it.
    let client = if args.all { Some(context.daemon_or_start()?) } else { context.daemon()? };
    let Some(client) = client else {
        return output::taken(context.json, br#"{"stopped":false}"#, "no daemon runs");
    };
    client.post("/api/shutdown", &json!({ "agents": args.all }))?;
    left(context, client.place().pid)?;
    if args.all {
        nobody_left(context)?;
    }
    let text = if args.all { "stopped, with every agent" } else { "stopped; agents work on" };
    output::taken(context.json, br#"{"stopped":true}"#, text)
}

pub(super) fn restart(context: &Context, _: &RestartArgs) -> Result<Exit, Failure> {
    // Whoever replaces it need not be told that it is old.
    if let Some(client) = Client::find(&context.home)? {
        client.post("/api/shutdown", &json!({ "agents": false }))?;
        left(context, client.place().pid)?;
    }
    let place = start::start(&context.home)?;
    let body = serde_json::to_vec(&place).map_err(|error| Failure::failed("output", error))?;
    output::taken(context.json, &body, &format!("rekindle {} runs; agents worked on", place.version))
}

/// Looks whether every agent has ended: only a lock tells.
fn nobody_left(context: &Context) -> Result<(), Failure> {
    let found = inspect_all(&context.home.join("holders")).unwrap_or_default();
    let alive = found.iter().filter_map(|seen| match &seen.lock {
        LockState::Held { note: Some(note), by: Keeper::Holder } => Some(note.process.pid.to_string()),
        _ => None,
    });
    let pids: Vec<String> = alive.collect();
    if pids.is_empty() {
        return Ok(());
    }
    let error = anyhow::anyhow!(
        "the daemon has left, but these holders and their agents are still there: {}",
        pids.join(", ")
    );
    Err(Failure::failed("agents_left", error).hint("each says why in holders/<id>/status.json of the home"))
}

/// Waits until the daemon has left.
fn left(context: &Context, pid: u32) -> Result<(), Failure> {
    if wait_until_free(&context.home, LEAVES) {
        return Ok(());
    }
    let error = anyhow::anyhow!("the daemon (process {pid}) was asked to leave and is still there");
    Err(Failure::failed("daemon_stays", error).hint("logs/daemon.log in the home may say why"))
}
