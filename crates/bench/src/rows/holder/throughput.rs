//! An agent that writes as fast as it can: through the holder and the journal to the supervisor. Raw: a process that
//! writes the pipe to a file and syncs by the same rule; nobody reads it.

use std::io::Write;
use std::process::Stdio;
use std::time::Instant;

use rekindle_lab::Process;

use crate::actors::{self, LINE};
use crate::context::Context;
use crate::measure::{interleave, rate};
use crate::rig::Rig;
use crate::table::{Row, Target, Unit};

pub(crate) fn run(context: &Context) -> anyhow::Result<Vec<Row>> {
    let (bytes, rounds) = context.pick((100_000_000, 9), (20_000_000, 5));
    let rig = Rig::new(context)?;
    let lines = bytes / LINE;
    let what = format!("{} MB of lines through a holder", bytes / 1_000_000);
    let [rates] = interleave(&what, rounds, || raw(&rig, lines), || ours(&rig, lines))?;
    Ok(vec![Row::compared(format!("{what}, lines"), Unit::PerSecond, &rates, Target::RatioAtLeast(0.5))])
}

fn raw(rig: &Rig, lines: usize) -> anyhow::Result<[f64; 1]> {
    let file = rig.path().join("pumped");
    let mut pump = Process::spawn(actors::pump_process(&file)?.stdin(Stdio::piped()))?;
    let input = pump.take_input()?;
    let mut agent = Process::spawn(actors::agent_process()?.stdin(Stdio::piped()).stdout(input))?;
    let mut commands = agent.take_input()?;
    let start = Instant::now();
    commands.write_all(actors::flood(lines).as_bytes())?;
    drop(commands);
    agent.finish()?;
    pump.finish()?;
    let rate = rate(lines, start.elapsed());
    std::fs::remove_file(file)?;
    Ok([rate])
}

fn ours(rig: &Rig, lines: usize) -> anyhow::Result<[f64; 1]> {
    let (holder, mut commander) = rig.hold()?;
    let start = Instant::now();
    commander.tell(&actors::flood(lines))?;
    commander.follow_lines(lines)?;
    let rate = rate(lines, start.elapsed());
    holder.end(commander.control)?;
    Ok([rate])
}
