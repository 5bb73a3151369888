//! Replaying one log from its first record: read, parse, verify the chain, fold. Raw: a borrowed parse of
//! each line alone, from memory. What it takes in memory is measured by a child process.

use std::fs;

use anyhow::{Context as _, ensure};
use rekindle_domain::id::SessionId;
use rekindle_store::{Store, Want};
use serde::Deserialize;

use super::replay_memory;
use crate::context::{Context, progress};
use crate::home::{self, Filler};
use crate::measure::{interleave, millis};
use crate::records;
use crate::table::{Row, Target, Unit};

/// What 100,000 records may take.
const MILLIS_AT_MOST: f64 = 100.0;

pub(crate) fn run(context: &Context) -> anyhow::Result<Vec<Row>> {
    let (records, rounds) = context.pick((100_000, 41), (20_000, 15));
    let dir = context.directory()?;
    let home = dir.path().join("home");
    let store = home::open(&home)?;
    let sessions = home::make_sessions(&store, 2)?;
    fill(&store, sessions[0], records)?;
    fill(&store, sessions[1], records * 10)?;
    let log = fs::read(store.layout().log(sessions[0])).context("cannot read the log")?;

    let what = format!("replay of {records} records");
    let raw = || Ok([records as f64 / raw(&log)? * 1000.0]);
    let [rates] = interleave(&what, rounds, raw, || {
        let (millis, loaded) = millis(|| store.load(sessions[0], Want::Everything));
        let loaded = loaded?;
        ensure!(loaded.oddities.is_empty(), "the log has oddities: {:?}", loaded.oddities);
        ensure!(loaded.state.last_seq >= records as u64, "the replay ended early");
        Ok([records as f64 / millis * 1000.0])
    })?;
    // On a busy machine the median tells of the others; the best round is the closest to an idle one.
    let per_100_000: Vec<f64> = rates.ours.iter().map(|rate| 100_000.0 / rate * 1000.0).collect();
    drop(store);
    let mut rows = vec![
        Row::compared(what, Unit::PerSecond, &rates, Target::RatioAtLeast(0.5)),
        Row::alone(
            "… time for 100,000 records",
            Unit::Millis,
            per_100_000.as_slice(),
            Target::AtMost(MILLIS_AT_MOST),
        ),
    ];
    rows.push(replay_memory::row(context, &home, [sessions[0], sessions[1]])?);
    Ok(rows)
}

fn fill(store: &Store, session: SessionId, records: usize) -> anyhow::Result<()> {
    progress(&format!("preparing a log of {records} records"));
    let filler = Filler::new(store);
    filler.submit_each(session, records::turns(records));
    filler.finish()
}

/// Parses every line and returns how many milliseconds that took.
pub(super) fn raw(log: &[u8]) -> anyhow::Result<f64> {
    #[derive(Deserialize)]
    struct Record<'a> {
        seq: u64,
        ts: &'a str,
        kind: &'a str,
    }
    let (millis, parsed) = millis(|| {
        let mut start = 0;
        let mut sum = 0;
        for end in memchr::memchr_iter(b'\n', log) {
            let record: Record<'_> = serde_json::from_slice(&log[start..end])?;
            sum += record.seq + (record.ts.len() + record.kind.len()) as u64;
            start = end + 1;
        }
        serde_json::Result::Ok(sum)
    });
    std::hint::black_box(parsed?);
    Ok(millis)
}
