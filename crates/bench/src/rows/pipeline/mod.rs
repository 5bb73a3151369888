//! Pipelines: a step on disk, many runs at once, results that are there already, ledgers read from their beginning.

pub(super) mod cached_step;
pub(super) mod ledger_replay;
pub(super) mod many_runs;
pub(super) mod resume;
pub(super) mod step;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rekindle_domain::chain::Link;
use rekindle_domain::line::{Draft, Envelope, write};
use rekindle_store::Store;
use rekindle_store::commit::Append;

use crate::pipeline_runs::PipelineRun;

/// What is appended of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    /// The records of the ledger alone.
    Ledger,
    /// With the first records of the step's session, as the service has it.
    WithSession,
}

/// Starts the n-th run in a store.
fn start(store: &Store, number: u64) -> anyhow::Result<PipelineRun> {
    let (run, records) = PipelineRun::start(number)?;
    store.create_pipeline(run.id)?;
    store.append(Append::durable(run.id, records))?;
    Ok(run)
}

/// Takes a run's step from its beginning to its end: two appends, each on disk before the next.
fn step(store: &Store, run: &mut PipelineRun, what: What) -> anyhow::Result<()> {
    let (began, session, records) = run.begin()?;
    match what {
        What::Ledger => drop(store.append(Append::durable(run.id, vec![began]))?),
        What::WithSession => {
            store.create(session)?;
            store.append(Append::durable(session, records).and(run.id, vec![began]))?;
        }
    }
    store.append(Append::durable(run.id, run.finish()?))?;
    if what == What::WithSession {
        store.close_session(session);
    }
    Ok(())
}

/// Files of sessions as a raw program makes them: the contract wants one for each, and nobody syncs it.
struct RawSessions {
    directory: PathBuf,
    made: AtomicU64,
}

impl RawSessions {
    fn new(directory: &Path) -> RawSessions {
        RawSessions { directory: directory.to_owned(), made: AtomicU64::new(0) }
    }

    /// Makes the next one with what a step begins with, if a session belongs to what is appended.
    fn make(&self, what: What, begun: &[u8]) -> io::Result<()> {
        if what == What::Ledger {
            return Ok(());
        }
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        fs::write(self.directory.join(format!("session-{number}")), begun)
    }
}

/// Returns what the two appends of a step write into the logs.
fn bytes_of_step(what: What) -> anyhow::Result<[Vec<u8>; 2]> {
    let (mut run, _) = PipelineRun::start(0)?;
    // A step in the middle: its prompt has what the one before found.
    for _ in 0..2 {
        run.begin()?;
        run.finish()?;
    }
    let (began, _, mut records) = run.begin()?;
    records.push(began);
    if what == What::Ledger {
        records.drain(..records.len() - 1);
    }
    let (begun, finished) = (records, run.finish()?);
    Ok([lines(&run, &begun)?, lines(&run, &finished)?])
}

fn lines(run: &PipelineRun, drafts: &[Draft]) -> anyhow::Result<Vec<u8>> {
    let (mut log, mut last) = (Vec::new(), None);
    for draft in drafts {
        let place = Envelope { seq: 1000, ts: "2026-02-21T10:00:00.000Z", at: None, more: false };
        last = Some(write(draft, place, Link::new(run.id, last), &mut log)?);
    }
    Ok(log)
}
