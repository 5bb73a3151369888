//! A run of two hundred steps goes on: its ledger is read, what is next is decided, and the attempt at the first step that is not finished is
//! on disk, with its session. No agent is begun for what is finished. The directory is left out.

use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use rekindle_domain::event::OnDrift;
use rekindle_domain::pipeline::evidence::{
    AgentFound, CacheFound, Continuation, Evidence, RunFound, SignsOfLife, TreeFound,
};
use rekindle_domain::pipeline::next_step::{NextStep, next_step};
use rekindle_store::Store;
use rekindle_store::commit::Append;

use super::ledger_replay::fill;
use crate::context::{Context, progress};
use crate::home;
use crate::measure::millis;
use crate::pipeline_runs::PipelineRun;
use crate::table::{Row, Target, Unit};

const STEPS: usize = 200;

const MILLIS_AT_MOST: f64 = 20.0;

pub(crate) fn run(context: &Context) -> anyhow::Result<Vec<Row>> {
    let rounds = context.pick(21, 5);
    let (mut decided, mut begun) = (Vec::new(), Vec::new());
    for round in 1..=rounds {
        progress(&format!("measuring a resume, round {round} of {rounds}"));
        let dir = context.directory()?;
        let home = dir.path().join("home");
        drop(fill(&home::open(&home)?, STEPS)?);
        // By whoever comes next, to whom nothing is known.
        let store = home::open(&home)?;
        context.make_cold(&[store.layout().ledger(PipelineRun::start(1)?.0.id)])?;
        let (all, first) = millis(|| resume(&store));
        begun.push(all);
        decided.push(first?);
    }
    let target = Target::AtMost(MILLIS_AT_MOST);
    let what = format!("a run of {STEPS} steps is resumed, its first pending step has begun, on disk");
    Ok(vec![
        Row::alone(what, Unit::Millis, begun.as_slice(), target),
        Row::alone(
            "… of that until it is known what is next",
            Unit::Millis,
            decided.as_slice(),
            Target::None,
        ),
    ])
}

/// Takes a run up to the beginning of its first step that is not finished; returns how long it took to know which that is.
fn resume(store: &Store) -> anyhow::Result<f64> {
    let (mut run, _) = PipelineRun::start(1)?;
    let (decided, step) = millis(|| -> anyhow::Result<NextStep> {
        let opened = store.open_pipeline(run.id)?.context("the run is gone")?;
        let from = opened.fold.expected_tree().context("a tree")?;
        run.state = opened.fold;
        Ok(next_step(&run.state, &nobody_works(from)))
    });
    let NextStep::Begin = step? else { bail!("something else is next") };
    ensure!(run.state.steps().filter(|step| step.result.is_some()).count() == STEPS, "steps are missing");
    let (began, session, records) = run.begin()?;
    store.create(session)?;
    store.append(Append::durable(session, records).and(run.id, vec![began]))?;
    Ok(decided)
}

/// Evidence of a run whose agents have ended and whose directory is as the last step left it.
fn nobody_works(tree: rekindle_domain::blob_id::BlobId) -> Evidence {
    Evidence {
        is_held_elsewhere: false,
        agent: AgentFound::Gone,
        run: RunFound::Interrupted,
        is_overdue: false,
        signs: SignsOfLife::Heard,
        has_forgotten: false,
        is_left: false,
        tree: TreeFound::Captured { tree, after_cut: 0, unknown_author: 0 },
        restoring: None,
        has_manifest: true,
        cache: CacheFound::Miss,
        continuation: Continuation::None,
        is_directory_free: true,
        has_environment: true,
        has_place: true,
        spent: None,
        retry_in: Duration::ZERO,
        word: Some(OnDrift::Stop),
    }
}
