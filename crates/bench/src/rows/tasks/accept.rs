//! A prompt of a run that is no task's is taken while tasks wait: from the request to the answer, which says that it is on disk.
//! Raw: the same, by a daemon that has no tasks.

use std::time::Duration;

use rekindle_lab::Connection;

use crate::chatter;
use crate::context::Context;
use crate::ears::Ear;
use crate::lab::{Lab, message};
use crate::measure::{Latencies, interleave};
use crate::table::{Row, Target, Unit};

/// Tasks that wait, for tomorrow.
const PENDING: usize = 100;

/// The rounds that the goal is about, in a thorough run as in a quick one.
const ROUNDS: usize = 5;

pub(crate) fn run(context: &Context) -> anyhow::Result<Vec<Row>> {
    let prompts = context.pick(200, 50);
    let mut without = Prompted::new(context)?;
    let mut with = Prompted::new(context)?;
    with.lab.queue_tasks(&mut with.link, PENDING)?;
    let what = format!("prompt accepted while {PENDING} tasks wait, beside none");
    let [p50, p99] = interleave(&what, ROUNDS, || without.prompts(prompts), || with.prompts(prompts))?;
    Ok(vec![
        Row::compared(format!("{what}, p50"), Unit::Micros, &p50, Target::RatioAtMost(1.1)),
        Row::compared("… p99", Unit::Micros, &p99, Target::None),
    ])
}

/// A daemon with a session whose agent is ready.
struct Prompted {
    lab: Lab,
    link: Connection,
    ear: Ear,
    request: String,
}

impl Prompted {
    fn new(context: &Context) -> anyhow::Result<Prompted> {
        let lab = Lab::new(context)?;
        let mut link = lab.link()?;
        let (session, ear) = lab.warm_session(&mut link)?;
        let request = message(&session, &chatter::say(0, Duration::ZERO));
        Ok(Prompted { lab, link, ear, request })
    }

    fn prompts(&mut self, count: usize) -> anyhow::Result<[f64; 2]> {
        let mut latencies = Latencies::default();
        for _ in 0..count {
            let answer = latencies.time(|| {
                self.link.send(self.request.as_bytes())?;
                self.link.receive()
            })?;
            answer.expect(202)?;
            self.ear.turn(|_, _| Ok(()))?;
        }
        Ok([latencies.percentile(0.5), latencies.percentile(0.99)])
    }
}
