//! A fork in the middle of a long session: what it takes must not hang on how long the session has lived. Raw: a new session of its
//! own, with one record on disk.

use anyhow::{Context as _, ensure};
use rekindle_domain::fork::{Wishes, fork};
use rekindle_store::commit::Append;

use crate::context::{Context, progress};
use crate::home::{self, Filler};
use crate::measure::{interleave, millis};
use crate::records;
use crate::table::{Row, Target, Unit};

const MILLIS_AT_MOST: f64 = 50.0;

/// Forks begin with this session's number: far behind those that are made otherwise.
const FIRST: usize = 1_000_000;

pub(crate) fn run(context: &Context) -> anyhow::Result<Vec<Row>> {
    let (records, rounds) = context.pick((1_000_000, 31), (100_000, 9));
    let dir = context.directory()?;
    let store = home::open(&dir.path().join("home"))?;
    let parent = home::make_sessions(&store, 1)?[0];
    progress(&format!("preparing a log of {records} records"));
    let filler = Filler::new(&store);
    filler.submit_each(parent, records::turns(records));
    filler.finish()?;
    let state = store.open_session(parent)?.state;
    let made = std::cell::Cell::new(FIRST);
    let next = || {
        made.set(made.get() + 1);
        home::session_id(made.get())
    };
    let what = format!("fork in the middle of {records} records");
    let raw = || {
        let session = next();
        let (millis, made) = millis(|| {
            store.create(session)?;
            anyhow::Ok(store.append(Append::durable(session, records::beginning()))?)
        });
        made.map(|_| [millis])
    };
    let [time] = interleave(&what, rounds, raw, || {
        let session = next();
        let (millis, made) = millis(|| {
            let point = store.fork_point(parent, records as u64 / 2)?.context("there is such a record")?;
            let created = fork(&state, point, Wishes::default());
            anyhow::Ok(store.fork(Append::durable(session, vec![created.into()]))?)
        });
        ensure!(made?.first.first_seq == records as u64 / 2 + 1, "it begins elsewhere");
        Ok([millis])
    })?;
    Ok(vec![Row::compared(what, Unit::Millis, &time, Target::AtMost(MILLIS_AT_MOST))])
}
