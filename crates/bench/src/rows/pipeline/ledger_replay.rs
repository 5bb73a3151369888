//! A ledger read from its beginning: every record is checked and folded. Raw: a borrowed parse of each line alone, from memory.

use std::fs;

use anyhow::{Context as _, ensure};
use rekindle_store::Store;
use rekindle_store::commit::Append;

use crate::context::{Context, progress};
use crate::home::{self, Filler};
use crate::measure::{interleave, millis};
use crate::pipeline_runs::PipelineRun;
use crate::rows::replay::raw;
use crate::table::{Row, Target, Unit};

/// Records of a step: that it is meant to be done, has begun, is finished.
const OF_A_STEP: usize = 3;

pub(crate) fn run(context: &Context) -> anyhow::Result<Vec<Row>> {
    let (records, rounds) = context.pick((1_000_000, 11), (30_000, 5));
    let dir = context.directory()?;
    let home = dir.path().join("home");
    let store = home::open(&home)?;
    let run = fill(&store, records / OF_A_STEP)?;
    let ledger = fs::read(store.layout().ledger(run.id)).context("cannot read the ledger")?;
    let count = memchr::memchr_iter(b'\n', &ledger).count();
    ensure!(count >= records, "the ledger has {count} records");
    let what = format!("replay of a ledger of {count} records");
    drop(store);
    let ours = || {
        // By whoever comes next, to whom nothing is known.
        let store = home::open(&home)?;
        let (millis, opened) = millis(|| store.open_pipeline(run.id));
        let opened = opened?.context("the run is gone")?;
        ensure!(
            opened.damage.is_none() && opened.fold.position().last_seq == count as u64,
            "the replay ended early"
        );
        ensure!(opened.fold.following() == run.state.following(), "it came to something else");
        Ok([count as f64 / millis * 1000.0])
    };
    let [rates] = interleave(&what, rounds, || Ok([count as f64 / raw(&ledger)? * 1000.0]), ours)?;
    let bytes = ledger.len() as f64 / count as f64;
    Ok(vec![
        Row::compared(what, Unit::PerSecond, &rates, Target::RatioAtLeast(0.5)),
        Row::alone("… bytes of a record", Unit::Bytes, bytes, Target::None),
    ])
}

/// Makes a run with so many steps.
pub(super) fn fill(store: &Store, steps: usize) -> anyhow::Result<PipelineRun> {
    progress(&format!("preparing a ledger of {steps} steps"));
    let (mut run, first) = PipelineRun::start(1)?;
    store.create_pipeline(run.id)?;
    let filler = Filler::new(store);
    filler.submit(Append::quick(run.id, first));
    for _ in 0..steps {
        let (began, ..) = run.begin()?;
        filler.submit(Append::quick(run.id, vec![began]));
        filler.submit(Append::quick(run.id, run.finish()?));
    }
    filler.finish()?;
    Ok(run)
}
