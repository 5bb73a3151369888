//! How long an append may have to wait while many sessions are checkpointed. Beside it the median append of
//! the same series; there is no goal.

use rekindle_store::commit::{Append, Commits};

use crate::context::{Context, progress};
use crate::home::{self, Filler};
use crate::measure::{Latencies, Rounds};
use crate::records;
use crate::table::{Row, Target, Unit};

const SESSIONS: usize = 512;
/// Appends of the session that goes on while the others are checkpointed.
const APPENDS: usize = 200;

pub(crate) fn run(context: &Context) -> anyhow::Result<Vec<Row>> {
    let rounds = context.pick(9, 3);
    let dir = context.directory()?;
    let store = home::open(&dir.path().join("home"))?;
    let sessions = home::make_sessions(&store, SESSIONS)?;
    let busy = sessions[SESSIONS - 1];
    progress(&format!("measuring the longest append while {SESSIONS} sessions are checkpointed"));
    let mut figures = Rounds::default();
    for _ in 0..rounds {
        store.committer().checkpoint()?;
        let filler = Filler::new(&store);
        for session in &sessions[..SESSIONS - 1] {
            filler.submit_each(*session, [records::message(0)]);
        }
        filler.finish()?;
        let mut latencies = Latencies::default();
        // A bystander asks for the checkpoint, unless the first of these appends makes one due anyway.
        std::thread::scope(|scope| {
            scope.spawn(|| store.committer().checkpoint());
            for draft in records::messages(APPENDS) {
                latencies.time(|| store.append(Append::durable(busy, vec![draft])))?;
            }
            anyhow::Ok(())
        })?;
        figures.raw.push(latencies.percentile(0.5));
        figures.ours.push(latencies.percentile(1.0));
    }
    let what = format!("longest append (raw: p50) while {SESSIONS} logs are checkpointed");
    Ok(vec![Row::compared(what, Unit::Micros, &figures, Target::None)])
}
