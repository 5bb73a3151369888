//! One producer that waits for each record to be on disk. Raw: one write and one fdatasync a record.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::Context as _;
use rekindle_domain::id::SessionId;
use rekindle_store::Store;
use rekindle_store::commit::Append;

use crate::context::Context;
use crate::home;
use crate::measure::{Latencies, interleave};
use crate::records;
use crate::table::{Row, Target, Unit};

pub(crate) fn run(context: &Context) -> anyhow::Result<Vec<Row>> {
    let (records, rounds) = context.pick((1_000, 15), (200, 5));
    let dir = context.directory()?;
    let mut plain = Raw::create(&dir.path().join("plain"), 0)?;
    let mut reserved = Raw::create(&dir.path().join("reserved"), 256 << 20)?;
    let store = home::open(&dir.path().join("home"))?;
    let session = home::make_sessions(&store, 1)?[0];

    let what = "durable append, 1 producer";
    let [p50, p99] = interleave(what, rounds, || plain.append(records), || ours(&store, session, records))?;
    let what = "durable append, 1 producer, beside reserved room";
    let [reserved, _] =
        interleave(what, rounds, || reserved.append(records), || ours(&store, session, records))?;
    Ok(vec![
        Row::compared("durable append, 1 producer, p50", Unit::Micros, &p50, Target::RatioAtMost(1.4)),
        Row::compared("… p99", Unit::Micros, &p99, Target::None),
        Row::compared("… p50, raw into reserved room", Unit::Micros, &reserved, Target::None),
    ])
}

/// A file that is appended to and synced, record by record.
pub(super) struct Raw {
    file: File,
    end: u64,
}

impl Raw {
    pub(super) fn create(path: &Path, room: u64) -> anyhow::Result<Raw> {
        let file = File::create(path).context("cannot make the raw file")?;
        if room > 0 {
            rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, room)?;
        }
        file.sync_all()?;
        Ok(Raw { file, end: 0 })
    }

    pub(super) fn append(&mut self, records: usize) -> anyhow::Result<[f64; 2]> {
        let line = [b'x'; 300];
        let mut latencies = Latencies::default();
        for _ in 0..records {
            latencies.time(|| self.append_line(&line))?;
        }
        Ok([latencies.percentile(0.5), latencies.percentile(0.99)])
    }

    /// Appends one record.
    pub(super) fn append_line(&mut self, line: &[u8]) -> std::io::Result<()> {
        self.file.write_all_at(line, self.end)?;
        self.end += line.len() as u64;
        self.file.sync_data()
    }
}

fn ours(store: &Store, session: SessionId, records: usize) -> anyhow::Result<[f64; 2]> {
    let mut latencies = Latencies::default();
    for draft in records::messages(records) {
        let append = Append::durable(session, vec![draft]);
        latencies.time(|| store.append(append))?;
    }
    Ok([latencies.percentile(0.5), latencies.percentile(0.99)])
}
