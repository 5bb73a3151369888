//! `rekindle chaos`: a self-test on the user's own machine and disk. What it does is in the crate `trial`.

use std::path::PathBuf;

use rekindle_client::failure::{Exit, Failure};
use rekindle_trial::chaos::{self, Options};

use crate::Shared;

/// Test on this machine and disk that every promise is kept
///
/// Kills daemons, holders and agents with kill -9, cuts their power, fills their disk, takes their descriptors, damages
/// copies of their home, while several scripted agents work and are spoken to. After each round the logs, what the agents were told and what was
/// acknowledged are compared. All of it happens in a directory of its own beside your home, which is not touched;
/// nothing is left behind. Exits 0 if every promise held, 1 if one was broken: then everything is kept and
/// the command that repeats it is printed. The same seed makes the same plan; its timing is the machine's.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle chaos                        for half a minute
  rekindle chaos --seconds 600          for ten
  rekindle chaos --seed 7 --rounds 3    the first three rounds of a plan, again
  rekindle chaos --json | jq '.promises[] | select(.violated > 0)'")]
pub(crate) struct Args {
    /// Run this many rounds, however long that takes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    rounds: Option<u64>,
    /// Start no round after this many seconds [default: 30, without --rounds]
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seconds: Option<u64>,
    /// The seed of the plan [default: random]
    #[arg(long, value_name = "SEED")]
    seed: Option<u64>,
    /// Make the directory for everything below this one [default: where your home is]
    #[arg(long, value_name = "PATH")]
    dir: Option<PathBuf>,
    /// Keep the directory, and print its path
    #[arg(long)]
    keep: bool,
}

pub(super) fn run(shared: &Shared, args: &Args) -> Result<Exit, Failure> {
    let base = match &args.dir {
        Some(dir) => std::path::absolute(dir).unwrap_or_else(|_| dir.clone()),
        None => chaos::beside(&shared.home.path()?),
    };
    let &Args { rounds, seconds, seed, keep, .. } = args;
    chaos::run(&Options { rounds, seconds, seed, base, keep, json: shared.json })
}
