//! How long an append has to wait while many sessions are checkpointed: all appends of one session between the beginning
//! and the end of the checkpoint.

use std::sync::atomic::{AtomicBool, Ordering};

use rekindle_store::commit::{Append, Commits};

use crate::context::{Context, progress};
use crate::home::{self, Filler};
use crate::measure::Latencies;
use crate::records;
use crate::table::{Row, Target, Unit};

const SESSIONS: usize = 512;

/// What almost every append may take meanwhile, in microseconds.
const P999: f64 = 5_000.0;

pub(crate) fn run(context: &Context) -> anyhow::Result<Vec<Row>> {
    let rounds = context.pick(31, 7);
    let dir = context.directory()?;
    let store = home::open(&dir.path().join("home"))?;
    let sessions = home::make_sessions(&store, SESSIONS)?;
    let busy = sessions[SESSIONS - 1];
    let what = format!("append while {SESSIONS} logs are checkpointed");
    progress(&format!("measuring an {what}, {rounds} rounds"));
    let mut latencies = Latencies::default();
    let mut longest = Vec::new();
    for _ in 0..rounds {
        store.committer().checkpoint()?;
        let filler = Filler::new(&store);
        for session in &sessions[..SESSIONS - 1] {
            filler.submit_each(*session, [records::message(0)]);
        }
        filler.finish()?;
        let ended = AtomicBool::new(false);
        let mut round = Latencies::default();
        std::thread::scope(|scope| {
            let checkpoint = scope.spawn(|| {
                let done = store.committer().checkpoint();
                ended.store(true, Ordering::Relaxed);
                done
            });
            while !ended.load(Ordering::Relaxed) {
                let draft = records::message(1);
                round.time(|| store.append(Append::durable(busy, vec![draft])))?;
            }
            checkpoint.join().expect("a checkpoint does not panic")?;
            anyhow::Ok(())
        })?;
        longest.push(round.percentile(1.0));
        latencies.extend(round);
    }
    Ok(vec![
        Row::alone(format!("{what}, p50"), Unit::Micros, latencies.percentile(0.5), Target::None),
        Row::alone("… p99.9", Unit::Micros, latencies.percentile(0.999), Target::AtMost(P999)),
        Row::alone("… the longest of a round", Unit::Micros, longest.as_slice(), Target::None),
    ])
}
