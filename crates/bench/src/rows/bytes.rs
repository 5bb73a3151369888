//! Bytes written for each byte logged: the write-ahead log, the session logs, checkpoints and snapshots
//! together, counted where the store meets the disk. The baseline is 1: the logs themselves.

use std::sync::Arc;

use crate::context::Context;
use crate::counting::CountingDisk;
use crate::home::{self, Filler};
use crate::measure::Rounds;
use crate::records;
use crate::table::{Row, Target, Unit};

const SESSIONS: usize = 10;
const EACH: usize = 1_000;
/// Records between two snapshots of a session.
const BETWEEN_SNAPSHOTS: usize = 250;

pub(crate) fn run(context: &Context) -> anyhow::Result<Vec<Row>> {
    let dir = context.directory()?;
    let disk = CountingDisk::default();
    let store = home::open_on(Arc::new(disk.clone()), &dir.path().join("home"))?;
    let sessions = home::make_sessions(&store, SESSIONS)?;
    crate::context::progress("measuring bytes written a byte logged");
    let drafts: Vec<_> = records::turns(EACH).collect();
    let mut snapshots = 0;
    for stretch in drafts.chunks(BETWEEN_SNAPSHOTS) {
        let filler = Filler::new(&store);
        for draft in stretch {
            // Sessions are busy side by side, one record at a time.
            sessions.iter().for_each(|session| filler.submit_each(*session, [draft.clone()]));
        }
        filler.finish()?;
        for session in &sessions {
            snapshots += store.snapshot(*session)?;
        }
    }
    for session in &sessions {
        snapshots += store.snapshot(*session)?;
    }
    let logs = sessions
        .iter()
        .map(|session| store.open_session(*session).map(|current| store.log_size(&current.state)));
    let logged = logs.sum::<Result<u64, rekindle_store::OpenSessionError>>()? as f64;
    // The end makes a last checkpoint.
    drop(store);
    let a_byte = disk.0.counts().written as f64 / logged;
    let of = |part: f64| Rounds { raw: vec![1.0], ours: vec![part] };
    let records = SESSIONS * EACH;
    Ok(vec![
        Row::compared(
            format!("bytes written a byte logged, {records} records"),
            Unit::Count,
            &of(a_byte),
            Target::RatioAtMost(2.2),
        ),
        Row::alone("… of these in snapshots", Unit::Count, snapshots as f64 / logged, Target::None),
    ])
}
