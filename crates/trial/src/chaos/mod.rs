//! `rekindle chaos`: a self-test on the user's own machine and disk. Daemons, holders and agents are killed, stopped and
//! replaced by a plan, visitors go on meanwhile, and after each round every promise is held against what is there. This file
//! opens and closes; the plan, the strikes, the oracle and the report are in files of their own.

mod copied_home;
mod damaged_copy;
mod descriptors;
mod faults;
mod follower;
mod full_disk;
mod ledger;
mod matrix;
mod newest_records;
mod oracle;
mod plan;
mod power_cut;
mod processes;
mod report;
mod retrying_client;
mod round;
mod round_end;
mod shortage;
mod visitor;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rekindle_client::clock::random;
use rekindle_client::failure::{Exit, Failure};
use rekindle_client::start::beside_us;
use rekindle_lab::TempHome;
use rekindle_terminal::on_exit_signal;

use self::plan::Plan;
use self::processes::Processes;
use self::report::{Outcome, Progress};
use self::retrying_client::CancelToken;
use self::round::Field;
use crate::ground::temporary_below;

/// What is to be tested, where and for how long.
#[derive(Debug, Clone)]
pub struct Options {
    /// Play so many rounds, however long that takes.
    pub rounds: Option<u64>,
    /// Begin no round after so many seconds; without a number of rounds there is a usual one.
    pub seconds: Option<u64>,
    /// The seed of the plan; by chance if there is none.
    pub seed: Option<u64>,
    /// The directory below which everything is made.
    pub base: PathBuf,
    /// Keep the directory, and say where it is.
    pub keep: bool,
    /// Print JSON.
    pub json: bool,
}

/// How long it takes unless something else is said.
const SECONDS: u64 = 30;

/// Tests, prints what came of it, and says how the process is to end.
pub fn run(options: &Options) -> Result<Exit, Failure> {
    // Before anything is started: a daemon would find out too late.
    beside_us("rekindle-holder")?;
    let mut ground = temporary_below(&options.base, "chaos", options.keep)
        .map_err(|failure| failure.exit_with(Exit::Usage).hint("name another directory with --dir PATH"))?;
    let cancel = CancelToken::default();
    let signalled = cancel.clone();
    on_exit_signal(move || {
        signalled.cancel();
        true
    })
    .map_err(|error| Failure::failed("signals", error))?;
    // Small enough to be typed again.
    let seed = match options.seed {
        Some(seed) => seed,
        None => u64::from(random()? as u32),
    };
    let played = play(&ground, options, seed, &cancel);
    let path = ground.path().to_owned();
    match played {
        Ok(_) if cancel.is_cancelled() => {
            let left =
                if options.keep { format!("kept in {}", path.display()) } else { "removed".to_owned() };
            let error = anyhow::anyhow!("the self-test was interrupted; its seed was {seed}");
            let hint = format!("its processes are ended, its home is {left}");
            Err(Failure::failed("interrupted", error).exit_with(Exit::Detached).hint(hint))
        }
        Ok(outcome) => {
            if !outcome.matrix.holds() {
                ground.keep();
            }
            let kept = ground.is_kept().then_some(path);
            report::print(options.json, &outcome, kept.as_deref())?;
            Ok(if outcome.matrix.holds() { Exit::Ok } else { Exit::Failed })
        }
        Err(failure) => {
            ground.keep();
            let hint = format!("everything is kept in {}; the seed was {seed}", path.display());
            Err(failure.exit_with(Exit::Failed).hint(hint))
        }
    }
}

fn play(ground: &TempHome, options: &Options, seed: u64, cancel: &CancelToken) -> Result<Outcome, Failure> {
    let began = Instant::now();
    std::fs::create_dir(ground.at("barriers")).map_err(|error| Failure::failed("temporary_dir", error))?;
    let seconds = options.seconds.or(options.rounds.is_none().then_some(SECONDS));
    let most = seconds.map(Duration::from_secs);
    let mut progress = Progress::new(options.json, seed, most);
    let mut field = Field::new(ground, Processes::new(&ground.home(), ground.runtime(), cancel));
    let mut rounds = 0;
    for round in Plan::new(seed).take(options.rounds.map_or(usize::MAX, |rounds| rounds as usize)) {
        if cancel.is_cancelled()
            || rounds > 0 && most.is_some_and(|most| began.elapsed() >= most)
            || !field.matrix.holds()
        {
            break;
        }
        rounds = round.number;
        let checked = field.matrix.checked();
        field.play(&round, &mut |fault| progress.tell(rounds, fault.words(), checked))?;
    }
    if !cancel.is_cancelled() {
        field.close(rounds)?;
    }
    progress.clear();
    let matrix = field.matrix;
    Ok(Outcome { matrix, seed, rounds, took: began.elapsed(), place: ground.path().to_owned() })
}

/// Returns the nearest directory above a home that is there: what is made in it is on the same disk, as a rule.
pub fn beside(home: &Path) -> PathBuf {
    let above = home.ancestors().skip(1).find(|path| path.is_dir());
    above.map_or_else(std::env::temp_dir, Path::to_owned)
}
