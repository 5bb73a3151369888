//! Fifty agents that stream at once, each with four subscribers: is anything lost, what does the daemon take of the
//! processors, and does its memory stay where it is?

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::Value;

use crate::chatter::{self, PIECE};
use crate::context::{Context, progress};
use crate::ears::{self, COMPLETED, Crowd, WORDS};
use crate::lab::{Lab, message};
use crate::measure::Rounds;
use crate::proc;
use crate::rig::PATIENCE;
use crate::table::{Row, Target, Unit};

const AGENTS: usize = 50;
const SUBSCRIBERS: usize = 4;

/// Between two pieces of an agent: a hundred a second.
const PAUSE: Duration = Duration::from_millis(10);

/// How often the daemon's memory is looked at.
const LOOK: Duration = Duration::from_millis(250);

/// Memory at the end over memory after a third, at most.
const FLAT: f64 = 1.1;

/// What one subscriber has heard in this turn.
#[derive(Default)]
struct Heard {
    pieces: usize,
    /// What the record of the message has, in pieces.
    recorded: usize,
    begun: bool,
    ended: bool,
}

pub(crate) fn run(context: &Context) -> anyhow::Result<Vec<Row>> {
    let seconds = context.pick(60, 10);
    let pieces = seconds * 100;
    let lab = Lab::new(context)?;
    let mut link = lab.link()?;
    progress(&format!("starting {AGENTS} agents"));
    let (mut sessions, mut ears) = (Vec::new(), Vec::new());
    for _ in 0..AGENTS {
        let (session, ear) = lab.warm_session(&mut link)?;
        ears.push(ear);
        for _ in 1..SUBSCRIBERS {
            let mut ear = lab.ear(&session)?;
            ear.turn(|_, _| Ok(()))?;
            ears.push(ear);
        }
        sessions.push(session);
    }
    progress(&format!("{AGENTS} agents stream for {seconds} s"));
    let id = lab.id()?;
    let (begin, before) = (Instant::now(), proc::time(id)?);
    for session in &sessions {
        link.send(message(session, &chatter::say(pieces, PAUSE)).as_bytes())?;
        link.receive()?.expect(202)?;
    }
    let mut heard: Vec<Heard> = ears.iter().map(|_| Heard::default()).collect();
    let mut crowd = Crowd::new(ears)?;
    let (mut samples, mut looked) = (Vec::new(), begin);
    while !heard.iter().all(|heard| heard.ended) {
        crowd.listen(LOOK, |index, event, data| heard[index].take(event, data))?;
        if looked.elapsed() >= LOOK {
            looked = Instant::now();
            samples.push(proc::memory(id)?[1]);
        }
        let late = begin.elapsed() > Duration::from_secs(seconds as u64) + PATIENCE;
        ensure!(!late, "the agents do not come to an end");
    }
    let took = begin.elapsed();
    let cores = (proc::time(id)? - before).as_secs_f64() / took.as_secs_f64();
    let third = *samples.get(samples.len() / 3).context("the memory was never looked at")?;
    let end = *samples.last().context("the memory was never looked at")?;
    let expected = pieces * heard.len();
    let lost = |what: fn(&Heard) -> usize| expected.saturating_sub(heard.iter().map(what).sum()) as f64;
    let events = expected as f64 / took.as_secs_f64();
    let memory = Rounds { raw: vec![third], ours: vec![end] };
    let what = format!("{AGENTS} agents × 100/s × {SUBSCRIBERS} subscribers, {seconds} s: pieces not heard");
    let none = Target::AtMost(0.0);
    Ok(vec![
        Row::alone(what, Unit::Count, lost(|heard| heard.pieces), none),
        Row::alone("… not in the records heard", Unit::Count, lost(|heard| heard.recorded), none),
        Row::alone("… events heard", Unit::PerSecond, events, Target::None),
        Row::alone("… the daemon's processors", Unit::Count, cores, Target::AtMost(1.0)),
        Row::compared(
            "… its memory after a third, at the end",
            Unit::Bytes,
            &memory,
            Target::RatioAtMost(FLAT),
        ),
    ])
}

impl Heard {
    /// Only what comes in order counts.
    fn take(&mut self, event: &str, data: &str) -> anyhow::Result<()> {
        match event {
            "run.started" => self.begun = true,
            WORDS => {
                for piece in chatter::pieces(&ears::words(data)?) {
                    self.pieces += usize::from(piece?.1 == self.pieces);
                }
            }
            "message.agent" => {
                let record: Value = serde_json::from_str(data).context("a record is no JSON")?;
                self.recorded += record["content"].as_str().map_or(0, str::len) / PIECE;
            }
            // Sent away: whatever it misses is counted as lost.
            "too_slow" => self.ended = true,
            COMPLETED if self.begun => self.ended = true,
            event => ensure!(!ears::is_end(event)?, "a turn ended that nobody began"),
        }
        Ok(())
    }
}
