//! Appends that need only survive our own death, handed over one after another without waiting. Raw: one
//! unbuffered write a record.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Instant;

use anyhow::Context as _;
use rekindle_domain::id::SessionId;
use rekindle_store::Store;
use rekindle_store::commit::{Append, Ticket};

use crate::context::Context;
use crate::home::{self, Filler};
use crate::measure::{interleave, rate};
use crate::records;
use crate::table::{Row, Target, Unit};

pub(crate) fn run(context: &Context) -> anyhow::Result<Vec<Row>> {
    let (records, rounds) = context.pick((50_000, 11), (10_000, 5));
    let dir = context.directory()?;
    let file = File::create(dir.path().join("raw")).context("cannot make the raw file")?;
    let mut end = 0;
    let mut raw = || raw(&file, &mut end, records);
    let store = home::open(&dir.path().join("home"))?;
    let session = home::make_sessions(&store, 1)?[0];

    let what = "append without a sync, pipelined";
    let [tickets] = interleave(what, rounds, &mut raw, || with_tickets(&store, session, records))?;
    let what = "append without a sync, pipelined, called back";
    let [callbacks] = interleave(what, rounds, &mut raw, || called_back(&store, session, records))?;
    Ok(vec![
        Row::compared(
            "append without a sync, pipelined",
            Unit::PerSecond,
            &tickets,
            Target::RatioAtLeast(0.25),
        ),
        Row::compared("… called back, synced at the end", Unit::PerSecond, &callbacks, Target::None),
    ])
}

fn raw(file: &File, end: &mut u64, records: usize) -> anyhow::Result<[f64; 1]> {
    let line = [b'x'; 300];
    let start = Instant::now();
    for _ in 0..records {
        file.write_all_at(&line, *end)?;
        *end += line.len() as u64;
    }
    Ok([rate(records, start.elapsed())])
}

fn with_tickets(store: &Store, session: SessionId, records: usize) -> anyhow::Result<[f64; 1]> {
    let appends = appends(session, records);
    let start = Instant::now();
    let tickets: Vec<Ticket> = appends.into_iter().map(|append| store.committer().submit(append)).collect();
    tickets.into_iter().try_for_each(|ticket| ticket.wait().map(|_| ()))?;
    Ok([rate(records, start.elapsed())])
}

fn called_back(store: &Store, session: SessionId, records: usize) -> anyhow::Result<[f64; 1]> {
    let appends = appends(session, records);
    let start = Instant::now();
    let filler = Filler::new(store);
    appends.into_iter().for_each(|append| filler.submit(append));
    filler.finish()?;
    Ok([rate(records, start.elapsed())])
}

fn appends(session: SessionId, records: usize) -> Vec<Append> {
    let drafts = records::messages(records);
    drafts.into_iter().map(|draft| Append::quick(session, vec![draft])).collect()
}
