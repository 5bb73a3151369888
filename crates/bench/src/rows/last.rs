//! The last 50 records of a huge log, and finding a record in its middle: what a client asks for first must
//! not hang on how long a session has lived. Raw: one read of the last 64 KiB.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use rekindle_domain::chain::Link;
use rekindle_domain::line::{Envelope, peek_seq, write};
use rekindle_store::Codec;
use rekindle_store::disk::RealDisk;
use rekindle_store::log::LogReader;

use crate::context::{Context, progress};
use crate::home;
use crate::measure::{interleave, millis};
use crate::records;
use crate::table::{Row, Target, Unit};

const WANTED: usize = 50;
const MILLIS_AT_MOST: f64 = 5.0;

pub(crate) fn run(context: &Context) -> anyhow::Result<Vec<Row>> {
    let rounds = context.pick(31, 9);
    let size: u64 = context.pick(1 << 30, 100 << 20);
    let dir = context.directory()?;
    let huge = Log::build(dir.path().join("huge"), size)?;
    let small = Log::build(dir.path().join("small"), size / 100)?;
    let named = format!("{} MB", size >> 20);

    let mut rows = Vec::new();
    for cold in [false, true] {
        let temperature = if cold { context.cold_word() } else { "warm" };
        let prepare = || if cold { context.make_cold(std::slice::from_ref(&huge.path)) } else { Ok(()) };
        let raw = || prepare().and_then(|()| huge.raw_tail());
        let what = format!("last {WANTED} records of {named}, {temperature}");
        let [time] = interleave(&what, rounds, raw, || prepare().and_then(|()| huge.last()))?;
        rows.push(Row::compared(what, Unit::Millis, &time, Target::AtMost(MILLIS_AT_MOST)));
        let what = format!("… a record in the middle, {temperature}");
        let [time] = interleave(&what, rounds, raw, || prepare().and_then(|()| huge.middle()))?;
        rows.push(Row::alone(what, Unit::Millis, time.ours.as_slice(), Target::AtMost(MILLIS_AT_MOST)));
    }
    let what = format!("… last {WANTED} of a 100th of that, and of all");
    let [time] = interleave(&what, rounds, || small.last(), || huge.last())?;
    rows.push(Row::compared(what, Unit::Millis, &time, Target::RatioAtMost(1.5)));
    Ok(rows)
}

/// A log that was written without a store, which would take longer.
struct Log {
    path: PathBuf,
    records: u64,
}

impl Log {
    fn build(path: PathBuf, size: u64) -> anyhow::Result<Log> {
        progress(&format!("preparing a log of {} MB", size >> 20));
        let file = File::create(&path).context("cannot make the log")?;
        let mut out = BufWriter::with_capacity(1 << 20, file);
        let session = home::session_id(0);
        let drafts: Vec<_> = records::turns(1_000).collect();
        let (mut last, mut seq, mut written) = (None, 0, 0);
        let mut line = Vec::new();
        while written < size {
            seq += 1;
            let place = Envelope { seq, ts: "2026-02-21T10:00:00.000Z", at: None, more: false };
            let draft = &drafts[seq as usize % drafts.len()];
            last = Some(write(draft, place, Link::new(session, last), &mut line)?);
            out.write_all(&line)?;
            written += line.len() as u64;
            line.clear();
        }
        out.into_inner().map_err(|error| error.into_error())?.sync_all()?;
        Ok(Log { path, records: seq })
    }

    fn raw_tail(&self) -> anyhow::Result<[f64; 1]> {
        let (millis, read) = millis(|| {
            let file = File::open(&self.path)?;
            let mut tail = vec![0; 64 << 10];
            let from = file.metadata()?.len() - tail.len() as u64;
            file.read_exact_at(&mut tail, from)?;
            std::io::Result::Ok(tail)
        });
        ensure!(read?.ends_with(b"\n"), "the log does not end in a newline");
        Ok([millis])
    }

    fn last(&self) -> anyhow::Result<[f64; 1]> {
        let (millis, lines) = millis(|| {
            let reader = open(&self.path)?;
            reader.last(reader.end(), WANTED)
        });
        let lines = lines?;
        let newest = lines.last().and_then(|(_, line)| peek_seq(line));
        ensure!(lines.len() == WANTED && newest == Some(self.records), "not the last {WANTED} records");
        Ok([millis])
    }

    fn middle(&self) -> anyhow::Result<[f64; 1]> {
        let (millis, offset) = millis(|| open(&self.path)?.find(self.records / 2));
        ensure!(offset?.is_some(), "the record in the middle was not found");
        Ok([millis])
    }
}

fn open(path: &Path) -> std::io::Result<LogReader> {
    LogReader::open(&RealDisk, path, Codec::Plain)
}
