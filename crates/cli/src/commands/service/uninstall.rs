//! `rekindle service uninstall`: the service is stopped, its file removed; agents work on without a daemon.

use std::time::Duration;

use rekindle_client::failure::{Exit, Failure};
use rekindle_client::logout::facts_of;
use rekindle_client::unit::{Manager, RELOADED, SOON, Unit, is_ours};
use serde_json::json;

use crate::commands::{Context, stop};

/// How long the daemon may take to leave.
const LEAVES: Duration = Duration::from_secs(60);

/// Stop the service and remove it; agents work on
///
/// The file goes even where no service manager can be reached. A .bak of it, and settings that were made beside it with
/// `systemctl --user edit`, stay.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle service uninstall")]
pub(crate) struct Args {}

pub(super) fn run(context: &Context, _: &Args) -> Result<Exit, Failure> {
    let unit = Unit::of(&context.home)?;
    if let Ok(text) = std::fs::read_to_string(&unit.path)
        && !is_ours(&text)
    {
        let error = anyhow::anyhow!("{} was not written by rekindle, and is left alone", unit.path.display());
        return Err(Failure::failed("unit_foreign", error).hint("remove it yourself, if you mean it"));
    }
    let manager = Manager::find(&facts_of(None)).ok();
    if let Some(manager) = &manager
        && manager.status(&unit.name)?.loaded
    {
        manager.ask(&["disable", "--now", &unit.name], LEAVES)?;
    }
    let removed = unit.remove()?;
    if let Some(manager) = &manager {
        manager.ask(&["daemon-reload"], RELOADED)?;
        // What it failed at once is of no interest any more; of most there is nothing to forget.
        let _ = manager.ask(&["reset-failed", &unit.name], SOON);
    }
    let agents = stop::living_holders(context).len() as u64;
    let daemon =
        rekindle_client::Client::find(&context.home).ok().flatten().map(|client| client.target().pid());
    let path = unit.path.to_string_lossy();
    let body = json!({"removed": removed, "path": path, "daemon_pid": daemon, "agents": agents}).to_string();
    let first = match (removed, &manager) {
        (false, _) => format!("there is no {path}: nothing was removed"),
        (true, Some(_)) => format!("stopped {} and removed {path}", unit.name),
        (true, None) => format!("removed {path}; no service manager could be asked to stop {}", unit.name),
    };
    let second = match daemon {
        Some(pid) => format!("the daemon (process {pid}) keeps running outside it"),
        None => format!(
            "no daemon is running, {}; `rekindle run` and `rekindle attach` start one in the background, \
             `rekindle serve` in the foreground",
            stop::living_text(agents)
        ),
    };
    context.acknowledge(body, format_args!("{first}; {second}"))
}
