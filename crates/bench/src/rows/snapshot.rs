//! Writing a session's snapshot when nothing is unsynced. Raw: a temporary file of as many bytes, fsync,
//! rename, fsync of the directory.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use anyhow::Context as _;

use crate::context::Context;
use crate::home::{self, Filler};
use crate::measure::{Latencies, interleave};
use crate::records;
use crate::table::{Row, Target, Unit};

pub(crate) fn run(context: &Context) -> anyhow::Result<Vec<Row>> {
    let (snapshots, rounds) = context.pick((200, 15), (50, 5));
    let dir = context.directory()?;
    let store = home::open(&dir.path().join("home"))?;
    let session = home::make_sessions(&store, 1)?[0];
    let filler = Filler::new(&store);
    filler.submit_each(session, records::turns(200));
    filler.finish()?;
    let size = store.snapshot(session)?;
    let raw_dir = dir.path().join("raw");
    fs::create_dir(&raw_dir).context("cannot make the raw directory")?;

    let what = format!("snapshot of {size} bytes");
    let [time] = interleave(
        &what,
        rounds,
        || raw(&raw_dir, size as usize, snapshots),
        || {
            let mut latencies = Latencies::default();
            for _ in 0..snapshots {
                latencies.time(|| store.snapshot(session))?;
            }
            Ok([latencies.percentile(0.5)])
        },
    )?;
    Ok(vec![Row::compared(format!("{what}, p50"), Unit::Micros, &time, Target::RatioAtMost(1.5))])
}

fn raw(dir: &Path, size: usize, snapshots: usize) -> anyhow::Result<[f64; 1]> {
    let bytes = vec![b'x'; size];
    let (temporary, path) = (dir.join("snapshot.tmp"), dir.join("snapshot"));
    let mut latencies = Latencies::default();
    for _ in 0..snapshots {
        latencies.time(|| {
            let mut file = File::create(&temporary)?;
            file.write_all(&bytes)?;
            file.sync_all()?;
            fs::rename(&temporary, &path)?;
            File::open(dir)?.sync_all()
        })?;
    }
    Ok([latencies.percentile(0.5)])
}
