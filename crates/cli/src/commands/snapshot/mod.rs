//! `rekindle snapshot`: kept snapshots of a session, listed, shown, compared, taken, restored and removed.

mod create;
mod diff;
mod list;
mod remove;
mod restore;
mod show;

use rekindle_client::{Client, Exit, Failure};
use rekindle_domain::id::SessionId;
use rekindle_domain::kept_snapshot::SnapshotName;
use rekindle_service::error::ServiceError;
use rekindle_service::snapshots::{snapshot_detail, snapshot_list};
use rekindle_store::kept_snapshots::{KeptSnapshots, SnapshotError};
use rekindle_store::offline::Offline;
use rekindle_wire::view::{SnapshotDetail, SnapshotList};

use super::Context;
use crate::session_arg::{find_live, find_offline, latest_offline};

/// Snapshots of a session: list, show, compare, take, restore, remove
///
/// A snapshot is a session as of one record of its log: who answers, settings, the agent's own session, what was waited for,
/// what it had cost. Messages are not in it: they are the log up to that record. They are taken at the end of each run, every five
/// minutes while the session is active, and when the daemon stops; ten of each session are kept. `[persistence]` in the configuration
/// says otherwise.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle snapshot ls                 those of this directory's latest session
  rekindle snapshot ls 01khz0p6r8      those of another one
  rekindle snapshot show 148-1         what the session was then
  rekindle snapshot diff 148-1         what has changed since
  rekindle snapshot diff 96-1 148-1    what changed between two of them
  rekindle snapshot create             takes one now
  rekindle snapshot restore 148-1      goes on from there, in a new session
  rekindle snapshot rm 96-1            lets go of one

In config.toml:
  [persistence]
  enabled = true           # take them by themselves
  interval = \"5m\"          # while something happens
  on_exit = true           # when the daemon leaves, or a session is closed
  keep = 10                # of each session
  max_age = \"30d\"          # or less, if they are older
  compression = \"zstd\"     # gzip, none")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Ls(list::Args),
    Show(show::Args),
    Diff(diff::Args),
    Create(create::Args),
    Restore(restore::Args),
    Rm(remove::Args),
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    match &args.command {
        Command::Ls(args) => list::run(context, args),
        Command::Show(args) => show::run(context, args),
        Command::Diff(args) => diff::run(context, args),
        Command::Create(args) => create::run(context, args),
        Command::Restore(args) => restore::run(context, args),
        Command::Rm(args) => remove::run(context, args),
    }
}

/// The session and the snapshots that words on the command line mean: names of snapshots have a hyphen between two numbers, so that
/// nobody has to say which is which.
#[derive(Debug, PartialEq, Eq)]
struct Named<'a> {
    session: Option<&'a str>,
    snapshots: Vec<SnapshotName>,
}

impl<'a> Named<'a> {
    /// Takes words apart; one of them at most is no snapshot's name.
    fn read(words: &'a [String]) -> Result<Named<'a>, Failure> {
        let mut named = Named { session: None, snapshots: Vec::new() };
        for word in words {
            match word.parse() {
                Ok(name) => named.snapshots.push(name),
                Err(_) if named.session.is_none() && named.snapshots.is_empty() => named.session = Some(word),
                Err(bad) => {
                    return Err(Failure::usage("bad_snapshot_name", format!("{word:?}: {bad}")).hint(LIST));
                }
            }
        }
        Ok(named)
    }

    /// Returns the session's id, with a daemon.
    fn find_live(&self, context: &Context, client: &Client) -> Result<String, Failure> {
        find_live(self.session, context, client)
    }

    /// Returns the session's id, without one.
    fn find_offline(&self, home: &Offline) -> Result<SessionId, Failure> {
        match self.session {
            Some(name) => find_offline(name, home),
            None => latest_offline(home),
        }
    }
}

const LIST: &str = "rekindle snapshot ls lists them";

/// Reads a session's snapshots: through the daemon, or from the home if none runs.
fn list_of(context: &Context, named: &Named<'_>) -> Result<(String, SnapshotList), Failure> {
    let asked = context.ask(|client| {
        let id = named.find_live(context, client)?;
        let list = client.get(&format!("/api/sessions/{id}/snapshots"))?;
        Ok((id, list))
    })?;
    match asked {
        Ok(told) => Ok(told),
        Err(_) => {
            let home = context.offline()?;
            let id = named.find_offline(&home)?;
            Ok((id.to_string(), snapshot_list(&kept(&home), id).map_err(failure)?))
        }
    }
}

/// Reads one snapshot: through the daemon, or from the home if none runs.
fn detail_of(context: &Context, named: &Named<'_>, name: SnapshotName) -> Result<SnapshotDetail, Failure> {
    let asked = context.ask(|client| {
        let id = named.find_live(context, client)?;
        client.get(&format!("/api/sessions/{id}/snapshots/{name}"))
    })?;
    match asked {
        Ok(detail) => Ok(detail),
        Err(_) => {
            let home = context.offline()?;
            let id = named.find_offline(&home)?;
            let (file, snapshot) = kept(&home).find(id, name).map_err(failure)?;
            Ok(snapshot_detail(&file, &snapshot))
        }
    }
}

fn kept(home: &Offline) -> KeptSnapshots {
    KeptSnapshots::new(home.disk().clone(), home.layout().clone())
}

/// Returns the failure that trouble with a snapshot is: the same that a daemon tells.
fn failure(error: SnapshotError) -> Failure {
    let is_unknown = matches!(error, SnapshotError::NotFound { .. });
    let error = ServiceError::from(error);
    let failure = Failure::failed(error.code.as_str(), error);
    if is_unknown {
        failure.exit_with(Exit::Usage).hint(LIST)
    } else {
        failure.hint("rekindle doctor says more")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_and_snapshots_are_told_apart() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let name = |seq| SnapshotName { seq, number: 1 };
        for (given, session, snapshots) in [
            (&[][..], None, vec![]),
            (&["148-1"], None, vec![name(148)]),
            (&["01khz0p6r8", "148-1", "150-1"], Some("01khz0p6r8"), vec![name(148), name(150)]),
            (&["sess_1"], Some("sess_1"), vec![]),
        ] {
            let given = words(given);
            assert_eq!(Named::read(&given).ok(), Some(Named { session, snapshots }), "{given:?}");
        }
        for bad in [&["148-1", "01khz0p6r8"][..], &["01khz", "148"], &["a", "b"]] {
            let bad = words(bad);
            assert!(Named::read(&bad).is_err_and(|failure| failure.code() == "bad_snapshot_name"), "{bad:?}");
        }
    }
}
