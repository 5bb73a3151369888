//! What the daemon takes in memory: in an empty home, and with ten thousand sessions that it knows.

use std::time::Duration;

use crate::context::{Context, progress};
use crate::lab::Lab;
use crate::proc;
use crate::table::{Row, Target, Unit};

const MIB: f64 = (1 << 20) as f64;

/// Resident, everything counted that is shared too.
const IDLE: f64 = 25.0 * MIB;
const KNOWN: f64 = 60.0 * MIB;

/// After its start nothing happens any more.
const SETTLED: Duration = Duration::from_secs(1);

pub(crate) fn run(context: &Context) -> anyhow::Result<Vec<Row>> {
    let (known, rounds) = context.pick((10_000, 3), (10_000, 1));
    progress(&format!("measuring the daemon's memory, {rounds} rounds"));
    let idle = starts(&mut Lab::without_daemon(context)?, rounds)?;
    let many = starts(&mut Lab::with_sessions(context, known)?, rounds)?;
    let [[_, idle, idle_listed], [_, many, many_listed]] = [&idle, &many];
    let row = |what: &str, rounds: &[f64], target| Row::alone(what, Unit::Bytes, rounds, target);
    Ok(vec![
        row("memory of an idle daemon, resident", idle, Target::AtMost(IDLE)),
        row("… after a list of all sessions", idle_listed, Target::AtMost(IDLE)),
        row(&format!("… with {known} known sessions"), many, Target::AtMost(KNOWN)),
        row("… after a list of all of them", many_listed, Target::AtMost(KNOWN)),
    ])
}

/// Starts daemons; returns, round by round: anonymous and resident after the start, resident after a list.
fn starts(lab: &mut Lab, rounds: usize) -> anyhow::Result<[Vec<f64>; 3]> {
    let mut figures: [Vec<f64>; 3] = Default::default();
    for _ in 0..rounds {
        lab.start()?;
        std::thread::sleep(SETTLED);
        let [anonymous, resident] = proc::memory(lab.id()?)?;
        list(lab)?;
        std::thread::sleep(SETTLED);
        let [_, listed] = proc::memory(lab.id()?)?;
        let round = [anonymous, resident, listed];
        figures.iter_mut().zip(round).for_each(|(figure, value)| figure.push(value));
        lab.leave()?;
    }
    Ok(figures)
}

/// Lists all sessions, page by page.
fn list(lab: &Lab) -> anyhow::Result<()> {
    let mut link = lab.link()?;
    let mut path = "/api/sessions?limit=500".to_owned();
    loop {
        let page = link.get(&path)?;
        match page["next"].as_str() {
            Some(next) => path = format!("/api/sessions?limit=500&cursor={next}"),
            None => return Ok(()),
        }
    }
}
