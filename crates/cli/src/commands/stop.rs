//! `rekindle stop` and `rekindle restart`: the daemon goes, agents stay, unless everything is to end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rekindle_client::daemon_file::DaemonFile;
use rekindle_client::server::Server;
use rekindle_client::start::{self, wait_until_free};
use rekindle_client::takeover;
use rekindle_client::{CUT, Client, Exit, Failure, SILENT, WORDS};
use rekindle_daemon::config::Config;
use rekindle_holder::client::{Keeper, LockState, inspect_all};
use rekindle_terminal::output::plural;
use serde_json::json;

use super::Context;

/// How long a daemon may take to leave; one that ends its agents gives them their time first.
const LEAVES: Duration = Duration::from_secs(60);

/// How long holders have that were asked to end.
const HOLDERS_END: Duration = Duration::from_secs(5);

/// How often it is looked whether somebody has left.
const LOOK: Duration = Duration::from_millis(50);

/// Stop the daemon; agents work on
///
/// What they say is kept, and the next daemon takes them over. With --all they are cancelled and stopped too, even if no
/// daemon is running. It is not an error if none is running.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle stop
  rekindle stop --all")]
pub(crate) struct Args {
    /// Also cancel every run and stop every agent
    #[arg(long)]
    all: bool,
}

/// Replace the daemon, by this version; agents work on
///
/// What agents say meanwhile is kept, and the new daemon takes them over. A daemon that does not answer is killed. If none is
/// running, one is started.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle restart")]
pub(crate) struct RestartArgs {}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    if let Some(server) = &context.server {
        return stop_elsewhere(context, server, args.all);
    }
    let stop_with_agents = |client: Client| client.shut_down(true).map(|()| client.target().pid());
    let pid = match ask_to_leave(context, args.all) {
        // What is to end without a daemon is ended by one that is started for it, if there is anything.
        Ok(None) if args.all && !living_holders(context).is_empty() => {
            stop_with_agents(context.daemon_or_start()?)?
        }
        Ok(None) => return nothing_to_stop(context),
        Ok(Some(pid)) => pid,
        Err(failure) if args.all && is_unusable(&failure) => {
            stop_with_agents(Client::at(&context.home, replace(context, &failure)?)?)?
        }
        Err(failure) if is_unusable(&failure) => return Err(failure.exit_with(Exit::NoDaemon)),
        Err(failure) => return Err(failure),
    };
    wait_until_left(context, pid)?;
    if args.all {
        ensure_no_agents(context)?;
        return context.acknowledge(br#"{"stopped":true,"agents":0}"#, "stopped, with every agent");
    }
    let agents = living_holders(context).len() as u64;
    let body = json!({"stopped": true, "agents": agents}).to_string();
    context.acknowledge(body, format_args!("stopped; {}", living_text(agents)))
}

