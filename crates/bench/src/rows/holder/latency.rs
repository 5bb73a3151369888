//! From the agent's write to the supervisor's hands: the holder reads the line, journals it and wakes the supervisor,
//! which reads it from the journal. Raw: a process that passes the line over a socket, and keeps nothing.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use rekindle_lab::Process;

use crate::actors;
use crate::context::Context;
use crate::measure::{Latencies, interleave};
use crate::rig::{PATIENCE, Rig};
use crate::table::{Row, Target, Unit};

/// Between two lines: an agent that streams its words.
const PAUSE: Duration = Duration::from_millis(2);

pub(crate) fn run(context: &Context) -> anyhow::Result<Vec<Row>> {
    let (lines, rounds) = context.pick((1_000, 11), (300, 5));
    let rig = Rig::new(context)?;
    let what = "from the agent's line to the supervisor";
    let [p50, p99] = interleave(what, rounds, || raw(&rig, lines), || ours(&rig, lines))?;
    Ok(vec![
        Row::compared(format!("{what}, p50"), Unit::Micros, &p50, Target::RatioAtMost(3.0)),
        Row::compared("… p99", Unit::Micros, &p99, Target::RatioAtMost(3.0)),
    ])
}

fn raw(rig: &Rig, lines: usize) -> anyhow::Result<[f64; 2]> {
    let socket = rig.socket(0);
    let listener = UnixListener::bind(&socket).context("cannot make the raw socket")?;
    let mut forwarder = Process::spawn(&mut actors::forward_process(&socket)?)?;
    let (mut stream, _) = listener.accept()?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut latencies = Latencies::default();
    let mut input = BufReader::new(stream.try_clone()?);
    let mut line = Vec::new();
    input.read_until(b'\n', &mut line)?;
    stream.write_all(actors::ticks(lines, PAUSE).as_bytes())?;
    for _ in 0..lines {
        line.clear();
        input.read_until(b'\n', &mut line)?;
        note(&mut latencies, &line).context("the forwarder brought no line")?;
    }
    stream.shutdown(std::net::Shutdown::Both)?;
    forwarder.wait()?;
    std::fs::remove_file(socket)?;
    Ok(figures(&latencies))
}

fn ours(rig: &Rig, lines: usize) -> anyhow::Result<[f64; 2]> {
    let (holder, mut commander) = rig.hold()?;
    commander.tell(&actors::ticks(lines, PAUSE))?;
    let (mut latencies, mut seen) = (Latencies::default(), 0);
    while seen < lines {
        commander.follow(|line| seen += usize::from(note(&mut latencies, line).is_some()))?;
    }
    ensure!(seen == lines, "{seen} lines came, not {lines}");
    holder.end(commander.control)?;
    Ok(figures(&latencies))
}

/// Notes how old a line is; none if it does not say.
fn note(latencies: &mut Latencies, line: &[u8]) -> Option<()> {
    let age = actors::now().saturating_sub(actors::written_at(line)?);
    latencies.note(age as f64 / 1000.0);
    Some(())
}

fn figures(latencies: &Latencies) -> [f64; 2] {
    [latencies.percentile(0.5), latencies.percentile(0.99)]
}
