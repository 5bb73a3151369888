//! Thirty-two runs at once, each of which waits for every append. Raw: a bare group commit of the same bytes, and where
//! sessions begin with the steps, a file for each that nobody syncs.

use std::time::Instant;

use rekindle_store::Store;

use super::{RawSessions, What, bytes_of_step, start, step};
use crate::context::Context;
use crate::home;
use crate::measure::{Rounds, interleave, rate};
use crate::pipeline_runs::PipelineRun;
use crate::rows::append_many::{self, PRODUCERS};
use crate::table::{Row, Target, Unit};

/// Steps a second that are to be reached, whatever the disk is: several times what others do.
const STEPS_AT_LEAST: f64 = 20_000.0;

pub(crate) fn run(context: &Context) -> anyhow::Result<Vec<Row>> {
    let (each, rounds) = context.pick((500, 11), (100, 5));
    let mut rows = Vec::new();
    for (what, text) in [
        (What::Ledger, "steps of 32 runs at once, their ledgers"),
        (What::WithSession, "… with their sessions begun in the same appends"),
    ] {
        let dir = context.directory()?;
        let store = home::open(&dir.path().join("home"))?;
        let mut runs = (0..PRODUCERS as u64).map(|n| start(&store, n)).collect::<anyhow::Result<Vec<_>>>()?;
        let bytes = bytes_of_step(what)?;
        let lines: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
        let mut raw = append_many::Raw::create(&dir.path().join("raw"))?;
        // It counts appends, of which a step has two.
        let sessions = RawSessions::new(dir.path());
        let make = || sessions.make(what, lines[0]);
        let raw = || raw.append_lines_and(each, &lines, make).map(|[appends]| [appends / lines.len() as f64]);
        let [steps] = interleave(text, rounds, raw, || ours(&store, &mut runs, what, each))?;
        rows.push(Row::compared(text, Unit::PerSecond, &steps, Target::RatioAtLeast(0.5)));
        if what == What::Ledger {
            rows.push(alone(&steps));
        }
    }
    Ok(rows)
}

fn alone(steps: &Rounds) -> Row {
    let target = Target::AtLeast(STEPS_AT_LEAST);
    Row::alone("… steps a second", Unit::PerSecond, steps.ours.as_slice(), target)
}

fn ours(store: &Store, runs: &mut [PipelineRun], what: What, each: usize) -> anyhow::Result<[f64; 1]> {
    let count = each * runs.len();
    let begin = Instant::now();
    std::thread::scope(|scope| {
        let all = |run: &mut PipelineRun| (0..each).try_for_each(|_| step(store, run, what));
        let workers: Vec<_> = runs.iter_mut().map(|run| scope.spawn(move || all(run))).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("a worker does not panic"))
    })?;
    Ok([rate(count, begin.elapsed())])
}
