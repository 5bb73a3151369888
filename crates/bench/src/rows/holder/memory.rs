//! What a holder takes in memory, fresh and after much has passed: there is one for each session, all the time.
//! Raw: a bare process that writes a pipe to a file. Only anonymous memory is a holder's own; the rest is shared.

use std::fs;
use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::ensure;
use rekindle_lab::Process;

use crate::actors::{self, GREETING, LINE};
use crate::context::Context;
use crate::measure::{Rounds, interleave};
use crate::proc::memory;
use crate::rig::{PATIENCE, Rig};
use crate::table::{Row, Target, Unit};

const ANONYMOUS_AT_MOST: f64 = (256 << 10) as f64;
const RESIDENT_AT_MOST: f64 = 2.5 * (1 << 20) as f64;

/// What the first bytes through a holder may add for good: the buffer they pass through, and a few pages.
const GROWTH_AT_MOST: f64 = ((64 + 8 * 4) << 10) as f64;

/// How much passes before the growth by what follows is looked at.
const SOME_BYTES: usize = 1_000_000;

/// What passes after that may add only what the allocator does differently.
const FLAT_AT_MOST: f64 = 1.2;

/// Longer than anything a holder does after the last byte: it syncs within 200 ms and writes its status within 500.
const SETTLED: Duration = Duration::from_millis(800);

pub(crate) fn run(context: &Context) -> anyhow::Result<Vec<Row>> {
    let (bytes, rounds) = context.pick((100_000_000, 3), (20_000_000, 1));
    let rig = Rig::new(context)?;
    let what = format!("memory of a holder, {} MB of output", bytes / 1_000_000);
    let [idle, idle_rss, some, after, after_rss] =
        interleave(&what, rounds, || raw(&rig, bytes), || ours(&rig, bytes))?;
    let anonymous = Target::AtMost(ANONYMOUS_AT_MOST);
    let resident = Target::AtMost(RESIDENT_AT_MOST);
    let between = |early: &Rounds, late: &Rounds| Rounds { raw: early.ours.clone(), ours: late.ours.clone() };
    let row = |what: &str, rounds, target| Row::compared(what, Unit::Bytes, rounds, target);
    let mb = bytes / 1_000_000;
    Ok(vec![
        row("memory of an idle holder, anonymous", &idle, anonymous),
        row("… resident", &idle_rss, resident),
        row(&format!("… after {mb} MB of output, anonymous"), &after, anonymous),
        row("… resident", &after_rss, resident),
        row(
            "… anonymous, idle and after the first MB",
            &between(&idle, &some),
            Target::MoreAtMost(GROWTH_AT_MOST),
        ),
        row(
            &format!("… anonymous, after the first MB and after {mb}"),
            &between(&some, &after),
            Target::RatioAtMost(FLAT_AT_MOST),
        ),
    ])
}

fn raw(rig: &Rig, bytes: usize) -> anyhow::Result<[f64; 5]> {
    let file = rig.path().join("pumped");
    let mut pump = Process::spawn(actors::pump_process(&file)?.stdin(Stdio::piped()))?;
    let input = pump.take_input()?;
    let mut agent = Process::spawn(actors::agent_process()?.stdin(Stdio::piped()).stdout(input))?;
    let mut commands = agent.take_input()?;
    let id = pump.id();
    let figures = steps(id, bytes, |lines, so_far| {
        commands.write_all(actors::flood(lines).as_bytes())?;
        let expected = (GREETING.len() + so_far * LINE) as u64;
        let begin = Instant::now();
        while fs::metadata(&file).map_or(0, |there| there.len()) < expected {
            ensure!(begin.elapsed() < PATIENCE, "the raw program does not get on");
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    })?;
    drop(commands);
    agent.finish()?;
    pump.finish()?;
    Ok(figures)
}

fn ours(rig: &Rig, bytes: usize) -> anyhow::Result<[f64; 5]> {
    let (holder, mut commander) = rig.hold()?;
    let figures = steps(holder.id(), bytes, |lines, _| {
        commander.tell(&actors::flood(lines))?;
        commander.follow_lines(lines)
    })?;
    holder.end(commander.control)?;
    Ok(figures)
}

/// Takes the figures of a process before anything, after the first bytes and after all. Whoever has lines written is
/// told how many, and how many those are in all.
fn steps(
    id: u32,
    bytes: usize,
    mut write: impl FnMut(usize, usize) -> anyhow::Result<()>,
) -> anyhow::Result<[f64; 5]> {
    let (all, first) = (bytes / LINE, SOME_BYTES / LINE);
    let settled = || {
        std::thread::sleep(SETTLED);
        memory(id)
    };
    let idle = settled()?;
    write(first, first)?;
    let some = settled()?;
    write(all - first, all)?;
    let after = settled()?;
    Ok([idle[0], idle[1], some[0], after[0], after[1]])
}
