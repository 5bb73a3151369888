//! One durable record to each of many sessions at once. Raw: a bare shared journal, one write and one
//! fdatasync of it, then a write to each session's file that nobody syncs.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use rekindle_domain::id::SessionId;
use rekindle_store::Store;
use rekindle_store::commit::Append;

use crate::context::Context;
use crate::counting::CountingDisk;
use crate::home;
use crate::measure::{Latencies, interleave};
use crate::records;
use crate::table::{Row, Target, Unit};

/// More syncs than this share of the sessions would be a sync per session in disguise.
const SYNCS_AT_MOST: f64 = 1.0 / 8.0;

pub(crate) fn run(context: &Context) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for sessions in [64, 512] {
        rows.extend(with_sessions(context, sessions)?);
    }
    Ok(rows)
}

fn with_sessions(context: &Context, count: usize) -> anyhow::Result<Vec<Row>> {
    let (batches, rounds) = context.pick((40, 11), (10, 5));
    let dir = context.directory()?;
    let mut raw = Raw::create(dir.path(), count)?;
    let store = home::open(&dir.path().join("home"))?;
    let sessions = home::make_sessions(&store, count)?;
    let what = format!("a record to each of {count} sessions");
    let [time] = interleave(&what, rounds, || raw.append(batches), || ours(&store, &sessions, batches))?;
    drop(store);

    // Counted apart: counting costs time.
    let disk = CountingDisk::default();
    let store = home::open_on(Arc::new(disk.clone()), &dir.path().join("counted"))?;
    let sessions = home::make_sessions(&store, count)?;
    let before = disk.0.counts();
    for _ in 0..rounds {
        ours(&store, &sessions, batches)?;
    }
    let syncs = disk.0.counts().syncs - before.syncs;
    let a_batch = syncs as f64 / (batches * rounds) as f64;
    let at_most = Target::AtMost(count as f64 * SYNCS_AT_MOST);
    Ok(vec![
        Row::compared(format!("{what}, p50"), Unit::Micros, &time, Target::RatioAtMost(2.0)),
        Row::alone(format!("… syncs a batch of {count}"), Unit::Count, a_batch, at_most),
    ])
}

struct Raw {
    journal: File,
    files: Vec<File>,
    batch: u64,
}

impl Raw {
    fn create(dir: &Path, count: usize) -> anyhow::Result<Raw> {
        let create = |name: String| File::create(dir.join(name)).context("cannot make a raw file");
        let files = (0..count).map(|n| create(format!("session-{n}"))).collect::<Result<_, _>>()?;
        Ok(Raw { journal: create("journal".into())?, files, batch: 0 })
    }

    fn append(&mut self, batches: usize) -> anyhow::Result<[f64; 1]> {
        let line = [b'x'; 300];
        let journaled = vec![b'x'; line.len() * self.files.len()];
        let mut latencies = Latencies::default();
        for _ in 0..batches {
            latencies.time(|| {
                self.journal.write_all_at(&journaled, self.batch * journaled.len() as u64)?;
                self.journal.sync_data()?;
                let offset = self.batch * line.len() as u64;
                self.files.iter().try_for_each(|file| file.write_all_at(&line, offset))
            })?;
            self.batch += 1;
        }
        Ok([latencies.percentile(0.5)])
    }
}

fn ours(store: &Store, sessions: &[SessionId], batches: usize) -> anyhow::Result<[f64; 1]> {
    let mut latencies = Latencies::default();
    for batch in 0..batches {
        let draft = records::message(batch as u64);
        let appends: Vec<Append> =
            sessions.iter().map(|session| Append::durable(*session, vec![draft.clone()])).collect();
        latencies.time(|| {
            let receipts = store.committer().append_all(appends);
            receipts.into_iter().try_for_each(|receipt| receipt.map(|_| ()))
        })?;
    }
    Ok([latencies.percentile(0.5)])
}
