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
    let (subscribers, pieces) = context.pick((1_000, 500), (1_000, 100));
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
    progress(&format!("{subscribers} subscribers hear {pieces} pieces"));
    link.send(message(&session, &chatter::say(pieces, PAUSE)).as_bytes())?;
    link.receive()?.expect(202)?;
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
    let row =
        |what: String, at, target| Row::alone(what, Unit::Millis, latencies.percentile(at) / 1000.0, target);
    Ok(vec![
        row(format!("from the agent's words to {subscribers} subscribers, p50"), 0.5, Target::None),
        row("… p99".into(), 0.99, Target::AtMost(P99)),
    ])
}
