//! `rekindle demo`: shows in a few seconds that nothing that dies takes the work with it. What it does is in the crate
//! `trial`.

use rekindle_client::failure::{Exit, Failure};
use rekindle_trial::demo;

use crate::Shared;

/// Watch it work: daemons and agents are killed, and nothing is lost
///
/// Kills a daemon in mid-sentence, an agent in mid-turn, and a daemon whose agent asks for a permission; all with
/// kill -9, in a temporary home, with a scripted agent. Then the log is checked: no word lost or repeated, each prompt
/// delivered once. Takes a few seconds, needs no model and leaves nothing behind. Exits 0 if everything held, else 1.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle demo
  rekindle demo --keep      then look around in what it left
  rekindle demo --json | jq '.checks[] | select(.ok | not)'")]
pub(crate) struct Args {
    /// Keep the temporary home, and print its path
    #[arg(long)]
    keep: bool,
}

pub(super) fn run(shared: &Shared, args: &Args) -> Result<Exit, Failure> {
    if shared.home.given().is_some() {
        return Err(Failure::usage("own_home", "the demonstration creates a home of its own".into())
            .hint("leave out --home; --keep keeps the home that it creates"));
    }
    demo::run(args.keep, shared.json)
}
