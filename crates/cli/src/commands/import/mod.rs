//! `rekindle import`: sessions and runs from elsewhere become those of this home: those of a bundle, or of another program.

mod bundle;
mod orbitmesh;
mod runs_text;

use std::path::PathBuf;

use rekindle_client::failure::{Exit, Failure};

use super::Context;
use crate::possible_values::one_of;

/// Import the sessions and runs of a bundle, or the sessions of another program
///
/// All of a bundle is read and checked before anything is written. A run that was going on is lost and said to be; prompts that waited
/// are dropped, every token is revoked, permissions are asked for again, and nothing continues by itself: the next prompt does, and
/// begins by telling the agent what happened so far. A session whose id is here already becomes a new one with the same history.
/// With --cwd and files in the bundle these are put there if the directory is empty or missing. What an agent wrote down itself goes
/// where that agent looks for it, never over a file; then it remembers the session. A sealed bundle needs its passphrase.
///
/// A run of a pipeline rests until `rekindle pipeline resume` says that it goes on, which asks for trust in its configuration; with --cwd,
/// the same as --into, its steps work there, and the files that it goes on with are put there. A step that was going on begins again, and
/// none that is finished does. Results of its steps that runs share are taken in; those that are here already stay.
///
/// With --from the sessions of another program are imported: their titles, directories and messages, with the times that they had.
/// Nothing is changed where they come from, and a second import of the same makes nothing twice. No daemon may run meanwhile. What
/// cannot be read is named; exits 1 then.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle import session.rkb
  rekindle import session.rkb --cwd ~/project
  rekindle import run.rkb --into ~/project
  rekindle import session.rkb --dry-run
  rekindle import sealed.rkb --passphrase-file ~/.bundle-passphrase
  rekindle import --from orbitmesh ~/.orbitmesh --agent claude")]
pub(crate) struct Args {
    /// The bundle, or with --from the directory with the program's files
    #[arg(value_name = "FILE|DIR")]
    path: PathBuf,

    /// The program whose files they are
    #[arg(long, value_parser = one_of::<String>(SOURCES), value_name = "PROGRAM")]
    from: Option<String>,

    /// Where the sessions' agents, and steps of runs, work from now on [default: where they did]
    #[arg(long, visible_alias = "into", value_name = "DIR")]
    cwd: Option<PathBuf>,

    /// Check everything and say what would be imported, and leave nothing behind
    #[arg(long)]
    dry_run: bool,

    /// Take sessions whose agent is a command that is no known agent
    #[arg(long, conflicts_with = "from")]
    trust_command: bool,

    /// Take the passphrase of a sealed bundle from the first line of a file instead of asking for it
    #[arg(long, value_name = "FILE", conflicts_with = "from")]
    passphrase_file: Option<PathBuf>,

    /// Who answers from now on, by a name that `rekindle agents` shows [default: as the program's files say]
    #[arg(long, short, value_name = "NAME", requires = "from")]
    agent: Option<String>,
}

/// Programs whose files are known.
const SOURCES: &[(&str, &str)] = &[("orbitmesh", "Session snapshots and message logs of OrbitMesh")];

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    match args.from {
        Some(_) => orbitmesh::run(context, args),
        None => bundle::run(context, args),
    }
}
