//! Kept snapshots: of a session with a million records, which must not be read for that; and appends while a thousand snapshots are
//! taken beside them. Raw: the same appends alone.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rekindle_domain::event::Compression;
use rekindle_domain::id::SessionId;
use rekindle_domain::kept_snapshot::{KeptSnapshot, SnapshotReason};
use rekindle_domain::time::Timestamp;
use rekindle_store::Store;
use rekindle_store::commit::Append;

use crate::context::Context;
use crate::home::{self, Filler};
use crate::measure::{Latencies, interleave, rate};
use crate::records;
use crate::table::{Row, Target, Unit};

/// Producers that append meanwhile.
const PRODUCERS: usize = 32;

/// Snapshots that are taken together, and how long whoever takes them rests then, in what that took: as the daemon does.
const AT_ONCE: usize = 64;
const REST: u32 = 19;

pub(crate) fn run(context: &Context) -> anyhow::Result<Vec<Row>> {
    let (records, snapshots, rounds) = context.pick((1_000_000, 1_000, 7), (100_000, 200, 3));
    let dir = context.directory()?;
    let store = home::open(&dir.path().join("home"))?;
    let sessions = home::make_sessions(&store, snapshots)?;
    let filler = Filler::new(&store);
    filler.submit_each(sessions[0], records::turns(records));
    filler.finish()?;
    let mut latencies = Latencies::default();
    for _ in 0..50 {
        latencies.time(|| keep(&store, &sessions[..1]))?;
    }
    let millis = latencies.percentile(0.5) / 1000.0;
    let what = format!("kept snapshot of a session with {records} records, p50");
    let one = Row::alone(what, Unit::Millis, millis, Target::AtMost(5.0));

    let what = format!("appends while {snapshots} snapshots are taken");
    let nothing = || {
        std::thread::sleep(Duration::from_secs(2));
        Ok(())
    };
    let alone = || Ok([append(&store, &sessions, nothing)?]);
    let beside = || {
        let taken = || {
            for some in sessions.chunks(AT_ONCE) {
                let begun = Instant::now();
                keep(&store, some)?;
                std::thread::sleep(begun.elapsed() * REST);
            }
            Ok(())
        };
        Ok([append(&store, &sessions, taken)?])
    };
    let [rates] = interleave(&what, rounds, alone, beside)?;
    let many = Row::compared(what, Unit::PerSecond, &rates, Target::RatioAtLeast(0.95));
    Ok(vec![one, many])
}

/// Takes a snapshot of each of some sessions.
fn keep(store: &Store, sessions: &[SessionId]) -> anyhow::Result<()> {
    let mut snapshots = Vec::with_capacity(sessions.len());
    for session in sessions {
        let state = (*store.open_session(*session)?.state).clone();
        let now = Timestamp::from_millis(1_771_668_000_000);
        let snapshot = KeptSnapshot::new(state, SnapshotReason::RunEnd, now, None);
        snapshots.push((snapshot, Compression::Zstd));
    }
    for kept in store.keep_snapshots(&snapshots) {
        kept?;
    }
    Ok(())
}

/// Has producers append durably until some work is done; returns how many records a second that is.
fn append(
    store: &Store,
    sessions: &[SessionId],
    work: impl FnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<f64> {
    let (done, start) = (AtomicBool::new(false), Instant::now());
    let produce = |session: SessionId| -> anyhow::Result<usize> {
        let mut count = 0;
        while !done.load(Ordering::Relaxed) {
            store.append(Append::durable(session, vec![records::message(count as u64)]))?;
            count += 1;
        }
        Ok(count)
    };
    std::thread::scope(|scope| {
        let producers: Vec<_> =
            sessions.iter().take(PRODUCERS).map(|session| scope.spawn(|| produce(*session))).collect();
        let worked = work();
        done.store(true, Ordering::Relaxed);
        let elapsed = start.elapsed();
        let mut total = 0;
        for producer in producers {
            total += producer.join().expect("a producer does not panic")?;
        }
        worked.map(|()| rate(total, elapsed))
    })
}
