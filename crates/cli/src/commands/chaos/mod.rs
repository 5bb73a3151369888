//! `rekindle chaos`: a self-test on the user's own machine and disk. Daemons, holders and agents are killed, stopped and
//! replaced by a plan, visitors go on meanwhile, and after each round every promise is held against what is there. This file
//! opens and closes; the plan, the strikes, the oracle and the report are in files of their own.

mod ask;
mod copied_home;
mod copies;
mod descriptors;
mod faults;
mod follower;
mod ledger;
mod matrix;
mod oracle;
mod plan;
mod power;
mod report;
mod rest;
mod round;
mod shortage;
mod tiny;
mod troupe;
mod visitor;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use self::ask::Leaving;
use self::plan::Plan;
use self::report::{Outcome, Progress};
use self::round::Field;
use self::troupe::Troupe;
use super::ground::Ground;
use crate::Shared;
use crate::clock::random;
use crate::failure::{Exit, Failure};
use rekindle_client::start::beside_us;
use rekindle_terminal::hear_signals;

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
    /// Play so many rounds, however long that takes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    rounds: Option<u64>,
    /// Begin no round after so many seconds [default: 30, without --rounds]
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seconds: Option<u64>,
    /// The seed of the plan [default: by chance]
    #[arg(long, value_name = "SEED")]
    seed: Option<u64>,
    /// Make the directory for everything below this one [default: where your home is]
    #[arg(long, value_name = "PATH")]
    dir: Option<PathBuf>,
    /// Keep the directory, and say where it is
    #[arg(long)]
    keep: bool,
}

/// How long it takes unless something else is said.
const SECONDS: u64 = 30;

pub(super) fn run(shared: &Shared, args: &Args) -> Result<Exit, Failure> {
    // Before anything is started: a daemon would find out too late.
    beside_us("rekindle-holder")?;
    let base = match &args.dir {
        Some(dir) => std::path::absolute(dir).unwrap_or_else(|_| dir.clone()),
        None => beside(&shared.home.path()?),
    };
    let mut ground = Ground::below(&base, "chaos", args.keep)
        .map_err(|failure| failure.exit_with(Exit::Usage).hint("name another directory with --dir PATH"))?;
    let leaving = Leaving::default();
    let signalled = leaving.clone();
    hear_signals(move || {
        signalled.leave();
        true
    })
    .map_err(|error| Failure::failed("signals", error))?;
    // Small enough to be typed again.
    let seed = match args.seed {
        Some(seed) => seed,
        None => u64::from(random()? as u32),
    };
    let played = play(&ground, args, seed, &leaving, shared.json);
    let path = ground.path().to_owned();
    match played {
        Ok(_) if leaving.now() => {
            let left = if args.keep { format!("kept in {}", path.display()) } else { "removed".to_owned() };
            let error = anyhow::anyhow!("the self-test was interrupted; its seed was {seed}");
            let hint = format!("its processes are ended, its home is {left}");
            Err(Failure::failed("interrupted", error).exit_with(Exit::Detached).hint(hint))
        }
        Ok(outcome) => {
            if !outcome.matrix.holds() {
                ground.keep();
            }
            let kept = ground.is_kept().then_some(path);
            report::print(shared.json, &outcome, kept.as_deref())?;
            Ok(if outcome.matrix.holds() { Exit::Ok } else { Exit::Failed })
        }
        Err(failure) => {
            ground.keep();
            let hint = format!("everything is kept in {}; the seed was {seed}", path.display());
            Err(failure.exit_with(Exit::Failed).hint(hint))
        }
    }
}

fn play(ground: &Ground, args: &Args, seed: u64, leaving: &Leaving, json: bool) -> Result<Outcome, Failure> {
    let began = Instant::now();
    std::fs::create_dir(ground.at("barriers")).map_err(|error| Failure::failed("temporary_dir", error))?;
    let seconds = args.seconds.or(args.rounds.is_none().then_some(SECONDS));
    let most = seconds.map(Duration::from_secs);
    let mut progress = Progress::new(json, seed, most);
    let mut field = Field::new(ground, Troupe::new(&ground.home(), ground.runtime(), leaving));
    let mut rounds = 0;
    for round in Plan::new(seed).take(args.rounds.map_or(usize::MAX, |rounds| rounds as usize)) {
        if leaving.now()
            || rounds > 0 && most.is_some_and(|most| began.elapsed() >= most)
            || !field.matrix.holds()
        {
            break;
        }
        rounds = round.number;
        let checked = field.matrix.checked();
        field.play(&round, &mut |fault| progress.tell(rounds, fault.words(), checked))?;
    }
    if !leaving.now() {
        field.close(rounds)?;
    }
    progress.clear();
    let matrix = field.matrix;
    Ok(Outcome { matrix, seed, rounds, took: began.elapsed(), place: ground.path().to_owned() })
}

/// Returns the nearest directory above a home that is there: what is made in it is on the same disk, as a rule.
fn beside(home: &Path) -> PathBuf {
    let above = home.ancestors().skip(1).find(|path| path.is_dir());
    above.map_or_else(std::env::temp_dir, Path::to_owned)
}
