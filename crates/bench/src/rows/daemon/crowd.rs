//! A thousand subscribers of one session whose agent talks: from the agent's write to the hands of each of them.

use std::time::{Duration, Instant};

use anyhow::ensure;
use rekindle_store::disk::RealDisk;

use crate::actors;
use crate::chatter;
use crate::context::{Context, progress};
use crate::ears::{self, Crowd, WORDS, is_end};
use crate::lab::{Lab, message};
use crate::measure::Latencies;
use crate::rig::PATIENCE;
use crate::table::{Row, Target, Unit};

/// Fifty pieces a second: as fast as models talk.
const PAUSE: Duration = Duration::from_millis(20);

/// What a piece may take to almost everyone, in milliseconds.
const P99: f64 = 20.0;

/// How long to wait for more before looking at the time.
const LOOK: Duration = Duration::from_millis(100);

pub(crate) fn run(context: &Context) -> anyhow::Result<Vec<Row>> {
    let (subscribers, pieces, rounds) = context.pick((1_000, 150, 5), (1_000, 50, 3));
    // Each of them has a descriptor here too.
    RealDisk::raise_descriptor_limit();
    let lab = Lab::new(context)?;
    let mut link = lab.link()?;
    let (session, ear) = lab.warm_session(&mut link)?;
    let mut crowd = vec![ear];
    while crowd.len() < subscribers {
        let mut ear = lab.ear(&session)?;
        ear.turn(|_, _| Ok(()))?;
        crowd.push(ear);
    }
    let mut crowd = Crowd::new(crowd)?;
    progress(&format!("{subscribers} subscribers hear {pieces} pieces, {rounds} rounds"));
    let mut figures: [Vec<f64>; 2] = Default::default();
    for _ in 0..rounds {
        link.send(message(&session, &chatter::say(pieces, PAUSE)).as_bytes())?;
        link.receive()?.expect(202)?;
        let latencies = hear(&mut crowd, subscribers, pieces)?;
        figures[0].push(latencies.percentile(0.5) / 1000.0);
        figures[1].push(latencies.percentile(0.99) / 1000.0);
    }
    let [p50, p99] = &figures;
    let what = format!("from the agent's words to {subscribers} subscribers, p50");
    Ok(vec![
        Row::alone(what, Unit::Millis, p50.as_slice(), Target::None),
        Row::alone("… p99", Unit::Millis, p99.as_slice(), Target::AtMost(P99)),
    ])
}

/// Listens until every subscriber has heard the end of a turn; returns how long each piece took to each of them.
fn hear(crowd: &mut Crowd, subscribers: usize, pieces: usize) -> anyhow::Result<Latencies> {
    let mut latencies = Latencies::default();
    let (mut next, mut ended) = (vec![0; subscribers], 0);
    let begin = Instant::now();
    while ended < subscribers {
        ensure!(begin.elapsed() < PATIENCE * 4, "{ended} of {subscribers} have heard the end");
        crowd.listen(LOOK, |who, event, data| {
            let arrived = actors::now();
            ended += usize::from(is_end(event)?);
            if event == WORDS {
                for piece in chatter::pieces(&ears::words(data)?) {
                    let (written, number) = piece?;
                    ensure!(number == next[who], "piece {number} came to {who}, not {}", next[who]);
                    next[who] += 1;
                    latencies.note(arrived.saturating_sub(written) as f64 / 1000.0);
                }
            }
            Ok(())
        })?;
    }
    ensure!(next.iter().all(|heard| *heard == pieces), "someone has not heard everything");
    Ok(latencies)
}
