//! From nothing to a running agent: the holder's directory, its process, its handshake, its answer to the start. Raw:
//! the same agent as a plain child, until its first byte.

use std::collections::BTreeMap;
use std::io::Read;
use std::process::Stdio;

use anyhow::Context as _;
use rekindle_holder::client::Follower;
use rekindle_lab::Process;

use crate::actors;
use crate::context::Context;
use crate::measure::{Latencies, interleave};
use crate::rig::{Commander, Rig};
use crate::table::{Row, Target, Unit};

/// What a holder may add to the start of its agent.
const MORE_AT_MOST: f64 = 5.0;

/// The whole, until the agent's greeting has been read, and the steps: directory, process, handshake, start.
const FIGURES: usize = 6;

pub(crate) fn run(context: &Context) -> anyhow::Result<Vec<Row>> {
    let (starts, rounds) = context.pick((20, 11), (10, 5));
    let rig = Rig::new(context)?;
    let what = "start of an agent";
    let [whole, greeted, steps @ ..] = interleave(what, rounds, || raw(starts), || ours(&rig, starts))?;
    let mut rows = vec![
        Row::compared(what, Unit::Millis, &whole, Target::MoreAtMost(MORE_AT_MOST)),
        Row::compared("… until its first line is read", Unit::Millis, &greeted, Target::None),
    ];
    let names = ["directory made", "holder ready", "supervisor let in", "agent started"];
    for (name, step) in names.iter().zip(&steps) {
        rows.push(Row::alone(
            format!("… of these: {name}"),
            Unit::Millis,
            step.ours.as_slice(),
            Target::None,
        ));
    }
    Ok(rows)
}

fn raw(starts: usize) -> anyhow::Result<[f64; FIGURES]> {
    let mut latencies = Latencies::default();
    for _ in 0..starts {
        let mut agent = latencies.time(|| -> anyhow::Result<Process> {
            let mut command = actors::agent_process()?;
            let mut agent = Process::spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()))?;
            let output = agent.stdout.as_mut().context("the agent has no output")?;
            output.read_exact(&mut [0])?;
            Ok(agent)
        })?;
        drop(agent.take_input()?);
        agent.finish()?;
    }
    Ok([latencies.percentile(0.5) / 1000.0; FIGURES])
}

fn ours(rig: &Rig, starts: usize) -> anyhow::Result<[f64; FIGURES]> {
    let mut figures: [Latencies; FIGURES] = std::array::from_fn(|_| Latencies::default());
    let [whole, greeted, made, ready, let_in, started] = &mut figures;
    for _ in 0..starts {
        let begin = actors::now();
        let prepared = made.time(|| rig.prepare())?;
        let holder = ready.time(|| rig.start(&prepared))?;
        let mut control = let_in.time(|| holder.connect(1))?;
        started.time(|| control.start(BTreeMap::new()))?;
        whole.note(micros_since(begin));
        let mut commander = Commander::new(control, Follower::new(&holder.dir, 1));
        let mut came = false;
        while !came {
            commander.follow(|_| came = true)?;
        }
        greeted.note(micros_since(begin));
        holder.end(commander.control)?;
    }
    Ok(figures.map(|latencies| latencies.percentile(0.5) / 1000.0))
}

fn micros_since(begin: u64) -> f64 {
    actors::now().saturating_sub(begin) as f64 / 1000.0
}
