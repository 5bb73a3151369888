//! A daemon that begins with ten thousand known sessions and a hundred agents in the middle of a turn: until it answers,
//! and until all agents are taken over. Once after a daemon that was killed, once after one that left in order, and once in
//! the place of one that is stopped and has to be ended first.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use rekindle_lab::Connection;
use rekindle_store::layout::Layout;
use serde_json::Value;

use crate::chatter;
use crate::context::{Context, progress};
use crate::lab::{Lab, text};
use crate::measure::micros;
use crate::rig::PATIENCE;
use crate::table::{Row, Target, Unit};

/// Until it answers, until it answers in the place of a stopped one, and until everything is taken over, in milliseconds.
const ANSWERS: f64 = 50.0;
const REPLACES: f64 = 1_000.0;
const ADOPTED: f64 = 1_000.0;

/// Longer than anything that a holder or the daemon does after the last thing that happened.
const SETTLED: Duration = Duration::from_millis(800);

/// A session whose agent works, and its log.
struct Working {
    session: String,
    log: PathBuf,
}

pub(crate) fn run(context: &Context) -> anyhow::Result<Vec<Row>> {
    let (known, live, rounds) = context.pick((10_000, 100, 7), (10_000, 100, 3));
    let mut lab = Lab::with_sessions(context, known)?;
    lab.start()?;
    progress(&format!("starting {live} agents"));
    let working = begin(&lab, live)?;
    let what = format!("from exec to an answer, {known} sessions, {live} agents");
    progress(&format!("measuring {what}, {rounds} rounds"));
    let mut figures: [Vec<f64>; 5] = Default::default();
    for _ in 0..rounds {
        std::thread::sleep(SETTLED);
        lab.kill();
        let [killed_answers, killed_adopted] = start(&mut lab, &working, Lab::start)?;
        std::thread::sleep(SETTLED);
        lab.leave()?;
        let [left_answers, left_adopted] = start(&mut lab, &working, Lab::start)?;
        std::thread::sleep(SETTLED);
        lab.freeze()?;
        let [replaces, _] = start(&mut lab, &working, Lab::take_over)?;
        let round = [killed_answers, killed_adopted, left_answers, left_adopted, replaces];
        figures.iter_mut().zip(round).for_each(|(figure, value)| figure.push(value));
    }
    let [killed_answers, killed_adopted, left_answers, left_adopted, replaces] = &figures;
    let row = |what: &str, rounds: &[f64], most| Row::alone(what, Unit::Millis, rounds, Target::AtMost(most));
    Ok(vec![
        row(&format!("{what}, after a kill"), killed_answers, ANSWERS),
        row("… all agents taken over", killed_adopted, ADOPTED),
        row("… to an answer, after one that left", left_answers, ANSWERS),
        row("… all agents taken over", left_adopted, ADOPTED),
        row("… to an answer, in the place of a stopped one", replaces, REPLACES),
    ])
}

/// Makes sessions whose agents have a turn that does not end.
fn begin(lab: &Lab, count: usize) -> anyhow::Result<Vec<Working>> {
    let mut link = lab.link()?;
    let mut working = Vec::new();
    for _ in 0..count {
        let session = lab.session(&mut link, Some(chatter::HOLD))?;
        let log = Layout::new(lab.home()).log(session.parse().context("no id")?);
        working.push(Working { session, log });
    }
    let begin = Instant::now();
    for one in &working {
        while !one.has(&mut link, "input.queued", 3)? {
            ensure!(begin.elapsed() < PATIENCE, "an agent does not begin");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    Ok(working)
}

/// Starts a daemon in one way or another; returns when it answered and when it had taken over all agents.
fn start(
    lab: &mut Lab,
    working: &[Working],
    way: fn(&mut Lab) -> anyhow::Result<()>,
) -> anyhow::Result<[f64; 2]> {
    let before: Vec<u64> = working.iter().map(Working::length).collect::<anyhow::Result<_>>()?;
    let begin = Instant::now();
    way(lab)?;
    let mut link = lab.link()?;
    link.get("/healthz")?;
    let answers = begin.elapsed();
    // The record of it is the first thing that a new daemon writes of a session.
    let mut missing: Vec<usize> = (0..working.len()).collect();
    while !missing.is_empty() {
        ensure!(begin.elapsed() < PATIENCE, "{} agents are not taken over", missing.len());
        let mut still = Vec::new();
        for index in missing {
            if working[index].length()? == before[index] {
                still.push(index);
            }
        }
        missing = still;
        std::thread::sleep(Duration::from_millis(2));
    }
    let adopted = begin.elapsed();
    for one in working {
        ensure!(one.has(&mut link, "run.adopted", 1)?, "{} was not taken over", one.session);
    }
    Ok([answers, adopted].map(|took| micros(took) / 1000.0))
}

impl Working {
    fn length(&self) -> anyhow::Result<u64> {
        Ok(fs::metadata(&self.log)?.len())
    }

    /// Tells whether the log has so many records of a kind.
    fn has(&self, link: &mut Connection, kind: &str, count: usize) -> anyhow::Result<bool> {
        let page = link.get(&format!("/api/sessions/{}/log?limit=1000", self.session))?;
        let records = page["records"].as_array().map_or(&[][..], Vec::as_slice);
        let is = |record: &&Value| text(record, "kind").is_ok_and(|is| is == kind);
        Ok(records.iter().filter(is).count() >= count)
    }
}
