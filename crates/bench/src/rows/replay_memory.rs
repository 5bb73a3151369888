//! How much memory a replay takes, and that a log ten times as long takes no more. A process's highest
//! memory never comes down again, so each replay gets a process of its own.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};
use rekindle_domain::id::SessionId;
use rekindle_store::Want;

use crate::context::Context;
use crate::measure::interleave;
use crate::table::{Row, Target, Unit};

/// Ten times as many records may take this much more: what the allocator does differently, nothing else.
const GROWTH_AT_MOST: f64 = 1.2;

/// Returns the row that compares a log with one ten times as long.
pub(super) fn row(context: &Context, home: &Path, sessions: [SessionId; 2]) -> anyhow::Result<Row> {
    let rounds = context.pick(3, 1);
    let [short, long] = sessions;
    let what = "memory of a replay";
    let [rounds] = interleave(what, rounds, || Ok([peak(home, short)?]), || Ok([peak(home, long)?]))?;
    let what = "… peak memory, and of 10× as many records";
    Ok(Row::compared(what, Unit::Bytes, &rounds, Target::RatioAtMost(GROWTH_AT_MOST)))
}

fn peak(home: &Path, session: SessionId) -> anyhow::Result<f64> {
    let binary = std::env::current_exe().context("cannot tell where this binary is")?;
    let output = Command::new(binary).arg("--replay-once").arg(home).arg(session.as_str()).output()?;
    ensure!(output.status.success(), "the replay failed: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().parse().context("the replay told no size")
}

/// Replays one session and prints this process's highest memory in bytes.
pub(crate) fn child(home: &str, session: &str) -> anyhow::Result<()> {
    let session = session.parse().context("not a session")?;
    let last_seq = load_once(Path::new(home), session)?;
    ensure!(last_seq > 0, "nothing was replayed");
    let status = fs::read_to_string("/proc/self/status").context("cannot read this process's status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM there")?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().context("VmHWM is no number")?;
    println!("{}", kib * 1024);
    Ok(())
}

/// Loads one session of a home that nobody has open, from its log alone.
fn load_once(home: &Path, session: SessionId) -> anyhow::Result<u64> {
    use rekindle_store::disk::RealDisk;
    use rekindle_store::offline::Offline;
    let offline = Offline::open(std::sync::Arc::new(RealDisk), home)?;
    Ok(offline.load(session, Want::Everything)?.state.last_seq)
}
