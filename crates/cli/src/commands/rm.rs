//! `rekindle rm`: removes sessions with everything that is kept of them.

use crate::completers::ids;
use rekindle_client::completion::IdKind;
use std::io::Write;

use rekindle_client::failure::{Exit, Failure};
use rekindle_display::hints::ours;
use rekindle_terminal::{output, sanitise};
use rekindle_wire::view::HealthState;
use serde_json::json;

use super::Context;
use crate::session_arg::{find_live, find_offline};

/// Remove sessions, with their logs and journals
///
/// The agent of a session is ended first. A session whose run has not ended is refused unless --force is given, and so is
/// one whose log is damaged: that is set aside, and nothing of it is removed. What was
/// removed may stay in the write-ahead log until its next checkpoint, and large payloads for a day, until `rekindle gc`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle rm 01khz0p6r8
  rekindle rm --force 01khz0p6r8 01khz1")]
pub(crate) struct Args {
    /// The sessions' ids, or beginnings of them
    #[arg(value_name = "SESSION", required = true, add = ids(IdKind::Session))]
    sessions: Vec<String>,

    /// Also one whose run has not ended, or whose log is damaged
    #[arg(long, short)]
    force: bool,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let client = match context.daemon()? {
        Some(client) => client,
        None => {
            // Nobody is started for a name that means nothing.
            let home = context.offline()?;
            args.sessions.iter().try_for_each(|name| find_offline(name, &home).map(drop))?;
            context.daemon_or_start()?
        }
    };
    // All are found before any is removed: a name that is wrong removes nothing.
    let found: Result<Vec<String>, Failure> =
        args.sessions.iter().map(|name| find_live(Some(name), context, &client)).collect();
    let force = if args.force { "?force=1" } else { "" };
    let mut out = output::stdout();
    for id in found? {
        let session = client.session(&id)?;
        let damaged = session.health.state == HealthState::Damaged;
        let worktree = session
            .worktree
            .filter(|worktree| worktree.owned && worktree.commit.is_some() && !worktree.removed);
        let removed = client.delete(&format!("/api/sessions/{id}{force}"));
        removed.map_err(|failure| match failure.code() {
            "still_running" => failure.hint(format!(
                "{}, or remove it anyway: {}",
                ours(format_args!("cancel {id}")),
                ours(format_args!("rm --force {id}"))
            )),
            _ => failure,
        })?;
        if context.json {
            writeln!(out, "{}", json!({ "removed": id, "set_aside": damaged }))?;
        } else if damaged {
            let aside = context.home.join("damaged");
            writeln!(out, "set aside {id}: its log is damaged; its files are in {}", aside.display())?;
        } else {
            writeln!(out, "removed {id}")?;
        }
        if let Some(worktree) = worktree.filter(|_| !context.json) {
            let (branch, directory) = (sanitise::line(&worktree.branch), sanitise::line(&worktree.directory));
            writeln!(out, "its worktree stays until its branch {branch} is merged: {directory}")?;
        }
        out.flush()?;
    }
    Ok(Exit::Ok)
}