/// Stops a daemon elsewhere.
fn stop_elsewhere(context: &Context, server: &Arc<Server>, all: bool) -> Result<Exit, Failure> {
    let client = Client::elsewhere(Arc::clone(server))?;
    client.shut_down(all)?;
    let deadline = Instant::now() + LEAVES;
    loop {
        match Client::elsewhere(Arc::clone(server)) {
            Err(failure) if failure.exit == Exit::NoDaemon => break,
            // Another has taken its place already.
            Ok(next) if next.target().pid() != client.target().pid() => break,
            _ if Instant::now() >= deadline => {
                let error =
                    anyhow::anyhow!("the daemon at {} was asked to stop and is still running", server.url);
                return Err(Failure::failed("daemon_stays", error).hint("its log may say why"));
            }
            _ => std::thread::sleep(LOOK),
        }
    }
    let text = if all { "stopped, with its agents" } else { "stopped; its agents keep working" };
    context.acknowledge(br#"{"stopped":true}"#, text)
}

/// Asks the daemon to leave; returns its process, none if there is none.
fn ask_to_leave(context: &Context, agents: bool) -> Result<Option<u32>, Failure> {
    // Whoever replaces or stops it need not be told that it is old.
    let Some(client) = Client::find(&context.home)? else { return Ok(None) };
    match client.shut_down(agents) {
        // It went by itself meanwhile.
        Err(failure) if failure.code() == "no_daemon" => Ok(None),
        answer => answer.map(|()| Some(client.target().pid())),
    }
}

/// Tells whether a daemon is there that does not answer, or cannot be asked.
fn is_unusable(failure: &Failure) -> bool {
    matches!(failure.code(), SILENT | CUT)
}

/// Replaces a daemon that is of no use, and says why.
fn replace(context: &Context, failure: &Failure) -> Result<DaemonFile, Failure> {
    anstream::eprintln!("note: {}; replacing it, agents keep working", failure.message());
    start::take_over(&context.home)
}

/// Says that there is no daemon to be stopped, and who lives without one.
fn nothing_to_stop(context: &Context) -> Result<Exit, Failure> {
    let agents = living_holders(context).len() as u64;
    let body = json!({"stopped": false, "agents": agents}).to_string();
    let text = match agents {
        0 => "no daemon and no agent is running: there is nothing to stop".into(),
        some => {
            format!("no daemon is running; {} without one: rekindle stop --all ends them", living_text(some))
        }
    };
    context.acknowledge(body, text)
}

pub(super) fn restart(context: &Context, _: &RestartArgs) -> Result<Exit, Failure> {
    // Its successor would not begin with one that cannot be read.
    Config::read()?;
    let before = living_holders(context);
    // What the daemon that goes was told to listen at.
    let again = DaemonFile::read(&context.home).and_then(|place| place.told);
    let place = match ask_to_leave(context, false) {
        Err(failure) if is_unusable(&failure) => replace(context, &failure)?,
        asked => {
            if let Some(pid) = asked? {
                wait_until_left(context, pid)?;
            }
            start::start_again(&context.home, again.as_ref())?
        }
    };
    // The successor may have begun others already: only those that were there before have lived on.
    let now = living_holders(context);
    let stayed = before.iter().filter(|one| now.contains(one)).count();
    let mut body = json!(place);
    body["agents"] = json!(stayed);
    let text = format!("rekindle {} is running; {}", place.version, survivors_text(before.len(), stayed));
    context.acknowledge(body.to_string(), text)
}

pub(super) fn survivors_text(before: usize, stayed: usize) -> String {
    match (before, stayed) {
        (0, _) => "no agent was running".into(),
        (before, stayed) if before == stayed => format!("{} kept running", plural(stayed as u64, "agent")),
        (before, stayed) => {
            format!(
                "{stayed} of {} kept running; rekindle ps shows what became of the others",
                plural(before as u64, "agent")
            )
        }
    }
}

/// Says that no agent is running, or how many keep running.
pub(super) fn living_text(agents: u64) -> String {
    match agents {
        0 => "no agent is running".into(),
        1 => "1 agent keeps running".into(),
        some => format!("{} keep running", plural(some, "agent")),
    }
}

/// Returns the holders that live, by their id and process: only a lock tells. One that cannot be looked at may live.
pub(super) fn living_holders(context: &Context) -> Vec<(String, Option<i32>)> {
    let found = inspect_all(&context.home.join("holders")).unwrap_or_default();
    let alive = found.into_iter().filter_map(|seen| match seen.lock {
        LockState::Held { note, by: Keeper::Holder } => {
            Some((seen.holder_id, note.map(|note| note.process.pid)))
        }
        LockState::Unreadable(_) => Some((seen.holder_id, None)),
        LockState::Held { by: Keeper::Another, .. }
        | LockState::Free { .. }
        | LockState::Copied { .. }
        | LockState::Missing => None,
    });
    alive.collect()
}

/// Looks whether every agent has ended. A holder has its lock for a moment longer than its agent lives.
fn ensure_no_agents(context: &Context) -> Result<(), Failure> {
    let deadline = Instant::now() + HOLDERS_END;
    let pids = loop {
        let pids: Vec<String> =
            living_holders(context).iter().filter_map(|(_, pid)| Some((*pid)?.to_string())).collect();
        if pids.is_empty() {
            return Ok(());
        }
        if Instant::now() >= deadline {
            break pids;
        }
        std::thread::sleep(LOOK);
    };
    let error = anyhow::anyhow!(
        "the daemon has stopped, but these holders and their agents are still running: {}",
        pids.join(", ")
    );
    Err(Failure::failed("agents_left", error).hint("each says why in holders/<id>/status.json of the home"))
}

/// Has the daemon leave, if there is one; one that is of no use is ended. Agents work on.
pub(super) fn make_way(context: &Context) -> Result<(), Failure> {
    match ask_to_leave(context, false) {
        Err(failure) if is_unusable(&failure) => takeover::make_way(&context.home),
        Err(failure) => Err(failure),
        Ok(Some(pid)) => wait_until_left(context, pid),
        Ok(None) => Ok(()),
    }
}

/// Waits until the daemon has left.
fn wait_until_left(context: &Context, pid: u32) -> Result<(), Failure> {
    if wait_until_free(&context.home, LEAVES) {
        return Ok(());
    }
    let error = anyhow::anyhow!("the daemon (process {pid}) was asked to stop and is still running");
    Err(Failure::failed("daemon_stays", error).hint(WORDS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_lived_on_are_counted() {
        assert_eq!(survivors_text(0, 0), "no agent was running");
        assert_eq!(survivors_text(1, 1), "1 agent kept running");
        assert_eq!(survivors_text(3, 3), "3 agents kept running");
        assert!(survivors_text(3, 1).starts_with("1 of 3 agents kept running"));
        assert_eq!(
            (living_text(1), living_text(2)),
            ("1 agent keeps running".into(), "2 agents keep running".into())
        );
    }
}
