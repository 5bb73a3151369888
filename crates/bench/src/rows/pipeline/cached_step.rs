//! A step whose result is in the cache: found, checked, and its records composed with the key of the step that follows. The trees are left
//! out, and so is the append.

use std::sync::Arc;

use anyhow::{Context as _, bail, ensure};
use rekindle_domain::event::{StepCounts, StepFinished};
use rekindle_domain::id::RunName;
use rekindle_domain::pipeline::cached_result::{CachedResult, cache_directory};
use rekindle_domain::time::Timestamp;
use rekindle_store::Store;
use rekindle_store::commit::Append;
use rekindle_store::disk::RealDisk;
use rekindle_store::step_cache::{Lookup, StepCache};

use super::start;
use crate::context::{Context, progress};
use crate::home;
use crate::measure::Latencies;
use crate::pipeline_runs::PipelineRun;
use crate::table::{Row, Target, Unit};

const MICROS_AT_MOST: f64 = 20.0;

pub(crate) fn run(context: &Context) -> anyhow::Result<Vec<Row>> {
    let (steps, rounds) = context.pick((1_000, 11), (200, 5));
    let dir = context.directory()?;
    let store = home::open(&dir.path().join("home"))?;
    let cache = StepCache::new(Arc::new(RealDisk), store.layout().clone());
    // The tree of every result: what there is to know of it is whether it is there.
    let batch = store.blobs().batch()?;
    let tree = batch.put(b"a tree")?;
    drop(batch.commit()?);
    let (mut found, mut appended) = (Vec::new(), Vec::new());
    for round in 0..rounds as u64 {
        progress(&format!("measuring steps from the cache, round {} of {rounds}", round + 1));
        fill(&cache, round, steps)?;
        let mut run = start(&store, round)?;
        let (mut answers, mut appends) = (Latencies::default(), Latencies::default());
        for _ in 0..steps {
            let records = answers.time(|| answer(&store, &cache, &run, tree))?;
            run.take(&records)?;
            appends.time(|| store.append(Append::durable(run.id, records)))?;
        }
        ensure!(run.state.counts.commands == 0, "somebody worked");
        found.push(answers.percentile(0.5));
        appended.push(appends.percentile(0.5));
    }
    Ok(vec![
        Row::alone(
            "a step from the cache, without its append, p50",
            Unit::Micros,
            found.as_slice(),
            Target::AtMost(MICROS_AT_MOST),
        ),
        Row::alone("… its append, p50", Unit::Micros, appended.as_slice(), Target::None),
    ])
}

/// Keeps the results of the steps that a run will come to.
fn fill(cache: &StepCache, number: u64, steps: usize) -> anyhow::Result<()> {
    let (mut run, _) = PipelineRun::start(number)?;
    for _ in 0..steps {
        let finished = run.result(false)?;
        let (_, stage) = run.state.stage(&finished.step_id.stage).context("a stage")?;
        let made_by = RunName::of(run.id).context("a name")?;
        let result = CachedResult::of(stage, &finished, made_by, Timestamp::default()).context("a result")?;
        let path = cache_directory(stage).to_owned();
        if matches!(cache.find(&path, result.key), Lookup::Missing) {
            cache.keep(&path, &result)?;
        }
        run.record(StepFinished { cached: true, ..finished })?;
    }
    Ok(())
}

/// Does what a worker does that finds a result, but for the directory.
fn answer(
    store: &Store,
    cache: &StepCache,
    run: &PipelineRun,
    tree: rekindle_domain::blob_id::BlobId,
) -> anyhow::Result<Vec<rekindle_domain::line::Draft>> {
    let step = run.state.current_step().context("a step")?.clone();
    let (_, stage) = run.state.stage(&step.id.stage).context("a stage")?;
    let Lookup::Found(result) = cache.find(cache_directory(stage), step.key) else {
        bail!("there is no result")
    };
    ensure!(result.fits(stage, step.from) && store.blobs().contains(&tree)?, "it cannot be used");
    run.compose(StepFinished {
        step_id: step.id.clone(),
        key: step.key,
        outcome: result.outcome,
        payload: result.payload,
        payload_blob: result.payload_blob,
        to: result.to,
        files_touched: None,
        usage: None,
        cached: true,
        counts: StepCounts::default(),
    })
}
