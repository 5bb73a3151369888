//! From the agent's write to a subscriber's hands: holder, journal, daemon, socket. Once with nothing else going on, and
//! once beside twenty other sessions whose agents stream, each with a subscriber.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::ensure;
use rekindle_lab::Connection;

use crate::actors;
use crate::chatter;
use crate::context::{Context, progress};
use crate::ears::{self, Crowd, Ear, WORDS};
use crate::lab::{Lab, message};
use crate::measure::Latencies;
use crate::table::{Row, Target, Unit};

/// Between two pieces of the agent that is measured, and of each other one.
const PAUSE: Duration = Duration::from_millis(2);
const OTHERS_PAUSE: Duration = Duration::from_millis(10);

const OTHERS: usize = 20;

/// What a piece may take, in microseconds: half of the time, almost always, and beside others.
const P50: f64 = 500.0;
const P99: f64 = 2_000.0;
const LOADED: f64 = 10_000.0;

/// How often those who only listen look whether they still should.
const LOOK: Duration = Duration::from_millis(100);

pub(crate) fn run(context: &Context) -> anyhow::Result<Vec<Row>> {
    let (pieces, rounds) = context.pick((1_000, 7), (500, 3));
    let lab = Lab::new(context)?;
    let mut link = lab.link()?;
    let (session, mut ear) = lab.warm_session(&mut link)?;
    let what = "from the agent's words to a subscriber";
    progress(&format!("measuring {what}, {rounds} rounds"));
    let [p50, p99] = measure(&mut link, &session, &mut ear, pieces, rounds)?;
    progress(&format!("measuring {what} beside {OTHERS} others, {rounds} rounds"));
    let mut others = Vec::new();
    for _ in 0..OTHERS {
        let (other, ear) = lab.warm_session(&mut link)?;
        link.send(message(&other, &chatter::say(chatter::ENDLESS, OTHERS_PAUSE)).as_bytes())?;
        link.receive()?.expect(202)?;
        others.push(ear);
    }
    let (others, enough) = (Crowd::new(others)?, AtomicBool::new(false));
    let loaded = std::thread::scope(|scope| {
        let crowd = scope.spawn(|| drain(others, &enough));
        let loaded = measure(&mut link, &session, &mut ear, pieces, rounds);
        enough.store(true, Ordering::Relaxed);
        crowd.join().expect("it does not panic")?;
        loaded
    })?;
    let row = |what: &str, rounds: &[f64], target| Row::alone(what, Unit::Micros, rounds, target);
    Ok(vec![
        row(&format!("{what}, p50"), &p50, Target::AtMost(P50)),
        row("… p99", &p99, Target::AtMost(P99)),
        row(&format!("… beside {OTHERS} others that stream, p50"), &loaded[0], Target::None),
        row(&format!("… beside {OTHERS} others that stream, p99"), &loaded[1], Target::AtMost(LOADED)),
    ])
}

/// Has turns of so many pieces, and returns their percentiles, turn by turn.
fn measure(
    link: &mut Connection,
    session: &str,
    ear: &mut Ear,
    pieces: usize,
    rounds: usize,
) -> anyhow::Result<[Vec<f64>; 2]> {
    let request = message(session, &chatter::say(pieces, PAUSE));
    let mut figures = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        link.send(request.as_bytes())?;
        link.receive()?.expect(202)?;
        let mut latencies = Latencies::default();
        let mut next = 0;
        ear.turn(|event, data| {
            let arrived = actors::now();
            if event != WORDS {
                return Ok(());
            }
            for piece in chatter::pieces(&ears::words(data)?) {
                let (written, number) = piece?;
                ensure!(number == next, "piece {number} came, not {next}");
                next += 1;
                latencies.note(arrived.saturating_sub(written) as f64 / 1000.0);
            }
            Ok(())
        })?;
        ensure!(next == pieces, "{next} pieces came, not {pieces}");
        figures[0].push(latencies.percentile(0.5));
        figures[1].push(latencies.percentile(0.99));
    }
    Ok(figures)
}

/// Listens to the others until it is enough.
fn drain(mut crowd: Crowd, enough: &AtomicBool) -> anyhow::Result<()> {
    while !enough.load(Ordering::Relaxed) {
        crowd.listen(LOOK, |_, event, _| {
            ensure!(event != "too_slow", "the subscribers of the others are too slow");
            Ok(())
        })?;
    }
    Ok(())
}
