//! Opening a home of many finished sessions and looking at every one. Raw: reading of each what must be
//! read. And that the time hangs on the number of sessions, not on how long their history is.

use anyhow::ensure;

use super::sweep::Sweep;
use crate::context::Context;
use crate::home;
use crate::measure::{interleave, millis};
use crate::table::{Row, Target, Unit};

/// A history ten times as long may make a start this much longer.
const GROWTH_AT_MOST: f64 = 1.3;

pub(crate) fn run(context: &Context) -> anyhow::Result<Vec<Row>> {
    let sessions = context.pick(10_000, 1_000);
    let rounds = context.pick(7, 3);
    let dir = context.directory()?;
    let short = Sweep::build(dir.path().join("short"), sessions, 2)?;
    let long = Sweep::build(dir.path().join("long"), sessions, 20)?;

    let mut rows = Vec::new();
    for (cold, index) in [(false, false), (false, true), (true, false), (true, true)] {
        let temperature = if cold { context.cold_word() } else { "warm" };
        let list = if index { "with index.json" } else { "without index.json" };
        let what = format!("open {sessions} sessions, {temperature}, {list}");
        let prepare = || if cold { context.make_cold(&long.files()?) } else { Ok(()) };
        let raw = || {
            long.set_index(index)?;
            prepare()?;
            let (millis, found) = millis(|| long.read_raw());
            ensure!(found? == sessions, "the raw program missed some sessions");
            Ok([millis])
        };
        let ours = || {
            long.set_index(index)?;
            prepare()?;
            Ok([ours(&long, sessions)?])
        };
        let [time] = interleave(&what, rounds, raw, ours)?;
        rows.push(Row::compared(what, Unit::Millis, &time, Target::RatioAtMost(3.0)));
    }
    for index in [false, true] {
        let list = if index { "with index.json" } else { "without index.json" };
        short.set_index(index)?;
        long.set_index(index)?;
        let what = format!("… warm, {list}, and with 10× the history");
        let [time] =
            interleave(&what, rounds, || Ok([ours(&short, sessions)?]), || Ok([ours(&long, sessions)?]))?;
        rows.push(Row::compared(what, Unit::Millis, &time, Target::RatioAtMost(GROWTH_AT_MOST)));
    }
    Ok(rows)
}

/// Opens the home and looks at every session; closing it again is not part of the time.
fn ours(sweep: &Sweep, sessions: usize) -> anyhow::Result<f64> {
    let mut good = 0;
    let (millis, store) = millis(|| {
        let store = home::open(&sweep.home)?;
        store.survey(|_, loaded| {
            good += usize::from(loaded.is_ok_and(|loaded| loaded.damage.is_none() && loaded.torn.is_none()));
        })?;
        anyhow::Ok(store)
    });
    drop(store?);
    ensure!(good == sessions, "{good} of {sessions} sessions were good");
    Ok(millis)
}
