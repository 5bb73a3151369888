//! A prompt is taken: from the request to the answer, which says that it is on disk. One client, one connection; each
//! turn is over before the next prompt. Raw: one write and one fdatasync of a record.

use std::time::Duration;

use rekindle_lab::Connection;

use crate::chatter;
use crate::context::Context;
use crate::ears::Ear;
use crate::lab::{Lab, message};
use crate::measure::{Latencies, interleave};
use crate::rows::append_one::Raw;
use crate::table::{Row, Target, Unit};

pub(crate) fn run(context: &Context) -> anyhow::Result<Vec<Row>> {
    let (prompts, rounds) = context.pick((100, 11), (50, 5));
    let dir = context.directory()?;
    let mut raw = Raw::create(&dir.path().join("plain"), 0)?;
    let lab = Lab::new(context)?;
    let mut link = lab.link()?;
    let (session, mut ear) = lab.warm_session(&mut link)?;
    let request = message(&session, &chatter::say(0, Duration::ZERO));
    let what = "prompt accepted over HTTP, on disk, 1 client";
    let [p50, p99] = interleave(
        what,
        rounds,
        || raw.append(prompts),
        || ours(&mut link, &mut ear, request.as_bytes(), prompts),
    )?;
    Ok(vec![
        Row::compared(format!("{what}, p50"), Unit::Micros, &p50, Target::RatioAtMost(2.5)),
        Row::compared("… p99", Unit::Micros, &p99, Target::None),
    ])
}

fn ours(link: &mut Connection, ear: &mut Ear, request: &[u8], prompts: usize) -> anyhow::Result<[f64; 2]> {
    let mut latencies = Latencies::default();
    for _ in 0..prompts {
        let answer = latencies.time(|| {
            link.send(request)?;
            link.receive()
        })?;
        answer.expect(202)?;
        ear.turn(|_, _| Ok(()))?;
    }
    Ok([latencies.percentile(0.5), latencies.percentile(0.99)])
}
