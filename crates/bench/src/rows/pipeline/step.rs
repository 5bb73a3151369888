//! A step on disk: that it has begun, and what came of it with what follows. Raw: the same bytes written and synced twice, and where a
//! session begins with the step, a file for it that nobody syncs.

use std::io;

use rekindle_store::Store;

use super::{RawSessions, What, bytes_of_step, start, step};
use crate::context::Context;
use crate::home;
use crate::measure::{Latencies, interleave};
use crate::pipeline_runs::PipelineRun;
use crate::rows::append_one::Raw;
use crate::table::{Row, Target, Unit};

pub(crate) fn run(context: &Context) -> anyhow::Result<Vec<Row>> {
    let (steps, rounds) = context.pick((500, 15), (100, 5));
    let mut rows = Vec::new();
    for (what, text) in [
        (What::Ledger, "a step begins and is finished, on disk, its ledger"),
        (What::WithSession, "… with its session begun in the same append"),
    ] {
        let dir = context.directory()?;
        let store = home::open(&dir.path().join("home"))?;
        let mut run = start(&store, 1)?;
        let bytes = bytes_of_step(what)?;
        let mut file = Raw::create(&dir.path().join("raw"), 0)?;
        let sessions = RawSessions::new(dir.path());
        let raw = || raw_steps(&mut file, &bytes, steps, || sessions.make(what, &bytes[0]));
        let [p50] = interleave(text, rounds, raw, || ours(&store, &mut run, what, steps))?;
        let sizes = format!("{} + {} bytes", bytes[0].len(), bytes[1].len());
        rows.push(Row::compared(
            format!("{text}, {sizes}, p50"),
            Unit::Micros,
            &p50,
            Target::RatioAtMost(1.5),
        ));
    }
    Ok(rows)
}

fn raw_steps(
    raw: &mut Raw,
    bytes: &[Vec<u8>; 2],
    steps: usize,
    also: impl Fn() -> io::Result<()>,
) -> anyhow::Result<[f64; 1]> {
    let mut latencies = Latencies::default();
    for _ in 0..steps {
        latencies.time(|| bytes.iter().try_for_each(|line| raw.append_line(line)).and_then(|()| also()))?;
    }
    Ok([latencies.percentile(0.5)])
}

fn ours(store: &Store, run: &mut PipelineRun, what: What, steps: usize) -> anyhow::Result<[f64; 1]> {
    let mut latencies = Latencies::default();
    for _ in 0..steps {
        latencies.time(|| step(store, run, what))?;
    }
    Ok([latencies.percentile(0.5)])
}
